"""taskiq over a stream of Redis, one process, with its scheduler for delays in the same process."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta

import job
from taskiq import TaskiqScheduler
from taskiq.api import run_receiver_task, run_scheduler_task
from taskiq_redis import ListRedisScheduleSource, RedisStreamBroker

URL = f"redis://127.0.0.1:{job.PORT}/0"
broker = RedisStreamBroker(URL)
source = ListRedisScheduleSource(URL)
scheduler = TaskiqScheduler(broker, [source])


@broker.task(task_name="run")
async def run(payload: str) -> None:
    job.arrived(payload)
    if job.SLEEP:
        await asyncio.sleep(job.SLEEP)


async def send():
    await broker.startup()
    await source.startup()
    for payload, delay in job.orders():
        if delay:
            await run.schedule_by_time(source, datetime.now(UTC) + timedelta(milliseconds=delay), payload)
        else:
            await run.kiq(payload)
    job.sent()


async def work():
    broker.is_worker_process = True
    await broker.startup()
    receiver = run_receiver_task(broker, max_async_tasks=job.CONCURRENCY)
    # The scheduler looks for due messages once a second.
    await asyncio.gather(receiver, run_scheduler_task(scheduler, interval=timedelta(seconds=1)))


if __name__ == "__main__":
    asyncio.run(send() if sys.argv[1] == "send" else work())
