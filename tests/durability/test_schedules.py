"""Schedules on the server clock fire on time and only once, also after restart, downtime and failover."""

import time

import pytest

from tests.harness.replies import Queue, digest, msgs
from tests.harness.scene import START, Scene, assert_same_digest, twin
from tests.harness.server import now_ms, wait_for
from tests.harness.waiting import LATE


def fire_times(q, name):
    """The fire times of all messages of a schedule that are still there."""
    ids = [i for state in ("ready", "blocked", "running") for i in _all(q, state)]
    prefix = name.encode() + b"@"
    return sorted(int(i[len(prefix) :]) for i in ids if i.startswith(prefix))


def _all(q, state):
    cursor, out = b"0", []
    while True:
        cursor, ids = q.do("LIST", state, "CURSOR", cursor, "COUNT", 1000, "IDS")
        out += ids
        if cursor == b"0":
            return out


def test_a_schedule_fires_at_its_times_and_never_early(server, r3, key):
    q = Queue(r3, key)
    wire = server.wire()
    q.do("SCHEDULE", "s", "EVERY", 50, "PAYLOAD", "x")
    for _ in range(20):
        wire.send("DQ.FETCH", key, "BLOCK", 0, "NOACK")
        (m,) = msgs(wire.recv())
        assert now_ms() >= int(m.id.split(b"@")[1])
    assert 0 <= q.info()["lateness-max"] <= LATE


def test_a_schedule_fires_without_any_client(make_server, key):
    server = make_server()
    q = Queue(server.client(), key)
    first = q.do("SCHEDULE", "s", "EVERY", 100, "PAYLOAD", "x")
    server.drop_clients()
    time.sleep(1.2)
    q = Queue(server.client(), key)
    # LIST makes nothing fire.
    wait_for(lambda: len(fire_times(q, "s")) >= 11, 5, "eleven fires")
    got = fire_times(q, "s")
    assert got == [first + 100 * k for k in range(len(got))]


def test_a_cron_schedule_with_seconds_fires_every_second(server, r3, key):
    q = Queue(r3, key)
    before = now_ms()
    next_at = q.do("SCHEDULE", "s", "CRON", "* * * * * *", "PAYLOAD", "x")
    assert next_at % 1000 == 0 and before <= next_at <= now_ms() + 1000
    wait_for(lambda: q.len() >= 2, 10, "two fires")
    got = fire_times(q, "s")
    assert got == [next_at + 1000 * k for k in range(len(got))]


