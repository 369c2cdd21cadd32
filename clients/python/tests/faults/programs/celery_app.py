"""An application of Celery."""

import os

import dqueue.kombu  # noqa: F401  makes dq:// known
from celery import Celery
from work import work

lease = int(os.environ["FAULTS_LEASE"]) / 1000

app = Celery("celery_app", broker=os.environ["FAULTS_URL"].replace("redis", "dq", 1))
app.conf.update(
    task_default_queue="work",
    broker_transport_options={"bind_grace": lease, "visibility_timeout": lease},
    broker_connection_retry_on_startup=True,
    task_acks_late=not os.environ.get("FAULTS_EARLY"),
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=2,
)

task = app.task(name="work")(work)
