"""The work that every Python worker does with a job, and the way in which every Python producer sends jobs.

The runner gives both their settings in the environment, and reads what the worker prints.
"""

import os
import sys
import time

PORT = int(os.environ["BENCH_PORT"])
CONCURRENCY = int(os.environ.get("BENCH_CONCURRENCY", "1"))
SLEEP = float(os.environ.get("BENCH_SLEEP_MS", "0")) / 1000
"""Seconds for which a handler sleeps. 0 means that it does nothing."""

_first = int(os.environ.get("BENCH_FIRST", "1"))
_last = int(os.environ.get("BENCH_LAST", "0"))
_stamped = os.environ.get("BENCH_STAMPED") == "1"
_late = []
_count = 0


def arrived(payload):
    """Counts a job. Tells the runner when the first and the last one to be measured begin.

    A stamped payload is the Unix time in microseconds at which the job should have begun at the earliest.
    """
    global _count
    if _stamped:
        _late.append(time.time_ns() // 1000 - int(payload))
    _count += 1
    if _count == _first:
        _tell("first")
    if _count == _last:
        _tell(" ".join(["last", *map(str, _late)]))


def handle(payload):
    """The handler of a job in a thread."""
    arrived(payload)
    if SLEEP:
        time.sleep(SLEEP)


def _tell(line):
    # One write to the descriptor, because a framework may have replaced stdout.
    os.write(1, f"{line}\n".encode())


def orders():
    """Yields the messages that the producer is to send: payload and delay (ms).

    Each line of stdin has both. In place of the payload, @ asks for a stamp: when the job should begin.
    """
    for line in sys.stdin:
        delay, payload = line.split()
        delay = int(delay)
        yield (
            (str(time.time_ns() // 1000 + delay * 1000) if payload == "@" else payload),
            delay,
        )


def sent():
    """Tells the runner that all jobs are sent."""
    _tell("sent")
