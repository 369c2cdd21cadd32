"""Queues in a cluster: redirects, calls with keys of several slots, and slots that move with leases and waiters."""

import time

import pytest

from tests.checker import stream
from tests.harness.replies import Queue, digest, msgs
from tests.harness.server import now_ms, wait_for
from tests.harness.traffic import rich
from tests.harness.wire import Error


def test_a_node_redirects_clients_to_the_owner_of_the_key(cluster):
    owner = cluster.owner("q")
    other = next(n for n in cluster.nodes if n is not owner)
    with owner.wire() as w:
        assert w.ok("DQ.SEND", "q", "x", "ID", "a") == b"a"
    with other.wire() as w:
        for call in (("DQ.SEND", "q", "x"), ("DQ.FETCH", "q", "BLOCK", 0), ("DQ.MFETCH", 1, "q"), ("DQ.TICK", "q")):
            assert w.call(*call).startswith("MOVED"), call
        assert w.call("DQ.TICK", "q", "ADVANCE", 5).startswith("MOVED")


def test_keys_of_several_slots_are_refused(cluster):
    with cluster.owner("a").wire() as w:
        assert w.call("DQ.MFETCH", 2, "a", "b").startswith("CROSSSLOT")
        assert w.call("DQ.TICK", "a", "b").startswith("CROSSSLOT")
        assert not isinstance(w.call("DQ.MFETCH", 2, "{a}1", "{a}2"), Error)


def test_tick_without_keys_works_on_every_node(cluster):
    for node in cluster.nodes:
        with node.wire() as w:
            assert isinstance(w.ok("DQ.TICK"), dict)


@pytest.fixture
def plan_move(cluster):
    """Moves the slot of a key to another node: (source, move) with move() -> target."""

    def plan(key):
        source = cluster.owner(key)
        target = next(n for n in cluster.nodes if n is not source)

        def move():
            cluster.move_slot(cluster.slot(key), source, target)
            return target

        return source, move

    return plan


def test_a_slot_moves_with_everything_in_its_queues(plan_move):
    source, move = plan_move("q")
    q = rich(source.client(), "q", "SERVER")
    before = q.digest()
    target = move()
    there = Queue(target.client(), "q")
    assert digest(target.client(), "q") == before
    assert there.ack(q.running) == 1


def test_timers_of_a_moved_queue_run_on_its_new_node(plan_move):
    source, move = plan_move("t")
    q = Queue(source.client(), "t")
    q.send("leased", "PRIORITY", -1)
    receipt = q.one("LEASE", 60000).receipt
    due = now_ms() + 1000
    q.send("x", "AT", due)
    target = move()
    there = now_ms()
    w = target.wire()
    w.send("DQ.FETCH", "t", "BLOCK", 0)
    [m] = msgs(w.recv())
    assert due <= Queue(target.client(), "t").get(m.id)["started-at"] <= max(due, there) + 1000
    assert m.receipt > receipt
    assert w.ok("DQ.ACK", "t", receipt, m.receipt) == 2


def test_waiters_are_redirected_when_their_slot_moves(plan_move):
    source, move = plan_move("w")
    w = source.wire()
    w.send("DQ.FETCH", "w", "BLOCK", 0)
    source.wait_blocked(1)
    target = move()
    reply = w.recv()
    assert isinstance(reply, Error) and reply.startswith("MOVED")
    assert str(target.port) in reply
    source.wait_blocked(0)


def test_a_queue_that_comes_before_the_keys_that_it_names_waits_for_them(cluster):
    """A lease ends in between. The next commands must find the event stream, the queue of DEADTO, and the parent."""
    source = cluster.owner("{s}q")
    target = next(node for node in cluster.nodes if node is not source)
    client, slot = source.client(), cluster.slot("{s}q")
    Queue(client, "{s}dead").send("earlier")
    Queue(client, "{s}parents").send("x", "ID", "p", "CHILDREN", 1)
    q = Queue(client, "{s}q")
    q.do("CREATE", "RETRIES", 0, "DEADTO", "{s}dead", "EVENTS", "{s}events")
    q.send("x", "ID", "a", "PARENT", "{s}parents", "p")
    q.one("LEASE", 200)
    ids = [cluster.node_id(node) for node in (source, target)]
    with source.wire() as s, target.wire() as t:
        t.ok("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        s.ok("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        for key in ("{s}q", "{s}events", "{s}dead", "{s}parents"):
            assert s.ok("MIGRATE", "127.0.0.1", target.port, key, 0, 5000) == b"OK"
            time.sleep(0.3)
        for wire in (t, s):
            wire.ok("CLUSTER", "SETSLOT", slot, "NODE", ids[1])
    client = target.client()
    wait_for(lambda: Queue(client, "{s}dead").len() == 2, 5, "the dead message")
    assert [event.kind for event in stream.read(client, "{s}events")] == ["sent", "ready", "delivered", "timeout", "dead"]
    assert Queue(client, "{s}parents").state("p") == "ready"
