"""Limits after restart, rewrite, torn log and failover: compared by digest, and by the messages that are delivered
afterwards.
"""

import pytest

from tests.harness.aof import commands, increments
from tests.harness.replies import digest
from tests.harness.scene import Scene, text
from tests.harness.server import wait_for

LOG = {"appendonly": "yes", "appendfsync": "always", "auto-aof-rewrite-percentage": 0}


def busy_queue(client, key):
    """Limits with windows, running messages, groups and others that wait, and one that is too large."""
    q = Scene(client, key, "LEASE", 10_000)
    q.do("LIMIT", "user-*", "CONCURRENCY", 1, "RATE", 3, "PER", 3000)
    q.do("LIMIT", "all", "CONCURRENCY", 3, "RATE", 20, "PER", 8000)
    q.do("LIMIT", "cores", "CONCURRENCY", 8, "WEIGHT")
    for n in range(12):
        q.add(f"m{n}", "LIMITS", 2, f"user-{n % 4}", "all", "COST", 1 + n % 2, "PRIORITY", n % 3)
        q.add(f"g{n}", "GROUP", f"g{n % 3}", "LIMITS", 2, "all", "cores", "COST", 1 + n % 3)
    q.add("large", "GROUP", "g0", "LIMITS", 1, "cores", "COST", 9)
    q.add("later", "LIMITS", 1, "all", "DELAY", 2500)
    held = q.hold("COUNT", 3)
    q.advance(100)
    q.do("ACK", list(held.values())[0].receipt, "COST", 4)
    q.nack(list(held.values())[1].receipt, "DELAY", 500)
    q.hold("COUNT", 1)
    return q


def to_the_end(q):
    """The deliveries while time passes, until only messages that are too large are left."""
    order = []
    for _ in range(60):
        q.advance(700)
        order += q.drain("COUNT", 3)
    assert q.do("LEN") == 1 and q.code("large") == "limit"
    return order


def expected_order(client):
    return to_the_end(busy_queue(client, b"expected"))


def listed(q):
    return sorted(map(str, text(q.do("LIMITS", "COUNT", 100)[1])))


@pytest.mark.parametrize("rewrite", [False, True])
def test_limits_survive_a_crash(make_server, key, rewrite):
    server = make_server(**LOG)
    client = server.client()
    expected = expected_order(client)
    q = busy_queue(client, key)
    if rewrite:
        client.execute_command("BGREWRITEAOF")
        wait_for(lambda: not client.info("persistence")["aof_rewrite_in_progress"], 20, "the rewriting")
    before, seen = digest(client, key), listed(q)
    server.restart(crash=True)
    q = Scene.over(server.client(), key)
    assert (q.digest(), listed(q)) == (before, seen)
    assert to_the_end(q) == expected


def test_a_replica_has_the_same_limits_at_every_step(replica_pair, key):
    q = busy_queue(replica_pair.primary.client(), key)
    replica_pair.assert_same(key)
    for _ in range(6):
        q.drain("COUNT", 2)
        q.advance(900)
        replica_pair.assert_same(key)
    q.do("LIMIT", "user-*")
    q.do("LIMIT", "all", "CONCURRENCY", 9)
    replica_pair.assert_same(key)


def test_a_promoted_replica_delivers_what_its_primary_would_have(replica_pair, key):
    client = replica_pair.primary.client()
    expected = expected_order(client)
    q = busy_queue(client, key)
    replica_pair.wait_sync()
    replica_pair.promote()
    promoted = Scene.over(replica_pair.replica.client(), key)
    assert (promoted.digest(), listed(promoted)) == (q.digest(), listed(q))
    assert to_the_end(promoted) == expected


def test_a_torn_log_has_a_limit_and_what_it_counts_or_neither(make_server):
    server = make_server(**LOG, **{"aof-load-truncated": "yes"})
    q = Scene(server.client(), "q")
    for _ in range(2):
        q.do("SEND", "x", "LIMITS", 1, "api")
    [path] = increments(server)
    before, whole = len(commands(server)), path.stat().st_size
    q.do("LIMIT", "api", "CONCURRENCY", 1)
    assert len(commands(server)) == before + 1, "a limit is one entry"
    server.stop()
    data = path.read_bytes()
    for lost in (1, len(data) - whole - 1):
        path.write_bytes(data[: len(data) - lost])
        server.start()
        assert len(Scene.over(server.client(), "q").receipts("COUNT", 9)) == 2, lost
        server.stop()
    path.write_bytes(data)
    server.start()
    assert len(Scene.over(server.client(), "q").receipts("COUNT", 9)) == 1
