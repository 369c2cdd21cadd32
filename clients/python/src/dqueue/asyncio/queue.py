"""A queue on the server, a coroutine for each command; the twin of `dqueue.queue`."""

import asyncio
import builtins
import time
from collections.abc import AsyncIterator, Sequence
from typing import Literal, TypeVar, Unpack

import redis

from dqueue import calls
from dqueue.calls import Call, Payload, Receipt
from dqueue.connection import AsyncClient, check_block, is_transient, pauses
from dqueue.message import Message
from dqueue.options import Instant, Millis, QueueOptions, SendOptions, State, millis
from dqueue.records import Consumer, Explanation, Group, Info, Record, Schedule

T = TypeVar("T")


class Queue:
    """One queue, for asyncio.

    `client` is an asyncio client of redis-py: `connect` makes a suitable one. `patience` is how long (ms) `send`
    repeats itself while the connection is down. Making a Queue does not touch the server; every method is one command
    and one round trip (`list` and `groups`: one a page).
    Errors of the server come as `redis.ResponseError`, lost connections as `redis.ConnectionError` or
    `redis.TimeoutError`.
    """

    def __init__(self, client: AsyncClient, key: str, *, patience: Millis = 10_000) -> None:
        self.client = client
        self.key = key
        self.patience = millis(patience)

    def __repr__(self) -> str:
        return f"Queue({self.key!r})"

    async def _do(self, call: Call[T]) -> T:
        return call.read(await self.client.execute_command(*call.words))

    # ---- making -----------------------------------------------------------------------------------------------------

    async def create(self, **options: Unpack[QueueOptions]) -> None:
        """DQ.CREATE: makes the queue with these options; an error where it exists. Sending makes one with defaults."""
        await self._do(calls.create(self.key, options))

    async def alter(self, **options: Unpack[QueueOptions]) -> None:
        """DQ.ALTER: changes options of the queue, for the messages in it too."""
        await self._do(calls.alter(self.key, options))

    async def ensure(self, **options: Unpack[QueueOptions]) -> None:
        """Makes the queue, or gives it these options where it is there already: what a program does at its start."""
        try:
            await self.create(**options)
        except redis.exceptions.ResponseError as error:
            if "queue already exists" not in str(error):
                raise
            if options:
                await self.alter(**options)

    # ---- producing --------------------------------------------------------------------------------------------------

    async def send(
        self, payload: Payload, *, id: str | None = None, replace: bool = False, **options: Unpack[SendOptions]
    ) -> str | None:
        """DQ.SEND: adds a message and returns its id; None where the id was taken, and nothing was added.

        While the connection is down it repeats itself, for `patience` ms, then raises. A message is not added twice by
        that: it always has an id, a new UUID if none is given. Of an id of yours, None may also mean that an earlier
        try got through. Set `dedup` on the queue to a minute or so: without it an id is free again as soon as
        its message is finished, and a try repeated later than that would add it anew.

        With `replace` a message of that id that has not been delivered is replaced.
        """
        call = calls.send(self.key, payload, id, replace, options)
        deadline = time.monotonic() + self.patience / 1000
        for pause in pauses():
            try:
                return await self._do(call)
            except (redis.exceptions.RedisError, OSError) as error:
                if not is_transient(error) or time.monotonic() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError("pauses() does not end")

    async def send_many(self, payloads: Sequence[Payload], **options: Unpack[SendOptions]) -> list[str]:
        """DQ.MSEND: adds them all or none; returns their ids.

        The server makes the ids, so a repetition adds the messages again: it is not repeated by itself, and an error
        of the connection leaves open whether they are there.
        """
        return await self._do(calls.send_many(self.key, payloads, options))

    async def group_push(
        self,
        json: Payload,
        group_by: Sequence[str],
        *,
        id_path: str | None = None,
        score_path: str | None = None,
        at_path: str | None = None,
        id: str | None = None,
        replace: bool = False,
        **options: Unpack[SendOptions],
    ) -> tuple[str, str] | None:
        """DQ.GROUPPUSH: adds a JSON object; group, id, score and due time are read from it. (group, id) or None."""
        paths = {"id_path": id_path, "score_path": score_path, "at_path": at_path, "id": id, "replace": replace}
        return await self._do(calls.group_push(self.key, json, group_by, paths, options))

    # ---- consuming --------------------------------------------------------------------------------------------------

    async def fetch(
        self,
        *,
        count: int = 1,
        block: Millis | None = None,
        ack: Sequence[Receipt] = (),
        lease: Millis | None = None,
        consumer: str | None = None,
        group: str | None = None,
        per_group: int | None = None,
        max_bytes: int | None = None,
        bind: bool = False,
        no_ack: bool = False,
    ) -> list[Message]:
        """DQ.FETCH ... WITHMETA: acks what is given, then takes up to `count` messages; empty where there are none.

        `block` waits that long (ms) for one. It must be shorter than the client's socket timeout (ValueError), as a
        reply that nobody reads is a delivery lost until its lease is over.
        """
        check_block(self.client, None if block is None else millis(block))
        options = {
            "count": count,
            "block": block,
            "lease": lease,
            "consumer": consumer,
            "group": group,
            "per_group": per_group,
            "max_bytes": max_bytes,
            "bind": bind,
            "no_ack": no_ack,
        }
        return await self._do(calls.fetch(self.key, ack, options))

    async def ack(self, *receipts: Receipt, result: Payload | None = None) -> int:
        """DQ.ACK: finished; how many were, the rest had lost their lease."""
        return await self._do(calls.ack(self.key, receipts, result))

    async def nack(
        self,
        *receipts: Receipt,
        delay: Millis | None = None,
        error: str | None = None,
        silent: bool = False,
        fatal: bool = False,
    ) -> int:
        """DQ.NACK: failed; how many were, the rest had lost their lease.

        `silent`: given back, as if it had not been delivered. `fatal`: dead at once.
        """
        options = {"delay": delay, "error": error, "silent": silent, "fatal": fatal}
        return await self._do(calls.nack(self.key, receipts, options))

    async def touch(self, lease: Millis, *receipts: Receipt) -> int:
        """DQ.TOUCH: the leases end that long (at least 1 ms) from now; how many do, the rest were over."""
        return await self._do(calls.touch(self.key, lease, receipts))

    # ---- looking ----------------------------------------------------------------------------------------------------

    async def get(self, id: str) -> Record | None:
        """DQ.GET: everything about one message, or None."""
        return await self._do(calls.get(self.key, id))

    async def list(
        self, state: State, *, group: str | None = None, type: str | None = None, page: int = 100
    ) -> AsyncIterator[Record]:
        """DQ.LIST: all records in that state, in its order, fetched `page` at a time."""
        cursor: str | None = "0"
        while cursor is not None:
            options = {"cursor": cursor, "count": page, "group": group, "type": type}
            step = await self._do(calls.listing(self.key, state, options))
            for record in step.items:
                yield record
            cursor = step.cursor

    async def peek(self, count: int = 1) -> builtins.list[Record]:
        """DQ.PEEK: what fetch would give next, left where it is."""
        return await self._do(calls.peek(self.key, count))

    async def len(self, state: State | None = None) -> int:
        """DQ.LEN: pending and running messages, or those in one state."""
        return await self._do(calls.length(self.key, state))

    async def info(self) -> Info:
        """DQ.INFO: states, options and counters by their names there."""
        return await self._do(calls.queue_info(self.key))

    async def groups(
        self, *, state: Literal["ready", "running", "blocked", "paused"] | None = None, page: int = 100
    ) -> AsyncIterator[Group]:
        """DQ.GROUPS: the groups that have messages, settings or a hold, fetched `page` at a time."""
        cursor: str | None = "0"
        while cursor is not None:
            step = await self._do(calls.groups(self.key, {"cursor": cursor, "count": page, "state": state}))
            for group in step.items:
                yield group
            cursor = step.cursor

    async def consumers(self) -> builtins.list[Consumer]:
        """DQ.CONSUMERS: who fetched by name, and what they have."""
        return await self._do(calls.consumers(self.key))

    async def explain(self, id: str) -> Explanation | None:
        """DQ.EXPLAIN: why a message is where it is, or None for an unknown id."""
        return await self._do(calls.explain(self.key, id))

    async def wait(self, id: str, timeout: Millis) -> tuple[str, str | None] | None:
        """DQ.WAIT: (state, result or error) as soon as the message has ended; None at the timeout, or if unknown.

        The timeout (ms) must be shorter than the client's socket timeout (ValueError).
        """
        check_block(self.client, millis(timeout))
        return await self._do(calls.wait(self.key, id, millis(timeout)))

    # ---- changing ---------------------------------------------------------------------------------------------------

    async def cancel(self, *ids: str) -> builtins.list[str | None]:
        """DQ.CANCEL: the state in which each was, None for an unknown one."""
        return await self._do(calls.cancel(self.key, ids))

    async def reschedule(self, id: str, *, delay: Millis | None = None, at: Instant | None = None) -> bool:
        """DQ.RESCHEDULE: False unless the message was pending."""
        return await self._do(calls.reschedule(self.key, id, delay, at))

    async def update(self, id: str, payload: Payload) -> bool:
        """DQ.UPDATE: another payload; False unless the message was pending."""
        return await self._do(calls.update(self.key, id, payload))

    async def redrive(self, *ids: str, count: int | None = None) -> int:
        """DQ.REDRIVE: dead messages are pending again, those named or (none named) up to `count` or all; how many."""
        return await self._do(calls.redrive(self.key, ids, count))

    async def purge(self, *, state: State | None = None, group: str | None = None) -> int:
        """DQ.PURGE: removes messages for good; how many."""
        return await self._do(calls.purge(self.key, {"state": state, "group": group}))

    async def pause(self, *, group: str | None = None, for_: Millis | None = None) -> None:
        """DQ.PAUSE: nothing of the queue or group is delivered, for that long or until `resume`."""
        await self._do(calls.pause(self.key, {"group": group, "for_": for_}))

    async def resume(self, *, group: str | None = None) -> None:
        """DQ.RESUME: ends a pause, or the hold of a group."""
        await self._do(calls.resume(self.key, group))

    async def set_group(
        self,
        group: str,
        *,
        weight: int | None = None,
        concurrency: int | None = None,
        rate: tuple[int, Millis] | Literal[0] | None = None,
    ) -> None:
        """DQ.GROUPSET: settings of one group; concurrency 0 and rate 0 are the queue's own again."""
        options = {"weight": weight, "concurrency": concurrency, "rate": rate}
        await self._do(calls.set_group(self.key, group, options))

    # ---- schedules --------------------------------------------------------------------------------------------------

    async def schedule(
        self,
        name: str,
        payload: Payload,
        *,
        cron: str | None = None,
        tz: str | None = None,
        every: Millis | None = None,
        start: Instant | None = None,
        missed: Literal["SKIP", "ONCE", "ALL"] | None = None,
        overlap: Literal["QUEUE", "SKIP"] | None = None,
        **options: Unpack[SendOptions],
    ) -> int:
        """DQ.SCHEDULE: the server sends the payload at these times; when first, in Unix ms."""
        timing = {"cron": cron, "tz": tz, "every": every, "start": start}
        given = {**options, "missed": missed, "overlap": overlap}
        return await self._do(calls.schedule(self.key, name, payload, timing, given))

    async def unschedule(self, name: str) -> bool:
        """DQ.UNSCHEDULE: whether there was one of that name."""
        return await self._do(calls.unschedule(self.key, name))

    async def schedules(self) -> builtins.list[Schedule]:
        """DQ.SCHEDULES: all of them."""
        return await self._do(calls.schedules(self.key))

    # ---- time -------------------------------------------------------------------------------------------------------

    async def tick(self) -> Info:
        """DQ.TICK: does at once what is due; how much of each kind. The server does it by itself."""
        return await self._do(calls.tick(self.key, {}))
