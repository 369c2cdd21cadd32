"""ONDEAD: whether a group goes on when a message of it dies, and what lets it go on."""

import pytest

from tests.harness.scene import Scene


def killed(r, key, *options):
    """A group of ONDEAD BLOCK whose first message was rejected; b and c are due behind it."""
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


def test_block_holds_the_group(r, key):
    q = killed(r, key)
    q.fill("h", "x")
    assert q.counts() == {"ready": 1, "blocked": 2, "dead": 1}
    assert q.take("COUNT", 10) == ["x"]
    q.advance(10**9)
    assert q.take("GROUP", "g") == []
    assert q.take("NOACK", "GROUP", "g") == []


def test_it_holds_what_is_sent_later(r, key):
    q = killed(r, key)
    q.add("urgent", "GROUP", "g", "PRIORITY", -128, "SCORE", 0)
    assert q.row("urgent")["state"] == "blocked"
    assert q.take() == []


def test_resume_group_releases(r, key):
    q = killed(r, key)
    assert q.do("RESUME", "GROUP", "g") in (b"OK", True)
    assert q.row("a")["state"] == "dead"
    assert q.counts() == {"ready": 2, "dead": 1}
    assert q.drain() == ["b", "c"]


def test_resume_of_the_queue_does_not(r, key):
    q = killed(r, key)
    q.do("RESUME")
    assert q.take() == []


def test_another_death_holds_again(r, key):
    q = killed(r, key)
    q.do("RESUME", "GROUP", "g")
    q.nack(q.one().receipt, "FATAL")
    assert q.take() == []
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["c"]


def test_redrive_releases_and_puts_it_first(r, key):
    q = killed(r, key)
    assert q.do("REDRIVE", "ALL") == 1
    assert q.drain() == ["a", "b", "c"]


def test_cancel_releases(r, key):
    q = killed(r, key)
    assert q.do("CANCEL", "a") == [b"dead"]
    assert q.drain() == ["b", "c"]


@pytest.mark.parametrize("options", [("STATE", "dead"), ("STATE", "dead", "GROUP", "g")])
def test_purge_releases(r, key, options):
    q = killed(r, key)
    assert q.do("PURGE", *options) == 1
    assert q.drain() == ["b", "c"]


def test_purge_of_other_states_does_not(r, key):
    q = killed(r, key)
    assert q.do("PURGE", "STATE", "blocked") == 2
    q.fill("g", "d")
    assert q.take() == []


def test_a_pruned_dead_one_goes_on_holding(r, key):
    q = killed(r, key, "DEADRETAIN", 100)
    assert q.advance(100)["pruned"] == 1
    assert q.row("a") is None
    assert q.take() == []
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["b"]


def test_a_dead_one_pruned_by_count_goes_on_holding(r, key):
    q = killed(r, key, "DEADCOUNT", 1)
    q.fill("h", "x")
    q.nack(q.one("GROUP", "h").receipt, "FATAL")
    assert q.row("a") is None
    assert q.take("COUNT", 10) == []
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["b"]


def test_every_way_to_die_holds(r, key):
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


def test_of_two_dead_ones_each_holds(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK", "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 2)
    q.nack(*[m.receipt for m in got.values()], "FATAL")
    assert q.do("CANCEL", "a") == [b"dead"]
    assert q.take() == []
    assert q.do("CANCEL", "b") == [b"dead"]
    assert q.take() == ["c"]


def test_resume_group_forgets_all_its_dead_ones(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK", "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 2)
    q.nack(*[m.receipt for m in got.values()], "FATAL")
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["c"]


def test_a_running_one_may_still_end(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK", "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 2)
    q.nack(got["a"].receipt, "FATAL")
    assert q.touch(100, got["b"].receipt) == 1
    assert q.ack(got["b"].receipt) == 1
    assert q.take() == []


def test_an_ungrouped_death_holds_nothing(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK")
    q.add("a")
    q.add("b")
    q.nack(q.one().receipt, "FATAL")
    assert q.take() == ["b"]


def test_resume_ends_both_a_pause_and_a_hold(r, key):
    q = killed(r, key)
    q.do("PAUSE", "GROUP", "g")
    assert q.code("b") == "group-paused"
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["b"]


def test_the_end_of_a_pause_leaves_the_hold(r, key):
    q = killed(r, key)
    q.do("PAUSE", "GROUP", "g", "FOR", 10)
    q.advance(10)
    assert q.take() == []
    assert q.code("b") == "behind-head"


def test_a_held_group_without_messages_is_listed(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK")
    q.fill("g", "a")
    q.nack(q.one().receipt, "FATAL")
    group = q.groups()["g"]
    assert (group["state"], group["waiting"], group["running"]) == ("blocked", 0, 0)
    q.do("RESUME", "GROUP", "g")
    assert q.groups() == {}


def test_a_hold_survives_a_reload(r, key):
    q = killed(r, key, "DEADRETAIN", 100)
    q.advance(100)
    r.execute_command("DEBUG", "RELOAD")
    assert q.take() == []
    q.do("RESUME", "GROUP", "g")
    assert q.drain() == ["b", "c"]


def held_by_many(r, key, *options):
    """A group that thousands of dead messages hold."""
    q = Scene(r, key, "ONDEAD", "BLOCK", *options)
    q.do("MSEND", 5000, *["x"] * 5000, "GROUP", "g", "TTL", 1)
    q.advance(1)
    q.fill("g", "next")
    assert q.take() == []
    return q


@pytest.mark.parametrize(
    "end", [["PURGE", "STATE", "dead"], ["PURGE", "STATE", "dead", "GROUP", "g"], ["RESUME", "GROUP", "g"]], ids=" ".join
)
def test_what_lets_go_of_a_group_lets_go_of_all_that_holds_it(r, key, end):
    q = held_by_many(r, key)
    r.restore(key + b":copy", 0, r.dump(key))
    for each in (q, Scene.over(r, key + b":copy")):
        assert each.do(*end) in (5000, b"OK", True)
        r.restore(each.key + b":after", 0, r.dump(each.key))
        assert each.take() == Scene.over(r, each.key + b":after").take() == ["next"]


def test_a_group_goes_on_when_all_of_it_is_purged(r, key):
    q = held_by_many(r, key, "DEADCOUNT", 3000)
    assert q.do("PURGE", "GROUP", "g") == 3001
    q.fill("g", "later")
    assert q.take() == ["later"]


def test_one_that_was_pruned_holds_on_when_the_dead_are_purged(r, key):
    q = held_by_many(r, key, "DEADCOUNT", 3000)
    assert q.do("PURGE", "GROUP", "g", "STATE", "dead") == 3000
    assert q.take() == []
    assert q.code("next") == "behind-head"
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["next"]
