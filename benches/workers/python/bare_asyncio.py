"""The ceiling of Python with asyncio: a loop over redis-py that only fetches and acks, COUNT at a time."""

import asyncio

import job
import redis.asyncio


async def main():
    client = redis.asyncio.Redis(port=job.PORT, protocol=3)
    acks = []
    while True:
        batch = await client.execute_command("DQ.FETCH", "jobs", "COUNT", job.CONCURRENCY, "BLOCK", 2000, *acks)
        for _, _, _, payload in batch or ():
            job.arrived(payload)
        acks = ["ACK", len(batch), *(one[1] for one in batch)] if batch else []


asyncio.run(main())
