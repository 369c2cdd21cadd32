"""Blocked consumers of groups: woken by whatever frees one, each in the order it came.

Real time: waking is the point here.
"""

import select
import time

from tests.harness.replies import Queue, msgs
from tests.harness.server import now_ms

# What a wake-up may take on a noisy machine, in seconds, and what counts as "not woken".
SOON, QUIET = 0.5, 0.15


def waiting(server, key, *options, n=1):
    """Clients blocked in FETCH, in the order they came."""
    wires = []
    before = int(server.info("clients")["blocked_clients"])
    for i in range(n):
        wire = server.wire()
        wire.send("DQ.FETCH", key, "BLOCK", 20_000, *options)
        server.wait_blocked(before + i + 1)
        wires.append(wire)
    return wires


def got(wire, timeout=SOON):
    return [m.payload for m in msgs(wire.recv(timeout))]


def test_ack_wakes_who_waits_for_the_group(server, r3, key):
    q = Queue(r3, key)
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    first = q.one()
    (wire,) = waiting(server, key)
    assert wire.silent(QUIET)
    q.ack(first.receipt)
    assert got(wire) == [b"b"]


def test_lease_end_wakes_in_time(server, r3, key):
    q = Queue(r3, key)
    q.do("CREATE", "LEASE", 400)
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    (first,) = q.fetch("WITHMETA")
    until = first.meta["lease-until"]
    (wire,) = waiting(server, key)
    assert got(wire, 5) == [b"a"]
    late = now_ms() - until
    assert 0 <= late < 100, late


def test_backoff_end_of_the_head_wakes(server, r3, key):
    q = Queue(r3, key)
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    first = q.one()
    q.nack(first.receipt, "DELAY", 300)
    due = q.get(first.id)["due-at"]
    (wire,) = waiting(server, key)
    assert got(wire, 5) == [b"a"]
    assert 0 <= now_ms() - due < 100


def test_end_of_a_groups_pause_wakes(server, r3, key):
    q = Queue(r3, key)
    q.send("a", "GROUP", "g")
    start = now_ms()
    q.do("PAUSE", "GROUP", "g", "FOR", 300)
    (wire,) = waiting(server, key)
    assert got(wire, 5) == [b"a"]
    assert 300 <= now_ms() - start < 450


def test_resume_group_wakes(server, r3, key):
    q = Queue(r3, key)
    q.send("a", "GROUP", "g")
    q.do("PAUSE", "GROUP", "g")
    (wire,) = waiting(server, key)
    assert wire.silent(QUIET)
    q.do("RESUME", "GROUP", "g")
    assert got(wire) == [b"a"]


def test_refill_of_a_groups_rate_wakes(server, r3, key):
    q = Queue(r3, key)
    q.do("GROUPSET", "g", "RATE", 1, "PER", 300, "CONCURRENCY", 9)
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    start = now_ms()
    assert q.one().payload == b"a"
    (wire,) = waiting(server, key)
    assert got(wire, 5) == [b"b"]
    assert 299 <= now_ms() - start < 450


def test_groupset_concurrency_wakes(server, r3, key):
    q = Queue(r3, key)
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    q.one()
    (wire,) = waiting(server, key)
    assert wire.silent(QUIET)
    q.do("GROUPSET", "g", "CONCURRENCY", 2)
    assert got(wire) == [b"b"]


def test_alter_groupconcurrency_and_onretry_wake(server, r3, key):
    q = Queue(r3, key)
    for p in ("a", "b", "c"):
        q.send(p, "GROUP", "g")
    first = q.one()
    one, two = waiting(server, key, n=2)
    q.do("ALTER", "GROUPCONCURRENCY", 2)
    assert got(one) == [b"b"]
    q.nack(first.receipt, "DELAY", 60_000)
    assert two.silent(QUIET)
    q.do("ALTER", "ONRETRY", "SKIP")
    assert got(two) == [b"c"]


def test_cancel_of_the_holder_wakes(server, r3, key):
    q = Queue(r3, key)
    q.send("a", "ID", "a", "GROUP", "g")
    q.send("b", "GROUP", "g")
    q.nack(q.one().receipt, "DELAY", 60_000)
    (wire,) = waiting(server, key)
    assert wire.silent(QUIET)
    q.do("CANCEL", "a")
    assert got(wire) == [b"b"]


