"""The events of each order, in the order in which they happened.

Events of an order (create, pay, ship, ...) are JSON objects like

    {"reqId":"0a7c458c-d619-af31-3ffb-f499995eacd5","user_id":1002,"order_id":2302393013,"data":{"status":1},"q_time":1563978617}

Several producers push them as they are with DQ.GROUPPUSH, which takes the group (user_id and order_id), the id
(reqId) and the place in the group (q_time) out of the JSON. They come out of order: each is on its way for up
to `--settle-ms`. So each becomes due that long after its q_time: by then, everything that happened before it
has arrived. A producer that is not sure whether its push worked pushes again; the id makes that harmless.

Many workers, separate processes, handle them: never two of one order at once, always by q_time. They are
started when half of the events are there already. One worker throws now and then: its event stays the head of
its order, and what comes after it waits, until it has been handled. One worker is killed with SIGKILL while it
handles an event: its order goes on when the lease is over, the other orders do not notice.

Run it against a server that has the module loaded:

    python3 -m venv .venv && .venv/bin/pip install 'redis>=5'
    .venv/bin/python order_events.py --url redis://127.0.0.1:6379 --orders 200 --events 6

It prints the sequence handled for each order (the status of each event; `1!` is a handler that threw, `1x` one
that was killed) and the count of violations, and ends with exit code 1 if there is one. The queue is its own
and is removed.
"""

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import uuid

import redis

LEASE_MS = 1500
BACKOFF_MS = 1000
PRODUCERS = 3


def now_ms():
    return time.time() * 1000


def connect(url):
    return redis.Redis.from_url(url, decode_responses=True, protocol=3)


