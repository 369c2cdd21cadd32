"""The event ledger: what an order sets in motion, done in the background and on record.

"Order done" puts three events into a queue, so that the page returns at once: send a mail, tell the ERP,
upgrade the member. The queue is the ledger too: each event has its code (type), data, status, result or error,
and its times, kept for a day (RETAIN) and read with DQ.GET and DQ.LIST; there is no table beside it and nobody
polls.

What happens here: the ERP's handler is broken, so its events fail, are tried again and are dead in the end. A
keyspace event (dq.dead) tells the operator, who looks at the ledger. A worker is killed with SIGKILL at its
work; its event is back in line when the lease is over. Then the fixed release is started and DQ.REDRIVE runs
the dead events again.

Run it against a server that has the module loaded (it switches keyspace events on for as long as it runs):

    python3 -m venv .venv && .venv/bin/pip install 'redis>=5'
    .venv/bin/python event_ledger.py --url redis://127.0.0.1:6379 --orders 30

It prints the ledger before and after the fix; the exit code is 1 if an event is lost, unfinished or without its
record. The queue is its own and is removed at the end.
"""

import argparse
import collections
import datetime
import json
import multiprocessing
import os
import signal
import sys
import time

import redis

TYPES = ("mail", "erp", "member")
STATES = ("delayed", "ready", "blocked", "retry", "running", "finished", "dead", "cancelled")
LEASE_MS = 1000
RETRIES = 2


def connect(url):
    return redis.Redis.from_url(url, decode_responses=True, protocol=3)


# ---- the page and the workers ---------------------------------------------------------------------------------------


def order_done(client, queue, order, customer):
    """What the page calls: three events in one round trip. The ids make it harmless to call it again."""
    data = json.dumps({"order": order, "customer": customer})
    pipe = client.pipeline(transaction=False)
    for type in TYPES:
        pipe.execute_command("DQ.SEND", queue, data, "ID", f"{order}:{type}", "TYPE", type)
    pipe.execute()


def send_mail(data):
    return f"mailed {data['customer']}"


def sync_erp_broken(data):
    return f"ERP document {data['customer_id']}"


def sync_erp(data):
    return f"ERP document {data['order'].removeprefix('order-')}"


def upgrade_member(data):
    return f"{data['customer']} is gold now"


BROKEN_RELEASE = {"mail": send_mail, "erp": sync_erp_broken, "member": upgrade_member}
FIXED_RELEASE = BROKEN_RELEASE | {"erp": sync_erp}


def work(options, handlers, name):
    running = True

    def stop(_signal, _frame):
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    client = connect(options.url)
    while running:
        batch = client.execute_command("DQ.FETCH", options.queue, "BLOCK", 500, "CONSUMER", name, "WITHMETA")
        for _id, receipt, _attempt, payload, meta in batch:
            try:
                time.sleep(options.handler_ms / 1000)
                result = handlers[meta["type"]](json.loads(payload))
            except Exception as error:  # whatever a handler throws goes on record
                client.execute_command("DQ.NACK", options.queue, receipt, "ERROR", f"{type(error).__name__}: {error}")
            else:
                client.execute_command("DQ.ACK", options.queue, receipt, "RESULT", result)


# ---- the operator ---------------------------------------------------------------------------------------------------


def read_ledger(client, queue, *filters):
    """Every record of the queue, a page at a time."""
    for state in STATES:
        cursor = "0"
        while True:
            cursor, page = client.execute_command("DQ.LIST", queue, state, "CURSOR", cursor, "COUNT", 100, *filters)
            yield from page
            if cursor == "0":
                break


def print_ledger(records, rows):
    columns = "{:<18}{:<8}{:<10}{:<6}{:<14}{:<14}{:<14}{}"
    print(columns.format("event", "code", "status", "tries", "created", "started", "finished", "message"))
    for record in sorted(records, key=lambda record: (record["sent-at"], record["id"]))[:rows]:
        times = [time_text(record[name]) for name in ("sent-at", "started-at", "finished-at")]
        message = record["result"] or record["error"] or ""
        print(columns.format(record["id"], record["type"], record["status"], record["attempt"], *times, message))
    counts = collections.Counter((record["type"], record["status"]) for record in records)
    print("in all: " + ", ".join(f"{count} {type} {status}" for (type, status), count in sorted(counts.items())))


def time_text(ms):
    return datetime.datetime.fromtimestamp(ms / 1000).strftime("%H:%M:%S.%f")[:-3] if ms else "-"


def kill_at_work(client, queue, worker, name):
    """SIGKILLs the worker at a moment when it holds an event; returns the event's id, or None."""

    def held():
        return [
            record["id"]
            for record in read_ledger(client, queue)
            if record["state"] == "running" and record["consumer"] == name
        ]

    for _ in range(500):
        os.kill(worker.pid, signal.SIGSTOP)
        # Asked twice: an ACK that was sent before the worker stood still has then been served.
        if held() and (ids := held()):
            worker.kill()
            worker.join()
            return ids[0]
        os.kill(worker.pid, signal.SIGCONT)
        time.sleep(0.003)
    return None


