"""dqueue with asyncio."""

import asyncio

import job
from dqueue.asyncio import Queue, Worker, connect


async def main():
    worker = Worker(
        Queue(connect(f"redis://127.0.0.1:{job.PORT}"), "jobs"),
        concurrency=job.CONCURRENCY,
    )

    @worker.handler()
    async def run(message):
        job.arrived(message.payload)
        if job.SLEEP:
            await asyncio.sleep(job.SLEEP)

    await worker.run()


asyncio.run(main())
