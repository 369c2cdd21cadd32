"""ONDEAD BLOCK: a dead message blocks its group, and the commands that release the group again."""

import pytest

from tests.harness.scene import Scene


def with_dead_head(r, key, *options):
    """A queue with ONDEAD BLOCK and a group whose first message was rejected; b and c are due behind it."""
    q = Scene(r, key, "ONDEAD", "BLOCK", *options)
    q.fill("g", "a", "b", "c")
    assert q.nack(q.one().receipt, "FATAL", "ERROR", "broken") == 1
    assert q.row("a")["state"] == "dead"
    return q


def test_continue_is_the_default(r, key):
    q = Scene(r, key)
    assert q.info()["ondead"] == b"CONTINUE"
    q.fill("g", "a", "b")
    q.nack(q.one().receipt, "FATAL")
    assert q.take() == ["b"]


def test_block_stops_the_group(r, key):
    q = with_dead_head(r, key)
    q.fill("h", "x")
    assert q.counts() == {"ready": 1, "blocked": 2, "dead": 1}
    assert q.take("COUNT", 10) == ["x"]
    q.advance(10**9)
    assert q.take("GROUP", "g") == []
    assert q.take("NOACK", "GROUP", "g") == []


def test_a_blocked_group_does_not_deliver_what_is_sent_later(r, key):
    q = with_dead_head(r, key)
    q.add("urgent", "GROUP", "g", "PRIORITY", -128, "SCORE", 0)
    assert q.row("urgent")["state"] == "blocked"
    assert q.take() == []


def test_resume_of_the_group_releases_it(r, key):
    q = with_dead_head(r, key)
    assert q.do("RESUME", "GROUP", "g") in (b"OK", True)
    assert q.row("a")["state"] == "dead"
    assert q.counts() == {"ready": 2, "dead": 1}
    assert q.drain() == ["b", "c"]


def test_resume_of_the_queue_does_not_release_the_group(r, key):
    q = with_dead_head(r, key)
    q.do("RESUME")
    assert q.take() == []


def test_another_death_blocks_the_group_again(r, key):
    q = with_dead_head(r, key)
    q.do("RESUME", "GROUP", "g")
    q.nack(q.one().receipt, "FATAL")
    assert q.take() == []
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["c"]


def test_redrive_releases_the_group_and_delivers_the_message_first(r, key):
    q = with_dead_head(r, key)
    assert q.do("REDRIVE", "ALL") == 1
    assert q.drain() == ["a", "b", "c"]


def test_cancel_of_the_dead_message_releases_the_group(r, key):
    q = with_dead_head(r, key)
    assert q.do("CANCEL", "a") == [b"dead"]
    assert q.drain() == ["b", "c"]


@pytest.mark.parametrize("options", [("STATE", "dead"), ("STATE", "dead", "GROUP", "g")])
def test_purge_of_the_dead_message_releases_the_group(r, key, options):
    q = with_dead_head(r, key)
    assert q.do("PURGE", *options) == 1
    assert q.drain() == ["b", "c"]


def test_purge_of_other_states_does_not_release_the_group(r, key):
    q = with_dead_head(r, key)
    assert q.do("PURGE", "STATE", "blocked") == 2
    q.fill("g", "d")
    assert q.take() == []


def test_a_dead_message_pruned_by_age_still_blocks_its_group(r, key):
    q = with_dead_head(r, key, "DEADRETAIN", 100)
    assert q.advance(100)["pruned"] == 1
    assert q.row("a") is None
    assert q.take() == []
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["b"]


def test_a_dead_message_pruned_by_count_still_blocks_its_group(r, key):
    q = with_dead_head(r, key, "DEADCOUNT", 1)
    q.fill("h", "x")
    q.nack(q.one("GROUP", "h").receipt, "FATAL")
    assert q.row("a") is None
    assert q.take("COUNT", 10) == []
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["b"]


