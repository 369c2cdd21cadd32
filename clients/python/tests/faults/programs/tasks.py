"""A Worker whose handlers are asyncio tasks."""

import asyncio
import json
import os

from dqueue.asyncio import Queue, Worker, connect
from work import work_async


async def main():
    queue = Queue(connect(os.environ["FAULTS_URL"]), "work")
    worker = Worker(queue, concurrency=2, lease=int(os.environ["FAULTS_LEASE"]), grace=3000)

    @worker.handler()
    async def handle(message):
        await work_async(*json.loads(message.payload))

    await worker.run()


asyncio.run(main())
