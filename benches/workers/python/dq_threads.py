"""dqueue with threads."""

import sys

import job
from dqueue import Queue, Worker, connect

queue = Queue(connect(f"redis://127.0.0.1:{job.PORT}"), "jobs")

if sys.argv[1] == "send":
    for payload, delay in job.orders():
        queue.send(payload, delay=delay or None)
    job.sent()
else:
    worker = Worker(queue, concurrency=job.CONCURRENCY)

    @worker.handler()
    def run(message):
        job.handle(message.payload)

    worker.run()
