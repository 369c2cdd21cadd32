"""RQ with its SimpleWorker, which does not fork for each job, one job at a time, and its scheduler."""

import logging
import sys

import job
import redis
from rq import Queue, SimpleWorker

queue = Queue("jobs", connection=redis.Redis(port=job.PORT))


def send():
    from datetime import timedelta

    for payload, delay in job.orders():
        options = {"result_ttl": 0}
        if delay:
            queue.enqueue_in(timedelta(milliseconds=delay), "job.handle", payload, **options)
        else:
            queue.enqueue("job.handle", payload, **options)
    job.sent()


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send()
    else:
        SimpleWorker([queue], connection=queue.connection).work(with_scheduler=True, logging_level=logging.WARNING)
