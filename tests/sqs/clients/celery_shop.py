"""An application of Celery. ENDPOINT has the host, FILE takes what is done."""

import os
import time
from urllib.parse import urlsplit

from celery import Celery

app = Celery("celery_shop", broker=f"sqs://key:secret@{urlsplit(os.environ['ENDPOINT']).netloc}")
app.conf.broker_transport_options = {
    "is_secure": False,
    "region": "us-east-1",
    "visibility_timeout": 4,
    "wait_time_seconds": 5,
    "polling_interval": 0.1,
}
app.conf.task_acks_late = True
app.conf.worker_prefetch_multiplier = 1
app.conf.worker_enable_remote_control = False


@app.task
def work(number):
    time.sleep(0.1)
    with open(os.environ["FILE"], "a") as done:
        print(number, file=done)


def send():
    for number in range(20):
        work.apply_async((number,), countdown=1 if number % 2 else None)
