"""Leases and their timeouts, NACK and TOUCH, retries, backoff and jitter, and death after the last retry."""

import pytest

from tests.harness.replies import Manual


def test_a_lease_ends_at_lease_until(r, key):
    q = Manual(r, key, "LEASE", 100)
    q.send("x", "ID", "a")
    q.one()
    q.advance(99)
    assert q.state("a") == "running"
    assert q.fetch() == []
    q.advance(1)
    assert q.state("a") == "ready"
    m = q.one()
    assert m.attempt == 2
    record = q.get("a")
    assert (record["failures"], record["timeouts"], record["retries-left"]) == (1, 1, 2)


def test_touch_sets_the_lease_end_counted_from_now(r, key):
    q = Manual(r, key, "LEASE", 100)
    q.do("MSEND", 2, *"ab")
    a, b = q.fetch("COUNT", 2)
    q.advance(60)
    assert q.touch(100, a.receipt) == 1
    assert q.touch(1, b.receipt) == 1
    assert (q.get(a.id)["lease-until"], q.get(b.id)["lease-until"]) == (160, 61)
    q.advance(1)
    assert q.ids() == [b.id]
    q.advance(98)
    assert q.state(a.id) == "running"
    q.advance(1)
    assert q.state(a.id) == "ready"


def test_repeated_touches_keep_a_lease_without_end(r, key):
    q = Manual(r, key, "LEASE", 10)
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    for _ in range(50):
        q.advance(9)
        assert q.touch(10, receipt) == 1
    assert q.ack(receipt) == 1
    assert q.info()["timeouts"] == 0


@pytest.mark.parametrize("retries", [0, 1, 3])
@pytest.mark.parametrize("how", ["nack", "timeout", "mixed"])
def test_a_message_is_dead_after_retries_plus_one_failures(r, key, retries, how):
    q = Manual(r, key, "LEASE", 10, "RETRIES", retries)
    q.send("x", "ID", "a")
    for n in range(retries + 1):
        m = q.one()
        assert m.attempt == n + 1
        assert q.get("a")["retries-left"] == retries - n
        if how == "nack" or (how == "mixed" and n % 2):
            assert q.nack(m.receipt, "ERROR", f"no {n}") == 1
        else:
            q.advance(10)
    record = q.get("a")
    assert (record["state"], record["status"], record["reason"]) == (b"dead", b"error", b"retries")
    assert (record["attempt"], record["failures"], record["retries-left"]) == (retries + 1, retries + 1, 0)
    assert record["finished-at"] == q.now
    assert q.advance(100000)["due"] == 0
    assert q.fetch() == []
    assert (q.len(), q.len("dead")) == (0, 1)


def test_retries_minus_one_allows_any_number_of_failures(r, key):
    q = Manual(r, key, "LEASE", 10, "RETRIES", -1)
    q.send("x", "ID", "a")
    for n in range(60):
        m = q.one()
        q.nack(m.receipt) if n % 2 else q.advance(10)
    record = q.get("a")
    assert (record["failures"], record["timeouts"], record["retries-left"]) == (60, 30, -1)
    assert q.state("a") == "ready"


