"""Batches: which messages of a group are delivered together, and which of them return together."""

import pytest

from tests.harness.scene import Scene
from tests.harness.server import wait_for

FOUR = ("a", "b", "c", "d")


def batch(r, key, *options):
    """A group of six messages, the first four of which are leased as one batch."""
    q = Scene(r, key, *options)
    q.fill("g", *FOUR, "e", "f")
    got = q.hold("GROUP", "g", "COUNT", 4)
    assert list(got) == list(FOUR)
    return q, [m.receipt for m in got.values()]


def running(q):
    return sorted(q.listed("running"))


def test_fetch_group_takes_up_to_count_in_order(r, key):
    q, receipts = batch(r, key)
    assert receipts == sorted(set(receipts))
    assert [q.row(id)["attempt"] for id in FOUR] == [1] * 4
    assert q.counts() == {"blocked": 2, "running": 4}


def test_a_batch_counts_as_one_against_groupconcurrency(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 2)
    q.fill("g", *"abcdefgh")
    assert q.take("GROUP", "g", "COUNT", 3) == ["a", "b", "c"]
    assert q.take("PERGROUP", 2, "COUNT", 10) == ["d", "e"]
    assert q.take("COUNT", 10) == []


def test_a_group_is_busy_until_its_whole_batch_has_ended(r, key):
    q, receipts = batch(r, key)
    for receipt in receipts[:3]:
        assert q.ack(receipt) == 1
        assert q.take() == []
    q.ack(receipts[3])
    assert q.take() == ["e"]


def test_a_nack_returns_the_later_messages_in_order_without_an_attempt(r, key):
    q, receipts = batch(r, key, "BACKOFF", "FIXED", 100)
    assert q.nack(receipts[1]) == 1
    assert running(q) == ["a"]
    assert q.row("b")["state"] == "retry"
    for id in "cd":
        row = q.row(id)
        assert (row["state"], row["attempt"], row["failures"]) == ("blocked", 0, 0)
    assert q.ack(receipts[2], receipts[3]) == 0
    assert q.touch(100, receipts[2]) == 0
    assert q.ack(receipts[0]) == 1
    assert q.take() == []
    q.advance(100)
    got = q.hold("GROUP", "g", "COUNT", 10)
    assert [(id, m.attempt) for id, m in got.items()] == [("b", 2), ("c", 1), ("d", 1), ("e", 1), ("f", 1)]


def test_a_silent_nack_returns_the_later_messages_without_a_failure(r, key):
    q, receipts = batch(r, key)
    assert q.nack(receipts[0], "SILENT") == 1
    assert running(q) == []
    got = q.hold("GROUP", "g", "COUNT", 10)
    assert [(id, m.attempt) for id, m in got.items()] == [(id, 1) for id in "abcdef"]
    assert all(q.row(id)["failures"] == 0 for id in got)


def test_a_fatal_nack_returns_the_later_messages(r, key):
    q, receipts = batch(r, key)
    assert q.nack(receipts[1], "FATAL") == 1
    assert running(q) == ["a"]
    assert q.row("b")["state"] == "dead"
    assert q.ack(receipts[0]) == 1
    assert q.take("GROUP", "g", "COUNT", 10) == ["c", "d", "e", "f"]


def test_a_lease_end_fails_only_the_first_message_of_a_batch(r, key):
    q, receipts = batch(r, key, "LEASE", 100)
    counts = q.advance(100)
    assert counts["timeouts"] == 1
    rows = {id: q.row(id) for id in FOUR}
    assert [rows[id]["timeouts"] for id in FOUR] == [1, 0, 0, 0]
    assert [rows[id]["attempt"] for id in FOUR] == [1, 0, 0, 0]
    assert q.ack(*receipts) == 0
    got = q.hold("GROUP", "g", "COUNT", 10)
    assert [(id, m.attempt) for id, m in got.items()][:4] == [("a", 2), ("b", 1), ("c", 1), ("d", 1)]


def test_a_lease_end_in_the_middle_of_a_batch_leaves_the_earlier_messages_running(r, key):
    q, receipts = batch(r, key, "LEASE", 100)
    q.touch(500, receipts[0])
    assert q.advance(100)["timeouts"] == 1
    assert running(q) == ["a"]
    assert [q.row(id)["timeouts"] for id in FOUR] == [0, 1, 0, 0]
    assert q.take() == []
    assert q.ack(receipts[0]) == 1
    assert q.take() == ["b"]


def test_a_shorter_lease_of_a_later_message_returns_only_what_follows_it(r, key):
    q = Scene(r, key, "LEASE", 1000)
    q.add("a", "GROUP", "g")
    q.add("b", "GROUP", "g", "LEASE", 50)
    q.add("c", "GROUP", "g")
    q.take("GROUP", "g", "COUNT", 3)
    q.advance(50)
    assert running(q) == ["a"]
    assert [q.row(id)["timeouts"] for id in "abc"] == [0, 1, 0]


def test_all_receipts_of_one_nack_fail_whatever_their_order(r, key):
    q, receipts = batch(r, key, "BACKOFF", "FIXED", 10)
    # The later receipt first: the order of the arguments does not matter.
    assert q.nack(receipts[2], receipts[1], "ERROR", "both") == 2
    assert running(q) == ["a"]
    assert [q.row(id)["failures"] for id in FOUR] == [0, 1, 1, 0]
    assert [q.row(id)["error"] for id in "bc"] == ["both", "both"]
    assert q.row("d")["attempt"] == 0


