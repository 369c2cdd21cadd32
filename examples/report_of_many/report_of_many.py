"""One report of many rows: computed by many workers as a batch, put together by one message after all of them.

A report has 100,000 rows. They are sent as messages of 500 rows each, all in one BATCH. The message that puts the
report together is sent at the start, with AFTER: it is held until the last row is done, and then delivered in the same
millisecond. Nobody counts and nobody polls.

A message leaves a note after each 50 rows (DQ.TOUCH ... NOTE): how far it is, and what it has found. Workers are killed
with SIGKILL in the middle of a message. Its next attempt reads the note and goes on from there.

Run it against a server that has the module loaded. It needs Python 3.11 or newer and the package:

    python3 -m venv .venv && .venv/bin/pip install ./clients/python
    .venv/bin/python examples/report_of_many/report_of_many.py --url redis://127.0.0.1:6379 --rows 100000

Memory that all processes share counts how often each row was computed, so a killed worker's count stays. The exit code
is 1 if a row is missing in the report or in it twice, if the report was begun before all rows were done or more than
once, or if a killed worker's rows were computed again from the start of its message. The queue is its own and is removed
at the end.
"""

import argparse
import hashlib
import json
import logging
import multiprocessing
import os
import signal
import sys
import time

from dqueue import Queue, Worker, connect

MESSAGE_ROWS = 500
NOTE_ROWS = 50
LEASE_MS = 1000


def value_of(row):
    """What is computed for a row."""
    return int.from_bytes(hashlib.sha256(str(row).encode()).digest()[:6], "big")


class Tally:
    """What has been done, in memory that all processes share."""

    def __init__(self, rows):
        self.times = multiprocessing.RawArray("B", rows)
        self.reports = multiprocessing.Value("i", 0)
        self.undone_at_report = multiprocessing.Value("i", -1)
        self.resumed = multiprocessing.Value("i", 0)


def work(options, tally, name):
    logging.disable(logging.WARNING)
    queue = Queue(connect(options.url), options.queue)
    # Workers are killed all the time here, which is no message's fault.
    worker = Worker(queue, lease=LEASE_MS, block=500, consumer=name, lost_workers=0)

    @worker.handler("rows")
    def compute(message):
        first, last = message.json()
        state = {"next": first, "sum": 0}
        if message.note and not options.without_note:
            state = json.loads(message.note)
        if state["next"] > first:
            with tally.resumed:
                tally.resumed.value += 1
        while state["next"] < last:
            for row in range(state["next"], min(state["next"] + NOTE_ROWS, last)):
                state["sum"] += value_of(row)
                tally.times[row] += 1
            state["next"] = row + 1
            time.sleep(options.pause_ms / 1000)
            if not worker.note(message, json.dumps(state)):
                return None  # the lease is lost: another worker has the message
        return json.dumps({"rows": last - first, "sum": state["sum"]})

    @worker.handler("report")
    def report(message):
        with tally.reports:
            tally.reports.value += 1
            tally.undone_at_report.value = sum(times == 0 for times in tally.times)
        parts = [json.loads(record.result) for record in queue.find("finished", batch=options.batch)]
        return json.dumps({"rows": sum(part["rows"] for part in parts), "sum": sum(part["sum"] for part in parts)})

    worker.run()


def kill_midway(queue, worker, name):
    """SIGKILLs the worker when its message has a note. Returns the message's record, or None if that never was so."""
    for _ in range(2000):
        os.kill(worker.pid, signal.SIGSTOP)
        # Asked twice: what the worker sent before it stood still has then been served.
        for _ in range(2):
            held = [record for record in queue.list("running") if record.consumer == name and record.note]
        if held and queue.len("held") and json.loads(held[0].note)["next"] < json.loads(held[0].payload)[1]:
            worker.kill()
            worker.join()
            return held[0]
        os.kill(worker.pid, signal.SIGCONT)
        if not queue.len("held"):
            return None
        time.sleep(0.003)
    return None


def play(options, queue):
    queue.create(retries=-1, retain=3_600_000)
    tally = Tally(options.rows)
    for first in range(0, options.rows, MESSAGE_ROWS):
        queue.send(json.dumps([first, min(first + MESSAGE_ROWS, options.rows)]), type="rows", batch=options.batch)
    queue.send("report", id="report", type="report", after=options.batch)
    names = [f"worker-{number}" for number in range(options.workers)]
    workers = {name: multiprocessing.Process(target=work, args=(options, tally, name)) for name in names}
    killed = []
    try:
        for process in workers.values():
            process.start()
        for name in names[: options.kills]:
            record = kill_midway(queue, workers[name], name)
            if record:
                killed.append(record)
                note = json.loads(record.note)
                print(f"{name} killed at work on the rows {record.payload.decode()}; its note says {note['next']}")
        deadline = time.monotonic() + options.seconds
        while queue.len() and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        for process in workers.values():
            if process.is_alive():
                process.terminate()
        for process in workers.values():
            process.join()
    return report_on(options, queue, tally, killed)


def report_on(options, queue, tally, killed):
    made = queue.get("report")
    parts = list(queue.find("finished", batch=options.batch))
    found = json.loads(made.result) if made and made.result else {"rows": 0, "sum": 0}
    again = sum(tally.times) - options.rows
    print(f"rows                             {options.rows} in {len(parts)} messages")
    print(f"workers killed midway            {len(killed)}")
    print(f"went on from a note              {tally.resumed.value}")
    print(f"rows computed again              {again} (at most {NOTE_ROWS} for each kill)")
    if made and made.started_at and parts:
        late = made.started_at - max(part.finished_at for part in parts)
        print(f"report begun after the last row  {late} ms")
    broken = {
        "rows missing in the report": options.rows - found["rows"],
        "sum is wrong": int(found["sum"] != sum(map(value_of, range(options.rows)))),
        "rows not done when it began": tally.undone_at_report.value,
        "reports too many or too few": abs(tally.reports.value - 1),
        "rows begun anew after a kill": max(0, again - NOTE_ROWS * len(killed)),
        "killed but not gone on": max(0, len(killed) - tally.resumed.value),
        "messages left": queue.len() + queue.len("dead"),
    }
    for promise, count in broken.items():
        print(f"{promise:<33}{count}   (must be 0)")
    return 1 if any(broken.values()) or len(killed) < options.kills else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--kills", type=int, default=3, help="workers that are killed, each midway through a message")
    parser.add_argument("--pause-ms", type=float, default=4, help="what 50 rows take beside computing them")
    parser.add_argument("--without-note", action="store_true", help="shows what happens without: the exit code is 1")
    parser.add_argument("--seconds", type=float, default=120, help="when to give up")
    options = parser.parse_args()
    if not options.kills < options.workers:
        parser.error("fewer kills than workers")
    options.queue, options.batch = f"reports:{os.getpid()}", "rows of the report"
    queue = Queue(connect(options.url), options.queue)
    try:
        return play(options, queue)
    finally:
        queue.client.unlink(options.queue)


if __name__ == "__main__":
    sys.exit(main())
