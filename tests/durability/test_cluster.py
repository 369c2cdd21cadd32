"""Queues in a cluster: redirects, calls with keys of several slots, and slots that move with leases and waiters."""

import time

import pytest

from tests.checker import stream
from tests.harness.replies import Queue, msgs
from tests.harness.server import now_ms, wait_for
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


def another_slot(cluster, node) -> str:
    """A key that this node owns, in another slot than {s}."""
    return next(key for key in ("{a}q", "{b}q", "{c}q", "{e}q", "{f}q") if cluster.owner(key) is node)


def test_the_keys_of_acksend_are_of_one_slot(cluster):
    owner = cluster.owner("{a}q")
    other = next(n for n in cluster.nodes if n is not owner)
    client = owner.client()
    q = Queue(client, "{a}q")
    q.send("x")
    receipt = q.one().receipt
    with owner.wire() as w:
        assert w.call("DQ.ACKSEND", "{a}q", receipt, "NEXT", "{b}d", "p").startswith("CROSSSLOT")
        assert w.call("DQ.ACKSEND", "{a}q", receipt, "NEXT", "{a}d", "p", "NEXT", "{b}d", "p").startswith("CROSSSLOT")
        sent = w.ok("DQ.ACKSEND", "{a}q", receipt, "NEXT", "{a}d", "NEXT", "NEXT", "{a}q", "p")
        assert len(sent) == 2 and not isinstance(sent, Error)
    with other.wire() as w:
        assert w.call("DQ.ACKSEND", "{a}q", receipt, "NEXT", "{a}d", "p").startswith("MOVED")
    assert Queue(client, "{a}d").payloads() == [b"NEXT"]


def test_children_are_in_the_slot_of_their_parent(cluster):
    node = cluster.owner("{s}q")
    client = node.client()
    p, c = Queue(client, "{s}p"), Queue(client, "{s}c")
    with node.wire() as w:
        for call in (("SEND", "{s}c", "x"), ("MSEND", "{s}c", 1, "x")):
            assert w.call(f"DQ.{call[0]}", *call[1:], "PARENT", "other", "p").startswith("CROSSSLOT")
    p.send("x", "ID", "p", "CHILDREN", 1)
    c.send("x", "ID", "a", "PARENT", "{s}p", "p")
    assert len(p.do("CHILDREN", "p")[1]) == 1
    c.ack(c.one().receipt)
    assert p.one().id == b"p"


def test_children_from_another_slot_do_no_harm(cluster):
    node = cluster.owner("{s}q")
    client = node.client()
    p, c = Queue(client, "{s}p"), Queue(client, "{s}c")
    p.send("x", "ID", "p", "CHILDREN", 1)
    c.send("x", "ID", "a", "PARENT", "{s}p", "p")
    other = another_slot(cluster, node)
    client.restore(other, 0, client.dump("{s}c"))
    Queue(client, other).do("CANCEL", "a")
    assert p.state("p") == "held"


def test_the_queue_of_deadto_is_in_the_slot_of_its_source(cluster):
    node = cluster.owner("{s}q")
    client = node.client()
    q = Queue(client, "{s}q")
    assert q.fails("CREATE", "DEADTO", "other").endswith("hash to the same slot")
    q.do("CREATE", "RETRIES", 0, "LEASE", 50, "DEADTO", "{s}d")
    assert "another" in q.fails("ALTER", "DEADTO", "{s}q")
    assert q.fails("ALTER", "DEADTO", "other").endswith("hash to the same slot")
    q.send("x", "ID", "a")
    q.do("NACK", q.one().receipt, "FATAL")
    assert Queue(client, "{s}d").state("a") == "ready"
    q.send("x", "ID", "b")
    q.one()
    wait_for(lambda: Queue(client, "{s}d").state("b") == "ready", 5, "the message there")


def test_a_queue_that_came_from_another_slot_keeps_its_dead(cluster):
    node = cluster.owner("{s}q")
    client = node.client()
    q = Queue(client, "{s}q")
    q.do("CREATE", "RETRIES", 0, "DEADTO", "{s}d")
    dump = client.dump("{s}q")
    other = another_slot(cluster, node)
    client.restore(other, 0, dump)
    q = Queue(client, other)
    q.send("x", "ID", "a")
    q.do("NACK", q.one().receipt, "FATAL")
    assert q.state("a") == "dead"
    assert b"slot" in q.info()["deadto-error"]


def test_an_event_stream_is_in_the_slot_of_the_queue(cluster):
    node = cluster.owner("{s}q")
    client = node.client()
    q = Queue(client, "{s}q")
    assert q.fails("CREATE", "EVENTS", "other").endswith("hash to the same slot")
    q.do("CREATE", "EVENTS", "{s}e")
    q.send("x", "DELAY", 20)
    wait_for(lambda: client.xlen("{s}e") == 2, 5, "the events")
    dump = client.dump("{s}q")
    other = another_slot(cluster, node)
    client.restore(other, 0, dump)
    Queue(client, other).send("x")
    assert client.xlen("{s}e") == 2
    assert b"slot" in Queue(client, other).info()["events-error"]
