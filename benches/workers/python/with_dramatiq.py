"""Dramatiq over Redis, with its default middleware less Prometheus, and one process."""

import signal
import sys

import dramatiq
import job
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(url=f"redis://127.0.0.1:{job.PORT}/0")
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="run")
def run(payload):
    job.handle(payload)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        for payload, delay in job.orders():
            run.send_with_options(args=(payload,), delay=delay or None)
        job.sent()
    else:
        # The program `dramatiq --processes 1` runs the same worker in its process.
        worker = dramatiq.Worker(broker, worker_threads=job.CONCURRENCY)
        worker.start()
        signal.pause()
