"""Groups after reload, restart, replication and copying: compared by digest, and by the messages that are delivered
afterwards.
"""

import pytest

from tests.harness.replies import digest
from tests.harness.scene import START, Scene, assert_same_digest, twin
from tests.harness.server import wait_for


def busy_queue(client, key):
    """Groups in every condition: settings, batches, failures, deaths, pauses, leases, breakers."""
    options = ("GROUPCONCURRENCY", 2, "ONDEAD", "BLOCK", "RETAIN", 60_000)
    q = Scene(client, key, "LEASE", 10_000, *options, "BREAKER", 3, "PER", 5000, "OPEN", 400, "MAX", 900)
    q.do("GROUPSET", "w", "WEIGHT", 3, "CONCURRENCY", 4)
    q.do("GROUPSET", "rated", "RATE", 2, "PER", 5000)
    for i in range(6):
        for g in ("w", "rated", "plain", "failed", "dead", "paused", "batch", "trying", "broken"):
            q.add(f"{g}{i}", "GROUP", g, "SCORE", 100 - i if g == "plain" else i, "TYPE", "t")
        q.add(f"u{i}", "PRIORITY", i % 3 - 1)
        q.add(f"late{i}", "GROUP", "plain", "DELAY", 1000 * (i + 1))
    q.nack(q.one("GROUP", "failed").receipt, "DELAY", 3000, "ERROR", "later")
    q.nack(q.one("GROUP", "dead").receipt, "FATAL", "ERROR", "never")
    q.do("PAUSE", "GROUP", "paused", "FOR", 4000)
    q.receipts("GROUP", "rated", "COUNT", 2)
    batch = q.receipts("GROUP", "batch", "COUNT", 4)
    q.ack(batch[0])
    q.take("COUNT", 3, "CONSUMER", "worker", "PERGROUP", 2)
    fail_three_times(q, "trying")
    q.advance(500)
    q.one("GROUP", "trying")
    fail_three_times(q, "broken")
    assert [q.groups()[g]["breaker"] for g in ("trying", "broken", "failed")] == ["half-open", "open", "closed"]
    return q


def fail_three_times(q, group):
    """Opens the breaker of a group."""
    for _ in range(3):
        q.nack(q.one("GROUP", group).receipt)


def return_all_leases(q):
    """Returns all leased messages without a failure, so that a COPY equals its source."""
    while running := q.listed("running"):
        # The test nacks one message at a time, because a nack of the first message of a batch returns the later ones.
        q.nack(q.row(running[0])["receipt"], "SILENT")


def behaviour_from_now(q):
    """A list of the deliveries and counts of the queue from here on."""
    seen = []
    for _ in range(12):
        seen.append(q.counts())
        got = q.hold("COUNT", 4, "PERGROUP", 2)
        seen.append([(id, m.attempt) for id, m in got.items()])
        receipts = [m.receipt for m in got.values()]
        if receipts:
            q.ack(receipts[0])
        if len(receipts) > 2:
            q.nack(receipts[1], "DELAY", 700)
        seen.append({k: v for k, v in q.advance(900).items() if v})
    q.do("RESUME", "GROUP", "dead")
    q.do("REDRIVE", "ALL")
    for _ in range(30):
        q.advance(10_000)
        got = q.hold("COUNT", 10)
        seen.append([(id, m.attempt) for id, m in got.items()])
        if got:
            q.ack(*[m.receipt for m in got.values()])
    return seen


def test_groups_survive_a_reload(r3, key):
    q = busy_queue(r3, key)
    before = q.digest()
    r3.execute_command("DEBUG", "RELOAD")
    assert q.digest() == before
    plain = busy_queue(r3, key + b":plain")
    assert behaviour_from_now(q) == behaviour_from_now(plain)


def test_dump_and_restore_keep_leases_and_receipts(r3, key):
    q = busy_queue(r3, key)
    held = {id: q.row(id)["receipt"] for id in q.listed("running")}
    other = twin(q, key + b":twin")
    assert_same_digest(r3, key, other.key)
    assert held and {id: other.row(id)["receipt"] for id in other.listed("running")} == held
    assert behaviour_from_now(q) == behaviour_from_now(other)


