"""Failed heads: what a group does while a message of it waits for another try."""

import pytest

from tests.harness.scene import START, Scene


def failed(r, key, *options, delay=100):
    """A group whose head `a` failed and waits; b and c are due behind it."""
    q = Scene(r, key, *options)
    q.fill("g", "a", "b", "c")
    assert q.nack(q.one().receipt, "DELAY", delay) == 1
    assert q.row("a")["state"] == "retry"
    return q


def test_block_is_the_default_and_holds_the_group(r, key):
    q = failed(r, key)
    assert q.info()["onretry"] == b"BLOCK"
    assert q.take("COUNT", 10) == []
    assert q.counts() == {"retry": 1, "blocked": 2}
    q.advance(99)
    assert q.take("COUNT", 10) == []
    assert q.advance(1)["due"] == 1
    assert q.counts() == {"ready": 3}
    assert q.drain() == ["a", "b", "c"]


def test_another_group_goes_on(r, key):
    q = failed(r, key)
    q.fill("h", "x")
    q.add("u")
    assert sorted(q.take("COUNT", 10)) == ["u", "x"]


def test_skip_goes_on_without_it(r, key):
    q = failed(r, key, "ONRETRY", "SKIP")
    assert q.counts() == {"retry": 1, "ready": 2}
    got = q.one()
    assert got.id == b"b"
    q.advance(100)
    # Due again while the group is busy.
    assert q.row("a")["state"] == "blocked"
    q.ack(got.receipt)
    assert q.drain() == ["a", "c"]


def test_skip_gives_it_its_ordinary_place(r, key):
    q = failed(r, key, "ONRETRY", "SKIP")
    q.add("early", "GROUP", "g", "SCORE", 1, "DELAY", 100)
    q.advance(100)
    assert q.drain() == ["early", "a", "b", "c"]


def test_it_stays_the_head_whatever_comes_in(r, key):
    q = failed(r, key)
    q.add("score", "GROUP", "g", "SCORE", 1)
    q.add("urgent", "GROUP", "g", "PRIORITY", -100)
    assert q.take("COUNT", 10) == []
    q.advance(100)
    assert q.drain() == ["a", "urgent", "score", "b", "c"]


def test_it_stays_the_head_without_any_backoff(r, key):
    q = failed(r, key, delay=1)
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


def test_a_lease_timeout_is_a_failure_without_wait(r, key):
    q = Scene(r, key, "LEASE", 50, "BACKOFF", "FIXED", 1000)
    q.fill("g", "a", "b")
    q.take()
    q.add("urgent", "GROUP", "g", "PRIORITY", -9)
    q.advance(50)
    assert q.row("a")["state"] == "ready"
    assert q.drain() == ["a", "urgent", "b"]


def test_the_line_knows_a_failed_head_by_its_own_priority(r, key):
    q = Scene(r, key)
    q.add("a", "GROUP", "g", "PRIORITY", 5)
    q.nack(q.one().receipt)
    q.add("urgent", "GROUP", "g", "PRIORITY", -9)
    q.fill("h", "x")
    # What the group would give is `a`, of priority 5, so the other line goes first.
    assert q.take("COUNT", 10) == ["x", "a"]


