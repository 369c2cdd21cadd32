"""A family for asyncio. The twin of `dqueue.family`."""

import builtins
import itertools
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, Unpack

from dqueue import calls
from dqueue.asyncio.intake import Intake
from dqueue.asyncio.queue import Queue
from dqueue.calls import Call, Next, Payload
from dqueue.connection import AsyncClient, check_block, socket_timeout
from dqueue.message import Message, by_queue
from dqueue.nodes import nodes_of_asyncio
from dqueue.options import (
    Conditions,
    Instant,
    Millis,
    Pause,
    QueueOptions,
    SendOptions,
    State,
    millis,
)
from dqueue.records import (
    Batch,
    Consumer,
    Explanation,
    Group,
    Info,
    Record,
    Schedule,
    added_up,
)
from dqueue.routing import Layout

T = TypeVar("T")

_LONGEST = 60_000
"""Milliseconds that one call waits at a node at most, if nothing else limits it."""


class Family:
    """One logical queue over `partitions` queues, for asyncio. It has what `dqueue.Family` has.

    `client` is an asyncio client of a cluster (`connect_cluster`), or of one server.
    """

    def __init__(
        self,
        name: str,
        partitions: int,
        client: AsyncClient,
        *,
        grown_from: int | None = None,
        patience: Millis = 10_000,
    ) -> None:
        self.layout = Layout(name, partitions, grown_from)
        self.client = client
        self.patience = millis(patience)
        self._nodes = nodes_of_asyncio(client)
        self._intakes: dict[tuple[object, ...], Intake] = {}
        self._rotation = itertools.count()

    def __repr__(self) -> str:
        return f"Family({self.layout.family!r}, {self.layout.partitions})"

    async def _do(self, call: Call[T]) -> T:
        return call.read(await self.client.execute_command(*call.words))

    # ---- the queues -------------------------------------------------------------------------------------------------

    def queue(self, group: str) -> Queue:
        """Returns the queue of a group. Use it for what is about one group, and for batches."""
        return self._queue(self.layout.homes(group)[0])

    def queues(self) -> builtins.list[Queue]:
        """Returns the queues of all partitions, in order."""
        return [self._queue(key) for key in self.layout.keys()]

    def _queue(self, key: str) -> Queue:
        return Queue(self.client, key, patience=self.patience)

    def _homes(self, group: str | None, id: str = "") -> builtins.list[Queue]:
        """Returns the queues in which a message may be, the one that is tried first before the other."""
        return [self._queue(key) for key in self.layout.homes(id if group is None else group)]

    def _of(self, group: str | None) -> builtins.list[Queue]:
        """Returns the queues of a group, or all queues."""
        return self.queues() if group is None else self._homes(group)

    async def _first(self, group: str | None, id: str, ask: Callable[[Queue], Awaitable[T]]) -> T:
        """Returns the first answer that is not empty of the queues in which a message may be."""
        *homes, last = self._homes(group, id)
        for home in homes:
            if answer := await ask(home):
                return answer
        return await ask(last)

    # ---- creating ---------------------------------------------------------------------------------------------------

    async def create(self, **options: Unpack[QueueOptions]) -> None:
        """Creates all queues with these options. Fails if one exists."""
        for queue in self.queues():
            await queue.create(**options)

    async def alter(self, **options: Unpack[QueueOptions]) -> None:
        """Changes options of all queues, also for the messages in them."""
        for queue in self.queues():
            await queue.alter(**options)

    async def ensure(self, **options: Unpack[QueueOptions]) -> None:
        """Creates the queues that are missing, and gives all of them these options."""
        for queue in self.queues():
            await queue.ensure(**options)

    # ---- producing --------------------------------------------------------------------------------------------------

    async def send(
        self, payload: Payload, *, id: str | None = None, replace: bool = False, **options: Unpack[SendOptions]
    ) -> str | None:
        """Adds a message to the queue of its group, or of its id, as `Queue.send` does."""
        own = id or str(uuid.uuid4())
        group = options.get("group")
        home, *others = self._homes(group, own)
        if others and group is not None:
            (old,) = others
            held: SendOptions = {**options, "if_group": True}
            # Without an id of its own, calls.send would not tell a taken id from a group without messages.
            if await old._patiently(calls.send(old.key, payload, own, replace, held)) is not None:
                return own
            if await old.get(own) is not None:
                return own if id is None else None
        sent = await home._patiently(calls.send(home.key, payload, own, replace, options))
        # The id of this call can only be taken by an earlier try of it.
        return own if id is None and not options.get("if_group") else sent

    async def send_many(self, payloads: Sequence[Payload], **options: Unpack[SendOptions]) -> builtins.list[str]:
        """DQ.MSEND: adds all of the messages to one queue, or none: that of their group, or any."""
        group = options.get("group")
        home, *others = self._homes(group, str(uuid.uuid4()))
        if others and group is not None:
            held: SendOptions = {**options, "if_group": True}
            if sent := await others[0].send_many(payloads, **held):
                return sent
        return await home.send_many(payloads, **options)

    # ---- consuming --------------------------------------------------------------------------------------------------

    async def fetch(
        self,
        *,
        count: int = 1,
        block: Millis | None = None,
        ack: Sequence[Message] = (),
        lease: Millis | None = None,
        consumer: str | None = None,
        per_group: int | None = None,
        max_bytes: int | None = None,
    ) -> builtins.list[Message]:
        """DQ.NFETCH ... WITHMETA: acks the given messages, then takes up to `count` others of one queue. May return none.

        `block` waits that long (ms) for one, at all nodes. Calls with equal options share the waiting connections, also
        from several tasks. `aclose` ends them.
        """
        await self.ack(*ack)
        options = {
            "count": count,
            "lease": lease,
            "consumer": consumer,
            "per_group": per_group,
            "max_bytes": max_bytes,
        }
        if block is None:
            return await self._poll(calls.family_fetch(self.layout.family, options))
        check_block(self.client, millis(block))
        kind = (*options.values(), millis(block))
        await self._known()
        if kind not in self._intakes:
            self._intakes[kind] = self._intake(options, millis(block))
        intake = self._intakes[kind]
        try:
            return await intake.take(millis(block) / 1000)
        except Exception:
            # It has ended with this error. A later call begins anew.
            self._intakes = {other: one for other, one in self._intakes.items() if one is not intake}
            await intake.close()
            raise

    async def _known(self) -> dict[str, Any]:
        if self._nodes.is_cluster:
            # The client of a cluster does not know any node before it is connected.
            cluster: Any = self.client
            await cluster.initialize()
        return self._nodes.known()

    async def _poll(self, call: Call[builtins.list[Message]]) -> builtins.list[Message]:
        nodes = list((await self._known()).values())
        first = next(self._rotation)
        for number in range(len(nodes)):
            reply = await nodes[(first + number) % len(nodes)].execute_command(*call.words)
            if messages := call.read(reply):
                return messages
        return []

    def _intake(self, options: Mapping[str, object], block: int) -> Intake:
        # 0 waits for ever, but even then a call that has ended must be noticed.
        limit = socket_timeout(self.client)
        longest = block or _LONGEST if limit is None else min(block or _LONGEST, int(limit * 500))

        def fetch(block: int | None) -> Call[builtins.list[Message]]:
            return calls.family_fetch(self.layout.family, {**options, "block": block})

        return Intake(self.client, self._nodes, fetch, max(1, longest))

    async def aclose(self) -> None:
        """Ends waiting at the nodes, and gives back what comes until then. A later `fetch` begins anew.

        It takes as long as one `block`. A Worker calls it when it ends.
        """
        intakes, self._intakes = self._intakes, {}
        for intake in intakes.values():
            await intake.close()

    async def ack(self, *messages: Message, result: Payload | None = None) -> int:
        """DQ.ACK: finishes messages. Returns how many were finished. The others had lost their lease."""
        return sum([await self._do(calls.ack(key, own, result)) for key, own in by_queue(messages).items()])

    async def ack_send(
        self, message: Message, *following: Next, result: Payload | None = None
    ) -> builtins.list[str | None] | None:
        """DQ.ACKSEND: finishes a message and sends those that follow from it to its queue, all in one step.

        They must be of the group of the message, or without a group, or name a queue in the same hash slot.
        """
        return await self._do(calls.ack_send(message.queue, message, following, result))

    async def nack(
        self,
        *messages: Message,
        delay: Millis | None = None,
        error: str | None = None,
        silent: bool = False,
        fatal: bool = False,
        note: str | None = None,
        pause: Pause | None = None,
    ) -> int:
        """DQ.NACK: fails messages, as `Queue.nack` does. Returns how many failed. The others had lost their lease."""
        options = {"delay": delay, "error": error, "silent": silent, "fatal": fatal, "note": note, "pause": pause}
        return sum([await self._do(calls.nack(key, own, options)) for key, own in by_queue(messages).items()])

    async def touch(self, lease: Millis, *messages: Message, note: str | None = None) -> int:
        """DQ.TOUCH: makes leases end this long (at least 1 ms) from now. Returns how many do. The others were over."""
        return sum([await self._do(calls.touch(key, lease, own, note)) for key, own in by_queue(messages).items()])

    # ---- one message ------------------------------------------------------------------------------------------------

    async def get(self, id: str, *, group: str | None = None) -> Record | None:
        """DQ.GET: returns everything about one message, or None if the id is unknown."""
        return await self._first(group, id, lambda queue: queue.get(id))

    async def explain(self, id: str, *, group: str | None = None) -> Explanation | None:
        """DQ.EXPLAIN: says why a message is in its state. Returns None if the id is unknown."""
        return await self._first(group, id, lambda queue: queue.explain(id))

    async def cancel(self, id: str, *, group: str | None = None) -> str | None:
        """DQ.CANCEL: cancels a message. Returns the state that it had, or None if the id is unknown."""

        async def cancel(queue: Queue) -> str | None:
            return (await queue.cancel(id))[0]

        return await self._first(group, id, cancel)

    async def reschedule(
        self, id: str, *, group: str | None = None, delay: Millis | None = None, at: Instant | None = None
    ) -> bool:
        """DQ.RESCHEDULE: changes the due time. Returns False if the message was not pending."""
        return await self._first(group, id, lambda queue: queue.reschedule(id, delay=delay, at=at))

    async def update(self, id: str, payload: Payload, *, group: str | None = None) -> bool:
        """DQ.UPDATE: replaces the payload. Returns False if the message was not pending."""
        return await self._first(group, id, lambda queue: queue.update(id, payload))

    async def wait(self, id: str, timeout: Millis, *, group: str | None = None) -> tuple[str, str | None] | None:
        """DQ.WAIT: waits until a message has ended, as `Queue.wait` does."""
        home = self._homes(group, id)[0]
        for queue in self._homes(group, id)[1:]:
            if await queue.get(id) is not None:
                home = queue
        return await home.wait(id, timeout)

    # ---- all messages -----------------------------------------------------------------------------------------------

    async def info(self) -> Info:
        """DQ.NINFO of all nodes, added up: messages by state, queues, and waiting clients. Of ages, the highest."""
        call = calls.family_info(self.layout.family)
        nodes = (await self._known()).values()
        return added_up([call.read(await node.execute_command(*call.words)) for node in nodes])

    async def len(self, state: State | None = None) -> int:
        """Returns the number of pending and running messages, or of those in one state."""
        info = await self.info()
        states = (state,) if state else ("delayed", "ready", "blocked", "retry", "held", "running")
        return sum(int(info[one] or 0) for one in states)

    async def list(
        self, state: State, *, group: str | None = None, type: str | None = None, rev: bool = False, page: int = 100
    ) -> AsyncIterator[Record]:
        """DQ.LIST: yields all records in a state, one queue after the other."""
        for queue in self._of(group):
            async for one in queue.list(state, group=group, type=type, rev=rev, page=page):
                yield one

    async def find(self, state: State, *, page: int = 1000, **conditions: Unpack[Conditions]) -> AsyncIterator[Record]:
        """DQ.FIND: yields the records in a state to which all conditions apply, one queue after the other."""
        for queue in self._of(conditions.get("group")):
            async for one in queue.find(state, page=page, **conditions):
                yield one

    async def redrive_found(self, *, page: int = 1000, **conditions: Unpack[Conditions]) -> int:
        """DQ.FIND DO REDRIVE: makes the dead messages to which all conditions apply pending. Returns how many."""
        return sum([await queue.redrive_found(page=page, **conditions) for queue in self._of(conditions.get("group"))])

    async def cancel_found(self, state: State, *, page: int = 1000, **conditions: Unpack[Conditions]) -> int:
        """DQ.FIND DO CANCEL: cancels the messages in a state to which all conditions apply. Returns how many."""
        return sum(
            [await queue.cancel_found(state, page=page, **conditions) for queue in self._of(conditions.get("group"))]
        )

    async def purge_found(self, state: State, *, page: int = 1000, **conditions: Unpack[Conditions]) -> int:
        """DQ.FIND DO PURGE: removes the messages in a state to which all conditions apply. Returns how many."""
        return sum(
            [await queue.purge_found(state, page=page, **conditions) for queue in self._of(conditions.get("group"))]
        )

    async def peek(self, count: int = 1) -> builtins.list[Record]:
        """DQ.PEEK: returns up to `count` messages that can be delivered now, one queue after the other."""
        found: builtins.list[Record] = []
        for queue in self.queues():
            if len(found) < count:
                found += await queue.peek(count - len(found))
        return found

    async def redrive(self, *, count: int | None = None) -> int:
        """DQ.REDRIVE: makes all dead messages pending again, or up to `count` of each queue. Returns how many."""
        return sum([await queue.redrive(count=count) for queue in self.queues()])

    async def purge(self, *, state: State | None = None, group: str | None = None) -> int:
        """DQ.PURGE: removes messages for good. Returns how many."""
        return sum([await queue.purge(state=state, group=group) for queue in self._of(group)])

    async def consumers(self) -> builtins.list[Consumer]:
        """DQ.CONSUMERS: returns the consumers of all queues. One that has fetched from several is there several times."""
        return [one for queue in self.queues() for one in await queue.consumers()]

    async def batches(self, *, page: int = 100) -> AsyncIterator[Batch]:
        """DQ.BATCHES: yields the open batches, one queue after the other. A batch is of one queue."""
        for queue in self.queues():
            async for one in queue.batches(page=page):
                yield one

    # ---- groups and pauses ------------------------------------------------------------------------------------------

    async def groups(
        self, *, state: Literal["ready", "running", "blocked", "paused"] | None = None, page: int = 100
    ) -> AsyncIterator[Group]:
        """DQ.GROUPS: yields the groups that have messages, settings or a hold, one queue after the other."""
        for queue in self.queues():
            async for one in queue.groups(state=state, page=page):
                yield one

    async def moving(self) -> int:
        """Returns how many groups still have messages in the queue that they had before the family has grown.

        If there are none, `grown_from` is needed no more. O(groups of the old queues).
        """
        return sum(
            [
                self.layout.is_moving(key, group.group) and group.waiting + group.running > 0
                for key in self.layout.old_keys()
                async for group in self._queue(key).groups(page=1000)
            ]
        )

    async def pause(self, *, group: str | None = None, for_: Millis | None = None) -> None:
        """DQ.PAUSE: stops deliveries of all queues or of a group, for this long or until `resume`."""
        for queue in self._of(group):
            await queue.pause(group=group, for_=for_)

    async def resume(self, *, group: str | None = None) -> None:
        """DQ.RESUME: ends a pause, or the hold of a group."""
        for queue in self._of(group):
            await queue.resume(group=group)

    async def set_group(
        self,
        group: str,
        *,
        weight: int | None = None,
        concurrency: int | None = None,
        rate: tuple[int, Millis] | Literal[0] | None = None,
    ) -> None:
        """DQ.GROUPSET: changes settings of a group. Concurrency 0 and rate 0 restore those of the queue."""
        for queue in self._homes(group):
            await queue.set_group(group, weight=weight, concurrency=concurrency, rate=rate)

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
        """DQ.SCHEDULE in the queue of its group, or else of its name. Returns the first time, in Unix ms."""
        home = self._homes(options.get("group"), name)[0]
        return await home.schedule(
            name, payload, cron=cron, tz=tz, every=every, start=start, missed=missed, overlap=overlap, **options
        )

    async def unschedule(self, name: str, *, group: str | None = None) -> bool:
        """DQ.UNSCHEDULE: removes a schedule. Returns whether it existed."""
        return any([await queue.unschedule(name) for queue in self._homes(group, name)])

    async def schedules(self) -> builtins.list[Schedule]:
        """DQ.SCHEDULES: returns the schedules of all queues."""
        return [one for queue in self.queues() for one in await queue.schedules()]
