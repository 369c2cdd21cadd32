"""Batches after restart, rewrite, snapshot and failover: compared by digest, and by the messages that are released
afterwards.
"""

import pytest

from tests.harness.aof import commands, increments
from tests.harness.replies import Queue, digest
from tests.harness.scene import Scene, text
from tests.harness.server import wait_for

LOG = {"appendonly": "yes", "appendfsync": "always", "auto-aof-rewrite-percentage": 0}
BATCHES = ("plain", "dead-holds", "dead-goes", "grows", "late", "inner")


def busy_queue(client, key):
    """Batches in every condition: with members pending, running, delayed, failed, dead and ended; held ones of each kind."""
    q = Scene(client, key, "RETRIES", 1, "RETAIN", 600_000, "LEASE", 10_000)
    for batch in BATCHES:
        for n in range(3):
            q.add(f"{batch}{n}", "BATCH", batch, *(("DELAY", 2000) if batch == "late" else ()))
        if batch != "inner":
            kind = {"dead-goes": "GO"}.get(batch, "HOLD")
            q.add(f"after {batch}", "AFTER", batch, "ONFAIL", kind, *(("BATCH", "outer") if batch == "plain" else ()))
    q.add("dies with it", "AFTER", "dead-holds", "ONFAIL", "DIE")
    q.add("twice", "AFTER", "inner", "DELAY", 5000)
    q.add("outermost", "AFTER", "outer", "GROUP", "g")
    q.nack(q.one().receipt, "SILENT")
    held = q.hold("COUNT", 12)
    q.ack(held["plain0"].receipt, held["plain1"].receipt)
    q.nack(held["dead-holds0"].receipt, held["dead-goes0"].receipt, "FATAL", "ERROR", "never")
    q.do("ACKSEND", held["grows0"].receipt, "NEXT", key, "grown", "ID", "grown", "BATCH", "grows")
    q.do("CANCEL", "inner2")
    assert q.do("LEN", "held") == 7 and q.row("dies with it")["reason"] == "batch"
    return q


def seen_batches(q):
    return text(q.do("BATCHES", "COUNT", 100))


def to_the_end(q):
    """The deliveries until nothing is left, with the dead messages redriven late. Returns the ids in order."""
    order = []
    for step in range(8):
        q.advance(3000)
        if step == 5:
            q.do("REDRIVE", "IDS", 2, "dead-holds0", "dead-goes0")
        order += q.drain("COUNT", 5)
    assert q.do("LEN") == 0 and q.do("BATCHES")[1] == []
    return order


def released_once(order):
    """Every held message was delivered once, after the members of its batch but the dead one that counts as ended."""
    assert len(order) == len(set(order)), "a message was delivered twice"
    for batch in BATCHES:
        after = "twice" if batch == "inner" else f"after {batch}"
        members = {f"{batch}{n}" for n in range(3)} | ({"grown"} if batch == "grows" else set())
        places = [order.index(id) for id in members & set(order) - {"dead-goes0"}]
        assert max(places) < order.index(after), (batch, order)
    assert order.index("after plain") < order.index("outermost")


def expected_order(client):
    order = to_the_end(busy_queue(client, b"expected"))
    released_once(order)
    return order


def until_rewritten(server):
    def done():
        info = server.info("persistence")
        return info["aof_rewrite_in_progress"] == "0" and info["aof_rewrite_scheduled"] == "0"

    wait_for(done, 20, "the AOF rewrite")


@pytest.mark.parametrize("way", ["reload", "dump"])
def test_batches_in_every_condition_survive(r3, key, way):
    expected = expected_order(r3)
    q = busy_queue(r3, key)
    before, seen = digest(r3, key), seen_batches(q)
    if way == "reload":
        r3.execute_command("DEBUG", "RELOAD")
    else:
        r3.restore(key, 0, r3.dump(key), replace=True)
    assert (digest(r3, key), seen_batches(q)) == (before, seen)
    assert to_the_end(q) == expected


@pytest.mark.parametrize("preamble", ["yes", "no"])
@pytest.mark.parametrize("rewrite", [False, True], ids=["", "rewritten"])
def test_batches_survive_a_crash_with_the_log(make_server, key, preamble, rewrite):
    server = make_server(**LOG, **{"aof-use-rdb-preamble": preamble})
    client = server.client()
    expected = expected_order(client)
    q = busy_queue(client, key)
    if rewrite:
        client.execute_command("BGREWRITEAOF")
        until_rewritten(server)
    before, seen = digest(client, key), seen_batches(q)
    server.restart(crash=True)
    q = Scene.over(server.client(), key)
    assert (q.digest(), seen_batches(q)) == (before, seen)
    assert to_the_end(q) == expected


def test_a_replica_has_the_same_batches_at_every_step(replica_pair, key):
    q = busy_queue(replica_pair.primary.client(), key)
    replica_pair.assert_same(key)
    for _ in range(4):
        q.drain("COUNT", 4)
        q.advance(3500)
        replica_pair.assert_same(key)


def test_a_promoted_replica_releases_what_its_primary_would_have(replica_pair, key):
    client = replica_pair.primary.client()
    expected = expected_order(client)
    q = busy_queue(client, key)
    seen = seen_batches(q)
    replica_pair.wait_sync()
    replica_pair.promote()
    promoted = Scene.over(replica_pair.replica.client(), key)
    assert (promoted.digest(), seen_batches(promoted)) == (q.digest(), seen)
    assert to_the_end(promoted) == expected


def test_a_torn_log_has_the_end_of_the_last_one_with_the_release_or_neither(make_server):
    server = make_server(**LOG, **{"aof-load-truncated": "yes"})
    q = Queue(server.client(), "q")
    q.do("CREATE", "LEASE", 600_000)
    q.send("x", "ID", "last", "BATCH", "b")
    q.send("all", "ID", "all", "AFTER", "b")
    receipt = q.one().receipt
    [path] = increments(server)
    whole = path.stat().st_size
    before = len(commands(server))
    q.ack(receipt)
    assert len(commands(server)) == before + 1, "the end and the release are one entry"
    entry = path.stat().st_size - whole
    server.stop()
    data = path.read_bytes()
    for lost in (1, entry // 2, entry - 1):
        path.write_bytes(data[: len(data) - lost])
        server.start()
        q = Queue(server.client(), "q")
        assert (q.state("last"), q.state("all")) == ("running", "held"), lost
        server.stop()
    path.write_bytes(data)
    server.start()
    q = Queue(server.client(), "q")
    assert (q.state("last"), q.state("all"), q.ids(), q.ids()) == (None, "ready", [b"all"], [])
