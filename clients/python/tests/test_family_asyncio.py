"""The asyncio twin of Family, on a cluster."""

import asyncio
import inspect

import dqueue
import dqueue.asyncio
from dqueue.asyncio import Family, Worker, connect_cluster


def play(cluster, scene):
    """Runs scene(family) in an event loop of its own."""

    async def main():
        client = connect_cluster(f"redis://127.0.0.1:{cluster.nodes[0].port}")
        family = Family("jobs", 16, client)
        try:
            await scene(family)
        finally:
            await family.aclose()
            await client.aclose()

    asyncio.run(main())


def blocked(cluster):
    return [int(node.info("clients")["blocked_clients"]) for node in cluster.nodes]


async def until(condition, seconds=10):
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.01)


def test_it_has_the_methods_of_the_other_one():
    def methods(cls):
        return {name: inspect.signature(one) for name, one in vars(cls).items() if inspect.isfunction(one)}

    other = {name: one for name, one in methods(dqueue.Family).items() if not name.startswith("_")}
    mine = {name.replace("aclose", "close"): one for name, one in methods(Family).items() if not name.startswith("_")}
    assert {name: list(one.parameters) for name, one in mine.items()} == {
        name: list(one.parameters) for name, one in other.items()
    }


def test_messages_go_and_come_in_the_order_of_their_groups(cluster):
    async def scene(f):
        await f.ensure(retain=60_000)
        for n in range(30):
            await f.send(f"m{n}", group=f"g{n % 10}")
        assert await f.len() == 30 and len([group async for group in f.groups()]) == 10
        texts = []
        while batch := await f.fetch(count=5):
            texts += [message.text for message in batch]
            assert await f.ack(*batch) == len(batch)
        for n in range(10):
            assert [text for text in texts if int(text[1:]) % 10 == n] == [f"m{n}", f"m{n + 10}", f"m{n + 20}"]
        assert await f.send("x", id="a") == "a" and (await f.get("a")).payload == b"x"
        assert await f.cancel("a") == "ready" and await f.moving() == 0
        assert (await f.info())["finished"] == 30

    play(cluster, scene)


def test_one_connection_waits_at_each_node_for_all_tasks(cluster):
    async def scene(f):
        waiting = [asyncio.create_task(f.fetch(block=2000)) for _ in range(20)]

        async def all_wait():
            return blocked(cluster) == [1, 1, 1]

        await until(all_wait)
        # A cancelled fetch leaves no reserved room.
        waiting.pop().cancel()
        for n in range(20):
            await f.send(str(n), group=f"group {n}")
        got = [message.text for batch in await asyncio.gather(*waiting) for message in batch]
        assert len(set(got)) == 19
        assert await f.len("running") + await f.len("ready") == 20

    play(cluster, scene)


def test_a_worker_handles_the_messages_of_all_nodes(cluster):
    async def scene(f):
        await f.ensure(retain=60_000, retries=1)
        worker = Worker(f, concurrency=5, block=300)
        seen = []

        @worker.handler()
        async def work(message):
            seen.append((message.group, message.text))
            if message.text == "2" and message.attempt == 1:
                raise ValueError("once")
            return "done" if message.text == "4" else None

        running = asyncio.create_task(worker.run(signals=False))
        for n in range(6):
            for group in "abcdef":
                await f.send(str(n), group=group, id=f"{group}{n}")

        async def is_empty():
            return await f.len() == 0

        await until(is_empty)
        worker.stop()
        await running
        for group in "abcdef":
            assert [text for g, text in seen if g == group] == list("0122345")
        assert (await f.get("a4", group="a")).result == "done"
        assert blocked(cluster) == [0, 0, 0]

    play(cluster, scene)


def test_waiting_consumers_follow_a_queue_to_another_node(cluster):
    async def scene(f):
        key = f.queue("g").key
        source = cluster.owner(key)
        target = next(node for node in cluster.nodes if node is not source)
        waiting = asyncio.create_task(f.fetch(block=4000))

        async def all_wait():
            return blocked(cluster) == [1, 1, 1]

        await until(all_wait)
        slot = cluster.slot(key)
        await asyncio.to_thread(cluster.move_slot, slot, source, target)
        try:
            await f.send("x", group="g")
            assert [message.text for message in await waiting] == ["x"]
        finally:
            await asyncio.to_thread(cluster.move_slot, slot, target, source)

    play(cluster, scene)


def test_a_message_that_is_given_back_too_late_is_told(cluster, caplog):
    async def scene(f):
        await f.send("x")
        messages = await f.fetch(lease=1)
        while await f.len("running"):
            await asyncio.sleep(0.001)
        connections = f._node_connections({"count": 1}, 100)
        await connections._give_back(messages)
        await connections.close()

    play(cluster, scene)
    assert caplog.messages == ["1 of 1 messages came too late to be given back"]
