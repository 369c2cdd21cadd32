"""Time after a load, copies, other names and databases, and what a deleted queue leaves (what survives: test_matrix.py)."""

import time

import pytest

from tests.harness.replies import Queue, msgs
from tests.harness.scene import Scene, assert_same_digest
from tests.harness.server import now_ms, wait_for
from tests.harness.traffic import FAR, rich


@pytest.mark.parametrize("cycle", ["debug-reload", "rdb", "aof-kill9", "aof-rewrite-loadaof"], indirect=True)
def test_time_goes_on_after_loading(cycle):
    """Messages that fell due during the downtime are delivered at once; those that fall due later wake a waiter on
    time, as do lease ends.
    """
    server, turn = cycle
    # A slow machine is given more time to load.
    for ahead in (1500, 6000, 24000):
        q = Queue(server.client(), "q")
        q.send("soon", "DELAY", 1)
        due = now_ms() + ahead
        q.send("later", "AT", due, "PRIORITY", 1)
        q.send("leased", "ID", "leased", "PRIORITY", -1)
        until = q.one("LEASE", ahead + 400, "WITHMETA").meta["lease-until"]
        turn()
        back = now_ms()
        if back < due - 500:
            break
        server.client().delete("q")
    q = Queue(server.client(), "q")
    waiters = [server.wire() for _ in range(3)]
    for n, w in enumerate(waiters):
        w.send("DQ.FETCH", "q", "BLOCK", 0, "LEASE", 60_000)
        server.wait_blocked(n)
    # dq.start-grace: the lease lasts at least so long after the load.
    until, latest = max(until, back), max(until, back + server.conf["dq.start-grace"])
    for w, payload, at, latest in zip(waiters, (b"soon", b"later", b"leased"), (0, due, until), (0, due, latest)):
        [m] = msgs(w.recv(40))
        assert m.payload == payload
        assert at <= q.get(m.id)["started-at"] <= max(latest, back) + 1000
    assert m.attempt == 2


def test_a_copy_has_the_running_messages_as_pending(r3, key):
    q = Scene(r3, key, "GROUPCONCURRENCY", 2, "RETAIN", 60_000)
    for n in range(4):
        q.fill(f"g{n}", *(f"{n}{id}" for id in "abc"))
    q.nack(q.one("GROUP", "g0").receipt)
    q.take("GROUP", "g1", "COUNT", 2)
    q.take("COUNT", 3)
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
    while running := q.listed("running"):
        # One at a time: with the first message of a batch come the later ones.
        q.nack(q.row(running[0])["receipt"], "SILENT")
    assert q.counts() == copy.counts()
    for scene in (q, copy):
        scene.advance(20_000)
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


def test_copy_works_to_another_database_and_over_another_key(server, r, key):
    q = rich(r, key)
    other = server.client(db=3)
    assert r.copy(key, key, destination_db=3)
    assert Queue(other, key).len() == q.len()
    other.set(key + b"s", "text")
    assert other.copy(key, key + b"s", replace=True)
    assert other.type(key + b"s") == b"dqueue-rs"


@pytest.mark.parametrize("how", ["RENAME", "RENAMENX", "MOVE", "SWAPDB"])
def test_a_renamed_or_moved_queue_stays_the_same(server, r, key, how):
    q = rich(r, key)
    before = q.digest()
    if how in ("RENAME", "RENAMENX"):
        r.execute_command(how, key, key + b"2")
        moved = Queue(r, key + b"2")
    else:
        r.execute_command("MOVE", key, 5) if how == "MOVE" else r.execute_command("SWAPDB", 0, 5)
        moved = Queue(server.client(db=5), key)
        assert r.exists(key) == 0
    assert moved.digest() == before
    assert moved.ack(q.running) == 1


def test_rename_over_a_queue_replaces_it(r, key):
    a, b = Queue(r, key), Queue(r, key + b"b")
    a.send("a")
    old = a.one().receipt
    b.send("b")
    r.rename(b.key, a.key)
    assert a.ack(old) == 0
    assert a.payloads() == [b"b"]


def test_expire_deletes_the_whole_queue(r, key):
    rich(r, key)
    r.pexpire(key, 20)
    time.sleep(0.05)
    assert r.exists(key) == 0
    assert Queue(r, key).len() == 0


@pytest.mark.parametrize("how", ["DEL", "UNLINK", "FLUSHDB", "FLUSHALL ASYNC", "FLUSHALL SYNC", "SET", "EXPIRE"])
def test_a_large_queue_that_is_deleted_frees_its_memory(make_server, how):
    server = make_server()
    r, w = server.client(), server.wire()
    base = r.info("memory")["used_memory"]
    batch = ("DQ.MSEND", "q", 2000, *["x" * 50] * 2000)
    for n in range(25):
        w.ok(*batch, "DELAY", n * 7)
        w.ok(*batch[:1], "q", 100, *["y"] * 100, "GROUP", f"g{n}")
    full = r.info("memory")["used_memory"]
    assert full > base + 25 * 2000 * 50
    waiting = server.wire()
    waiting.send("DQ.FETCH", "q2", "BLOCK", 0)
    match how:
        case "SET":
            r.set("q", "text")
        case "EXPIRE":
            r.pexpire("q", 1)
            wait_for(lambda: r.exists("q") == 0, 5, "the expiry")
        case "DEL" | "UNLINK":
            assert r.execute_command(how, "q") == 1
        case _:
            r.execute_command(*how.split())
    wait_for(lambda: r.info("memory")["used_memory"] < base + (full - base) // 10, 20, "the memory to be free")
    if how == "SET":
        r.delete("q")
    assert Queue(r, "q").len() == 0
    Queue(r, "q").send("new")
    assert Queue(r, "q").payloads("COUNT", 5) == [b"new"]
    Queue(r, "q2").send("woken")
    assert msgs(waiting.recv(5))[0].payload == b"woken"


def test_type_scan_memory_usage_and_object_know_a_queue(r, key):
    rich(r, key)
    r.set(key + b"s", "x")
    assert r.execute_command("SCAN", 0, "TYPE", "dqueue-rs", "COUNT", 1000)[1] == [key]
    usage = r.memory_usage(key)
    Queue(r, key).send(b"x" * 10000)
    assert 10000 <= r.memory_usage(key) - usage <= 14000
    assert r.object("encoding", key)
    assert r.object("refcount", key) == 1


def test_the_digest_changes_with_every_change(r, key):
    """Every comparison in these tests relies on this."""
    q = rich(r, key)
    seen = {q.digest()}
    changes = [
        ("UPDATE", "delayed", "z"), ("RESCHEDULE", "delayed", "DELAY", FAR + 1), ("TOUCH", FAR + 1, q.running),
        ("ALTER", "LEASE", 5), ("SEND", "x", "ID", "new"), ("ACK", q.running), ("CANCEL", "late"), ("PAUSE",),
        ("GROUPSET", b"group\0" + b"1", "WEIGHT", 9), ("UNSCHEDULE", "every"), ("PURGE", "STATE", "dead"),
        ("TICK", "ADVANCE", 1),
    ]  # fmt: skip
    for change in changes:
        q.do(*change)
        assert q.digest() not in seen, change
        seen.add(q.digest())