class Journal:
    """What a process did, a line each. A line written survives the process, even if it is killed."""

    def __init__(self, folder, name):
        self.file = os.open(os.path.join(folder, name), os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def write(self, **line):
        os.write(self.file, (json.dumps(line | {"at": time.monotonic()}) + "\n").encode())


def read_journals(folder, prefix):
    """All lines of the journals of that prefix, in order of time: the monotonic clock is one for all processes."""
    lines = []
    for name in os.listdir(folder):
        if name.startswith(prefix):
            with open(os.path.join(folder, name)) as file:
                lines += [json.loads(line) | {"by": name} for line in file]
    return sorted(lines, key=lambda line: line["at"])


# ---- producers and workers ------------------------------------------------------------------------------------------


def make_events(options, start):
    """Events as (time of arrival, due time, producer, event): an order's events are one second apart."""
    dice = random.Random(options.seed)
    events = []
    for order in range(options.orders):
        happened = int(start / 1000) + 1 + order % 2
        for status in range(1, options.events + 1):
            event = {
                "reqId": str(uuid.UUID(int=dice.getrandbits(128), version=4)),
                "user_id": 1000 + order // 3,
                "order_id": 2302393013 + order,
                "data": {"status": status},
                "q_time": happened + status,
            }
            arrives = event["q_time"] * 1000 + dice.uniform(0, options.settle_ms * 0.8)
            events.append((arrives, event["q_time"] * 1000 + options.settle_ms, dice.randrange(PRODUCERS), event))
    return sorted(events, key=lambda each: each[0])


def produce(options, folder, number, start):
    client, journal, dice = connect(options.url), Journal(folder, f"producer-{number}"), random.Random(number)
    for arrives, due, producer, event in make_events(options, start):
        if producer != number:
            continue
        time.sleep(max(0, (arrives - now_ms()) / 1000))
        paths = ["GROUPBY", 2, "user_id", "order_id", "IDPATH", "reqId", "SCOREPATH", "q_time"]
        push = ["DQ.GROUPPUSH", options.queue, json.dumps(event, separators=(",", ":")), *paths, "AT", due]
        group, _id = client.execute_command(*push)
        again = dice.random() < 0.05
        refused = again and client.execute_command(*push) is None
        journal.write(
            group=group, status=event["data"]["status"], arrived=now_ms() <= due, again=again, refused=refused
        )


def consume(options, folder, name, clumsy):
    running = True

    def stop(_signal, _frame):
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    client, journal, dice = connect(options.url), Journal(folder, name), random.Random(name)
    done = []
    while running:
        ack = ["ACK", len(done), *done] if done else []
        batch = client.execute_command("DQ.FETCH", options.queue, "BLOCK", 500, "CONSUMER", name, *ack)
        done = []
        for _id, receipt, _attempt, payload in batch:
            event = json.loads(payload)
            line = {"group": f"{event['user_id']}_{event['order_id']}", "status": event["data"]["status"]}
            journal.write(what="begin", **line)
            try:
                time.sleep(options.handler_ms / 1000)
                if clumsy and dice.random() < 0.2:
                    raise RuntimeError("no connection to the warehouse")
            except RuntimeError as error:
                journal.write(what="failed", **line)
                client.execute_command("DQ.NACK", options.queue, receipt, "ERROR", str(error))
            else:
                journal.write(what="done", **line)
                done.append(receipt)
    if done:
        client.execute_command("DQ.ACK", options.queue, *done)


def kill_at_work(worker, name, folder):
    """SIGKILLs the worker at a moment when it handles an event; False if it never did."""
    for _ in range(2000):
        os.kill(worker.pid, signal.SIGSTOP)
        lines = read_journals(folder, name)
        if lines and lines[-1]["what"] == "begin":
            os.kill(worker.pid, signal.SIGKILL)
            worker.join()
            Journal(folder, name).write(what="killed", group=lines[-1]["group"], status=lines[-1]["status"])
            return True
        os.kill(worker.pid, signal.SIGCONT)
        time.sleep(0.002)
    return False


# ---- the proof ------------------------------------------------------------------------------------------------------


def check(lines, events):
    """The violations of one order, by its journal lines in order of time."""
    violations, current, handled = [], None, []
    for line in lines:
        if line["what"] == "begin":
            if current:
                violations.append(f"{line['status']} began while {current['status']} was being handled")
            if line["status"] != len(handled) + 1:
                violations.append(f"{line['status']} began after {handled}")
            current = line
        else:
            current = None
            if line["what"] == "done":
                handled.append(line["status"])
    if handled != list(range(1, events + 1)):
        violations.append(f"handled {handled} of 1 to {events}")
    return violations


def report(options, folder, killed, failures):
    pushed, handled = read_journals(folder, "producer"), read_journals(folder, "worker")
    marks = {"done": "", "failed": "!", "killed": "x"}
    violations = 0
    for group in sorted({line["group"] for line in pushed}):
        lines = [line for line in handled if line["group"] == group]
        sequence = " ".join(f"{line['status']}{marks[line['what']]}" for line in lines if line["what"] in marks)
        found = check(lines, options.events)
        violations += len(found)
        print(f"{group:<20}{sequence}{'   VIOLATION: ' + '; '.join(found) if found else ''}")
    arrival = {}
    for line in pushed:
        arrival.setdefault(line["group"], []).append(line["status"])
    duplicates = [line["refused"] for line in pushed if line["again"]]
    print(f"orders                     {len(arrival)}")
    print(f"events pushed              {len(pushed)} by {PRODUCERS} producers")
    print(f"orders pushed out of order {sum(statuses != sorted(statuses) for statuses in arrival.values())}")
    print(f"pushed again, refused      {len(duplicates)}, {sum(duplicates)}")
    print(f"handlers that threw        {sum(line['what'] == 'failed' for line in handled)}")
    print(f"workers killed at work     {int(killed)}")
    print(f"events lost                {len(pushed) - sum(line['what'] == 'done' for line in handled)}   (must be 0)")
    print(f"violations                 {violations}   (must be 0)")
    if not all(line["arrived"] for line in pushed):
        print("some events arrived after their due time: this machine is too slow for this --settle-ms")
    return 1 if violations or failures or not killed or not all(duplicates) else 0


def play(options, folder):
    client = connect(options.url)
    # RETRIES -1: an event that fails is tried again for ever, as nothing of its order may overtake it. DEDUP keeps the
    # id of a handled event for a minute, so that a late repetition of its push is refused too.
    client.execute_command(
        "DQ.CREATE", options.queue, "LEASE", LEASE_MS, "RETRIES", -1, "BACKOFF", "FIXED", BACKOFF_MS, "DEDUP", 60_000
    )
    start = now_ms() + 200
    producers = [
        multiprocessing.Process(target=produce, args=(options, folder, number, start)) for number in range(PRODUCERS)
    ]
    names = [f"worker-{number}" for number in range(options.workers)]
    # The first worker will be killed, the second one throws now and then.
    workers = [
        multiprocessing.Process(target=consume, args=(options, folder, name, number == 1))
        for number, name in enumerate(names)
    ]
    try:
        for process in producers:
            process.start()
        # The first events are three seconds ahead of the start.
        time.sleep(3 + options.settle_ms / 1000 + options.events / 2)
        for process in workers:
            process.start()
        killed = kill_at_work(workers[0], names[0], folder)
        for process in producers:
            process.join()
        end = now_ms() + options.settle_ms + LEASE_MS + options.events * 1000 + 10_000
        while client.execute_command("DQ.LEN", options.queue) and now_ms() < end:
            time.sleep(0.05)
    finally:
        for process in producers + workers:
            if process.is_alive():
                process.terminate()
        for process in producers + workers:
            process.join()
    return report(options, folder, killed, sum(process.exitcode != 0 for process in producers + workers[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--orders", type=int, default=200)
    parser.add_argument("--events", type=int, default=6, help="events of each order, one second apart")
    parser.add_argument("--settle-ms", type=int, default=2500, help="how late an event may arrive")
    parser.add_argument("--handler-ms", type=float, default=5)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.queue = f"orders:events:{os.getpid()}"
    if options.workers < 3:
        parser.error("one worker is killed and one throws: --workers must be at least 3")
    with tempfile.TemporaryDirectory() as folder:
        try:
            return play(options, folder)
        finally:
            connect(options.url).unlink(options.queue)


if __name__ == "__main__":
    sys.exit(main())
