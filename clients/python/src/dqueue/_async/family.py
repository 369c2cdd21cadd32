"""A family: one logical queue that is cut into partitions, which lie on the nodes of a cluster."""

import builtins
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from dqueue._async.caller import Caller, listed, several
from dqueue._async.node_connections import NodeConnections
from dqueue._async.queue import Queue
from dqueue._async.runtime import Lock
from dqueue.nodes import AsyncNodes
from dqueue.protocol import calls
from dqueue.protocol.calls import Call
from dqueue.protocol.client import AsyncClient, check_block, socket_timeout
from dqueue.protocol.durable import Durable
from dqueue.protocol.family_verbs import FamilyVerbs
from dqueue.protocol.message import Message
from dqueue.protocol.options import (
    Millis,
    State,
    millis,
)
from dqueue.protocol.records import (
    Info,
    added_up,
)
from dqueue.protocol.routing import Layout

_LONGEST = 60_000
"""Milliseconds that one call waits at a node at most, if nothing else limits it."""


class Family(Caller):
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
    had before, as long as that has messages of the group. So groups keep their order. `durable` is that of a queue.
    """

    verbs: FamilyVerbs

    def __init__(
        self,
        name: str,
        partitions: int,
        client: AsyncClient,
        *,
        grown_from: int | None = None,
        patience: Millis = 10_000,
        durable: bool | Durable = False,
    ) -> None:
        super().__init__(client, patience, durable)
        self.layout = Layout(name, partitions, grown_from)
        self.verbs = FamilyVerbs(client, self.layout)
        self._nodes = AsyncNodes(client)
        self._waiting: dict[tuple[object, ...], NodeConnections] = {}
        """The waiting connections, by the options of the calls that share them."""
        self._lock = Lock()
        self._rotation = itertools.count()

    def __repr__(self) -> str:
        return f"Family({self.layout.family!r}, {self.layout.partitions})"

    def queue(self, group: str) -> Queue:
        """Returns the queue of a group. Use it for what is about one group, and for batches."""
        return Queue(self.client, self.layout.homes(group)[0], patience=self.patience, durable=self.durable or False)

    def queues(self) -> builtins.list[Queue]:
        """Returns the queues of all partitions, in order."""
        durable = self.durable or False
        return [Queue(self.client, key, patience=self.patience, durable=durable) for key in self.layout.keys()]

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
        await self._nodes.connect()
        async with self._lock:
            if kind not in self._waiting:
                self._waiting[kind] = self._node_connections(options, millis(block))
            connections = self._waiting[kind]
        try:
            return await connections.take(millis(block) / 1000)
        except Exception:
            # The connections have ended with this error. A later call begins anew.
            async with self._lock:
                self._waiting = {other: one for other, one in self._waiting.items() if one is not connections}
            await connections.close()
            raise

    async def _known(self) -> builtins.list[Any]:
        await self._nodes.connect()
        return list(self._nodes.known().values())

    async def _poll(self, call: Call[builtins.list[Message]]) -> builtins.list[Message]:
        nodes = await self._known()
        first = next(self._rotation)
        for number in range(len(nodes)):
            reply = await nodes[(first + number) % len(nodes)].execute_command(*call.words)
            if messages := call.read(reply):
                return messages
        return []

    def _node_connections(self, options: Mapping[str, object], block: int) -> NodeConnections:
        # 0 waits for ever, but even then a call that has ended must be noticed.
        limit = socket_timeout(self.client)
        longest = block or _LONGEST if limit is None else min(block or _LONGEST, int(limit * 500))

        def fetch(block: int | None) -> Call[builtins.list[Message]]:
            return calls.family_fetch(self.layout.family, {**options, "block": block})

        return NodeConnections(self.client, self._nodes, fetch, max(1, longest))

    async def aclose(self) -> None:
        """Ends waiting at the nodes, and gives back messages that arrive before that. A later `fetch` begins anew.

        It takes as long as one `block`. A Worker calls it when it ends.
        """
        async with self._lock:
            waiting, self._waiting = self._waiting, {}
        for connections in waiting.values():
            await connections.close()

    async def info(self) -> Info:
        """The sum of DQ.NINFO over all nodes: messages by state, queues, and waiting clients. Of the ages it has the
        highest.
        """
        call = calls.family_info(self.layout.family)
        nodes = await self._known()
        return added_up([call.read(await node.execute_command(*call.words)) for node in nodes])

    async def len(self, state: State | None = None) -> int:
        """Returns the number of pending and running messages, or of those in one state."""
        info = await self.info()
        states = (state,) if state else ("delayed", "ready", "blocked", "retry", "held", "running")
        return sum(int(info[one] or 0) for one in states)

    # ---- what `FamilyVerbs` explains

    create = several(FamilyVerbs.create)
    alter = several(FamilyVerbs.alter)
    ensure = several(FamilyVerbs.ensure)
    send = several(FamilyVerbs.send)
    send_many = several(FamilyVerbs.send_many)
    ack = several(FamilyVerbs.ack)
    ack_send = several(FamilyVerbs.ack_send)
    nack = several(FamilyVerbs.nack)
    touch = several(FamilyVerbs.touch)
    get = several(FamilyVerbs.get)
    explain = several(FamilyVerbs.explain)
    cancel = several(FamilyVerbs.cancel)
    reschedule = several(FamilyVerbs.reschedule)
    update = several(FamilyVerbs.update)
    signal = several(FamilyVerbs.signal)
    wait = several(FamilyVerbs.wait)
    list = listed(FamilyVerbs.list)
    find = listed(FamilyVerbs.find)
    redrive_found = several(FamilyVerbs.redrive_found)
    cancel_found = several(FamilyVerbs.cancel_found)
    purge_found = several(FamilyVerbs.purge_found)
    peek = several(FamilyVerbs.peek)
    redrive = several(FamilyVerbs.redrive)
    purge = several(FamilyVerbs.purge)
    consumers = several(FamilyVerbs.consumers)
    batches = listed(FamilyVerbs.batches)
    children = listed(FamilyVerbs.children)
    limits = listed(FamilyVerbs.limits)
    groups = listed(FamilyVerbs.groups)
    moving = several(FamilyVerbs.moving)
    pause = several(FamilyVerbs.pause)
    resume = several(FamilyVerbs.resume)
    set_group = several(FamilyVerbs.set_group)
    limit = several(FamilyVerbs.limit)
    schedule = several(FamilyVerbs.schedule)
    unschedule = several(FamilyVerbs.unschedule)
    pause_schedule = several(FamilyVerbs.pause_schedule)
    resume_schedule = several(FamilyVerbs.resume_schedule)
    schedules = several(FamilyVerbs.schedules)
