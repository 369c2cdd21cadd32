"""Schedules on the server clock fire on time and only once, also after restart, downtime and failover."""

import time

import pytest

from tests.harness.aof import commands
from tests.harness.replies import Queue, msgs
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


@pytest.mark.slow
@pytest.mark.parametrize("aof", ["yes", "no"])
def test_missed_decides_what_fires_after_a_downtime(make_server, key, aof):
    """Fire times every second, on a slow machine every few; the server is down over three of them."""
    server = make_server(appendonly=aof)
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


def test_each_fire_is_one_log_entry_without_a_transaction(make_server, key):
    server = make_server(appendonly="yes")
    q = Queue(server.client(), key)
    q.do("SCHEDULE", "s", "EVERY", 100, "PAYLOAD", "x")
    before = len(commands(server))
    assert before >= 1
    wait_for(lambda: q.len() >= 5, 5, "five fires")
    q.do("UNSCHEDULE", "s")
    entries = commands(server)
    assert [b"MULTI"] not in entries
    assert len(entries) <= before + q.len() + 1


def test_each_missed_fire_is_one_log_entry(make_server, key):
    server = make_server(appendonly="yes")
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
    entries = commands(server)
    assert [b"MULTI"] not in entries
    # SCHEDULE and UNSCHEDULE are log entries too.
    assert len(entries) >= len(fires) + 2