def test_silent_nack_is_no_failure(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    q.nack(q.one().receipt, "SILENT")
    q.add("urgent", "GROUP", "g", "PRIORITY", -9)
    assert q.drain() == ["urgent", "a", "b"]


def test_cancel_releases(r, key):
    q = failed(r, key)
    assert q.do("CANCEL", "a") == [b"retry"]
    assert q.drain() == ["b", "c"]


def test_purge_releases(r, key):
    q = failed(r, key)
    assert q.do("PURGE", "STATE", "retry", "GROUP", "g") == 1
    assert q.drain() == ["b", "c"]


def test_death_releases(r, key):
    q = failed(r, key, "RETRIES", 1)
    q.advance(100)
    assert q.nack(q.one().receipt) == 1
    assert q.row("a")["state"] == "dead"
    assert q.drain() == ["b", "c"]


def test_expiry_in_backoff_releases(r, key):
    q = Scene(r, key, "TTL", 50)
    q.add("a", "GROUP", "g")
    q.nack(q.one().receipt, "DELAY", 1000)
    q.add("b", "GROUP", "g", "TTL", 5000)
    assert q.take() == []
    assert q.advance(50)["expired"] == 1
    assert q.take() == ["b"]


def test_replace_releases(r, key):
    q = failed(r, key)
    assert q.add("a", "REPLACE", "GROUP", "g") == "a"
    row = q.row("a")
    assert (row["state"], row["failures"], row["attempt"]) == ("ready", 0, 0)
    # As newly sent: behind b and c now.
    assert q.drain() == ["b", "c", "a"]


def test_replace_can_move_it_to_another_group(r, key):
    q = failed(r, key)
    assert q.add("a", "REPLACE", "GROUP", "h", "DELAY", 10) == "a"
    assert q.take("GROUP", "g", "COUNT", 10) == ["b", "c"]
    assert q.row("a")["group"] == "h"


def test_delivered_again_lets_the_others_go_beside_it(r, key):
    q = failed(r, key, "GROUPCONCURRENCY", 2)
    assert q.take("COUNT", 10) == []
    q.advance(100)
    assert q.take("COUNT", 10) == ["a", "b"]


def test_reschedule_of_a_failed_one_only_moves_its_time(r, key):
    q = failed(r, key)
    assert q.do("RESCHEDULE", "a", "DELAY", 500) == 1
    row = q.row("a")
    assert (row["state"], row["failures"], row["due-at"]) == ("retry", 1, START + 500)
    q.advance(499)
    assert q.take("COUNT", 10) == []
    q.advance(1)
    assert q.drain() == ["a", "b", "c"]


def test_reschedule_to_now_makes_it_due_at_once(r, key):
    q = failed(r, key)
    assert q.do("RESCHEDULE", "a", "DELAY", 0) == 1
    assert q.drain() == ["a", "b", "c"]


def two_failed(r, key):
    """Both leased at once, both failed: a for 100 ms, b for 10 ms; c is due."""
    q = Scene(r, key, "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 2)
    q.nack(got["a"].receipt, "DELAY", 100)
    q.nack(got["b"].receipt, "DELAY", 10)
    return q


def test_none_of_several_failed_goes_out_while_another_is_in_retry(r, key):
    q = two_failed(r, key)
    q.advance(10)
    assert q.row("b")["state"] == "blocked"
    assert q.take("COUNT", 10) == []
    q.advance(90)
    assert q.take("COUNT", 10) == ["a", "b"]


def test_several_failed_go_in_the_groups_order_before_all_others(r, key):
    q = two_failed(r, key)
    q.add("early", "GROUP", "g", "SCORE", 1)
    q.advance(100)
    assert q.drain("COUNT", 1) == ["a", "b", "early", "c"]


def test_a_running_one_stays_when_another_fails(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 2)
    q.nack(got["a"].receipt, "DELAY", 100)
    assert q.take() == []
    assert q.ack(got["b"].receipt) == 1
    assert q.take() == []
    q.advance(100)
    assert q.drain() == ["a", "c"]


def test_noack_takes_nothing_from_a_held_group(r, key):
    q = failed(r, key)
    assert q.take("NOACK", "COUNT", 10) == []
    q.advance(100)
    assert q.take("NOACK", "COUNT", 10) == ["a", "b", "c"]


def test_alter_onretry_holds_at_once(r, key):
    q = failed(r, key)
    q.do("ALTER", "ONRETRY", "SKIP")
    assert q.counts() == {"retry": 1, "ready": 2}
    q.do("ALTER", "ONRETRY", "BLOCK")
    assert q.counts() == {"retry": 1, "blocked": 2}


def test_skip_calls_a_group_of_nothing_but_failed_messages_waiting(r, key):
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
def test_backoff_holds_the_group_for_its_time(r, key, kind, waits):
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
