"""TTL: it counts from the due time, in every pending state, and decides about a message that is returned too late."""

import pytest

from tests.harness.replies import Manual


def dead(q, id="a"):
    record = q.get(id)
    return record["state"] == b"dead" and record["reason"]


def test_a_ttl_counts_from_the_due_time(r, key):
    q = Manual(r, key, "TTL", 50)
    q.send("x", "ID", "a", "DELAY", 100)
    q.to(149)
    assert q.state("a") == "ready"
    q.to(150)
    assert dead(q) == b"expired"
    assert q.get("a")["finished-at"] == 150
    assert (q.len(), q.fetch()) == (0, [])


def test_an_expired_message_is_never_delivered(r, key):
    q = Manual(r, key, "TTL", 1)
    q.send("x")
    q.advance(1)
    assert q.fetch("COUNT", 10) == []


def test_a_message_past_its_ttl_can_be_acked_within_its_lease(r, key):
    q = Manual(r, key, "TTL", 10, "LEASE", 100)
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    q.advance(50)
    assert q.state("a") == "running"
    assert q.ack(receipt) == 1
    assert q.info()["expired"] == 0


@pytest.mark.parametrize("how", [(), ("SILENT",), ("DELAY", 5), ("ERROR", "e")])
def test_a_message_nacked_past_its_ttl_is_dead(r, key, how):
    q = Manual(r, key, "TTL", 10, "LEASE", 100)
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    q.advance(10)
    assert q.nack(receipt, *how) == 1
    assert dead(q) == b"expired"


def test_the_last_nack_past_the_ttl_has_the_reason_retries(r, key):
    q = Manual(r, key, "TTL", 10, "LEASE", 100, "RETRIES", 0)
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    q.advance(20)
    q.nack(receipt)
    assert dead(q) == b"retries"


def test_a_fatal_nack_past_the_ttl_has_the_reason_rejected(r, key):
    q = Manual(r, key, "TTL", 10, "LEASE", 100)
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    q.advance(20)
    q.nack(receipt, "FATAL")
    assert dead(q) == b"rejected"


def test_a_ttl_runs_out_during_a_backoff(r, key):
    q = Manual(r, key, "TTL", 50, "BACKOFF", "FIXED", 1000)
    q.send("x", "ID", "a")
    q.nack(q.one().receipt)
    q.to(49)
    assert q.state("a") == "retry"
    q.to(50)
    assert dead(q) == b"expired"


def test_a_backoff_does_not_prolong_a_ttl(r, key):
    q = Manual(r, key, "TTL", 50, "BACKOFF", "FIXED", 40)
    q.send("x", "ID", "a")
    q.nack(q.one().receipt)
    q.to(40)
    assert q.state("a") == "ready"
    q.to(50)
    assert dead(q) == b"expired"


def test_reschedule_starts_the_ttl_anew(r, key):
    q = Manual(r, key, "TTL", 50)
    q.send("x", "ID", "a")
    q.to(30)
    assert q.do("RESCHEDULE", "a", "DELAY", 100) == 1
    q.to(179)
    assert q.state("a") == "ready"
    q.to(180)
    assert dead(q) == b"expired"


def test_a_ttl_of_a_message_overrides_that_of_the_queue(r, key):
    q = Manual(r, key, "TTL", 50)
    for id, ttl in (("short", 10), ("long", 90), ("none", 0)):
        q.send("x", "ID", id, "TTL", ttl)
    q.to(10)
    assert [q.state(i) for i in ("short", "long", "none")] == ["dead", "ready", "ready"]
    q.to(50)
    assert [q.state(i) for i in ("long", "none")] == ["ready", "ready"]
    q.to(90)
    assert [q.state(i) for i in ("long", "none")] == ["dead", "ready"]


def test_a_ttl_goes_on_while_the_queue_is_paused(r, key):
    q = Manual(r, key, "TTL", 50)
    q.send("x", "ID", "a")
    q.do("PAUSE")
    q.to(50)
    assert dead(q) == b"expired"


def test_a_lease_end_past_the_ttl_counts_as_timeout_and_expiry(r, key):
    q = Manual(r, key, "TTL", 10, "LEASE", 20)
    q.send("x", "ID", "a")
    q.one()
    q.to(20)
    info = q.info()
    assert (info["timeouts"], info["deaths"], info["expired"]) == (1, 1, 1)


def test_expired_messages_free_maxlen_and_maxrunning(r, key):
    """Messages that expire free every slot that they had, round after round."""
    q = Manual(r, key, "TTL", 10, "MAXLEN", 3, "MAXRUNNING", 2, "LEASE", 5)
    for _ in range(20):
        assert len(q.do("MSEND", 3, *"abc")) == 3
        assert len(q.fetch("COUNT", 9)) == 2
        q.advance(10)
    info = q.info()
    assert (q.len(), info["running"], info["deaths"]) == (0, 0, 60)
    q.send("fresh")
    assert q.payloads() == [b"fresh"]
