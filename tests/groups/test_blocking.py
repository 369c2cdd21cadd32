"""Blocked consumers of groups: the events that wake them, and the order in which they are served.

These tests use real time, because waking is what they are about.
"""

import selectors

import pytest

from tests.harness.replies import Queue, msgs
from tests.harness.waiting import (
    LATE,
    given_at,
    waiter,
    waits_after,
    wakes_at,
    woken_by,
)

# A client that gets nothing for this long counts as "not woken", in seconds.
QUIET = 0.15


@pytest.fixture
def q(server, r3, key):
    queue = Queue(r3, key)
    queue.server = server
    return queue


def waiting(q, *options, n=1):
    """Clients blocked in FETCH, in the order they came."""
    return [waiter(q, *options) for _ in range(n)]


def got(wire):
    return [m.payload for m in msgs(wire.recv())]


def woken(q, wire, verb, *args):
    """The payloads that the waiter gets at once from a command."""
    return [m.payload for m in woken_by(q, wire, verb, *args)]


def woken_at(q, wire, at):
    """The payloads that the waiter gets at this time."""
    return [m.payload for m in wakes_at(q, wire, at)]


def test_an_ack_wakes_a_consumer(q):
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    first = q.one()
    (wire,) = waiting(q)
    assert wire.silent(QUIET)
    assert woken(q, wire, "ACK", first.receipt) == [b"b"]


def test_a_lease_end_wakes_a_consumer_in_time(q):
    q.do("CREATE", "LEASE", 400)
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    wire, [[first]] = waits_after(q, ("FETCH", "WITHMETA"))
    assert woken_at(q, wire, first[4][b"lease-until"]) == [b"a"]


def test_the_end_of_the_heads_backoff_wakes_a_consumer(q):
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    first = q.one()
    wire, _ = waits_after(q, ("NACK", first.receipt, "DELAY", 300))
    assert woken_at(q, wire, q.get(first.id)["due-at"]) == [b"a"]


def test_the_end_of_a_groups_pause_wakes_a_consumer(q):
    q.send("a", "GROUP", "g")
    wire, [info, _] = waits_after(q, ("INFO",), ("PAUSE", "GROUP", "g", "FOR", 300))
    assert woken_at(q, wire, info[b"now"] + 300) == [b"a"]


def test_resume_of_a_group_wakes_a_consumer(q):
    q.send("a", "GROUP", "g")
    q.do("PAUSE", "GROUP", "g")
    (wire,) = waiting(q)
    assert wire.silent(QUIET)
    assert woken(q, wire, "RESUME", "GROUP", "g") == [b"a"]


def test_a_free_slot_of_a_groups_rate_wakes_a_consumer(q):
    q.do("GROUPSET", "g", "RATE", 1, "PER", 300, "CONCURRENCY", 9)
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    wire, [[first]] = waits_after(q, ("FETCH",))
    assert first[3] == b"a"
    assert woken_at(q, wire, q.get(first[0])["started-at"] + 300) == [b"b"]


def test_groupset_of_concurrency_wakes_a_consumer(q):
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    q.one()
    (wire,) = waiting(q)
    assert wire.silent(QUIET)
    assert woken(q, wire, "GROUPSET", "g", "CONCURRENCY", 2) == [b"b"]


def test_alter_of_groupconcurrency_and_onretry_wakes_a_consumer(q):
    for p in ("a", "b", "c"):
        q.send(p, "GROUP", "g")
    first = q.one()
    one, two = waiting(q, n=2)
    assert woken(q, one, "ALTER", "GROUPCONCURRENCY", 2) == [b"b"]
    q.nack(first.receipt, "DELAY", 60_000)
    assert two.silent(QUIET)
    assert woken(q, two, "ALTER", "ONRETRY", "SKIP") == [b"c"]


def test_cancel_of_a_failed_head_wakes_a_consumer(q):
    q.send("a", "ID", "a", "GROUP", "g")
    q.send("b", "GROUP", "g")
    q.nack(q.one().receipt, "DELAY", 60_000)
    (wire,) = waiting(q)
    assert wire.silent(QUIET)
    assert woken(q, wire, "CANCEL", "a") == [b"b"]


