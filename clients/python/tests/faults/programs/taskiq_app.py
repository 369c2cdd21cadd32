"""A broker of taskiq and its task."""

import os

from dqueue.taskiq import DqBroker
from work import work_async

broker = DqBroker(os.environ["FAULTS_URL"], queue_name="work", lease=int(os.environ["FAULTS_LEASE"]), block=1000)

task = broker.task(task_name="work")(work_async)
