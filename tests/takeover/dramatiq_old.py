"""The old side: Dramatiq on Redis. dramatiq_old.py PORT WHAT [WORDS]. With DQ=1 it is the new side, on dq."""

import os
import sys
import time

import dramatiq
from dramatiq.worker import Worker

port, what, *words = sys.argv[1:]
if os.environ.get("DQ"):
    from dqueue.dramatiq import DqBroker as Broker
else:
    from dramatiq.brokers.redis import RedisBroker as Broker

broker = Broker(url=f"redis://127.0.0.1:{port}{os.environ.get('TAKEOVER_QUERY', '')}")
dramatiq.set_broker(broker)


@dramatiq.actor(max_retries=3, min_backoff=3_600_000)
def note(n):
    with open(os.environ["TAKEOVER_LOG"], "a") as log:
        log.write(f"{n}\n")


@dramatiq.actor(max_retries=0)
def dies(n):
    raise ValueError(f"no {n}")


@dramatiq.actor(max_retries=1, min_backoff=1, max_backoff=1)
def dies_twice(n):
    raise ValueError(f"no {n}")


def work(until):
    worker = Worker(broker, worker_timeout=100, worker_threads=1)
    worker.start()
    try:
        until()
    finally:
        worker.stop()


def seen():
    with open(os.environ["TAKEOVER_LOG"]) as log:
        return len(log.readlines())


if what == "hold":
    # Its worker has delayed messages in its memory when it is killed.
    for n in range(40, 45):
        note.send_with_options(args=(n,), delay=5000)
    work(lambda: time.sleep(100))
elif what == "fill":
    dies.send(90)
    dies_twice.send(91)
    work(lambda: (broker.join("default"), time.sleep(1.5), broker.join("default")))
    for n in range(20):
        note.send(n)
    for n in range(30, 35):
        note.send_with_options(args=(n,), delay=int(float(words[0]) * 1000))
    note.send_with_options(args=(35,), delay=40 * 24 * 3_600_000)
elif what == "work":
    open(os.environ["TAKEOVER_LOG"], "a").close()

    def until():
        end = time.monotonic() + 40
        while seen() < int(words[0]) and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.5)

    work(until)
