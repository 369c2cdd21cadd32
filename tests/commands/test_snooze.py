"""NACK SILENT DELAY hands a message back for later without blame; NACK ... PAUSE pauses its group or the queue."""

import pytest

from tests.harness.replies import Manual, as_map, as_maps, truth


def groups(q):
    cursor, listed = q.do("GROUPS")
    assert cursor == b"0"
    return {one["group"]: one for one in as_maps(listed)}


def test_a_snoozed_message_is_delayed_and_keeps_attempt_and_failures(r, key):
    q = Manual(r, key, "RETRIES", 0)
    q.send("x", "ID", "a", "GROUP", "g", "SCORE", 7)
    m = q.one()
    assert q.nack(m.receipt, "SILENT", "DELAY", 100) == 1
    row = q.get("a")
    assert (row["state"], row["due-at"], row["attempt"], row["failures"]) == (b"delayed", 100, 0, 0)
    assert float(row["score"]) == 7
    q.advance(99)
    assert q.fetch() == []
    q.advance(1)
    again = q.one()
    assert (again.id, again.attempt) == (b"a", 1)
    assert q.ack(m.receipt) == 0
    assert q.info()["nacked"] == 1


def test_a_failed_message_that_is_snoozed_is_delayed_and_does_not_hold_its_group(r, key):
    q = Manual(r, key, "RETRIES", 9)
    for id in "abc":
        q.send(id, "ID", id, "GROUP", "g", "SCORE", ord(id))
    q.nack(q.one().receipt)
    m = q.one()
    assert (m.id, m.attempt) == (b"a", 2)
    q.nack(m.receipt, "SILENT", "DELAY", 50)
    row = q.get("a")
    assert (row["state"], row["attempt"], row["failures"]) == (b"delayed", 1, 1)
    b = q.one()
    assert b.id == b"b"
    q.ack(b.receipt)
    q.advance(50)
    # The message is due again at its score, before the later ones.
    assert [m.id for m in q.fetch()] == [b"a"]


def test_a_snooze_of_0_puts_the_message_back_in_its_place(r, key):
    q = Manual(r, key)
    for id in "ab":
        q.send(id, "ID", id)
    q.nack(q.one().receipt, "DELAY", 0, "SILENT")
    assert [m.id for m in q.fetch("COUNT", 2)] == [b"a", b"b"]


def test_the_ttl_of_a_snoozed_message_counts_on(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a", "TTL", 100)
    q.nack(q.one().receipt, "SILENT", "DELAY", 500)
    assert q.advance(99)["expired"] == 0
    assert q.advance(1)["expired"] == 1
    assert q.get("a")["reason"] == b"expired"


def test_a_snoozed_message_that_is_rescheduled_stays_delayed(r, key):
    q = Manual(r, key, "RETRIES", 9)
    q.send("x", "ID", "a")
    q.nack(q.one().receipt)
    q.nack(q.one().receipt, "SILENT", "DELAY", 50)
    assert q.do("RESCHEDULE", "a", "DELAY", 80) == 1
    assert q.state("a") == "delayed"


def test_a_snooze_brings_the_later_ones_of_its_batch_back(r, key):
    q = Manual(r, key)
    for id in "abc":
        q.send(id, "ID", id, "GROUP", "g")
    a, b, c = q.fetch("GROUP", "g", "COUNT", 3)
    assert q.nack(b.receipt, "SILENT", "DELAY", 100) == 1
    assert [q.state(id) for id in "abc"] == ["running", "delayed", "blocked"]
    assert q.get("c")["attempt"] == 0
    assert q.ack(c.receipt) == 0
    q.ack(a.receipt)
    assert [m.id for m in q.fetch("COUNT", 9)] == [b"c"]


def test_pause_group_pauses_the_group_in_the_same_step(r, key):
    q = Manual(r, key)
    for group in "ab":
        for n in range(2):
            q.send(f"{group}{n}", "GROUP", group)
    m = q.one()
    assert m.payload == b"a0"
    assert q.nack(m.receipt, "SILENT", "PAUSE", "GROUP", 30000) == 1
    assert groups(q)[b"a"]["state"] == b"paused"
    explained = as_map(q.do("EXPLAIN", m.id))
    assert (explained["code"], explained["until"]) == (b"group-paused", 30000)
    assert [m.payload for m in q.fetch("COUNT", 9, "PERGROUP", 9)] == [b"b0", b"b1"]
    q.advance(29999)
    assert q.fetch() == []
    q.advance(1)
    assert [m.payload for m in q.fetch("GROUP", "a", "COUNT", 9)] == [b"a0", b"a1"]


def test_pause_queue_pauses_the_queue(r, key):
    q = Manual(r, key)
    q.send("a")
    q.send("b")
    q.nack(q.one().receipt, "PAUSE", "QUEUE", 10)
    assert truth(q.info()["paused"]) is True
    q.advance(9)
    assert q.fetch() == []
    q.advance(1)
    assert len(q.fetch("COUNT", 2)) == 2


@pytest.mark.parametrize("scope", ["GROUP", "QUEUE"])
def test_a_pause_with_a_nack_never_shortens_one_that_is_on(r, key, scope):
    q = Manual(r, key, "GROUPCONCURRENCY", 9)
    q.do("MSEND", 3, *"abc", "GROUP", "g")
    a, b, c = (q.one().receipt for _ in range(3))
    q.nack(a, "SILENT", "PAUSE", scope, 100)
    q.nack(b, "SILENT", "PAUSE", scope, 10)
    q.advance(99)
    assert q.fetch() == []
    q.do("PAUSE", *(("GROUP", "g") if scope == "GROUP" else ()))
    q.nack(c, "SILENT", "PAUSE", scope, 10)
    q.advance(1000)
    assert q.fetch() == []
    q.do("RESUME", *(("GROUP", "g") if scope == "GROUP" else ()))
    assert len(q.fetch("COUNT", 3)) == 3


def test_resume_ends_a_pause_of_a_nack(r, key):
    q = Manual(r, key)
    q.send("x", "GROUP", "g")
    q.nack(q.one().receipt, "PAUSE", "GROUP", 1000)
    q.do("RESUME", "GROUP", "g")
    assert len(q.fetch()) == 1


def test_stale_receipts_pause_nothing(r, key):
    q = Manual(r, key)
    q.send("x", "GROUP", "g")
    m = q.one()
    q.ack(m.receipt)
    before = q.digest()
    assert q.nack(m.receipt, "PAUSE", "GROUP", 50) == 0
    assert q.nack(m.receipt, "PAUSE", "QUEUE", 50) == 0
    assert q.digest() == before
    assert groups(q) == {}


def test_pause_group_of_a_message_without_group_is_an_error_and_changes_nothing(r, key):
    q = Manual(r, key)
    q.send("a", "GROUP", "g")
    q.send("b")
    one, other = q.fetch("COUNT", 2)
    before = q.digest()
    assert "PAUSE" in q.fails("NACK", one.receipt, other.receipt, "PAUSE", "GROUP", 50)
    assert q.digest() == before
    assert q.nack(one.receipt, "PAUSE", "GROUP", 50) == 1


def test_a_group_stays_paused_though_its_last_message_was_rejected(r, key):
    q = Manual(r, key)
    q.send("x", "GROUP", "g")
    q.nack(q.one().receipt, "FATAL", "PAUSE", "GROUP", 50)
    assert groups(q)[b"g"]["state"] == b"paused"
    q.send("y", "GROUP", "g")
    assert q.fetch() == []
    q.advance(50)
    assert len(q.fetch()) == 1
