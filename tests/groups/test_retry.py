"""ONRETRY: the deliveries of a group while its failed message waits for another attempt."""

import pytest

from tests.harness.scene import START, Scene


def with_failed_head(r, key, *options, delay=100):
    """A group whose head `a` failed and waits; b and c are due behind it."""
    q = Scene(r, key, *options)
    q.fill("g", "a", "b", "c")
    assert q.nack(q.one().receipt, "DELAY", delay) == 1
    assert q.row("a")["state"] == "retry"
    return q


def test_block_is_the_default_and_stops_the_group(r, key):
    q = with_failed_head(r, key)
    assert q.info()["onretry"] == b"BLOCK"
    assert q.take("COUNT", 10) == []
    assert q.counts() == {"retry": 1, "blocked": 2}
    q.advance(99)
    assert q.take("COUNT", 10) == []
    assert q.advance(1)["due"] == 1
    assert q.counts() == {"ready": 3}
    assert q.drain() == ["a", "b", "c"]


def test_other_groups_are_delivered_meanwhile(r, key):
    q = with_failed_head(r, key)
    q.fill("h", "x")
    q.add("u")
    assert sorted(q.take("COUNT", 10)) == ["u", "x"]


def test_skip_delivers_the_others_meanwhile(r, key):
    q = with_failed_head(r, key, "ONRETRY", "SKIP")
    assert q.counts() == {"retry": 1, "ready": 2}
    got = q.one()
    assert got.id == b"b"
    q.advance(100)
    # Due again while the group is busy.
    assert q.row("a")["state"] == "blocked"
    q.ack(got.receipt)
    assert q.drain() == ["a", "c"]


def test_skip_gives_the_failed_message_its_ordinary_position(r, key):
    q = with_failed_head(r, key, "ONRETRY", "SKIP")
    q.add("early", "GROUP", "g", "SCORE", 1, "DELAY", 100)
    q.advance(100)
    assert q.drain() == ["early", "a", "b", "c"]


def test_a_failed_message_stays_the_head_of_its_group(r, key):
    q = with_failed_head(r, key)
    q.add("score", "GROUP", "g", "SCORE", 1)
    q.add("urgent", "GROUP", "g", "PRIORITY", -100)
    assert q.take("COUNT", 10) == []
    q.advance(100)
    assert q.drain() == ["a", "urgent", "score", "b", "c"]


def test_a_failed_message_stays_the_head_without_backoff(r, key):
    q = with_failed_head(r, key, delay=1)
    q.advance(1)
    assert q.row("a")["state"] == "ready"
    q.add("score", "GROUP", "g", "SCORE", 1)
    assert q.take() == ["a"]
    q2 = Scene(r, key + b":0")
    q2.fill("g", "a", "b")
    q2.nack(q2.one().receipt)
    assert q2.row("a")["state"] == "ready"
    q2.add("urgent", "GROUP", "g", "PRIORITY", -9)
    assert q2.drain() == ["a", "urgent", "b"]


def test_a_timed_out_message_stays_the_head_without_backoff(r, key):
    q = Scene(r, key, "LEASE", 50, "BACKOFF", "FIXED", 1000)
    q.fill("g", "a", "b")
    q.take()
    q.add("urgent", "GROUP", "g", "PRIORITY", -9)
    q.advance(50)
    assert q.row("a")["state"] == "ready"
    assert q.drain() == ["a", "urgent", "b"]


def test_a_group_is_in_line_by_the_priority_of_its_failed_head(r, key):
    q = Scene(r, key)
    q.add("a", "GROUP", "g", "PRIORITY", 5)
    q.nack(q.one().receipt)
    q.add("urgent", "GROUP", "g", "PRIORITY", -9)
    q.fill("h", "x")
    # The next message of the group is `a` with priority 5, so the other group goes first.
    assert q.take("COUNT", 10) == ["x", "a"]


