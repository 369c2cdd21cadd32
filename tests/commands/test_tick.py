"""DQ.TICK and manual clocks: the due events, their order, and the counts of TICK."""

import random

import pytest

from tests.harness.replies import Manual, Queue, as_map
from tests.harness.server import wait_for

COUNTS = {"due", "timeouts", "dead", "expired", "pruned", "fired"}


def counts(**some):
    return dict.fromkeys(COUNTS, 0) | some


def test_tick_replies_all_counts(r, key):
    q = Manual(r, key)
    assert q.advance(5) == counts()
    assert q.tick() == counts()
    assert as_map(r.execute_command("DQ.TICK")) == counts()
    assert as_map(r.execute_command("DQ.TICK", key, b"missing", key + b"x")) == counts()


def test_due_counts_delayed_and_failed_messages(r, key):
    q = Manual(r, key, "BACKOFF", "FIXED", 10)
    q.do("MSEND", 3, *"abc", "DELAY", 10)
    q.send("x")
    q.nack(q.one().receipt)
    assert q.advance(9) == counts()
    assert q.advance(1) == counts(due=4)
    assert q.advance(1) == counts()


def test_tick_counts_timeouts_and_deaths(r, key):
    q = Manual(r, key, "LEASE", 10, "RETRIES", 1)
    q.do("MSEND", 2, *"ab")
    q.fetch("COUNT", 2)
    assert q.advance(10) == counts(timeouts=2)
    q.fetch("COUNT", 2)
    assert q.advance(100) == counts(timeouts=2, dead=2)


def test_expired_is_counted_apart_from_dead(r, key):
    q = Manual(r, key, "TTL", 10)
    q.send("a")
    q.send("b", "DELAY", 5)
    assert q.advance(10) == counts(due=1, expired=1)
    assert q.advance(5) == counts(expired=1)
    info = q.info()
    assert (info["deaths"], info["expired"]) == (2, 2)


def test_a_running_message_expires_when_its_lease_ends(r, key):
    q = Manual(r, key, "TTL", 10, "LEASE", 30)
    q.send("a", "ID", "a")
    q.one()
    assert q.advance(29) == counts()
    assert q.advance(1) == counts(timeouts=1, expired=1)
    assert (q.state("a"), q.get("a")["reason"]) == ("dead", b"expired")


def test_pruned_counts_records_removed_by_age(r, key):
    q = Manual(r, key, "RETAIN", 10, "DEADRETAIN", 20, "RETRIES", 0)
    q.do("MSEND", 2, *"ab")
    a, b = q.fetch("COUNT", 2)
    q.ack(a.receipt)
    q.nack(b.receipt)
    assert q.advance(9) == counts()
    assert q.advance(1) == counts(pruned=1)
    assert q.advance(10) == counts(pruned=1)


def test_to_moves_to_an_absolute_time(r, key):
    q = Manual(r, key, start=1000)
    q.send("x", "DELAY", 5)
    assert q.to(1005) == counts(due=1)
    assert q.to(1005) == counts()
    assert q.now == 1005
    assert q.to(2**53 - 1) == counts()
    assert q.now == 2**53 - 1


def test_time_does_not_go_back(r, key):
    q = Manual(r, key, start=1000)
    before = q.digest()
    assert q.fails("TICK", "TO", 999)
    assert q.digest() == before
    assert q.now == 1000


def test_a_manual_clock_stands_still_without_tick(r, key):
    q = Manual(r, key)
    q.send("x", "DELAY", 1)
    other = Queue(r, key + b"s")
    other.send("y", "DELAY", 1)
    wait_for(lambda: other.len("ready") == 1, 5, "the server clock's message")
    r.execute_command("DQ.TICK")
    assert (q.now, q.len("delayed")) == (0, 1)