def test_a_receipt_named_twice_counts_once(r, key):
    q, receipts = batch(r, key)
    assert q.nack(receipts[3], receipts[3]) == 1
    assert q.ack(receipts[0], receipts[0]) == 1


def test_nack_does_not_count_the_messages_it_returns(r, key):
    q, receipts = batch(r, key)
    assert q.nack(receipts[0]) == 1
    assert q.nack(receipts[1], receipts[2]) == 0
    info = q.info()
    assert (info["nacked"], info["redelivered"], info["delivered"]) == (1, 0, 4)


def test_an_ack_leaves_the_other_messages_of_a_batch_running(r, key):
    q, receipts = batch(r, key)
    q.ack(receipts[1])
    assert running(q) == ["a", "c", "d"]


def test_cancel_leaves_the_other_messages_of_a_batch_running(r, key):
    q, receipts = batch(r, key)
    assert q.do("CANCEL", "a", "b") == [b"running", b"running"]
    assert running(q) == ["c", "d"]
    assert q.ack(*receipts) == 2


def test_a_nack_after_the_ack_of_an_earlier_message_returns_the_later_ones(r, key):
    q, receipts = batch(r, key)
    q.ack(receipts[0])
    q.nack(receipts[1])
    assert q.take("GROUP", "g", "COUNT", 10) == ["b", "c", "d", "e", "f"]


def test_a_returned_message_goes_behind_a_lower_score(r, key):
    q, receipts = batch(r, key)
    q.nack(receipts[0])
    q.add("early", "GROUP", "g", "SCORE", 1)
    # `a` failed and stays the head; `b` never failed, so its position follows from its score.
    assert q.take("GROUP", "g", "COUNT", 10) == ["a", "early", "b", "c", "d", "e", "f"]


def test_ungrouped_messages_form_no_batch(r, key):
    q = Scene(r, key, "BACKOFF", "FIXED", 100)
    for id in "abc":
        q.add(id)
    receipts = q.receipts("COUNT", 3)
    q.nack(receipts[0])
    assert running(q) == ["b", "c"]
    assert q.ack(receipts[1], receipts[2]) == 2


def test_leases_of_ungrouped_messages_end_one_by_one(r, key):
    q = Scene(r, key, "LEASE", 100)
    for id in "abc":
        q.add(id)
    q.take("COUNT", 3)
    assert q.advance(100)["timeouts"] == 3
    assert [q.row(id)["timeouts"] for id in "abc"] == [1, 1, 1]


def test_batches_of_different_groups_in_one_fetch_are_separate(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    q.fill("h", "x", "y")
    got = q.hold("COUNT", 4, "PERGROUP", 2)
    assert list(got) == ["a", "b", "x", "y"]
    q.nack(got["a"].receipt, "DELAY", 100)
    assert running(q) == ["x", "y"]


def test_two_turns_of_a_group_in_one_fetch_are_two_batches(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c", "d")
    got = q.hold("COUNT", 4, "PERGROUP", 2)
    assert list(got) == ["a", "b", "c", "d"]
    q.nack(got["a"].receipt, "DELAY", 100)
    assert running(q) == ["c", "d"]


def test_the_rest_of_a_batch_is_delivered_after_the_death_of_its_first_message(r, key):
    q, receipts = batch(r, key, "LEASE", 100, "RETRIES", 0)
    counts = q.advance(100)
    assert (counts["timeouts"], counts["dead"]) == (1, 1)
    assert q.row("a")["reason"] == "retries"
    assert q.take("GROUP", "g", "COUNT", 10) == ["b", "c", "d", "e", "f"]


def test_a_returned_message_past_its_ttl_is_dead_at_once(r, key):
    q = Scene(r, key)
    q.add("a", "GROUP", "g")
    q.add("b", "GROUP", "g", "TTL", 50)
    q.add("c", "GROUP", "g")
    got = q.hold("GROUP", "g", "COUNT", 3)
    q.advance(60)
    assert q.row("b")["state"] == "running"
    q.nack(got["a"].receipt)
    assert (q.row("b")["state"], q.row("b")["reason"]) == ("dead", "expired")
    assert q.take("GROUP", "g", "COUNT", 3) == ["a", "c"]


@pytest.mark.parametrize("back", ["FATAL", "SILENT"])
def test_a_nack_of_the_last_message_of_a_batch_returns_no_other(r, key, back):
    q, receipts = batch(r, key)
    assert q.nack(receipts[3], back) == 1
    assert running(q) == ["a", "b", "c"]
    assert q.ack(*receipts[:3]) == 3


def test_a_bound_batch_ends_when_its_connection_closes(server, key):
    r = server.client()
    q = Scene(r, key)
    q.fill("g", *FOUR)
    other = server.client()
    Scene.over(other, key).take("GROUP", "g", "COUNT", 3, "BIND")
    assert q.counts() == {"blocked": 1, "running": 3}
    other.close()
    wait_for(lambda: q.len("running") == 0, 5, "the end of the bound leases")
    assert [q.row(id)["timeouts"] for id in FOUR] == [1, 0, 0, 0]
    assert q.take("GROUP", "g", "COUNT", 10) == list(FOUR)
