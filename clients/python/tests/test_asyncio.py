"""The asyncio twins."""

import asyncio
import inspect

import dqueue
import dqueue.asyncio
import pytest
import redis
from dqueue import Reject
from dqueue.asyncio import Queue, Worker, connect

from tests.harness.lossy import LossyProxy


def play(url, scene, **options):
    """Runs scene(queue) in an event loop of its own."""

    async def main():
        client = connect(url, **options)
        try:
            queue = Queue(client, "jobs")
            await queue.create(retain=3_600_000)
            await scene(queue)
        finally:
            await client.aclose()

    asyncio.run(main())


async def until(condition, seconds=10):
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.01)


def emptied(q):
    async def condition():
        return await q.len() == 0

    return condition


@pytest.mark.parametrize("protocol", [2, 3])
def test_an_async_queue_sends_fetches_and_waits(dq_url, protocol):
    async def scene(q):
        id = await q.send("x", type="t", delay=1)
        await q.send_many(["y", "z"], group="g")
        assert [group.group async for group in q.groups()] == ["g"]
        batch = await q.fetch(count=10, block=1000)
        handled = [message.text for message in batch]
        while len(handled) < 3:
            batch = await q.fetch(count=10, block=1000, ack=batch)
            handled += [message.text for message in batch]
        assert sorted(handled) == ["x", "y", "z"] and handled.index("y") < handled.index("z")
        assert (await q.get(id)).type == "t"
        assert (await q.wait("nobody", 1)) is None
        assert await q.ack_send(1, dqueue.Next("late")) is None
        assert await q.do("LEN", "cancelled") == 0
        assert await q.fetch_first([q]) == []
        assert {record.state async for record in q.list("finished")} == {"finished"}
        with pytest.raises(ValueError, match="socket_timeout"):
            await q.fetch(block=0)

    play(dq_url, scene, protocol=protocol)


def test_an_async_worker_handles_many_messages_at_once(dq_url):
    async def scene(q):
        worker = Worker(q, concurrency=50, lease=2000, block=200)
        running = most = 0

        @worker.handler("long")
        async def long(message):
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(4.4)
            running -= 1
            return "took long"

        @worker.handler("bad")
        async def bad(message):
            raise Reject("no")

        ids = await q.send_many(["x"] * 50, type="long")
        bad_id = await q.send("x", type="bad")
        run = asyncio.create_task(worker.run())
        await until(emptied(q))
        worker.stop()
        await run
        assert most >= 49
        info = await q.info()
        assert (info["timeouts"], info["acked"], info["deaths"]) == (0, 50, 1)
        assert (await q.get(ids[0])).result == "took long"
        assert (await q.get(bad_id)).reason == "rejected"

    play(dq_url, scene)


def test_stop_returns_messages_whose_handlers_take_too_long(dq_url):
    async def scene(q):
        worker = Worker(q, concurrency=2, grace=200, block=100)
        begun, cancelled = asyncio.Event(), []

        @worker.handler()
        async def handle(message):
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append(message.id)
                raise

        await q.send("x", id="x")
        run = asyncio.create_task(worker.run())
        await begun.wait()
        worker.stop()
        await asyncio.wait_for(run, 5)
        assert cancelled == ["x"]
        record = await q.get("x")
        assert (record.state, record.failures) == ("ready", 0)

    play(dq_url, scene)


def test_a_cancelled_run_returns_its_messages(dq_url):
    async def scene(q):
        worker = Worker(q, block=100)
        begun = asyncio.Event()

        @worker.handler()
        async def handle(message):
            begun.set()
            await asyncio.sleep(60)

        await q.send("x", id="x")
        run = asyncio.create_task(worker.run())
        await begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert (await q.get("x")).state == "ready"

    play(dq_url, scene)


def test_a_handler_that_cancels_itself_counts_as_failed(dq_url):
    async def scene(q):
        await q.alter(retries=0)
        worker = Worker(q, block=100)

        @worker.handler()
        async def handle(message):
            raise asyncio.CancelledError

        await q.send("x", id="x")
        run = asyncio.create_task(worker.run())
        await until(emptied(q))
        worker.stop()
        await run
        assert (await q.get("x")).reason == "retries"

    play(dq_url, scene)


def test_an_async_worker_reconnects(dq_url, server):
    async def scene(q):
        worker = Worker(q, concurrency=3, block=200)
        handled = []

        @worker.handler()
        async def handle(message):
            handled.append(message.text)

        run = asyncio.create_task(worker.run())
        await asyncio.sleep(0.1)
        with server.wire() as wire:
            wire.call("CLIENT", "KILL", "TYPE", "normal")
        for n in range(20):
            await q.send(str(n))
        await until(emptied(q))
        worker.stop()
        await run
        assert set(handled) == {str(n) for n in range(20)}

    play(dq_url, scene)


def test_messages_whose_delivery_was_lost_come_again_at_once(dq_url, server):
    proxy = LossyProxy(server.port)

    async def scene(q):
        client = connect(f"redis://127.0.0.1:{proxy.port}")
        worker, attempts = Worker(Queue(client, "jobs"), concurrency=3, block=200), []

        @worker.handler()
        async def handle(message):
            attempts.append(message.attempt)

        await q.send_many(["x"] * 3)
        proxy.lose(b"DQ.FETCH")
        run = asyncio.create_task(worker.run())
        await until(emptied(q))
        worker.stop()
        await run
        await client.aclose()
        assert attempts == [1, 1, 1] and (await q.info())["timeouts"] == 0

    try:
        play(dq_url, scene)
    finally:
        proxy.close()
    assert proxy.lost == 1


def test_a_permanent_error_ends_the_worker(dq_url):
    async def scene(q):
        await q.client.set("other", "a string")
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            await Worker(Queue(q.client, "other"), block=100).run()

    play(dq_url, scene)


@pytest.mark.parametrize("name", ["Queue", "Worker"])
def test_sync_and_async_classes_have_the_same_methods(name):
    def shape(cls):
        return {
            method: list(inspect.signature(function).parameters.values())
            for method, function in vars(cls).items()
            if callable(function) and not method.startswith("_")
        }

    def names(cls):
        return {method: [(p.name, p.kind, p.default) for p in given] for method, given in shape(cls).items()}

    assert names(getattr(dqueue, name)) == names(getattr(dqueue.asyncio, name))