def test_redrive_of_a_dead_head_wakes_a_consumer(q):
    q.do("CREATE", "ONDEAD", "BLOCK")
    q.send("a", "ID", "a", "GROUP", "g")
    q.send("b", "GROUP", "g")
    q.nack(q.one().receipt, "FATAL")
    (wire,) = waiting(q)
    assert wire.silent(QUIET)
    assert woken(q, wire, "REDRIVE", "ALL") == [b"a"]


def test_a_message_of_a_busy_group_wakes_nobody(q):
    q.send("a", "GROUP", "g")
    q.one()
    (wire,) = waiting(q)
    q.send("b", "GROUP", "g")
    assert wire.silent(QUIET)
    assert woken(q, wire, "SEND", "x", "GROUP", "h") == [b"x"]


def test_only_one_consumer_gets_a_message_of_a_group(q):
    wires = waiting(q, n=5)
    for p in ("a", "b", "c"):
        q.send(p, "GROUP", "g")
    assert got(wires[0]) == [b"a"]
    assert all(w.silent(0.05) for w in wires[1:])
    q.server.wait_blocked(4)


def test_a_consumer_of_one_group_does_not_hold_back_those_behind_it(q):
    (picky,) = waiting(q, "GROUP", "g")
    (any_one,) = waiting(q)
    assert woken(q, any_one, "SEND", "x", "GROUP", "h") == [b"x"]
    assert picky.silent(0.05)
    assert woken(q, picky, "SEND", "a", "GROUP", "g") == [b"a"]


def test_consumers_are_served_in_the_order_they_came(q):
    wires = waiting(q, n=6)
    with q.server.wire() as w:
        w.send_many([("DQ.SEND", q.key, str(i), "GROUP", f"g{i}") for i in range(6)])
        for _ in range(6):
            w.recv()
    assert [got(w) for w in wires] == [[b"%d" % i] for i in range(6)]


def test_a_nack_of_a_batch_wakes_another_consumer(q):
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    held = q.fetch("GROUP", "g", "COUNT", 2)
    (wire,) = waiting(q, "GROUP", "g", "COUNT", 5)
    assert woken(q, wire, "NACK", held[0].receipt, "SILENT") == [b"a", b"b"]


def test_a_closed_bound_connection_frees_its_group(q):
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    holder = q.server.wire()
    assert [m[3] for m in holder.ok("DQ.FETCH", q.key, "BIND")] == [b"a"]
    (wire,) = waiting(q)
    assert wire.silent(QUIET)
    # The server closes the connection and reports the time.
    with q.server.wire() as killer:
        killer.send_many([("TIME",), ("CLIENT", "KILL", "ID", holder.ok("CLIENT", "ID"))])
        seconds, us = map(int, killer.recv())
        assert killer.recv() == 1
    (m,) = msgs(wire.recv())
    assert m.payload == b"a"
    assert given_at(q, m) <= seconds * 1000 + us // 1000 + LATE


def test_many_consumers_get_the_messages_of_each_group_in_order(q):
    n_groups, each = 20, 10
    wires = [q.server.wire() for _ in range(8)]
    for w in wires:
        w.send("DQ.FETCH", q.key, "BLOCK", 0)
    seen = {f"g{g}": [] for g in range(n_groups)}
    with q.server.wire() as w:
        w.send_many([("DQ.SEND", q.key, f"g{g}:{i}", "GROUP", f"g{g}") for i in range(each) for g in range(n_groups)])
        for _ in range(n_groups * each):
            w.recv()
    for _ in range(n_groups * each):
        wire = _readable(wires)
        (m,) = msgs(wire.recv())
        group, i = m.payload.decode().split(":")
        seen[group].append(int(i))
        wire.send("DQ.FETCH", q.key, "BLOCK", 0, "ACK", 1, m.receipt)
    assert seen == {f"g{g}": list(range(each)) for g in range(n_groups)}
    q.server.wait_blocked(8)
    assert q.len() == 0


def _readable(wires):
    with selectors.DefaultSelector() as selector:
        for wire in wires:
            selector.register(wire, selectors.EVENT_READ)
        ready = selector.select(20)
    assert ready, "nobody was served"
    return ready[0][0].fileobj
