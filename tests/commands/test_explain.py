"""DQ.EXPLAIN: a message for every code, the values of `until` and `by`, and the choice among several reasons."""

import random

import pytest

from tests.harness.scene import START, Scene

FIELDS = {"code", "why", "until", "by"}


def explained(q, id):
    """(code, until, by), after checking the shape of the answer."""
    answer = q.explain(id)
    assert set(answer) == FIELDS
    why = answer["why"]
    assert isinstance(why, str) and len(why) > 10 and "\n" not in why and " " in why, why
    return answer["code"], answer["until"], answer["by"]


def test_an_unknown_id_is_null(r, key):
    assert r.execute_command("DQ.EXPLAIN", key, "x") is None
    assert r.exists(key) == 0
    q = Scene(r, key)
    assert q.explain("x") is None


def test_a_delayed_message_is_due_later(r, key):
    q = Scene(r, key)
    q.add("a", "DELAY", 50)
    assert explained(q, "a") == ("due-later", START + 50, None)
    q.add("b", "GROUP", "g", "DELAY", 60)
    assert explained(q, "b") == ("due-later", START + 60, None)


def test_a_failed_message_is_in_backoff(r, key):
    q = Scene(r, key)
    q.add("a", "GROUP", "g")
    q.nack(q.one().receipt, "DELAY", 70)
    assert explained(q, "a") == ("backoff", START + 70, None)


def test_a_message_that_can_be_delivered_is_next(r, key):
    q = Scene(r, key)
    q.add("u1")
    q.add("u2")
    q.add("a", "GROUP", "g")
    for id in ("u1", "u2", "a"):
        assert explained(q, id) == ("next", None, None)


def test_a_running_message_shows_its_lease_and_consumer(r, key):
    q = Scene(r, key, "LEASE", 500)
    q.add("a")
    q.one("CONSUMER", "alice")
    assert explained(q, "a") == ("running", START + 500, "alice")
    q.add("b")
    q.one()
    code, until, _ = explained(q, "b")
    assert (code, until) == ("running", START + 500)


def test_an_ended_message_shows_its_state(r, key):
    q = Scene(r, key, "RETAIN", 1000)
    q.add("f")
    q.ack(q.one().receipt)
    q.add("d")
    q.nack(q.one().receipt, "FATAL")
    q.add("c")
    q.do("CANCEL", "c")
    assert [q.code(id) for id in "fdc"] == ["finished", "dead", "cancelled"]
    for id in "fdc":
        explained(q, id)


