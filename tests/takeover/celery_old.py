"""The old side: Celery of an environment, on Redis. celery_old.py PORT WHAT [WORDS]. With DQ=1 it is the new side, on dq."""

import json
import os
import sys
from datetime import UTC, datetime, timedelta

from celery import Celery

port, what, *words = sys.argv[1:]
scheme = "redis"
if os.environ.get("DQ"):
    import dqueue.kombu  # noqa: F401

    scheme = "dq"
app = Celery("old", broker=f"{scheme}://127.0.0.1:{port}/0")
app.conf.broker_connection_retry_on_startup = True
app.conf.broker_transport_options = json.loads(os.environ.get("TAKEOVER_OPTIONS", "{}"))


@app.task(name="note", bind=True, max_retries=3)
def note(self, n):
    with open(os.environ["TAKEOVER_LOG"], "a") as log:
        log.write(f"{n}\n")


if what == "fill":
    soon = float(words[0])
    for n in range(20):
        note.apply_async((n,))
    for n, priority in ((20, 6), (21, 3), (22, 9)):
        note.apply_async((n,), priority=priority)
    for n in range(30, 35):
        note.apply_async((n,), countdown=soon)
    note.apply_async((35,), eta=datetime.now(UTC).replace(tzinfo=None) + timedelta(days=40))
    note.apply_async((36,), queue="other", expires=3600)
elif what == "protocol 1":
    app.conf.task_protocol = 1
    note.apply_async((40,))
elif what == "many":
    for n in range(int(words[0])):
        note.apply_async((n,))
elif what == "work":
    app.worker_main(["worker", "--pool", "solo", "--loglevel", "WARNING", "-Q", words[0], "--without-mingle", "--without-gossip"])