@pytest.mark.parametrize("way", ["reload", "dump", "copy"])
def test_schedules_survive_reload_dump_and_copy(r, key, way):
    q = Scene(r, key)
    q.do("SCHEDULE", "e", "EVERY", 100, "PAYLOAD", "x", "OVERLAP", "SKIP", "GROUP", "g", "PRIORITY", 3)
    q.do("SCHEDULE", "c", "CRON", "5-59/10 * * * * *", "TZ", "Asia/Kolkata", "PAYLOAD", b"\x00y", "MISSED", "ALL")
    q.advance(250)
    before = q.schedules()
    if way == "reload":
        r.execute_command("DEBUG", "RELOAD")
    elif way == "dump":
        q = twin(q, key + b":x")
        assert_same_digest(r, key, q.key)
    else:
        r.execute_command("COPY", key, key + b":x")
        q = Scene.over(r, key + b":x")
        assert_same_digest(r, key, q.key)
    assert q.schedules() == before
    q.advance(100)
    # The last message has not ended, so OVERLAP SKIP still holds.
    assert q.listed("ready") == [f"e@{START + 100}"]
    q.drain()
    q.advance(50)
    row = q.row(f"e@{START + 400}")
    assert (row["group"], row["priority"]) == ("g", 3)
    q.advance(20_000)
    assert len([id for id in q.listed("ready") if id.startswith("c@")]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("aof", ["yes", "no"])
def test_missed_decides_what_fires_after_a_downtime(make_server, key, aof):
    """Fire times every second, on a slow machine every few; the server is down over three of them."""
    server = make_server(appendonly=aof, appendfsync="always")
    for period in (1000, 4000):
        q = Queue(server.client(), key)
        start = now_ms() + period
        for word in ("SKIP", "ONCE", "ALL"):
            assert q.do("SCHEDULE", word, "EVERY", period, "START", start, "PAYLOAD", "x", "MISSED", word) == start
        assert q.do("SCHEDULE", "DEFAULT", "EVERY", period, "START", start, "PAYLOAD", "x") == start
        wait_for(lambda: q.len() >= 4, 10, "the first fires")
        if aof == "no":
            q.client.execute_command("SAVE")
        down = now_ms()
        server.kill9()
        time.sleep(max(0, (start + 3.3 * period - now_ms()) / 1000))
        server.start()
        q = Queue(server.client(), key)
        if down < start + 0.9 * period and now_ms() < start + 3.9 * period:
            break
        q.client.delete(key)
    time.sleep(max(0, (start + 4.4 * period - now_ms()) / 1000))
    names = ("SKIP", "ONCE", "ALL", "DEFAULT")
    got = {name: [n for t in fire_times(q, name) if (n := (t - start) // period) <= 4] for name in names}
    assert got["SKIP"] == [0, 4]
    assert got["ALL"] == [0, 1, 2, 3, 4]
    for name in ("ONCE", "DEFAULT"):
        assert len(got[name]) == 3 and got[name][0] == 0 and got[name][-1] == 4, got
        assert got[name][1] in (1, 2, 3)


@pytest.mark.slow
def test_a_promoted_replica_fires_every_time_exactly_once(replica_pair, key):
    pair = replica_pair
    q = Queue(pair.primary.client(), key)
    start = now_ms() + 300
    q.do("SCHEDULE", "s", "EVERY", 200, "START", start, "PAYLOAD", "x", "MISSED", "ALL")
    wait_for(lambda: q.len() >= 3, 5, "some fires")
    pair.wait_sync()
    # A replica fires nothing by its own clock.
    on_replica = fire_times(Queue(pair.replica.client(), key), "s")
    assert set(on_replica) <= set(fire_times(q, "s"))
    pair.primary.kill9()
    time.sleep(1)
    pair.promote()
    wait_for(lambda: Queue(pair.replica.client(), key).len() >= 10, 5, "the new primary's fires")
    got = fire_times(Queue(pair.replica.client(), key), "s")
    assert got == [start + 200 * k for k in range(len(got))]


def test_replicas_have_the_same_schedules(replica_pair, key):
    q = Scene(replica_pair.primary.client(), key)
    q.do("SCHEDULE", "a", "EVERY", 100, "PAYLOAD", "x")
    q.do("SCHEDULE", "b", "CRON", "@hourly", "TZ", "Europe/Berlin", "PAYLOAD", "x", "OVERLAP", "SKIP")
    replica_pair.assert_same(key)
    q.advance(7_200_000)
    replica_pair.assert_same(key)
    q.do("UNSCHEDULE", "a")
    q.drain("COUNT", 1000)
    replica_pair.assert_same(key)


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_schedules_survive_a_rewrite_of_the_log(make_server, key, preamble):
    server = make_server(appendonly="yes", appendfsync="always", aof_use_rdb_preamble=preamble)
    client = server.client()
    q = Scene(client, key)
    q.do("SCHEDULE", "a", "EVERY", 100, "PAYLOAD", "x", "TYPE", "t", "HEADERS", 1, "h", "v")
    q.do("SCHEDULE", "b", "CRON", "0 3 * * *", "TZ", "Europe/Berlin", "PAYLOAD", "x", "MISSED", "SKIP")
    q.advance(250)
    client.execute_command("BGREWRITEAOF")
    wait_for(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "0", 20, "the AOF rewrite")
    q.advance(50)
    before, rows = digest(client, key), q.schedules()
    server.restart(crash=True)
    q = Scene.over(server.client(), key)
    assert q.digest() == before
    assert q.schedules() == rows
    q.advance(100)
    assert q.row(f"a@{START + 400}")["headers"] == {"h": "v"}


def test_each_fire_is_one_log_entry_without_a_transaction(make_server, key):
    server = make_server(appendonly="yes", appendfsync="always")
    q = Queue(server.client(), key)
    q.do("SCHEDULE", "s", "EVERY", 100, "PAYLOAD", "x")
    before = _commands(_aof(server))
    assert before >= 1
    wait_for(lambda: q.len() >= 5, 5, "five fires")
    q.do("UNSCHEDULE", "s")
    n = q.len()
    data = _aof(server)
    assert b"MULTI" not in data
    assert _commands(data) <= before + n + 1


def test_each_missed_fire_is_one_log_entry(make_server, key):
    server = make_server(appendonly="yes", appendfsync="always")
    q = Queue(server.client(), key)
    start = q.do("SCHEDULE", "s", "EVERY", 20, "PAYLOAD", "x", "MISSED", "ALL")
    wait_for(lambda: q.len() >= 3, 5, "some fires")
    server.kill9()
    time.sleep(1)
    server.start()
    q = Queue(server.client(), key)
    wait_for(lambda: q.len() >= 60, 10, "the missed ones and some more")
    q.do("UNSCHEDULE", "s")
    fires = fire_times(q, "s")
    assert fires == [start + 20 * k for k in range(len(fires))]
    data = _aof(server)
    assert b"MULTI" not in data
    # SCHEDULE and UNSCHEDULE are log entries too.
    assert _commands(data) >= len(fires) + 2


def _aof(server):
    files = sorted((server.dir / "appendonlydir").glob("*.incr.aof"))
    return b"".join(f.read_bytes() for f in files)


def _commands(data):
    """Counts the commands in AOF text."""
    n = at = 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        if data[at : at + 1] == b"#":
            at = end + 2
            continue
        args = int(data[at + 1 : end])
        at = end + 2
        for _ in range(args):
            end = data.index(b"\r\n", at)
            at = end + 2 + int(data[at + 1 : end]) + 2
        n += 1
    return n
