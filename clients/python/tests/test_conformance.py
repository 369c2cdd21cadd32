"""The conformance cases for clients (docs/clients.md), with the package's queues and workers."""

import asyncio
import json
import threading

import pytest
import redis
from dqueue import Queue, Reject, Retry, Worker, connect
from dqueue import asyncio as aq

from tests.conformance.runner import CASES, Failure, run

pytestmark = pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
WORK = [case for case in CASES if any("work" in step for step in case["steps"])]
each = pytest.mark.parametrize("case", WORK, ids=lambda case: case["name"])


def sender(url, protocol):
    client = connect(url, protocol=protocol)

    def do(words):
        try:
            return client.execute_command(*words)
        except redis.ResponseError as error:
            raise Failure(error) from error

    return do


def outcome(payload):
    """What a handler does for this payload, except waiting."""
    verb, *words = json.loads(payload)
    if verb == "fail":
        raise RuntimeError(words[0])
    if verb == "retry":
        raise Retry(words[0], delay=words[1])
    if verb == "reject":
        raise Reject(words[0])
    return words[0] if words else None


@each
def test_a_worker_with_threads(dq_url, case, protocol):
    def work(key, n, grace):
        worker = Worker(Queue(connect(dq_url, protocol=protocol), key), **({} if grace is None else {"grace": grace}))
        left = iter(range(n - 1, -1, -1))
        stopped = threading.Event()

        @worker.handler()
        def handle(message):
            if next(left) == 0:
                worker.stop()
            if b"hang" in message.payload:
                stopped.wait()
            return outcome(message.payload)

        worker.run(signals=False)
        stopped.set()

    run(case, sender(dq_url, protocol), work)


@each
def test_a_worker_of_asyncio(dq_url, case, protocol):
    async def work(key, n, grace):
        client = aq.connect(dq_url, protocol=protocol)
        worker = aq.Worker(aq.Queue(client, key), **({} if grace is None else {"grace": grace}))
        left = iter(range(n - 1, -1, -1))

        @worker.handler()
        async def handle(message):
            if next(left) == 0:
                worker.stop()
            if b"hang" in message.payload:
                await asyncio.Event().wait()
            return outcome(message.payload)

        await worker.run(signals=False)
        await client.aclose()

    run(case, sender(dq_url, protocol), lambda *words: asyncio.run(work(*words)))
