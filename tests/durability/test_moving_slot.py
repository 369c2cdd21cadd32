"""A slot whose keys go to another node one by one: what would write to a key that is not here waits, and nothing is lost."""

import random
import threading
import time
from binascii import crc_hqx

import pytest

from tests.checker import stream
from tests.harness.replies import Queue, digest
from tests.harness.server import wait_for
from tests.harness.topology import SLOTS
from tests.harness.wire import Error

KEY, DEAD, EVENTS, PARENTS = "{t}k", "{t}dead", "{t}st", "{t}p"


class Move:
    """The move of the slot of {t} from one node to another, key by key."""

    def __init__(self, cluster):
        self.source = cluster.owner(KEY)
        self.target = next(node for node in cluster.nodes if node is not self.source)
        self.slot, self.nodes = cluster.slot(KEY), cluster.nodes
        self.ids = [cluster.node_id(node) for node in (self.source, self.target)]
        self.here = self.source.wire()
        self.client = self.source.client()

    def begin(self):
        with self.target.wire() as there:
            there.ok("CLUSTER", "SETSLOT", self.slot, "IMPORTING", self.ids[0])
        self.here.ok("CLUSTER", "SETSLOT", self.slot, "MIGRATING", self.ids[1])

    def take(self, *keys):
        assert self.here.ok("MIGRATE", "127.0.0.1", self.target.port, "", 0, 5000, "KEYS", *keys) == b"OK"

    def end(self):
        while keys := self.here.ok("CLUSTER", "GETKEYSINSLOT", self.slot, 100):
            self.take(*keys)
        for node in (self.target, self.source, *self.nodes):
            with node.wire() as w:
                w.ok("CLUSTER", "SETSLOT", self.slot, "NODE", self.ids[1])
        return self.target.client()

    def refuses(self, *words) -> bool:
        """Whether a command is to be tried again, and has changed nothing here."""
        keys = self.here.ok("CLUSTER", "GETKEYSINSLOT", self.slot, 100)
        before = [digest(self.client, key) for key in keys]
        refused = str(self.here.call(*words)).startswith("TRYAGAIN")
        assert self.here.ok("CLUSTER", "GETKEYSINSLOT", self.slot, 100) == keys, words
        return refused and [digest(self.client, key) for key in keys] == before

    def waits(self, key=KEY) -> int:
        return Queue(self.client, key).info()["waits-for-slot"]


@pytest.fixture
def move(cluster):
    move = Move(cluster)
    yield move
    for node in cluster.nodes:
        with node.wire() as w:
            w.call("CLUSTER", "SETSLOT", move.slot, "STABLE")


def tied(client) -> Queue:
    """A queue whose messages are children, with a stream of events and a queue of DEADTO. Each kind of key is there."""
    Queue(client, DEAD).send("earlier")
    Queue(client, PARENTS).send("x", "ID", "p", "CHILDREN", 3)
    q = Queue(client, KEY)
    q.do("CREATE", "RETRIES", 0, "DEADTO", DEAD, "EVENTS", EVENTS)
    for id in "abc":
        q.send(id, "ID", id, "PARENT", PARENTS, "p", "ONDEAD", "GO")
    return q


def test_what_needs_a_key_that_is_not_here_is_tried_again(move):
    q = tied(move.client)
    a, b = q.fetch("COUNT", 2, "LEASE", 60_000)
    c = q.one("LEASE", 300)
    move.begin()
    assert not move.waits(), "all keys are here"
    move.take(PARENTS, DEAD, EVENTS)
    assert move.waits()
    for words in (
        ("ACK", KEY, a.receipt), ("NACK", KEY, b.receipt), ("SEND", KEY, "x"), ("FETCH", KEY, "ACK", 1, a.receipt), ("CANCEL", KEY, "a"),
        ("ACKSEND", KEY, a.receipt, "NEXT", KEY, "x"), ("TICK", KEY), ("PURGE", KEY),
    ):  # fmt: skip
        assert move.refuses(f"DQ.{words[0]}", *words[1:]), words
    time.sleep(0.6)
    assert q.state("c") == "running", "the end of its lease waits"
    client = move.end()
    q, dead = Queue(client, KEY), Queue(client, DEAD)
    wait_for(lambda: q.get("c") is None, 5, "the end of the lease")
    assert (q.ack(a.receipt), q.do("NACK", b.receipt), q.ack(c.receipt)) == (1, 1, 0)
    assert (dead.len(), q.len(), q.info()["waits-for-slot"]) == (3, 0, 0)
    assert Queue(client, PARENTS).state("p") == "ready"
    ends = [event.kind for event in stream.read(client, EVENTS)][-5:]
    assert ends == ["timeout", "dead", "acked", "nacked", "dead"]


def test_what_needs_only_keys_that_are_here_goes_on(move):
    q, other = tied(move.client), Queue(move.client, "{t}other")
    q.do("ALTER", "EVENTS", "", "RETRIES", 1)
    other.do("CREATE", "EVENTS", "{t}events", "LEASE", 100)
    other.send("x", "ID", "x", "PARK")
    q.send("plain", "ID", "plain", "PRIORITY", -1)
    plain, a, b = q.fetch("COUNT", 3, "LEASE", 60_000)
    move.begin()
    move.take(DEAD)
    assert q.ack(plain.receipt) == 1 and q.do("NACK", a.receipt) == 1
    assert q.fetch("COUNT", 9) and q.do("TOUCH", 90_000, b.receipt) == 1
    assert move.refuses("DQ.NACK", KEY, b.receipt, "FATAL"), "this one would die"
    assert q.ack(b.receipt) == 1
    move.take(PARENTS)
    q.send("y", "ID", "y", "PRIORITY", -1)
    y = q.one()
    assert move.refuses("DQ.ACK", KEY, y.receipt, a.receipt) is False, "neither is a child that runs"
    move.take("{t}events")
    q.send("z", "ID", "z", "PRIORITY", -1)
    z = q.one()
    assert move.refuses("DQ.ACKSEND", KEY, z.receipt, "NEXT", "{t}other", "x")
    assert move.refuses("DQ.ACKSEND", KEY, z.receipt, "SIGNAL", "{t}other", "x", "go")
    assert move.refuses("DQ.SIGNAL", "{t}other", "x") and move.refuses("DQ.SEND", "{t}other", "x")
    assert q.ack(z.receipt) == 1