def test_redrive_and_resume_of_a_dead_head_wake(server, r3, key):
    q = Queue(r3, key)
    q.do("CREATE", "ONDEAD", "BLOCK")
    q.send("a", "ID", "a", "GROUP", "g")
    q.send("b", "GROUP", "g")
    q.nack(q.one().receipt, "FATAL")
    (wire,) = waiting(server, key)
    assert wire.silent(QUIET)
    assert q.do("REDRIVE", "ALL") == 1
    assert got(wire) == [b"a"]


def test_a_message_of_a_busy_group_wakes_nobody(server, r3, key):
    q = Queue(r3, key)
    q.send("a", "GROUP", "g")
    q.one()
    (wire,) = waiting(server, key)
    q.send("b", "GROUP", "g")
    assert wire.silent(QUIET)
    q.send("x", "GROUP", "h")
    assert got(wire) == [b"x"]


def test_one_message_of_a_group_to_one_of_many(server, r3, key):
    q = Queue(r3, key)
    wires = waiting(server, key, n=5)
    for p in ("a", "b", "c"):
        q.send(p, "GROUP", "g")
    assert got(wires[0]) == [b"a"]
    assert all(w.silent(0.05) for w in wires[1:])
    server.wait_blocked(4)


def test_who_waits_for_one_group_lets_the_others_pass(server, r3, key):
    q = Queue(r3, key)
    (picky,) = waiting(server, key, "GROUP", "g")
    (any_one,) = waiting(server, key)
    q.send("x", "GROUP", "h")
    assert got(any_one) == [b"x"]
    assert picky.silent(0.05)
    q.send("a", "GROUP", "g")
    assert got(picky) == [b"a"]


def test_waiters_are_served_in_the_order_they_came(server, key):
    wires = waiting(server, key, n=6)
    with server.wire() as w:
        w.send_many([("DQ.SEND", key, str(i), "GROUP", f"g{i}") for i in range(6)])
        for _ in range(6):
            w.recv()
    assert [got(w) for w in wires] == [[b"%d" % i] for i in range(6)]


def test_nack_of_a_batch_wakes_another(server, r3, key):
    q = Queue(r3, key)
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    held = q.fetch("GROUP", "g", "COUNT", 2)
    (wire,) = waiting(server, key, "GROUP", "g", "COUNT", 5)
    q.nack(held[0].receipt, "SILENT")
    assert got(wire) == [b"a", b"b"]


def test_a_closed_bound_connection_frees_its_group(server, r3, key):
    q = Queue(r3, key)
    for p in ("a", "b"):
        q.send(p, "GROUP", "g")
    holder = server.wire()
    assert got(_fetch(holder, key, "BIND")) == [b"a"]
    (wire,) = waiting(server, key)
    assert wire.silent(QUIET)
    start = time.monotonic()
    holder.close()
    assert got(wire, 5) == [b"a"]
    assert time.monotonic() - start < SOON


def _fetch(wire, key, *options):
    wire.send("DQ.FETCH", key, *options)
    return wire


def test_many_waiters_drain_many_groups_in_order(server, r3, key):
    q = Queue(r3, key)
    n_groups, each = 20, 10
    wires = [server.wire() for _ in range(8)]
    for w in wires:
        w.send("DQ.FETCH", key, "BLOCK", 0)
    seen = {f"g{g}": [] for g in range(n_groups)}
    with server.wire() as w:
        w.send_many([("DQ.SEND", key, f"g{g}:{i}", "GROUP", f"g{g}") for i in range(each) for g in range(n_groups)])
        for _ in range(n_groups * each):
            w.recv()
    for _ in range(n_groups * each):
        wire = _readable(wires)
        (m,) = msgs(wire.recv(5))
        group, i = m.payload.decode().split(":")
        seen[group].append(int(i))
        wire.send("DQ.FETCH", key, "BLOCK", 0, "ACK", 1, m.receipt)
    assert seen == {f"g{g}": list(range(each)) for g in range(n_groups)}
    server.wait_blocked(8)
    assert q.len() == 0


def _readable(wires):
    ready, _, _ = select.select(wires, [], [], 5)
    assert ready, "nobody was served"
    return ready[0]
