"""The whole state of a queue survives RDB, AOF, reload, crash, copying and moving, by digest and by behaviour."""

import time

import pytest

from tests.harness.replies import Queue, as_map, digest, msgs
from tests.harness.server import now_ms, wait_for
from tests.harness.traffic import FAR, Traffic, rich

STATES = "delayed ready blocked retry running finished dead cancelled".split()
IDS = ["finished", "dead", "retry", "running", "dedup", "delayed", "own", "late"] + [f"g{n}" for n in range(6)]


def rewrite(client):
    """Rewrites the AOF and waits for the end."""
    client.execute_command("BGREWRITEAOF")

    def done():
        info = client.info("persistence")
        assert info["aof_last_bgrewrite_status"] == "ok"
        return not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"]

    wait_for(done, 20, "the AOF rewrite")


def cycle_reload(server):
    server.client().execute_command("DEBUG", "RELOAD")


def cycle_rdb(server):
    server.client().execute_command("SAVE")
    server.restart()


def cycle_bgsave(server):
    client = server.client()
    client.execute_command("BGSAVE")
    wait_for(lambda: not client.info("persistence")["rdb_bgsave_in_progress"], 20, "BGSAVE")
    server.restart(crash=True)


def cycle_loadaof(server):
    server.client().execute_command("DEBUG", "LOADAOF")


def cycle_crash(server):
    server.restart(crash=True)


def cycle_rewrite(server):
    rewrite(server.client())
    server.restart(crash=True)


# The grace in ms. It is longer than the leases that end soon in these tests.
GRACE = 2000
AOF = {"appendonly": "yes", "appendfsync": "always"}
CYCLES = {
    "debug-reload": ({}, cycle_reload),
    "rdb": ({}, cycle_rdb),
    "bgsave": ({}, cycle_bgsave),
    "debug-loadaof": (AOF, cycle_loadaof),
    "aof-kill9": (AOF, cycle_crash),
    "aof-rewrite": (AOF, cycle_rewrite),
    "aof-rewrite-loadaof": (AOF | {"aof_use_rdb_preamble": "no"}, lambda s: (rewrite(s.client()), cycle_loadaof(s))),
    "aof-rewrite-no-preamble": (AOF | {"aof_use_rdb_preamble": "no"}, cycle_rewrite),
}


@pytest.fixture(params=CYCLES)
def cycle(request, make_server):
    """A server, and a function that makes it load its data again."""
    conf, turn = CYCLES[request.param]
    server = make_server(**conf, **{"dq.start-grace": GRACE})
    return server, lambda: turn(server)


def view(q):
    """The state that a client can see of a rich queue."""
    info = q.info()
    for name in ("now", "blocked-clients", "oldest-ready-age", "oldest-due-age"):
        info.pop(name)
    return info, [q.get(i) for i in IDS], [m["id"] for m in q.peek("COUNT", 100)], as_map({s: q.len(s) for s in STATES})


@pytest.mark.parametrize("clock", ["MANUAL", "SERVER"])
def test_a_queue_with_everything_in_it_survives(cycle, clock):
    server, turn = cycle
    q = rich(server.client(), b"k\0ey", clock)
    before, seen = q.digest(), view(q)
    for _ in range(2):
        turn()
        again = Queue(server.client(), q.key)
        assert view(again) == seen
        assert again.digest() == before
    assert again.ack(q.running) == 1
    assert again.state("running") == "finished"
    assert again.send("x", "ID", "dedup") is None
    rest = again.fetch("COUNT", 100)
    assert len(rest) >= 22
    assert min(m.receipt for m in rest) > q.running


def test_random_traffic_survives(cycle):
    server, turn = cycle
    for seed in range(3):
        Traffic(server.client(), f"q{seed}", seed, "CLOCK", "MANUAL", "RETAIN", 500, "MAXLEN", 80).run(300)
    before = [digest(server.client(), f"q{seed}") for seed in range(3)]
    turn()
    client = server.client()
    assert [digest(client, f"q{seed}") for seed in range(3)] == before


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
    until, latest = max(until, back), max(until, back + GRACE)
    for w, payload, at, latest in zip(waiters, (b"soon", b"later", b"leased"), (0, due, until), (0, due, latest)):
        [m] = msgs(w.recv(40))
        assert m.payload == payload
        assert at <= q.get(m.id)["started-at"] <= max(latest, back) + 1000
    assert m.attempt == 2


def test_dump_and_restore_keep_the_whole_queue(r, key):
    for clock in ("MANUAL", "SERVER"):
        q = rich(r, key + clock.encode(), clock)
        before = q.digest()
        r.restore(key + b"2", 0, r.dump(q.key), replace=True)
        assert digest(r, key + b"2") == before
        assert Queue(r, key + b"2").ack(q.running) == 1
        assert q.digest() == before


def test_a_copy_is_independent_and_has_no_running_messages(r, key):
    q = rich(r, key)
    before = q.digest()
    assert r.copy(key, key + b"2")
    twin = Queue(r, key + b"2")
    assert twin.len("running") == 0
    for state in (), ("dead",), ("finished",), ("held",):
        assert twin.len(*state) == q.len(*state)
    assert twin.info()["lease"] == FAR
    assert [m["name"] for m in map(as_map, twin.do("SCHEDULES"))] == [b"every"]
    twin.do("PURGE")
    r.delete(twin.key)
    assert q.digest() == before


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
