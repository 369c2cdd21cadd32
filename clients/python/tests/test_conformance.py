"""The conformance cases for clients (docs/clients.md), with the package's queues and workers."""

import asyncio
import json
import threading

import pytest
import redis
from dqueue import (
    Durable,
    Effects,
    Follow,
    Next,
    NotConfirmed,
    Park,
    Queue,
    Reject,
    Retry,
    Signal,
    Snooze,
    Worker,
    connect,
)
from dqueue import asyncio as aq

from tests.conformance.runner import CASES, Failure, run

pytestmark = pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
WORK = [case for case in CASES if any("work" in step for step in case["steps"])]
APPLY = [case for case in CASES if any("apply" in step for step in case["steps"])]
CONFIRM = [case for case in CASES if any("durable" in step for step in case["steps"])]
# The server of the tests has no replica.
UNHEARD = {"durable": Durable(replicas=9, in_memory=True, timeout=10), "patience": 0}
each = pytest.mark.parametrize("case", WORK, ids=lambda case: case["name"])


def sender(url, protocol):
    client = connect(url, protocol=protocol)

    def do(words):
        try:
            return client.execute_command(*words)
        except redis.ResponseError as error:
            raise Failure(error) from error

    return do


def collect(effects, given):
    """Adds effects, whose options are an object behind three others."""
    for name, *words in given:
        named = words.pop() if len(words) == 3 and isinstance(words[2], dict) else {}
        getattr(effects, name)(*words, **named)
    return effects


def outcome(message):
    """The steps of a handler with this message, except waiting, cancelling and leaving notes."""
    verb, *words = json.loads(message.payload)
    if verb == "apply":
        collect(message.effects, words[0])
        _, verb, *words = words
    if verb in ("fail", "note") and message.note is None:
        raise RuntimeError(words[0])
    if verb == "retry":
        raise Retry(words[0], delay=words[1])
    if verb == "reject":
        raise Reject(words[0])
    if verb == "snooze":
        raise Snooze(delay=words[0])
    if verb == "park" and message.signal is None:
        raise Park(note=words[0], for_=words[1])
    if verb == "follow":
        return Follow(Next(words[1], id=words[0]))
    if verb == "signal":
        return Follow(Signal(words[0], words[1]))
    if verb == "cost":
        message.cost = words[0]
        return None
    if verb in ("note", "park"):
        return message.note if verb == "note" else message.signal
    return words[0] if words else None


def is_to_note(message):
    return b'"note"' in message.payload and message.note is None


@each
def test_a_worker_with_threads(dq_url, case, protocol):
    def work(key, n, grace, types):
        worker = Worker(Queue(connect(dq_url, protocol=protocol), key), **({} if grace is None else {"grace": grace}))
        left = iter(range(n - 1, -1, -1))
        stopped = threading.Event()

        @worker.handler(*types)
        def handle(message):
            if next(left) == 0:
                worker.stop()
            if b"hang" in message.payload:
                stopped.wait()
            if b'"cancel"' in message.payload:
                worker.queue.cancel(message.id)
            if is_to_note(message):
                assert worker.note(message, json.loads(message.payload)[1])
            return outcome(message)

        worker.run(signals=False)
        stopped.set()

    run(case, sender(dq_url, protocol), work)


@each
def test_a_worker_of_asyncio(dq_url, case, protocol):
    async def work(key, n, grace, types):
        client = aq.connect(dq_url, protocol=protocol)
        worker = aq.Worker(aq.Queue(client, key), **({} if grace is None else {"grace": grace}))
        left = iter(range(n - 1, -1, -1))

        @worker.handler(*types)
        async def handle(message):
            if next(left) == 0:
                worker.stop()
            if b"hang" in message.payload:
                await asyncio.Event().wait()
            if b'"cancel"' in message.payload:
                await worker.queue.cancel(message.id)
            if is_to_note(message):
                assert await worker.note(message, json.loads(message.payload)[1])
            return outcome(message)

        await worker.run(signals=False)
        await client.aclose()

    run(case, sender(dq_url, protocol), lambda *words: asyncio.run(work(*words)))


@pytest.mark.parametrize("case", CONFIRM, ids=lambda case: case["name"])
def test_a_durable_queue(dq_url, case, protocol):
    def durable(key, verb, word, id=None):
        queue = Queue(connect(dq_url, protocol=protocol), key, **UNHEARD)
        with pytest.raises(NotConfirmed) as caught:
            queue.send(word, id=id) if verb == "send" else queue.ack(word)
        assert caught.value.id == id

    run(case, sender(dq_url, protocol), durable=durable)


@pytest.mark.parametrize("case", CONFIRM, ids=lambda case: case["name"])
def test_a_durable_queue_of_asyncio(dq_url, case, protocol):
    async def durable(key, verb, word, id=None):
        client = aq.connect(dq_url, protocol=protocol)
        queue = aq.Queue(client, key, **UNHEARD)
        with pytest.raises(NotConfirmed) as caught:
            await (queue.send(word, id=id) if verb == "send" else queue.ack(word))
        assert caught.value.id == id
        await client.aclose()

    run(case, sender(dq_url, protocol), durable=lambda *words: asyncio.run(durable(*words)))


def settling(queue, step, effects):
    """The call of a step that settles a message by hand with effects."""
    receipt = int(step["receipt"])
    if step["apply"] == "ack":
        return queue.ack(receipt, apply=effects)
    if step["apply"] == "fetch":
        return queue.fetch(ack=[receipt], apply=effects)
    id, payload = step["next"]
    return queue.ack_send(receipt, Next(payload, id=id), apply=effects)


def returned(step, reply):
    return [message.id for message in reply] if step["apply"] == "fetch" else reply


@pytest.mark.parametrize("case", APPLY, ids=lambda case: case["name"])
def test_effects_by_hand(dq_url, case, protocol):
    def apply(key, step):
        effects = collect(Effects(), step["effects"])
        try:
            reply = settling(Queue(connect(dq_url, protocol=protocol), key), step, effects)
        except redis.ResponseError as error:
            raise Failure(error) from error
        return returned(step, reply), effects.applied

    run(case, sender(dq_url, protocol), apply=apply)


@pytest.mark.parametrize("case", APPLY, ids=lambda case: case["name"])
def test_effects_by_hand_with_asyncio(dq_url, case, protocol):
    async def apply(key, step):
        client, effects = aq.connect(dq_url, protocol=protocol), collect(Effects(), step["effects"])
        try:
            return returned(step, await settling(aq.Queue(client, key), step, effects)), effects.applied
        except redis.ResponseError as error:
            raise Failure(error) from error
        finally:
            await client.aclose()

    run(case, sender(dq_url, protocol), apply=lambda *words: asyncio.run(apply(*words)))
