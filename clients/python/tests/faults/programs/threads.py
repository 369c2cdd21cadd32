"""A Worker whose handlers run in threads."""

import json
import os

from dqueue import Queue, Worker, connect
from work import work

worker = Worker(Queue(connect(os.environ["FAULTS_URL"]), "work"), concurrency=2, lease=int(os.environ["FAULTS_LEASE"]), grace=3000)


@worker.handler()
def handle(message):
    work(*json.loads(message.payload))


worker.run()