def wait_until_done(client, queue, seconds=30):
    end = time.monotonic() + seconds
    while client.execute_command("DQ.LEN", queue) and time.monotonic() < end:
        time.sleep(0.02)


def start_workers(options, handlers):
    workers = [
        multiprocessing.Process(target=work, args=(options, handlers, f"worker-{number}"))
        for number in range(options.workers)
    ]
    for process in workers:
        process.start()
    return workers


def stop_workers(workers):
    for process in workers:
        process.terminate()
    for process in workers:
        process.join()


def check(before, after, orders, killed, redriven):
    """Counts of broken promises."""
    expected = {f"order-{order}:{type}" for order in range(orders) for type in TYPES}
    broken = collections.Counter()
    broken["events without record"] = len(expected - after.keys())
    broken["not finished"] = sum(record["status"] != "finished" for record in after.values())
    broken["without result"] = sum(not record["result"] for record in after.values())
    broken["times missing or out of order"] = sum(
        not (
            record["sent-at"]
            <= (record["first-started-at"] or 0)
            <= (record["started-at"] or 0)
            <= (record["finished-at"] or 0)
        )
        for record in after.values()
    )
    dead = [record for record in before.values() if record["status"] == "error"]
    broken["broken handler's events not dead"] = orders - sum(record["type"] == "erp" for record in dead)
    broken["others dead"] = sum(record["type"] != "erp" for record in dead)
    broken["dead without 3 tries and an error"] = sum(
        record["attempt"] != RETRIES + 1 or record["reason"] != "retries" or not record["error"] for record in dead
    )
    broken["dead but not redriven"] = len(dead) - redriven
    broken["killed worker's event not tried again"] = (
        not killed or before[killed]["timeouts"] != 1 or before[killed]["attempt"] < 2
    )
    return broken


def play(options):
    client = connect(options.url)
    tries = ["LEASE", LEASE_MS, "RETRIES", RETRIES, "BACKOFF", "FIXED", 100]
    records = ["RETAIN", 86_400_000, "RETAINCOUNT", 1_000_000]
    client.execute_command("DQ.CREATE", options.queue, *tries, *records)
    alarms = client.pubsub(ignore_subscribe_messages=True)
    alarms.psubscribe(f"__keyspace@*__:{options.queue}")
    alarms.get_message(timeout=1)
    began = time.monotonic()
    for order in range(options.orders):
        order_done(client, options.queue, f"order-{order}", f"customer-{order % 7}")
    each = (time.monotonic() - began) * 1000 / options.orders
    print(f"{options.orders} orders done; the page waited {each:.2f} ms for each\n")

    workers = start_workers(options, BROKEN_RELEASE)
    try:
        killed = kill_at_work(client, options.queue, workers[0], "worker-0")
        print(f"worker-0 killed while it handled {killed}")
        wait_until_done(client, options.queue)
    finally:
        stop_workers(workers)
    alarm, end = None, time.monotonic() + 5
    while alarm != "dq.dead" and time.monotonic() < end:
        alarm = (alarms.get_message(timeout=1) or {}).get("data")
    print(f"alarm by keyspace event: {alarm}\n")
    before = {record["id"]: record for record in read_ledger(client, options.queue)}
    print_ledger(before.values(), options.rows)

    workers = start_workers(options, FIXED_RELEASE)
    try:
        redriven = client.execute_command("DQ.REDRIVE", options.queue, "ALL")
        print(f"\nthe fixed release runs; {redriven} dead events redriven\n")
        wait_until_done(client, options.queue)
    finally:
        stop_workers(workers)
    after = {record["id"]: record for record in read_ledger(client, options.queue)}
    print_ledger(after.values(), options.rows)

    broken = check(before, after, options.orders, killed, redriven)
    broken["no alarm"] = alarm != "dq.dead"
    print()
    for promise, count in broken.items():
        print(f"{promise:<40}{int(count)}   (must be 0)")
    return 1 if any(broken.values()) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--orders", type=int, default=30)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--handler-ms", type=float, default=10)
    parser.add_argument("--rows", type=int, default=12, help="how many lines of the ledger are printed")
    options = parser.parse_args()
    options.queue = f"orders:ledger:{os.getpid()}"
    if options.workers < 2:
        parser.error("one worker is killed: --workers must be at least 2")
    client = connect(options.url)
    events = client.config_get("notify-keyspace-events")["notify-keyspace-events"]
    client.config_set("notify-keyspace-events", events + "Kd")
    try:
        return play(options)
    finally:
        client.config_set("notify-keyspace-events", events)
        client.unlink(options.queue)


if __name__ == "__main__":
    sys.exit(main())