def test_a_copy_has_the_running_messages_as_pending(r3, key):
    q = busy_queue(r3, key)
    running = q.listed("running")
    receipts = [q.row(id)["receipt"] for id in running]
    r3.execute_command("COPY", key, key + b":copy")
    copy = Scene.over(r3, key + b":copy")
    assert running and copy.listed("running") == []
    assert copy.ack(*receipts) == 0
    assert copy.len() == q.len()
    for id in running:
        source, row = q.row(id), copy.row(id)
        assert row["status"] == "pending" and row["receipt"] is None and row["lease-until"] is None
        assert row["attempt"] == source["attempt"] - 1
        assert row["failures"] == source["failures"]
    return_all_leases(q)
    assert q.counts() == copy.counts()
    for scene in (q, copy):
        scene.advance(20_000)
        scene.do("RESUME", "GROUP", "dead")
    for group in q.groups():
        # The turns may differ, because the groups of the source were freed one by one. The order in a group may not.
        assert q.drain("GROUP", group) == copy.drain("GROUP", group)


def test_a_copy_and_its_source_are_independent(r3, key):
    q = Scene(r3, key)
    q.fill("g", "a", "b")
    r3.execute_command("COPY", key, key + b":copy")
    copy = Scene.over(r3, key + b":copy")
    assert_same_digest(r3, key, copy.key)
    q.drain()
    assert copy.drain() == ["a", "b"]
    copy.do("GROUPSET", "g", "WEIGHT", 5)
    assert q.groups() == {}


@pytest.mark.parametrize("preamble", ["yes", "no"])
@pytest.mark.parametrize("rewrite", [False, True], ids=["", "rewritten"])
def test_groups_survive_a_crash_with_the_log(make_server, key, preamble, rewrite):
    server = make_server(appendonly="yes", appendfsync="always", aof_use_rdb_preamble=preamble)
    client = server.client()
    plain = busy_queue(client, b"plain")
    expected = behaviour_from_now(plain)
    busy_queue(client, key)
    if rewrite:
        client.execute_command("BGREWRITEAOF")
        _until_rewritten(server)
        Scene.over(client, key).add("after", "GROUP", "plain", "DELAY", 10**6)
        Scene.over(client, key).do("CANCEL", "after")
        Scene.over(client, key).do("PURGE", "STATE", "cancelled")
    before = {k: digest(client, k) for k in (key, b"plain")}
    server.restart(crash=True)
    client = server.client()
    assert {k: digest(client, k) for k in before} == before
    assert behaviour_from_now(Scene.over(client, key)) == expected


def _until_rewritten(server):
    def done():
        info = server.info("persistence")
        return info["aof_rewrite_in_progress"] == "0" and info["aof_rewrite_scheduled"] == "0"

    wait_for(done, 20, "the AOF rewrite")
    assert server.info("persistence")["aof_last_bgrewrite_status"] == "ok"


def test_groups_survive_a_restart_with_a_snapshot(make_server, key):
    server = make_server()
    client = server.client()
    busy_queue(client, key)
    before = digest(client, key)
    client.execute_command("SAVE")
    server.restart(crash=True)
    assert digest(server.client(), key) == before


def test_a_replica_has_the_same_groups_at_every_step(replica_pair, key):
    client = replica_pair.primary.client()
    q = busy_queue(client, key)
    replica_pair.assert_same(key)
    for _ in range(5):
        got = q.hold("COUNT", 5, "PERGROUP", 3)
        receipts = [m.receipt for m in got.values()]
        if len(receipts) > 1:
            q.nack(receipts[-1], "DELAY", 100)
            q.ack(receipts[0])
        q.advance(700)
        replica_pair.assert_same(key)


def test_a_promoted_replica_delivers_as_its_primary_would_have(replica_pair, key):
    client = replica_pair.primary.client()
    plain = busy_queue(client, b"plain")
    expected = behaviour_from_now(plain)
    busy_queue(client, key)
    replica_pair.wait_sync()
    replica_pair.promote()
    promoted = Scene.over(replica_pair.replica.client(), key)
    assert promoted.digest() == digest(client, key)
    assert behaviour_from_now(promoted) == expected


def test_a_group_survives_the_move_of_its_slot(cluster, key):
    name = b"{" + key + b"}"
    source = cluster.owner(name)
    q = Scene(source.client(), name)
    q.fill("g", "a", "b", "c")
    held = q.one()
    target = next(n for n in cluster.nodes if n is not source)
    cluster.move_slot(cluster.slot(name), source, target)
    moved = Scene.over(target.client(), name)
    assert moved.take() == []
    assert moved.ack(held.receipt) == 1
    assert moved.drain() == ["b", "c"]
    assert moved.info()["now"] == START
