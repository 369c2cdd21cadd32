"""Celery over Redis as a broker, without results.

The worker is `celery worker` with one process: the pool `solo` for one job at a time, `threads` for more. Jobs are acked
when they are done (`acks_late`), as all others do.
"""

import sys

import job
from celery import Celery

app = Celery("with_celery", broker=f"redis://127.0.0.1:{job.PORT}/0")
app.conf.update(task_ignore_result=True, task_acks_late=True, worker_hijack_root_logger=False)


@app.task(name="run")
def run(payload):
    job.handle(payload)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        for payload, delay in job.orders():
            run.apply_async((payload,), countdown=delay / 1000 if delay else None)
        job.sent()
    else:
        pool = ["-P", "solo"] if job.CONCURRENCY == 1 else ["-P", "threads", "-c", str(job.CONCURRENCY)]
        app.worker_main(
            [
                "worker",
                "-l",
                "error",
                "--without-heartbeat",
                "--without-mingle",
                "--without-gossip",
                *pool,
            ]
        )