def test_later_messages_of_a_ready_group_are_behind_its_head(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b", "c")
    assert explained(q, "a")[0] == "next"
    for id in "bc":
        code, _, by = explained(q, id)
        assert (code, by) == ("behind-head", "a")


def test_all_messages_of_a_group_are_behind_its_failed_head(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    q.nack(q.one().receipt, "DELAY", 80)
    q.add("urgent", "GROUP", "g", "PRIORITY", -9)
    for id in ("b", "urgent"):
        code, until, by = explained(q, id)
        assert (code, by) == ("behind-head", "a")
        assert until in (START + 80, None)
    q.advance(80)
    assert explained(q, "a")[0] == "next"
    assert explained(q, "urgent")[0::2] == ("behind-head", "a")


def test_all_messages_of_a_group_are_behind_its_dead_head(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK")
    q.fill("g", "a", "b", "c")
    q.nack(q.one().receipt, "FATAL")
    for id in "bc":
        assert explained(q, id) == ("behind-head", None, "a")


def test_all_messages_of_a_group_are_behind_a_dead_head_that_was_pruned(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK", "DEADRETAIN", 10)
    q.fill("g", "a", "b")
    q.nack(q.one().receipt, "FATAL")
    q.advance(10)
    assert explained(q, "b")[0] == "behind-head"


def test_the_next_message_of_a_busy_group_is_group_busy(r, key):
    q = Scene(r, key, "LEASE", 500)
    q.fill("g", "a", "b", "c")
    q.one("CONSUMER", "alice")
    code, until, by = explained(q, "b")
    assert code == "group-busy"
    assert until in (START + 500, None)
    assert by in ("a", "g", "alice")
    # Being behind another message is the first of the reasons.
    assert explained(q, "c")[0::2] == ("behind-head", "b")


def test_messages_of_a_paused_group_are_group_paused(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    q.do("PAUSE", "GROUP", "g", "FOR", 30)
    assert explained(q, "a") == ("group-paused", START + 30, "g")
    assert explained(q, "b") == ("group-paused", START + 30, "g")
    q.do("PAUSE", "GROUP", "g")
    assert explained(q, "a") == ("group-paused", None, "g")


def test_messages_of_a_paused_queue_are_queue_paused(r, key):
    q = Scene(r, key)
    q.add("a")
    q.do("PAUSE", "FOR", 30)
    assert explained(q, "a") == ("queue-paused", START + 30, None)
    q.do("PAUSE")
    assert explained(q, "a") == ("queue-paused", None, None)
    q.do("RESUME")
    assert explained(q, "a")[0] == "next"


def test_a_message_over_the_rate_of_the_queue_is_rate_limited(r, key):
    q = Scene(r, key, "RATE", 1, "PER", 100)
    q.add("a")
    q.add("b")
    q.one()
    code, until, _ = explained(q, "b")
    assert (code, until) == ("rate-limited", START + 100)
    assert q.row("b")["state"] == "ready"


def test_a_message_over_the_rate_of_its_group_is_rate_limited(r, key):
    q = Scene(r, key)
    q.do("GROUPSET", "g", "RATE", 1, "PER", 100)
    q.fill("g", "a", "b")
    q.ack(q.one().receipt)
    code, until, _ = explained(q, "b")
    assert (code, until) == ("rate-limited", START + 100)
    assert q.row("b")["state"] == "blocked"


def test_a_message_over_maxrunning_is_max_running(r, key):
    q = Scene(r, key, "MAXRUNNING", 1)
    q.add("a")
    q.add("b")
    q.one()
    assert explained(q, "b")[0] == "max-running"
    assert q.row("b")["state"] == "ready"


def test_of_several_reasons_the_first_is_shown(r, key):
    """All reasons apply at first; they are removed one by one, and each time the next one is shown."""
    q = Scene(r, key, "ONRETRY", "BLOCK", "GROUPCONCURRENCY", 2, "MAXRUNNING", 2, "LEASE", 10**6)
    q.do("GROUPSET", "g", "RATE", 2, "PER", 10**6)
    q.fill("g", "a", "b", "m")
    got = q.hold("COUNT", 2)
    q.nack(got["a"].receipt, "DELAY", 10**5)
    q.do("GROUPSET", "g", "CONCURRENCY", 1)
    q.do("ALTER", "MAXRUNNING", 1)
    q.do("PAUSE", "GROUP", "g")
    q.do("PAUSE")
    seen = []

    def note():
        seen.append(explained(q, "m")[0])

    note()
    q.do("RESUME")
    note()
    q.do("RESUME", "GROUP", "g")
    note()
    q.do("CANCEL", "a")
    note()
    q.do("GROUPSET", "g", "CONCURRENCY", 5)
    note()
    q.do("GROUPSET", "g", "RATE", 0)
    note()
    q.do("ALTER", "MAXRUNNING", 9)
    note()
    assert seen == [
        "queue-paused",
        "group-paused",
        "behind-head",
        "group-busy",
        "rate-limited",
        "max-running",
        "next",
    ]
    assert q.take() == ["m"]
    note()
    assert seen[-1] == "running"


def test_of_several_reasons_of_an_ungrouped_message_the_first_is_shown(r, key):
    q = Scene(r, key, "RATE", 1, "PER", 1000, "MAXRUNNING", 1)
    q.add("a")
    q.add("m")
    q.one()
    q.do("PAUSE")
    assert explained(q, "m")[0] == "queue-paused"
    q.do("RESUME")
    assert explained(q, "m")[0] == "rate-limited"
    q.do("ALTER", "RATE", 0)
    assert explained(q, "m")[0] == "max-running"
    q.do("ALTER", "MAXRUNNING", 0)
    assert explained(q, "m")[0] == "next"


@pytest.mark.parametrize("seed", [1, 2])
def test_fetch_delivers_exactly_the_messages_that_are_next(r3, key, seed):
    """A FETCH of all messages delivers exactly the messages that EXPLAIN calls `next`."""
    rng = random.Random(seed)
    q = Scene(r3, key, "GROUPCONCURRENCY", 1, "LEASE", 10**6)
    for i in range(80):
        group = f"g{rng.randrange(12)}"
        q.add(f"m{i}", *(["GROUP", group, "SCORE", rng.randrange(5)] if rng.random() < 0.8 else []))
    for m in q.fetch("COUNT", 10):
        if rng.random() < 0.5:
            q.nack(m.receipt, *rng.choice((["DELAY", 100], ["FATAL"], [])))
    for g in rng.sample(range(12), 3):
        q.do("PAUSE", "GROUP", f"g{g}")
    pending = q.listed("ready") + q.listed("blocked") + q.listed("retry")
    expected = {id for id in pending if q.code(id) == "next"}
    assert set(q.take("COUNT", 1000)) == expected


def test_what_waits_behind_a_group_that_is_passed_over_is_not_next(r, key):
    """A group that lacks room in one of its limits waits for another one, before those that stand behind it do."""
    q = Scene(r, key, "RETRIES", 0)
    q.do("LIMIT", "l", "CONCURRENCY", 1)
    q.do("LIMIT", "m*", "WEIGHT", "RATE", 2, "PER", 10)
    q.add("a", "LIMITS", 1, "l")
    q.add("c", "GROUP", "g", "LIMITS", 1, "m1")
    q.add("b", "LIMITS", 2, "l", "m1", "COST", 2)
    q.add("a", "LIMITS", 1, "m1", "REPLACE", "RERUN")
    for _ in range(4):
        pending = [id for id in "abc" if q.code(id) == "next"]
        taken = q.take()
        assert bool(pending) == bool(taken) and set(taken) <= set(pending), (pending, taken)