def test_a_queue_goes_on_when_its_slot_stays(move):
    """The queue of DEADTO was never made, so nobody knows that it is not on the other node."""
    q = Queue(move.client, KEY)
    q.do("CREATE", "RETRIES", 0, "DEADTO", DEAD, "LEASE", 100)
    q.send("a", "ID", "a")
    q.one()
    move.begin()
    time.sleep(0.4)
    assert (q.state("a"), move.waits()) == ("running", 1)
    move.here.ok("CLUSTER", "SETSLOT", move.slot, "STABLE")
    wait_for(lambda: q.get("a") is None, 5, "the end of the lease")
    assert (Queue(move.client, DEAD).len(), move.waits()) == (1, 0)


def test_a_waiting_client_gets_nothing_that_the_stream_would_not_show(move):
    q = Queue(move.client, KEY)
    q.do("CREATE", "EVENTS", EVENTS)
    q.send("x", "DELAY", 300)
    with move.source.wire() as waiting:
        waiting.send("DQ.FETCH", KEY, "BLOCK", 0)
        move.source.wait_blocked(1)
        move.begin()
        move.take(EVENTS)
        time.sleep(0.5)
        client = move.end()
        assert waiting.recv().startswith("MOVED")
    assert Queue(client, KEY).one()
    assert [event.kind for event in stream.read(client, EVENTS)] == ["sent", "ready", "delivered"]


class Caller:
    """A client of a cluster that follows its redirects, for one thread."""

    def __init__(self, cluster, node):
        self.wires = {one.port: one.wire() for one in cluster.nodes}
        self.port = node.port

    def __call__(self, *words):
        port, asking = self.port, False
        while True:
            wire = self.wires[port]
            if asking:
                wire.ok("ASKING")
            reply = wire.call(*words)
            asking = False
            if not isinstance(reply, Error):
                return reply
            kind, *where = str(reply).split()
            match kind:
                case "MOVED":
                    port = self.port = int(where[1].rsplit(":", 1)[1])
                case "ASK":
                    port, asking = int(where[1].rsplit(":", 1)[1]), True
                case "TRYAGAIN":
                    time.sleep(0.005)
                    port = self.port
                case _:
                    raise AssertionError(reply)


def test_nothing_is_lost_or_doubled_in_a_reshard_under_traffic(cluster):
    """Forty groups of queues in one slot, each with its parents, its dead and its stream. Workers go on throughout."""
    source = cluster.nodes[0]
    target = cluster.nodes[1]
    first = first_slot(cluster, source)
    tag = next(str(n) for n in range(10**6) if crc_hqx(str(n).encode(), 0) % SLOTS == first)
    groups = [[f"{{{tag}}}{kind}{n}" for kind in ("k", "p", "dead", "st")] for n in range(40)]
    setup = Caller(cluster, source)
    for key, parents, dead, events in groups:
        setup("DQ.SEND", parents, "x", "ID", "p", "CHILDREN", 60)
        setup("DQ.CREATE", key, "RETRIES", 0, "DEADTO", dead, "EVENTS", events, "EVENTSLEN", 100_000)
        for n in range(60):
            setup("DQ.SEND", key, "x" * 1000, "ID", n, "PARENT", parents, "p", "ONDEAD", "GO")
    acked = {key: set() for key, *_ in groups}

    def work(seed):
        call, rng = Caller(cluster, source), random.Random(seed)
        left = [key for key, *_ in groups]
        while left:
            key = rng.choice(left)
            lease = rng.choice((30, 60_000))
            got = call("DQ.FETCH", key, "LEASE", lease)
            if not got:
                left = [key for key in left if call("DQ.LEN", key)]
                continue
            id, receipt = got[0][0].decode(), got[0][1]
            if lease == 30:
                continue
            if rng.random() < 0.5:
                assert call("DQ.ACK", key, receipt) == 1
                acked[key].add(id)
            else:
                assert call("DQ.NACK", key, receipt) == 1

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for worker in workers:
        worker.start()
    cluster.reshard(source, target, 1, "--cluster-pipeline", "1")
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()
    assert first_slot(cluster, source) != first
    client = target.client()
    for key, parents, dead, events in groups:
        letters = {message.id.decode() for message in Queue(client, dead).fetch("COUNT", 100)}
        assert not letters & acked[key]
        assert letters | acked[key] == {str(n) for n in range(60)}, key
        assert Queue(client, parents).state("p") == "ready", parents
        ends = [event.id for event in stream.read(client, events) if event.kind in ("acked", "dead")]
        assert sorted(ends, key=int) == [str(n) for n in range(60)], key


def first_slot(cluster, node) -> int:
    """The slot of a node that redis-cli moves first."""
    id = cluster.node_id(node).decode()
    [ranges] = [words[1:] for words in cluster.owners_seen_by(node) if words[0] == id]
    return min(int(words.split("-")[0]) for words in ranges if words[0] != "[")