@pytest.mark.parametrize("args", [("ADVANCE", 5), ("TO", 2**52)])
def test_only_a_manual_clock_can_be_moved(r, key, args):
    assert Queue(r, key).fails("TICK", *args)
    assert r.exists(key) == 0
    q = Queue(r, key)
    q.send("x", "DELAY", 600000)
    before = q.digest()
    assert q.fails("TICK", *args)
    assert q.digest() == before


def test_advance_without_a_number_is_a_key(r, key):
    q = Manual(r, key)
    q.send("x", "DELAY", 1)
    assert as_map(r.execute_command("DQ.TICK", key, "ADVANCE")) == counts()
    assert as_map(r.execute_command("DQ.TICK", key, "x", "y", "z")) == counts()
    assert q.now == 0


def test_events_take_effect_in_the_order_of_their_times(r, key):
    """A lease ends before the TTL and other messages fall due around it: the first event has its effect first."""
    q = Manual(r, key, "RETRIES", -1)
    q.send("timeout first", "ID", "a", "TTL", 50)
    q.one("LEASE", 20)
    q.send("b", "ID", "b", "DELAY", 10)
    q.send("c", "ID", "c", "DELAY", 30)
    assert q.advance(40) == counts(due=2, timeouts=1)
    assert [m["id"] for m in q.peek("COUNT", 9)] == [b"b", b"a", b"c"]
    assert q.advance(10) == counts(expired=1)


def test_of_ttl_and_last_retry_at_once_the_reason_is_retries(r, key):
    q = Manual(r, key, "TTL", 10, "RETRIES", 0, "LEASE", 10)
    q.send("x", "ID", "a")
    q.one()
    assert q.advance(10) == counts(timeouts=1, dead=1)
    assert q.get("a")["reason"] == b"retries"


def play(q, rng, steps):
    """Random sends and deliveries at time zero; afterwards only time changes the queue."""
    for n in range(steps):
        args = ["ID", n, "DELAY", rng.choice([0, 0, rng.randrange(200)]), "PRIORITY", rng.randrange(-2, 3)]
        if rng.random() < 0.4:
            args += ["TTL", rng.randrange(1, 300)]
        q.send("x", *args)
    for m in q.fetch("COUNT", steps // 4, "LEASE", 50):
        if rng.random() < 0.4:
            q.nack(m.receipt, "DELAY", rng.randrange(200))
        elif rng.random() < 0.3:
            q.touch(rng.randrange(1, 200), m.receipt)


@pytest.mark.parametrize("seed", range(6))
def test_one_long_advance_has_the_effect_of_many_short_ones(r3, key, seed):
    results = []
    for part in (b"small", b"leap"):
        q = Manual(r3, key + part, "RETRIES", 1, "DEADRETAIN", 100)
        play(q, random.Random(seed), 120)
        rng = random.Random(seed)
        moved = 0
        total = counts()
        while moved < 400:
            step = 400 if part == b"leap" else min(rng.randrange(1, 30), 400 - moved)
            for name, n in q.advance(step).items():
                total[name] += n
            moved += step
        records = [q.get(n) for n in range(120)]
        for record in records:
            if record:
                del record["receipt"]
        results.append((total, records, [m["id"] for m in q.peek("COUNT", 200)], q.len()))
    assert results[0] == results[1]


def test_advance_makes_all_due_messages_ready_at_once(r3, key):
    q = Manual(r3, key)
    for _ in range(20):
        q.do("MSEND", 1000, *["x"] * 1000, "DELAY", 100)
    assert q.advance(100) == counts(due=20000)
    assert (q.len("delayed"), q.len("ready")) == (0, 20000)


def test_tick_makes_due_messages_of_a_server_clock_ready(r, key):
    """The timer of the module may be first; after TICK every due message is ready in either case."""
    q = Queue(r, key)
    q.send("x", "DELAY", 30, "ID", "a")
    due = q.get("a")["due-at"]
    wait_for(lambda: q.info()["now"] >= due, 5, "the due time")
    q.tick()
    assert (q.len("delayed"), q.len("ready")) == (0, 1)