def test_a_fatal_nack_kills_a_message_at_once(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a")
    assert q.nack(q.one().receipt, "FATAL", "ERROR", b"bad \0 input") == 1
    record = q.get("a")
    assert (record["state"], record["reason"], record["error"]) == (b"dead", b"rejected", b"bad \0 input")
    assert q.info()["deaths"] == 1


def test_a_silent_nack_costs_no_attempt_and_keeps_the_position(r, key):
    q = Manual(r, key, "RETRIES", 0)
    for id in "abc":
        q.send(id, "ID", id)
        q.advance(1)
    m = q.one()
    assert q.nack(m.receipt, "SILENT") == 1
    record = q.get("a")
    assert (record["attempt"], record["failures"], record["state"]) == (0, 0, b"ready")
    got = q.fetch("COUNT", 3)
    assert [m.id for m in got] == [b"a", b"b", b"c"]
    assert got[0].attempt == 1
    assert q.info()["nacked"] == 1


def test_without_backoff_a_failed_message_is_ready_at_once(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a")
    q.nack(q.one().receipt)
    assert q.state("a") == "ready"
    assert q.one().attempt == 2


@pytest.mark.parametrize(
    "kind, waits",
    [("FIXED", [100] * 6), ("LINEAR", [100, 200, 300, 400, 500, 600]), ("EXP", [100, 200, 400, 800, 1600, 3200])],
)
def test_a_failed_message_waits_for_its_backoff(r, key, kind, waits):
    q = Manual(r, key, "RETRIES", -1, "BACKOFF", kind, 100)
    q.send("x", "ID", "a")
    for wait in waits:
        began = q.now
        q.nack(q.one().receipt)
        assert (q.state("a"), q.get("a")["due-at"]) == ("retry", began + wait)
        assert q.get("a")["status"] == b"pending"
        q.advance(wait - 1)
        assert q.fetch() == []
        q.advance(1)
        assert q.state("a") == "ready"


def test_maxbackoff_limits_the_backoff_without_overflow(r3, key):
    q = Manual(r3, key, "RETRIES", -1, "BACKOFF", "EXP", 100, "MAXBACKOFF", 1000)
    q.send("x", "ID", "a")
    for n in range(140):
        began = q.now
        q.nack(q.one().receipt)
        wait = q.get("a")["due-at"] - began
        assert wait == min(100 * 2**n, 1000)
        q.advance(wait)


def test_a_backoff_without_maxbackoff_ends_at_the_largest_time(r3, key):
    q = Manual(r3, key, "RETRIES", -1, "BACKOFF", "EXP", 2**53 - 1)
    q.send("x", "ID", "a")
    q.nack(q.one().receipt)
    assert q.get("a")["due-at"] == 2**53 - 1
    q.to(2**53 - 1)
    q.nack(q.one().receipt)
    assert q.get("a")["due-at"] == 2**53 - 1


def test_a_timed_out_message_is_ready_without_backoff(r, key):
    q = Manual(r, key, "BACKOFF", "FIXED", 1000, "LEASE", 10)
    q.send("x", "ID", "a")
    q.one()
    q.advance(10)
    assert q.state("a") == "ready"


def test_timeouts_count_as_failures_when_a_backoff_is_computed(r, key):
    q = Manual(r, key, "BACKOFF", "LINEAR", 100, "LEASE", 10, "RETRIES", 9)
    q.send("x", "ID", "a")
    q.one()
    q.advance(10)
    q.one()
    q.advance(10)
    q.nack(q.one().receipt)
    assert q.get("a")["due-at"] == 20 + 300


def test_nack_delay_overrides_the_backoff(r, key):
    q = Manual(r, key, "BACKOFF", "FIXED", 1000, "MAXBACKOFF", 50, "JITTER", 50, "RETRIES", 9)
    q.send("x", "ID", "a")
    q.nack(q.one().receipt, "DELAY", 7000, "ERROR", "later")
    assert q.get("a")["due-at"] == 7000
    assert q.get("a")["error"] == b"later"
    q.to(7000)
    q.nack(q.one().receipt, "DELAY", 0)
    assert q.state("a") == "ready"
    assert q.get("a")["failures"] == 2


def spread(q, n=200):
    """The backoffs of n messages that failed once."""
    q.do("MSEND", n, *range(n))
    got = q.fetch("COUNT", n)
    q.nack(*[m.receipt for m in got])
    return [q.get(m.id)["due-at"] - q.now for m in got]


def test_jitter_spreads_the_backoff_to_both_sides(r3, key):
    waits = spread(Manual(r3, key, "BACKOFF", "FIXED", 1000, "JITTER", 20))
    assert 800 <= min(waits) < 900 and 1100 < max(waits) <= 1200
    assert len(set(waits)) > 50


def test_full_jitter_spreads_from_zero_to_twice_the_backoff(r3, key):
    waits = spread(Manual(r3, key, "BACKOFF", "FIXED", 1000, "JITTER", 100))
    assert 0 <= min(waits) < 300 and 1700 < max(waits) <= 2000


def test_maxbackoff_applies_after_jitter(r3, key):
    waits = spread(Manual(r3, key, "BACKOFF", "FIXED", 1000, "JITTER", 50, "MAXBACKOFF", 1000))
    assert max(waits) == 1000
    assert 500 <= min(waits) < 700


def test_one_nack_takes_several_receipts(r, key):
    q = Manual(r, key, "BACKOFF", "FIXED", 10)
    q.do("MSEND", 3, *"abc")
    a, b, c = q.fetch("COUNT", 3)
    assert q.nack(a.receipt, c.receipt, "ERROR", "e") == 2
    assert [q.state(m.id) for m in (a, b, c)] == ["retry", "running", "retry"]


def test_an_error_text_can_be_an_option_word(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a")
    assert q.nack(q.one().receipt, "ERROR", "SILENT", "DELAY", 5) == 1
    record = q.get("a")
    assert (record["error"], record["failures"], record["due-at"]) == (b"SILENT", 1, 5)


def test_a_nack_of_an_ungrouped_message_leaves_the_others_of_its_fetch(r, key):
    q = Manual(r, key)
    q.do("MSEND", 3, *"abc")
    a, b, c = q.fetch("COUNT", 3)
    q.nack(a.receipt)
    assert q.ack(b.receipt, c.receipt) == 2
