"""UNTIL, TIMES and JITTER of DQ.SCHEDULE, DQ.SCHEDULES with PAUSE and RESUME, and their fields in the listing."""

import pytest

from tests.harness.replies import Queue
from tests.harness.scene import START, Scene, assert_same_digest, twin
from tests.harness.server import now_ms, wait_for
from tests.harness.wire import Error


@pytest.fixture
def q(r, key):
    return Scene(r, key)


def every(q, ms, *options):
    return q.do("SCHEDULE", "s", "EVERY", ms, "PAYLOAD", "x", *options)


def extras(q):
    row = q.schedules()["s"]
    return {field: row[field] for field in ("until", "times", "jitter", "paused", "skipped")}


def test_until_is_the_last_time_at_which_it_fires(q):
    every(q, 100, "UNTIL", START + 300)
    assert extras(q)["until"] == START + 300
    assert q.advance(299)["fired"] == 2
    assert q.advance(1)["fired"] == 1
    assert q.schedules() == {}
    assert q.advance(1000)["fired"] == 0


def test_times_counts_down_and_ends(q):
    every(q, 100, "TIMES", 3)
    assert extras(q) == {"until": None, "times": 3, "jitter": 0, "paused": 0, "skipped": 0}
    q.advance(200)
    assert extras(q)["times"] == 1
    assert q.advance(1000)["fired"] == 1
    assert q.schedules() == {}


def test_a_schedule_that_would_end_before_its_first_time_is_refused(server, key, q):
    with server.wire() as w:
        refused = w.call("DQ.SCHEDULE", key, "s", "EVERY", 100, "PAYLOAD", "x", "UNTIL", START + 99)
    assert isinstance(refused, Error) and refused == "ERR the schedule would never fire"
    assert q.schedules() == {}


@pytest.mark.parametrize("seconds", [1, 1_700_000_000, 10**11])
def test_an_end_in_seconds_is_an_error_that_names_the_unit(server, key, seconds):
    with server.wire() as w:
        refused = w.call("DQ.SCHEDULE", key, "s", "EVERY", 100, "PAYLOAD", "x", "UNTIL", seconds)
        assert isinstance(refused, Error) and "UNTIL" in refused and "milliseconds" in refused
        assert w.ok("EXISTS", key) == 0


def test_a_time_whose_id_is_taken_is_skipped_and_counted(q):
    every(q, 100, "TIMES", 2)
    q.send("mine", "ID", f"s@{START + 100}")
    assert q.advance(100)["fired"] == 0
    assert (extras(q)["skipped"], extras(q)["times"], q.schedules()["s"]["fired"]) == (1, 2, 0)
    # A fire that is skipped does not count as one of its times.
    assert q.advance(1000)["fired"] == 2
    assert q.schedules() == {}


def test_times_at_which_nothing_can_be_sent_are_counted_too(q):
    every(q, 100, "OVERLAP", "SKIP")
    q.advance(300)
    assert extras(q)["skipped"] == 2
    q.drain()
    q.do("ALTER", "SENDS", "OFF")
    q.advance(100)
    assert extras(q)["skipped"] == 3


def test_jitter_spreads_the_messages_and_is_the_same_in_a_copy(r, key, q):
    every(q, 1000, "START", START + 1000, "JITTER", 500)
    assert extras(q)["jitter"] == 500
    copy = twin(q, key + b":x")
    waits = []
    for one in (q, copy):
        one.advance(20_000)
        rows = [one.row(f"s@{START + 1000 * k}") for k in range(1, 20)]
        waits.append([row["due-at"] - START - 1000 * k for k, row in enumerate(rows, 1)])
    assert waits[0] == waits[1]
    assert all(0 <= wait <= 500 for wait in waits[0])
    assert len(set(waits[0])) > 10
    assert_same_digest(r, key, copy.key)


def test_a_paused_schedule_fires_nothing_and_what_it_missed_is_skipped(q):
    every(q, 100, "MISSED", "ALL")
    q.advance(100)
    assert q.do("SCHEDULES", "PAUSE", "s") == 1
    assert (extras(q)["paused"], q.schedules()["s"]["next-at"]) == (1, None)
    assert q.do("SCHEDULES", "PAUSE", "s") == 1
    assert q.advance(450)["fired"] == 0
    assert q.do("SCHEDULES", "resume", "s") == 1
    assert (extras(q)["paused"], q.schedules()["s"]["next-at"]) == (0, START + 600)
    assert q.advance(50)["fired"] == 1
    assert q.do("SCHEDULES", "RESUME", "s") == 1
    assert extras(q)["skipped"] == 0


def test_no_schedule_is_paused_where_there_is_none(r, key):
    for word in ("PAUSE", "RESUME"):
        assert r.execute_command("DQ.SCHEDULES", key, word, "s") == 0
    assert r.exists(key) == 0
    q = Scene(r, key)
    every(q, 100)
    assert q.do("SCHEDULES", "PAUSE", "t") == 0


def test_a_paused_schedule_that_is_replaced_goes_on(q):
    every(q, 100)
    q.do("SCHEDULES", "PAUSE", "s")
    every(q, 100)
    assert extras(q)["paused"] == 0
    assert q.advance(100)["fired"] == 1


def test_whoever_may_not_unschedule_may_not_pause(server, key, q):
    every(q, 100)
    admin, w = server.wire(2), server.wire(2)
    try:
        for rules in (["%R~*", "+@all"], ["~*", "+@read"], ["~*", "+dq.schedules"], ["%R~*", "+@all", "(+dq.schedules ~*)"]):
            admin.ok("ACL", "SETUSER", "viewer", "reset", "on", ">secret", *rules)
            w.ok("AUTH", "viewer", "secret")
            if "+@read" not in rules:
                assert len(w.ok("DQ.SCHEDULES", key)) == 1
            for word in ("PAUSE", "RESUME"):
                refused = w.call("DQ.SCHEDULES", key, word, "s")
                assert isinstance(refused, Error) and refused.startswith("NOPERM"), rules
        admin.ok("ACL", "SETUSER", "viewer", "reset", "on", ">secret", "~*", "+dq.schedules", "+dq.unschedule")
        w.ok("AUTH", "viewer", "secret")
        assert w.ok("DQ.SCHEDULES", key, "PAUSE", "s") == 1
    finally:
        admin.ok("ACL", "DELUSER", "viewer")


@pytest.mark.parametrize("way", ["MULTI", "script"])
def test_it_works_where_nothing_waits(r, key, q, way):
    every(q, 100)
    if way == "MULTI":
        with r.pipeline() as pipe:
            pipe.execute_command("DQ.SCHEDULES", key, "PAUSE", "s")
            pipe.execute_command("DQ.TICK", key, "ADVANCE", 500)
            assert pipe.execute()[0] == 1
    else:
        assert r.eval("return redis.call('DQ.SCHEDULES', KEYS[1], 'PAUSE', 's')", 1, key) == 1
        q.advance(500)
    assert q.len() == 0


def test_on_the_clock_of_the_server(r, key):
    q = Queue(r, key)
    q.do("SCHEDULE", "s", "EVERY", 20, "PAYLOAD", "x", "TIMES", 3)
    q.do("SCHEDULE", "far", "EVERY", 20, "PAYLOAD", "x", "UNTIL", now_ms() + 86_400_000)
    wait_for(lambda: [row["name"] for row in Scene.over(r, key).schedules().values()] == ["far"], 10, "the end")
    assert q.do("SCHEDULES", "PAUSE", "far") == 1
    q.do("PURGE")
    assert r.execute_command("DQ.LEN", key) == 0
