"""The processes of a run over a family: the Python package sends, waits at all nodes, and settles.

They write what those of `actors.py` write. A receipt is made unique over the queues of the family by the slot of its
queue; it grows with time in all of them.
"""

import logging
import os
import random
import sys
import threading
import time
from collections import deque
from pathlib import Path

from tests.checker.actors import hash_of, payload
from tests.checker.history import Journal, clock
from tests.harness.server import ROOT
from tests.torture.actors import PATIENCE, lives

sys.path.insert(0, str(ROOT / "clients/python/src"))

from dqueue import Family, connect_cluster, routing  # noqa: E402
from dqueue._sync.node_connections import NodeConnections  # noqa: E402
from dqueue.message import Message  # noqa: E402

# The waiting calls of one consumer. At most this many get no answer when it dies.
CALLS = 6
BLOCK = 300


def connect(ports):
    """A client of the cluster, through any node that answers."""
    ports = list(ports)
    while True:
        try:
            return connect_cluster(f"redis://127.0.0.1:{ports[0]}", socket_timeout=3, socket_connect_timeout=1)
        except Exception:
            ports.append(ports.pop(0))
            time.sleep(0.05)


def family_of(ports, key, folder) -> Family:
    """The family with the number of partitions that the target has last written."""
    partitions, grown_from = partitions_in(folder)
    return Family(key, partitions, connect(ports), grown_from=grown_from, patience=40_000)


def partitions_in(folder) -> tuple:
    """The number of partitions now, and the one before, or None."""
    now, before = map(int, (Path(folder) / "partitions").read_text().split())
    return now, before or None


def produce(ports, key, path, name, seed, until, ways):
    """Sends to its own groups and to none, some delayed, until the monotonic ms `until`."""
    rng, journal, folder = random.Random(seed), Journal(path), Path(path).parent
    family = family_of(ports, key, folder)
    n = 0
    while clock() < until:
        n += 1
        id = f"{name}-{n}"
        # All messages of a group come from one producer, because the others may not know yet that the family has grown.
        group = f"{name}:g{rng.randrange(ways.groups)}" if rng.random() < 0.6 else ""
        score = rng.randrange(10**6) + hash_of(name) * 1e-3 + n * 1e-9
        delay = rng.choice((0, 0, rng.randrange(1, 250)))
        now = partitions_in(folder)
        if now != (family.layout.partitions, family.layout.grown_from):
            family = Family(key, now[0], family.client, grown_from=now[1], patience=family.patience)
        journal.write(what="send", id=id, group=group, score=score, begin=clock(), delay=delay)
        options = {"group": group, "score": score} if group else {}
        family.send(payload(id, group), id=id, delay=delay, **options)
        journal.write(what="sent", id=id, end=clock())
        time.sleep(rng.expovariate(ways.rate))


def consume(ports, key, directory, name, seed, until, lease, ways):
    """Keeps one consumer alive, as `actors.consume` does."""

    def live(life, path):
        Consumer(ports, key, path, f"{name}.{life}", seed + life, lease, ways.crash).run(until, f"{directory}/healed")

    lives(directory, name, live)


class Calls:
    """The last two times at which each connection of this process has asked its node, by thread.

    Messages of a call may still wait for a caller when the next one is made.
    """

    def __init__(self):
        self.asked = {}
        call = NodeConnections._call

        def noted(connections, node, block):
            self.asked.setdefault(threading.get_ident(), deque(maxlen=2)).append(clock())
            return call(connections, node, block)

        NodeConnections._call = noted

    def of_this_thread(self) -> float | None:
        """The time of the call that has ended in this thread, if it is that of a connection."""
        asked = self.asked.get(threading.get_ident())
        return asked[-1] if asked else None

    def earliest(self) -> list:
        """For each connection the time of the call whose messages may not have been handled."""
        return [asked[0] for asked in list(self.asked.values())]


class Unanswered(logging.Handler):
    """Writes down that a call of the package got no answer, or that its messages could not be given back in time.

    A process that gets no processor time learns of that long after the lease, when the message has gone to another one. So
    the moment at which the call was made is written down as well.
    """

    def __init__(self, consumer):
        super().__init__(logging.WARNING)
        self.consumer = consumer

    def emit(self, record):
        self.consumer.unanswered(self.consumer.calls.of_this_thread())


