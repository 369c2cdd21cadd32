"""A queue on the server, with a method for each command."""

from typing import Any

from dqueue._async.caller import Caller, listed, one, several
from dqueue.protocol.client import AsyncClient
from dqueue.protocol.durable import Durable
from dqueue.protocol.options import Millis, Word, encode
from dqueue.protocol.verbs import QueueVerbs


class Queue(Caller):
    """One queue.

    `client` is a client of redis-py: `connect` makes a suitable one. `patience` is how long (ms) `send` repeats itself
    while the connection is down. With `durable`, each send and settlement is confirmed before a method returns: True
    means that the server has synced it to its disk, and `Durable` has further options. Otherwise the method raises
    NotConfirmed.

    Making a Queue does not touch the server. Every method is one command and one round trip, and `list`, `groups` and
    their like make one for each page. Errors of the server come as `redis.ResponseError`, lost connections as
    `redis.ConnectionError` or `redis.TimeoutError`.
    """

    verbs: QueueVerbs

    def __init__(
        self, client: AsyncClient, key: str, *, patience: Millis = 10_000, durable: bool | Durable = False
    ) -> None:
        super().__init__(client, patience, durable)
        self.key = key
        self.verbs = QueueVerbs(client, key)

    def __repr__(self) -> str:
        return f"Queue({self.key!r})"

    async def do(self, verb: str, *words: Word) -> Any:
        """Runs any other command of this queue: `do("LEN", "dead")` is DQ.LEN key dead. Returns what redis-py makes of the reply."""
        return await self.client.execute_command(f"DQ.{verb}", encode(self.key), *words)

    # ---- what `QueueVerbs` explains

    create = one(QueueVerbs.create)
    alter = one(QueueVerbs.alter)
    ensure = several(QueueVerbs.ensure)
    send = one(QueueVerbs.send)
    send_many = one(QueueVerbs.send_many)
    group_push = one(QueueVerbs.group_push)
    fetch = one(QueueVerbs.fetch)
    fetch_first = one(QueueVerbs.fetch_first)
    ack = one(QueueVerbs.ack)
    ack_send = one(QueueVerbs.ack_send)
    nack = one(QueueVerbs.nack)
    touch = one(QueueVerbs.touch)
    get = one(QueueVerbs.get)
    list = listed(QueueVerbs.list)
    find = listed(QueueVerbs.find)
    redrive_found = several(QueueVerbs.redrive_found)
    cancel_found = several(QueueVerbs.cancel_found)
    purge_found = several(QueueVerbs.purge_found)
    peek = one(QueueVerbs.peek)
    len = one(QueueVerbs.len)
    info = one(QueueVerbs.info)
    groups = listed(QueueVerbs.groups)
    batches = listed(QueueVerbs.batches)
    children = listed(QueueVerbs.children)
    limits = listed(QueueVerbs.limits)
    consumers = one(QueueVerbs.consumers)
    explain = one(QueueVerbs.explain)
    wait = one(QueueVerbs.wait)
    cancel = one(QueueVerbs.cancel)
    reschedule = one(QueueVerbs.reschedule)
    update = one(QueueVerbs.update)
    signal = one(QueueVerbs.signal)
    redrive = one(QueueVerbs.redrive)
    purge = one(QueueVerbs.purge)
    pause = one(QueueVerbs.pause)
    resume = one(QueueVerbs.resume)
    set_group = one(QueueVerbs.set_group)
    limit = one(QueueVerbs.limit)
    schedule = one(QueueVerbs.schedule)
    unschedule = one(QueueVerbs.unschedule)
    pause_schedule = one(QueueVerbs.pause_schedule)
    resume_schedule = one(QueueVerbs.resume_schedule)
    schedules = one(QueueVerbs.schedules)
    tick = one(QueueVerbs.tick)
