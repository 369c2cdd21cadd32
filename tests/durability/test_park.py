"""Parked messages, signals and messages that wait for a run, after restart, rewrite and failover, and in the log."""

import pytest

from tests.durability.test_batches import LOG, until_rewritten
from tests.harness.aof import commands, increments
from tests.harness.replies import Queue
from tests.harness.scene import Scene


def busy_queue(client, key):
    """Messages that wait for signals in every way, and one for whose run another payload waits."""
    q = Scene(client, key, "LEASE", 100_000)
    for id in ("ever", "for", "kept", "run"):
        q.add(id, "GROUP", f"g-{id}")
    held = q.hold("COUNT", 4)
    q.nack(held["ever"].receipt, "SILENT", "PARK", "NOTE", "half")
    q.nack(held["for"].receipt, "SILENT", "PARK", "FOR", 5000)
    q.do("SIGNAL", "kept", "DATA", "early")
    q.do("SEND", "again", "ID", "run", "REPLACE", "RERUN", "DELAY", 700, "TYPE", "t")
    q.add("sent", "PARK", "FOR", 3000, "DELAY", 4000)
    q.add("first", "BATCH", "b")
    q.add("after", "AFTER", "b", "PARK", "FOR", 2000)
    return q, held


def to_the_end(q, held):
    """The events of all of the messages."""
    seen = [q.nack(held["kept"].receipt, "SILENT", "PARK"), q.ack(held["run"].receipt)]
    for _ in range(7):
        seen.append([q.do("SIGNAL", "ever", "DATA", "go"), q.listed("held")])
        got = q.do("FETCH", "COUNT", 9, "WITHMETA")
        seen.append([(m[0], m[2], m[3]) for m in got])
        q.ack(*[m[1] for m in got], 1)
        q.advance(1000)
    return seen


def expected(client):
    return to_the_end(*busy_queue(client, b"expected"))


@pytest.mark.parametrize("preamble", ["yes", "no"])
@pytest.mark.parametrize("rewrite", [False, True], ids=["", "rewritten"])
def test_they_survive_a_crash_with_the_log(make_server, key, preamble, rewrite):
    server = make_server(**LOG, **{"aof-use-rdb-preamble": preamble})
    client = server.client()
    wanted = expected(client)
    q, held = busy_queue(client, key)
    if rewrite:
        client.execute_command("BGREWRITEAOF")
        until_rewritten(server)
    before = q.digest()
    server.restart(crash=True)
    q = Scene.over(server.client(), key)
    assert q.digest() == before
    assert to_the_end(q, held) == wanted


def test_a_replica_has_the_same_at_every_step(replica_pair, key):
    q, held = busy_queue(replica_pair.primary.client(), key)
    replica_pair.assert_same(key)
    q.nack(held["kept"].receipt, "SILENT", "PARK")
    q.ack(held["run"].receipt)
    for _ in range(5):
        q.do("SIGNAL", "ever", "DATA", "go")
        q.drain("COUNT", 2)
        replica_pair.assert_same(key)
        q.advance(1500)
        replica_pair.assert_same(key)


def test_a_promoted_replica_releases_what_its_primary_would_have(replica_pair, key):
    client = replica_pair.primary.client()
    wanted = expected(client)
    _, held = busy_queue(client, key)
    replica_pair.wait_sync()
    replica_pair.promote()
    promoted = Scene.over(replica_pair.replica.client(), key)
    assert to_the_end(promoted, held) == wanted


def test_each_operation_is_one_entry(make_server):
    server = make_server(**LOG)
    q, held = busy_queue(server.client(), "q")
    for call in (
        ("SIGNAL", "ever"),
        ("ACK", held["run"].receipt),
        ("SEND", "x", "ID", "kept", "REPLACE", "RERUN"),
        ("NACK", held["kept"].receipt, "SILENT", "PARK"),
    ):
        before = len(commands(server))
        q.do(*call)
        assert len(commands(server)) == before + 1, call
    before = len(commands(server))
    assert q.do("SIGNAL", "nobody") == 0
    assert len(commands(server)) == before


def test_a_torn_log_has_the_ack_with_its_signal_or_neither(make_server):
    server = make_server(**LOG, **{"aof-load-truncated": "yes"})
    client = server.client()
    q, parked = Queue(client, "q"), Queue(client, "p")
    q.do("CREATE", "LEASE", 600_000)
    q.send("x", "ID", "job")
    parked.send("y", "ID", "waits", "PARK")
    receipt = q.one().receipt
    [path] = increments(server)
    whole = path.stat().st_size
    assert q.do("ACKSEND", receipt, "SIGNAL", "p", "waits", "done") == [1]
    entry = path.stat().st_size - whole
    server.stop()
    data = path.read_bytes()
    for lost in (1, entry // 2, entry - 1):
        path.write_bytes(data[: len(data) - lost])
        server.start()
        client = server.client()
        assert (Queue(client, "q").state("job"), Queue(client, "p").state("waits")) == ("running", "held"), lost
        server.stop()
    path.write_bytes(data)
    server.start()
    client = server.client()
    assert (Queue(client, "q").state("job"), Queue(client, "p").one("WITHMETA").meta["signal"]) == (None, b"done")