class Consumer:
    """Fetches one or several, then acks, nacks, waits too long, lets the lease run out, comes too late, or dies."""

    def __init__(self, ports, key, path, name, seed, lease, crash):
        self.rng, self.journal = random.Random(seed), Journal(path)
        self.name, self.lease, self.crash = name, lease, crash
        self.n, self.lost, self.old = 0, 0, []
        log = logging.getLogger("dqueue")
        log.handlers, log.propagate = [Unanswered(self)], False
        self.calls = Calls()
        self.family = family_of(ports, key, Path(path).parent)

    def run(self, until, healed):
        """Works until `until`, then longer until all connections work and no message has come for PATIENCE."""
        idle_since = clock()
        while (chaos := clock() < until) or clock() - idle_since < PATIENCE:
            messages = self.fetch(chaos)
            if messages or not os.path.exists(healed):
                idle_since = clock()
            for m in messages:
                self.handle(m, chaos)
        self.family.close()

    def fetch(self, chaos) -> list:
        self.n += 1
        options = self.rng.choice(({"count": 1}, {"count": 6, "per_group": 3})) if chaos else {"count": 10}
        self.journal.write(what="fetch", n=self.n, begin=clock(), lease=self.lease, consumer=self.name, group="")
        messages = self.family.fetch(block=BLOCK, lease=self.lease, consumer=self.name, **options)
        end = clock()
        events = [self.event(m) for m in messages]
        # The package waits ahead of the call, so a message may have been given before.
        offset = time.time() * 1000 - end
        given = min((event["at"] - offset - 1 for event in events), default=end)
        self.journal.write(what="fetched", n=self.n, end=end, given=given, messages=events)
        return messages

    def event(self, m: Message) -> dict:
        group = m.group or ""
        return {
            "id": m.id, "group": group, "receipt": unique(m), "attempt": m.attempt,
            "batch": f"{self.name}/{self.n}/{group}", "intact": m.payload == payload(m.id, group),
            "at": m.lease_until - self.lease, "due": m.due_at,
        }  # fmt: skip

    def unanswered(self, asked=None) -> None:
        """A call was made at `asked`. If that is not known, it was one of those that no message has been handled of."""
        self.lost += 1
        now = clock()
        begin = asked or min(self.calls.earliest(), default=now)
        self.journal.write(what="fetch", n=f"lost {self.lost}", begin=begin, noted=now, lease=self.lease, consumer=self.name)

    def handle(self, m: Message, chaos) -> None:
        fate, kind = (self.rng.random(), self.rng.random()) if chaos else (1.0, 1.0)
        if fate < self.crash:
            asked = self.calls.earliest()
            for at in asked + [clock()] * (CALLS - len(asked)):
                self.unanswered(at)
            os._exit(9)
        if fate < self.crash + 0.01:
            time.sleep(self.lease * 1.3 / 1000)
        elif fate < self.crash + 0.1:
            time.sleep(self.rng.random() * 0.02)
        if kind < 0.08:
            self.verdict("nack", m, delay=self.rng.randrange(0, 60), error="chaos")
        elif kind < 0.12:
            self.verdict("silent", m, silent=True)
        elif kind < 0.14:
            # The message was dropped. A later ack of it must change nothing, unless its lease still runs.
            self.old.append(m)
        else:
            self.verdict("ack", m)
        if chaos and self.old and self.rng.random() < 0.05:
            self.verdict("ack", self.old.pop(0))

    def verdict(self, kind, m: Message, **options) -> None:
        self.n += 1
        self.journal.write(what="verdict", n=self.n, kind=kind, ids=[m.id], receipts=[unique(m)], begin=clock())
        try:
            count = self.family.ack(m) if kind == "ack" else self.family.nack(m, **options)
        except Exception:
            # It is unknown whether the command was done.
            return
        self.journal.write(what="answered", n=self.n, end=clock(), count=count)


def unique(m: Message) -> int:
    return m.receipt * routing.SLOTS + routing.slot(m.queue[m.queue.index("{") + 1 : -1])
