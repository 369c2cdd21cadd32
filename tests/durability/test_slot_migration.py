"""Slots that move in one piece (Valkey 9, Redis 8.4): their keys are on the new node before it owns them."""

import re

import pytest

from tests.harness.replies import Queue, as_map, digest, msgs
from tests.harness.server import now_ms, wait_for
from tests.harness.traffic import rich
from tests.harness.wire import Error

MESSAGES = 1000


@pytest.fixture
def plan_move(cluster):
    """For a key: (source, target, move). move() begins the move and returns a function that says whether it is done."""
    info = cluster.nodes[0].info("server")
    number, first = info.get("valkey_version"), (9, 0)
    move = by_valkey
    if number is None:
        number, first, move = info["redis_version"], (8, 4), by_redis
    if tuple(map(int, re.findall(r"\d+", number)[:2])) < first:
        pytest.skip("this server moves slots key by key")

    def plan(key):
        source = cluster.owner(key)
        target = next(n for n in cluster.nodes if n is not source)
        slot = cluster.slot(key)

        def begin():
            move(cluster, slot, source, target)
            return lambda: serves(target, key)

        return source, target, begin

    return plan


def serves(node, key):
    """Whether this node answers for the key. During the move there is a moment when none does."""
    with node.wire() as w:
        return not isinstance(w.call("TYPE", key), Error)


def by_valkey(cluster, slot, source, target):
    with source.wire() as w:
        w.ok("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", cluster.node_id(target))


def by_redis(cluster, slot, source, target):
    with target.wire() as w:
        w.ok("CLUSTER", "MIGRATION", "IMPORT", slot, slot)


def test_a_queue_moves_with_everything_in_it(plan_move):
    source, target, begin = plan_move("q")
    q = rich(source.client(), "q", "SERVER")
    before = q.digest()
    wait_for(begin(), 30, "the move")
    there = Queue(target.client(), "q")
    assert digest(target.client(), "q") == before
    assert there.ack(q.running) == 1


def test_only_the_owner_processes_what_falls_due_during_the_move(plan_move):
    source, target, begin = plan_move("{t}")
    queues = [Queue(source.client(), "{t}%d" % n) for n in range(20)]
    # Large enough for the move to take a while, with something due in all of it.
    for q in queues:
        q.do("CREATE", "LEASE", 200, "RETRIES", 0)
        for n in range(0, MESSAGES, 50):
            q.do("MSEND", 50, *[b"%d:%s" % (n + i, b"x" * 2000) for i in range(50)], "DELAY", n)
    leased = [len(q.fetch("COUNT", 10)) for q in queues]
    begin()
    with target.wire() as w:
        while True:
            # TICK without keys works on all queues of a node, also while some are still on their way to it.
            counts = as_map(w.ok("DQ.TICK"))
            if not isinstance(w.call("TYPE", "{t}0"), Error):
                break
            assert not any(counts.values()), f"done to queues of another node: {counts}"
    for q, dead in zip(queues, leased):
        there = Queue(target.client(), q.key)
        wait_for(lambda: there.info()["delayed"] == 0, 10, "the due times on the new node")
        wait_for(lambda: there.do("LEN", "dead") == dead, 10, "the lease ends on the new node")
        seen = []
        while got := there.fetch("COUNT", 1000, "NOACK"):
            seen += [m.payload for m in got]
        assert len(seen) == len(set(seen)) == MESSAGES - dead


def test_delayed_messages_wake_waiters_on_the_new_node(plan_move):
    source, target, begin = plan_move("d")
    q = Queue(source.client(), "d")
    due = now_ms() + 3000
    q.send("x", "AT", due)
    wait_for(begin(), 30, "the move")
    there = now_ms()
    with target.wire() as w:
        w.send("DQ.FETCH", "d", "BLOCK", 0)
        [m] = msgs(w.recv())
    assert m.payload == b"x"
    assert due <= Queue(target.client(), "d").get(m.id)["started-at"] <= max(due, there) + 1000


def test_waiters_are_redirected_when_the_slot_has_moved(plan_move):
    source, target, begin = plan_move("w")
    w = source.wire()
    w.send("DQ.FETCH", "w", "BLOCK", 0)
    source.wait_blocked(1)
    wait_for(begin(), 30, "the move")
    reply = w.recv(10)
    assert isinstance(reply, Error) and reply.startswith("MOVED") and str(target.port) in reply
