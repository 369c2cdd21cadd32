"""arq, without kept results."""

import asyncio
import sys

import job
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

SERVER = RedisSettings(port=job.PORT)


async def run(_, payload):
    job.arrived(payload)
    if job.SLEEP:
        await asyncio.sleep(job.SLEEP)


async def send():
    pool = await create_pool(SERVER)
    for payload, delay in job.orders():
        await pool.enqueue_job("run", payload, _defer_by=delay / 1000 if delay else None)
    job.sent()


if __name__ == "__main__":
    if sys.argv[1] == "send":
        asyncio.run(send())
    else:
        asyncio.set_event_loop(asyncio.new_event_loop())
        Worker(
            [func(run, name="run", keep_result=0)],
            redis_settings=SERVER,
            max_jobs=job.CONCURRENCY,
        ).run()
