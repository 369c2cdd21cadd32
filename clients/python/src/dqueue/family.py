"""A family: one logical queue that is cut into partitions, which lie on the nodes of a cluster."""

import builtins
import itertools
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar, Unpack

from dqueue import calls
from dqueue.calls import Call, Next, Payload
from dqueue.connection import Client, check_block, socket_timeout
from dqueue.intake import Intake
from dqueue.message import Message, by_queue
from dqueue.nodes import nodes_of
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
from dqueue.queue import Queue
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
    """One logical queue over `partitions` queues, a power of two. docs/families.md says how it works.

    `client` is a client of a cluster (`connect_cluster`), or of one server. Producers and consumers must give the same
    name, and producers the same number of partitions. Consumers wait at all queues of the family, however many there
    are, with one connection for each node.

    The verbs are those of `Queue`. A verb that is about one message goes to the queue of its group, or, for a message
    without a group, of its id: give `group` where the message has one. A verb that is about all messages goes to all
    partitions. Messages are settled on the queue that delivered them, so `ack` and its like take messages, not receipts.

    Order, GROUPCONCURRENCY, the settings of a group, batches and ids are about one queue, and so hold in a group. Limits
    of a queue (RATE, MAXLEN, MAXRUNNING) hold in each partition.

    `grown_from` is half of `partitions`, or None. While a family grows, `send` adds a message to the queue that its group
    had before, as long as that has messages of the group. So groups keep their order.
    """

    def __init__(
        self,
        name: str,
        partitions: int,
        client: Client,
        *,
        grown_from: int | None = None,
        patience: Millis = 10_000,
    ) -> None:
        self.layout = Layout(name, partitions, grown_from)
        self.client = client
        self.patience = millis(patience)
        self._nodes = nodes_of(client)
        self._intakes: dict[tuple[object, ...], Intake] = {}
        self._rotation = itertools.count()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Family({self.layout.family!r}, {self.layout.partitions})"

    def _do(self, call: Call[T]) -> T:
        return call.read(self.client.execute_command(*call.words))

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

    def _first(self, group: str | None, id: str, ask: Callable[[Queue], T]) -> T:
        """Returns the first answer that is not empty of the queues in which a message may be."""
        *homes, last = self._homes(group, id)
        for home in homes:
            if answer := ask(home):
                return answer
        return ask(last)

    # ---- creating ---------------------------------------------------------------------------------------------------

    def create(self, **options: Unpack[QueueOptions]) -> None:
        """Creates all queues with these options. Fails if one exists."""
        for queue in self.queues():
            queue.create(**options)

    def alter(self, **options: Unpack[QueueOptions]) -> None:
        """Changes options of all queues, also for the messages in them."""
        for queue in self.queues():
            queue.alter(**options)

    def ensure(self, **options: Unpack[QueueOptions]) -> None:
        """Creates the queues that are missing, and gives all of them these options."""
        for queue in self.queues():
            queue.ensure(**options)

    # ---- producing --------------------------------------------------------------------------------------------------

    def send(
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
            if old._patiently(calls.send(old.key, payload, own, replace, held)) is not None:
                return own
            if old.get(own) is not None:
                return own if id is None else None
        sent = home._patiently(calls.send(home.key, payload, own, replace, options))
        # The id of this call can only be taken by an earlier try of it.
        return own if id is None and not options.get("if_group") else sent

    def send_many(self, payloads: Sequence[Payload], **options: Unpack[SendOptions]) -> builtins.list[str]:
        """DQ.MSEND: adds all of the messages to one queue, or none: that of their group, or any."""
        group = options.get("group")
        home, *others = self._homes(group, str(uuid.uuid4()))
        if others and group is not None:
            held: SendOptions = {**options, "if_group": True}
            if sent := others[0].send_many(payloads, **held):
                return sent
        return home.send_many(payloads, **options)

    # ---- consuming --------------------------------------------------------------------------------------------------

    def fetch(
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
        from several threads. `close` ends them.
        """
        self.ack(*ack)
        options = {
            "count": count,
            "lease": lease,
            "consumer": consumer,
            "per_group": per_group,
            "max_bytes": max_bytes,
        }
        if block is None:
            return self._poll(calls.family_fetch(self.layout.family, options))
        check_block(self.client, millis(block))
        kind = (*options.values(), millis(block))
        with self._lock:
            if kind not in self._intakes:
                self._intakes[kind] = self._intake(options, millis(block))
            intake = self._intakes[kind]
        try:
            return intake.take(millis(block) / 1000)
        except Exception:
            # It has ended with this error. A later call begins anew.
            with self._lock:
                self._intakes = {other: one for other, one in self._intakes.items() if one is not intake}
            intake.close()
            raise

    def _poll(self, call: Call[builtins.list[Message]]) -> builtins.list[Message]:
        nodes = list(self._nodes.known().values())
        first = next(self._rotation)
        for number in range(len(nodes)):
            reply = nodes[(first + number) % len(nodes)].execute_command(*call.words)
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

    def close(self) -> None:
        """Ends waiting at the nodes, and gives back what comes until then. A later `fetch` begins anew.

        It takes as long as one `block`. A Worker calls it when it ends.
        """
        with self._lock:
            intakes, self._intakes = self._intakes, {}
        for intake in intakes.values():
            intake.close()

    def ack(self, *messages: Message, result: Payload | None = None) -> int:
        """DQ.ACK: finishes messages. Returns how many were finished. The others had lost their lease."""
        return sum(self._do(calls.ack(key, own, result)) for key, own in by_queue(messages).items())

    def ack_send(
        self, message: Message, *following: Next, result: Payload | None = None
    ) -> builtins.list[str | None] | None:
        """DQ.ACKSEND: finishes a message and sends those that follow from it to its queue, all in one step.

        They must be of the group of the message, or without a group, or name a queue in the same hash slot.
        """
        return self._do(calls.ack_send(message.queue, message, following, result))

    def nack(
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
        return sum(self._do(calls.nack(key, own, options)) for key, own in by_queue(messages).items())

    def touch(self, lease: Millis, *messages: Message, note: str | None = None) -> int:
        """DQ.TOUCH: makes leases end this long (at least 1 ms) from now. Returns how many do. The others were over."""
        return sum(self._do(calls.touch(key, lease, own, note)) for key, own in by_queue(messages).items())

    # ---- one message ------------------------------------------------------------------------------------------------

    def get(self, id: str, *, group: str | None = None) -> Record | None:
        """DQ.GET: returns everything about one message, or None if the id is unknown."""
        return self._first(group, id, lambda queue: queue.get(id))

    def explain(self, id: str, *, group: str | None = None) -> Explanation | None:
        """DQ.EXPLAIN: says why a message is in its state. Returns None if the id is unknown."""
        return self._first(group, id, lambda queue: queue.explain(id))

    def cancel(self, id: str, *, group: str | None = None) -> str | None:
        """DQ.CANCEL: cancels a message. Returns the state that it had, or None if the id is unknown."""
        return self._first(group, id, lambda queue: queue.cancel(id)[0])

    def reschedule(
        self, id: str, *, group: str | None = None, delay: Millis | None = None, at: Instant | None = None
    ) -> bool:
        """DQ.RESCHEDULE: changes the due time. Returns False if the message was not pending."""
        return self._first(group, id, lambda queue: queue.reschedule(id, delay=delay, at=at))

    def update(self, id: str, payload: Payload, *, group: str | None = None) -> bool:
        """DQ.UPDATE: replaces the payload. Returns False if the message was not pending."""
        return self._first(group, id, lambda queue: queue.update(id, payload))

    def wait(self, id: str, timeout: Millis, *, group: str | None = None) -> tuple[str, str | None] | None:
        """DQ.WAIT: waits until a message has ended, as `Queue.wait` does."""
        home = self._homes(group, id)[0]
        for queue in self._homes(group, id)[1:]:
            if queue.get(id) is not None:
                home = queue
        return home.wait(id, timeout)

    # ---- all messages -----------------------------------------------------------------------------------------------

    def info(self) -> Info:
        """DQ.NINFO of all nodes, added up: messages by state, queues, and waiting clients. Of ages, the highest."""
        call = calls.family_info(self.layout.family)
        return added_up([call.read(node.execute_command(*call.words)) for node in self._nodes.known().values()])

    def len(self, state: State | None = None) -> int:
        """Returns the number of pending and running messages, or of those in one state."""
        info = self.info()
        states = (state,) if state else ("delayed", "ready", "blocked", "retry", "held", "running")
        return sum(int(info[one] or 0) for one in states)

    def list(
        self, state: State, *, group: str | None = None, type: str | None = None, rev: bool = False, page: int = 100
    ) -> Iterator[Record]:
        """DQ.LIST: yields all records in a state, one queue after the other."""
        for queue in self._of(group):
            yield from queue.list(state, group=group, type=type, rev=rev, page=page)

    def find(self, state: State, *, page: int = 1000, **conditions: Unpack[Conditions]) -> Iterator[Record]:
        """DQ.FIND: yields the records in a state to which all conditions apply, one queue after the other."""
        for queue in self._of(conditions.get("group")):
            yield from queue.find(state, page=page, **conditions)

    def redrive_found(self, *, page: int = 1000, **conditions: Unpack[Conditions]) -> int:
        """DQ.FIND DO REDRIVE: makes the dead messages to which all conditions apply pending. Returns how many."""
        return sum(queue.redrive_found(page=page, **conditions) for queue in self._of(conditions.get("group")))

    def cancel_found(self, state: State, *, page: int = 1000, **conditions: Unpack[Conditions]) -> int:
        """DQ.FIND DO CANCEL: cancels the messages in a state to which all conditions apply. Returns how many."""
        return sum(queue.cancel_found(state, page=page, **conditions) for queue in self._of(conditions.get("group")))

    def purge_found(self, state: State, *, page: int = 1000, **conditions: Unpack[Conditions]) -> int:
        """DQ.FIND DO PURGE: removes the messages in a state to which all conditions apply. Returns how many."""
        return sum(queue.purge_found(state, page=page, **conditions) for queue in self._of(conditions.get("group")))

    def peek(self, count: int = 1) -> builtins.list[Record]:
        """DQ.PEEK: returns up to `count` messages that can be delivered now, one queue after the other."""
        found: builtins.list[Record] = []
        for queue in self.queues():
            if len(found) < count:
                found += queue.peek(count - len(found))
        return found

    def redrive(self, *, count: int | None = None) -> int:
        """DQ.REDRIVE: makes all dead messages pending again, or up to `count` of each queue. Returns how many."""
        return sum(queue.redrive(count=count) for queue in self.queues())

    def purge(self, *, state: State | None = None, group: str | None = None) -> int:
        """DQ.PURGE: removes messages for good. Returns how many."""
        return sum(queue.purge(state=state, group=group) for queue in self._of(group))

    def consumers(self) -> builtins.list[Consumer]:
        """DQ.CONSUMERS: returns the consumers of all queues. One that has fetched from several is there several times."""
        return [one for queue in self.queues() for one in queue.consumers()]

    def batches(self, *, page: int = 100) -> Iterator[Batch]:
        """DQ.BATCHES: yields the open batches, one queue after the other. A batch is of one queue."""
        for queue in self.queues():
            yield from queue.batches(page=page)

    # ---- groups and pauses ------------------------------------------------------------------------------------------

    def groups(
        self, *, state: Literal["ready", "running", "blocked", "paused"] | None = None, page: int = 100
    ) -> Iterator[Group]:
        """DQ.GROUPS: yields the groups that have messages, settings or a hold, one queue after the other."""
        for queue in self.queues():
            yield from queue.groups(state=state, page=page)

    def moving(self) -> int:
        """Returns how many groups still have messages in the queue that they had before the family has grown.

        If there are none, `grown_from` is needed no more. O(groups of the old queues).
        """
        return sum(
            self.layout.is_moving(key, group.group) and group.waiting + group.running > 0
            for key in self.layout.old_keys()
            for group in self._queue(key).groups(page=1000)
        )

    def pause(self, *, group: str | None = None, for_: Millis | None = None) -> None:
        """DQ.PAUSE: stops deliveries of all queues or of a group, for this long or until `resume`."""
        for queue in self._of(group):
            queue.pause(group=group, for_=for_)

    def resume(self, *, group: str | None = None) -> None:
        """DQ.RESUME: ends a pause, or the hold of a group."""
        for queue in self._of(group):
            queue.resume(group=group)

    def set_group(
        self,
        group: str,
        *,
        weight: int | None = None,
        concurrency: int | None = None,
        rate: tuple[int, Millis] | Literal[0] | None = None,
    ) -> None:
        """DQ.GROUPSET: changes settings of a group. Concurrency 0 and rate 0 restore those of the queue."""
        for queue in self._homes(group):
            queue.set_group(group, weight=weight, concurrency=concurrency, rate=rate)

    # ---- schedules --------------------------------------------------------------------------------------------------

    def schedule(
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
        return home.schedule(
            name, payload, cron=cron, tz=tz, every=every, start=start, missed=missed, overlap=overlap, **options
        )

    def unschedule(self, name: str, *, group: str | None = None) -> bool:
        """DQ.UNSCHEDULE: removes a schedule. Returns whether it existed."""
        return any([queue.unschedule(name) for queue in self._homes(group, name)])

    def schedules(self) -> builtins.list[Schedule]:
        """DQ.SCHEDULES: returns the schedules of all queues."""
        return [one for queue in self.queues() for one in queue.schedules()]