def test_a_silent_nack_is_no_failure(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    q.nack(q.one().receipt, "SILENT")
    q.add("urgent", "GROUP", "g", "PRIORITY", -9)
    assert q.drain() == ["urgent", "a", "b"]


def test_cancel_of_the_failed_message_releases_the_group(r, key):
    q = with_failed_head(r, key)
    assert q.do("CANCEL", "a") == [b"retry"]
    assert q.drain() == ["b", "c"]


def test_purge_of_the_failed_message_releases_the_group(r, key):
    q = with_failed_head(r, key)
    assert q.do("PURGE", "STATE", "retry", "GROUP", "g") == 1
    assert q.drain() == ["b", "c"]


def test_the_death_of_the_failed_message_releases_the_group(r, key):
    q = with_failed_head(r, key, "RETRIES", 1)
    q.advance(100)
    assert q.nack(q.one().receipt) == 1
    assert q.row("a")["state"] == "dead"
    assert q.drain() == ["b", "c"]


def test_the_expiry_of_the_failed_message_releases_the_group(r, key):
    q = Scene(r, key, "TTL", 50)
    q.add("a", "GROUP", "g")
    q.nack(q.one().receipt, "DELAY", 1000)
    q.add("b", "GROUP", "g", "TTL", 5000)
    assert q.take() == []
    assert q.advance(50)["expired"] == 1
    assert q.take() == ["b"]


def test_replace_of_the_failed_message_releases_the_group(r, key):
    q = with_failed_head(r, key)
    assert q.add("a", "REPLACE", "GROUP", "g") == "a"
    row = q.row("a")
    assert (row["state"], row["failures"], row["attempt"]) == ("ready", 0, 0)
    # The message counts as newly sent, so it is behind b and c.
    assert q.drain() == ["b", "c", "a"]


def test_replace_can_move_the_failed_message_to_another_group(r, key):
    q = with_failed_head(r, key)
    assert q.add("a", "REPLACE", "GROUP", "h", "DELAY", 10) == "a"
    assert q.take("GROUP", "g", "COUNT", 10) == ["b", "c"]
    assert q.row("a")["group"] == "h"


def test_the_others_are_delivered_beside_the_head_once_it_runs_again(r, key):
    q = with_failed_head(r, key, "GROUPCONCURRENCY", 2)
    assert q.take("COUNT", 10) == []
    q.advance(100)
    assert q.take("COUNT", 10) == ["a", "b"]


def test_reschedule_of_a_failed_message_moves_only_its_due_time(r, key):
    q = with_failed_head(r, key)
    assert q.do("RESCHEDULE", "a", "DELAY", 500) == 1
    row = q.row("a")
    assert (row["state"], row["failures"], row["due-at"]) == ("retry", 1, START + 500)
    q.advance(499)
    assert q.take("COUNT", 10) == []
    q.advance(1)
    assert q.drain() == ["a", "b", "c"]


def test_reschedule_to_now_makes_a_failed_message_due_at_once(r, key):
    q = with_failed_head(r, key)
    assert q.do("RESCHEDULE", "a", "DELAY", 0) == 1
    assert q.drain() == ["a", "b", "c"]


def two_failed(r, key):
    """A group whose messages a and b have failed, with backoffs of 100 ms and 10 ms; c is due."""
    q = Scene(r, key, "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 2)
    q.nack(got["a"].receipt, "DELAY", 100)
    q.nack(got["b"].receipt, "DELAY", 10)
    return q


def test_no_failed_message_is_delivered_while_another_is_in_backoff(r, key):
    q = two_failed(r, key)
    q.advance(10)
    assert q.row("b")["state"] == "blocked"
    assert q.take("COUNT", 10) == []
    q.advance(90)
    assert q.take("COUNT", 10) == ["a", "b"]


def test_failed_messages_are_delivered_first_in_the_order_of_the_group(r, key):
    q = two_failed(r, key)
    q.add("early", "GROUP", "g", "SCORE", 1)
    q.advance(100)
    assert q.drain("COUNT", 1) == ["a", "b", "early", "c"]


def test_a_running_message_stays_running_when_another_fails(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 2)
    q.nack(got["a"].receipt, "DELAY", 100)
    assert q.take() == []
    assert q.ack(got["b"].receipt) == 1
    assert q.take() == []
    q.advance(100)
    assert q.drain() == ["a", "c"]


def test_alone_brings_back_only_what_failed_and_keeps_the_order(r, key):
    q = Scene(r, key, "ONRETRY", "ALONE")
    q.fill("g", "a", "b", "c", "d")
    got = q.hold("COUNT", 3, "PERGROUP", 3)
    assert q.nack(got["a"].receipt, got["c"].receipt) == 2
    assert q.row("b")["state"] == "running"
    # c is behind b, which is leased, and d was not delivered before.
    again = q.hold("COUNT", 9, "PERGROUP", 9)
    assert list(again) == ["a"]
    assert q.ack(got["b"].receipt) == 1
    assert q.take("COUNT", 9) == []
    assert q.ack(again["a"].receipt) == 1
    assert q.take("COUNT", 9, "PERGROUP", 9) == ["c", "d"]


def test_alone_takes_a_hundred_of_a_group_at_most(r, key):
    q = Scene(r, key, "ONRETRY", "ALONE")
    q.fill("g", *map(str, range(101)))
    assert len(q.take("COUNT", 200, "PERGROUP", 200)) == 100


def test_noack_takes_nothing_from_a_blocked_group(r, key):
    q = with_failed_head(r, key)
    assert q.take("NOACK", "COUNT", 10) == []
    q.advance(100)
    assert q.take("NOACK", "COUNT", 10) == ["a", "b", "c"]


def test_alter_of_onretry_applies_at_once(r, key):
    q = with_failed_head(r, key)
    q.do("ALTER", "ONRETRY", "SKIP")
    assert q.counts() == {"retry": 1, "ready": 2}
    q.do("ALTER", "ONRETRY", "BLOCK")
    assert q.counts() == {"retry": 1, "blocked": 2}


def test_with_skip_a_group_of_failed_messages_only_is_waiting(r, key):
    q = Scene(r, key, "ONRETRY", "SKIP")
    q.fill("g", "a", "b")
    q.add("later", "GROUP", "delayed", "DELAY", 100)
    assert q.nack(*q.receipts("GROUP", "g", "COUNT", 2), "DELAY", 100) == 2
    states = {name: group["state"] for name, group in q.groups().items()}
    assert states == {"g": "waiting", "delayed": "waiting"}
    assert q.groups("STATE", "blocked") == {}
    q.do("ALTER", "ONRETRY", "BLOCK")
    assert q.groups()["g"]["state"] == "blocked"
    q.do("ALTER", "ONRETRY", "SKIP")
    q.advance(100)
    assert q.groups()["g"]["state"] == "ready"


@pytest.mark.parametrize("kind,waits", [("FIXED", [70, 70, 70]), ("LINEAR", [70, 140, 210]), ("EXP", [70, 140, 280])])
def test_the_backoff_of_the_head_blocks_the_group(r, key, kind, waits):
    q = Scene(r, key, "BACKOFF", kind, 70, "RETRIES", 3)
    q.fill("g", "a", "b")
    for wait in waits:
        got = q.one()
        assert got.id == b"a"
        q.nack(got.receipt)
        q.advance(wait - 1)
        assert q.take() == []
        q.advance(1)
    q.nack(q.one().receipt)
    assert q.row("a")["reason"] == "retries"
    assert q.take() == ["b"]
