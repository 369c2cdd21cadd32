"""Tasks for asyncio: what differs from those in threads."""

import asyncio
import threading
from contextlib import asynccontextmanager, contextmanager

import pytest
from dqueue import Middleware, TaskFailed, current_message
from dqueue.asyncio import Family, Queue, Tasks, connect
from dqueue.testing import ManualQueue

HOUR = 3_600_000


@asynccontextmanager
async def working(worker):
    running = asyncio.create_task(worker.run(signals=False))
    try:
        yield
    finally:
        worker.stop()
        await asyncio.wait_for(running, 20)


def test_calls_results_and_failures(dq_url):
    async def main():
        client = connect(dq_url)
        tasks = Tasks(Queue(client, "jobs"), retain=HOUR)

        @tasks.task
        async def add(a, b):
            await asyncio.sleep(0)
            return a + b + current_message().attempt

        @tasks.task(retries=0)
        def fail(where):
            raise ValueError(f"not in {threading.current_thread() is threading.main_thread()}")

        async with working(tasks.worker(concurrency=3, block=100)):
            job = await add.send(1, b=2)
            assert await job.result() == 4
            failed = await fail.with_options(priority=1).send("x")
            with pytest.raises(TaskFailed, match="dead: ValueError: not in False"):
                await failed.result()
        later = await add.send_with_options(args=(1, 2), delay=HOUR, id="later")
        assert later.added and not (await add.send_with_options(args=(1, 2), id="later")).added
        assert (await later.record()).state == "delayed"
        with pytest.raises(TimeoutError):
            await later.result(5)
        assert await later.cancel() and not await later.cancel()
        with pytest.raises(TypeError):
            await add.send(1)
        await client.aclose()

    asyncio.run(main())


def test_middleware_of_both_kinds_and_schedules(dq_url):
    seen = []

    class Both(Middleware):
        @contextmanager
        def send(self, sending):
            sending.add_headers({"by": "ann"})
            yield

        @asynccontextmanager
        async def handle(self, message):
            seen.append(f"before {message.headers['by'].decode()}")
            yield
            seen.append("after")

        @asynccontextmanager
        async def work(self):
            seen.append("begins")
            yield
            seen.append("ends")

    async def main():
        client = connect(dq_url)
        tasks = Tasks(Queue(client, "jobs"), middleware=[Both()], retain=HOUR)

        @tasks.task(every=HOUR, headers={"by": "the server"})
        async def report(name="all"):
            seen.append(name)

        job = await report.send("ann")
        async with working(tasks.worker(block=100)):
            assert await job.result() is None
            assert [one.name for one in await tasks.queue.schedules()] == ["report"]
        await client.aclose()

    asyncio.run(main())
    assert seen == ["begins", "before ann", "ann", "after", "ends"]


def test_a_family_has_tasks_too(dq_url):
    async def main():
        client = connect(dq_url)
        family = Family("jobs", 4, client)
        tasks = Tasks(family, retain=HOUR)

        @tasks.task
        async def pay(order):
            return f"{order} of {current_message().group}"

        jobs = [await pay.with_options(group=f"g{number}").send(number) for number in range(6)]
        async with working(tasks.worker(concurrency=2, block=100)):
            assert [await job.result() for job in jobs] == [f"{number} of g{number}" for number in range(6)]
        await client.aclose()

    asyncio.run(main())


def test_tasks_run_under_virtual_time(dq_client):
    q = ManualQueue(dq_client, "jobs", retain=HOUR)
    tasks = Tasks(Queue(None, "jobs"))

    @tasks.task
    async def double(number):
        return number * 2

    q.send('{"args": [2], "kwargs": {}}', id="a", type="double", delay=1000)
    assert len(q.run(tasks, 1000)) == 1
    assert q.get("a").result == "4"
