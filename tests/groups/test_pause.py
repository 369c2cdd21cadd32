"""PAUSE and RESUME of a group, and of the queue that it is in."""

from tests.harness.scene import START, Scene


def paused(r, key, *options):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    q.fill("h", "x")
    assert q.do("PAUSE", "GROUP", "g", *options) in (b"OK", True)
    return q


def test_nothing_of_a_paused_group_is_delivered(r, key):
    q = paused(r, key)
    assert q.counts() == {"ready": 1, "blocked": 2}
    assert q.take("COUNT", 10) == ["x"]
    assert q.take("GROUP", "g") == []
    assert q.take("NOACK") == []
    assert q.groups()["g"]["state"] == "paused"
    assert q.do("RESUME", "GROUP", "g") in (b"OK", True)
    assert q.drain() == ["a", "b"]


def test_a_pause_with_for_ends_by_itself(r, key):
    q = paused(r, key, "FOR", 100)
    q.advance(99)
    assert q.take("GROUP", "g") == []
    assert q.explain("a")["until"] == START + 100
    q.advance(1)
    assert q.row("a")["state"] == "ready"
    assert q.take("GROUP", "g") == ["a"]


def test_a_pause_without_for_never_ends(r, key):
    q = paused(r, key)
    q.advance(10**12)
    assert q.take("GROUP", "g") == []
    assert q.explain("a")["until"] is None


def test_a_later_pause_replaces_the_earlier_one(r, key):
    q = paused(r, key, "FOR", 100)
    q.do("PAUSE", "GROUP", "g", "FOR", 500)
    q.advance(499)
    assert q.take("GROUP", "g") == []
    q.do("PAUSE", "GROUP", "g")
    q.advance(1000)
    assert q.take("GROUP", "g") == []
    q.do("PAUSE", "GROUP", "g", "FOR", 1)
    q.advance(1)
    assert q.take("GROUP", "g") == ["a"]


def test_send_ack_nack_and_touch_work_during_a_pause(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 3)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 3)
    q.do("PAUSE", "GROUP", "g")
    assert q.ack(got["a"].receipt) == 1
    assert q.touch(500, got["b"].receipt) == 1
    assert q.nack(got["b"].receipt) == 1
    assert q.add("d", "GROUP", "g") == "d"
    assert q.counts() == {"blocked": 2, "running": 1}
    assert q.groups()["g"]["state"] == "paused"
    q.do("RESUME", "GROUP", "g")
    assert q.take() == ["b"]


def test_due_times_and_leases_run_on_during_a_pause(r, key):
    q = Scene(r, key, "LEASE", 50)
    q.fill("g", "a")
    q.add("late", "GROUP", "g", "DELAY", 20)
    q.take()
    q.do("PAUSE", "GROUP", "g")
    counts = q.advance(50)
    assert (counts["due"], counts["timeouts"]) == (1, 1)
    assert q.counts() == {"blocked": 2}


def test_a_group_may_be_paused_before_it_has_messages(r, key):
    q = Scene(r, key)
    q.do("PAUSE", "GROUP", "new")
    assert q.groups()["new"]["state"] == "paused"
    q.fill("new", "a")
    assert q.take() == []
    q.do("RESUME", "GROUP", "new")
    assert q.take() == ["a"]


def test_a_pause_that_is_over_is_forgotten(r, key):
    q = Scene(r, key)
    q.do("PAUSE", "GROUP", "new", "FOR", 10)
    q.advance(10)
    assert q.groups() == {}


def test_resume_of_a_group_that_is_not_paused_is_ok(r, key):
    q = Scene(r, key)
    q.fill("g", "a")
    assert q.do("RESUME", "GROUP", "g") in (b"OK", True)
    assert q.do("RESUME", "GROUP", "unknown") in (b"OK", True)
    assert q.groups().keys() == {"g"}
    assert q.take() == ["a"]


def test_a_pause_of_the_queue_changes_no_state(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    q.add("u")
    q.do("PAUSE")
    assert q.counts() == {"ready": 3}
    assert q.groups()["g"]["state"] == "ready"
    assert q.take("GROUP", "g") == []
    assert q.info()["paused"] in (1, True)
    q.do("RESUME")
    assert q.take() == ["a"]


def test_resume_of_the_queue_leaves_paused_groups(r, key):
    q = paused(r, key)
    q.do("PAUSE")
    q.do("RESUME")
    assert q.take("COUNT", 10) == ["x"]


def test_resume_of_a_group_leaves_the_queue_paused(r, key):
    q = paused(r, key)
    q.do("PAUSE")
    q.do("RESUME", "GROUP", "g")
    assert q.take("COUNT", 10) == []


def test_groups_whose_pauses_end_together_join_in_send_order(r, key):
    q = Scene(r, key)
    q.fill("b", "b1")
    q.fill("a", "a1")
    q.do("PAUSE", "GROUP", "a", "FOR", 10)
    q.do("PAUSE", "GROUP", "b", "FOR", 10)
    q.advance(10)
    assert q.take("COUNT", 2) == ["b1", "a1"]