def test_every_kind_of_death_blocks_the_group(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK", "RETRIES", 0, "LEASE", 50)
    q.fill("nacked", "n1", "n2")
    q.nack(q.one("GROUP", "nacked").receipt)
    q.fill("lost", "l1", "l2")
    q.one("GROUP", "lost")
    q.add("e1", "GROUP", "expired", "TTL", 10)
    q.add("e2", "GROUP", "expired")
    counts = q.advance(50)
    assert (counts["timeouts"], counts["dead"], counts["expired"]) == (1, 1, 1)
    assert q.counts() == {"blocked": 3, "dead": 3}
    assert q.take("COUNT", 10) == []
    for group, id in (("nacked", "n2"), ("lost", "l2"), ("expired", "e2")):
        q.do("RESUME", "GROUP", group)
        assert q.take() == [id]


def test_each_of_two_dead_messages_blocks_the_group(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK", "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 2)
    q.nack(*[m.receipt for m in got.values()], "FATAL")
    assert q.do("CANCEL", "a") == [b"dead"]
    assert q.take() == []
    assert q.do("CANCEL", "b") == [b"dead"]
    assert q.take() == ["c"]


def test_resume_releases_a_group_from_all_its_dead_messages(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK", "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 2)
    q.nack(*[m.receipt for m in got.values()], "FATAL")
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["c"]


def test_a_running_message_of_a_blocked_group_can_be_acked(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK", "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 2)
    q.nack(got["a"].receipt, "FATAL")
    assert q.touch(100, got["b"].receipt) == 1
    assert q.ack(got["b"].receipt) == 1
    assert q.take() == []


def test_the_death_of_an_ungrouped_message_blocks_nothing(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK")
    q.add("a")
    q.add("b")
    q.nack(q.one().receipt, "FATAL")
    assert q.take() == ["b"]


def test_resume_ends_both_the_pause_and_the_block_of_a_group(r, key):
    q = with_dead_head(r, key)
    q.do("PAUSE", "GROUP", "g")
    assert q.code("b") == "group-paused"
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["b"]


def test_the_end_of_a_pause_does_not_release_a_blocked_group(r, key):
    q = with_dead_head(r, key)
    q.do("PAUSE", "GROUP", "g", "FOR", 10)
    q.advance(10)
    assert q.take() == []
    assert q.code("b") == "behind-head"


def test_a_blocked_group_without_messages_is_listed(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK")
    q.fill("g", "a")
    q.nack(q.one().receipt, "FATAL")
    group = q.groups()["g"]
    assert (group["state"], group["waiting"], group["running"]) == ("blocked", 0, 0)
    q.do("RESUME", "GROUP", "g")
    assert q.groups() == {}


def blocked_by_many(r, key, *options):
    """A group that is blocked by thousands of dead messages."""
    q = Scene(r, key, "ONDEAD", "BLOCK", *options)
    q.do("MSEND", 5000, *["x"] * 5000, "GROUP", "g", "TTL", 1)
    q.advance(1)
    q.fill("g", "next")
    assert q.take() == []
    return q


@pytest.mark.parametrize(
    "end", [["PURGE", "STATE", "dead"], ["PURGE", "STATE", "dead", "GROUP", "g"], ["RESUME", "GROUP", "g"]], ids=" ".join
)
def test_a_group_blocked_by_thousands_is_released_at_once(r, key, end):
    q = blocked_by_many(r, key)
    r.restore(key + b":copy", 0, r.dump(key))
    for each in (q, Scene.over(r, key + b":copy")):
        assert each.do(*end) in (5000, b"OK", True)
        r.restore(each.key + b":after", 0, r.dump(each.key))
        assert each.take() == Scene.over(r, each.key + b":after").take() == ["next"]


def test_purge_of_the_whole_group_releases_it(r, key):
    q = blocked_by_many(r, key, "DEADCOUNT", 3000)
    assert q.do("PURGE", "GROUP", "g") == 3001
    q.fill("g", "later")
    assert q.take() == ["later"]


def test_purge_of_dead_messages_does_not_release_from_pruned_ones(r, key):
    q = blocked_by_many(r, key, "DEADCOUNT", 3000)
    assert q.do("PURGE", "GROUP", "g", "STATE", "dead") == 3000
    assert q.take() == []
    assert q.code("next") == "behind-head"
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["next"]
