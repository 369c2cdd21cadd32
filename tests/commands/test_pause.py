"""DQ.PAUSE and DQ.RESUME of a whole queue; those of a group are in tests/groups/test_pause.py."""

from tests.harness.replies import Manual, truth


def test_pause_stops_delivery_and_nothing_else(r, key):
    q = Manual(r, key, "LEASE", 50)
    q.do("MSEND", 4, *"abcd")
    a, b, c = q.fetch("COUNT", 3)
    assert q.do("PAUSE") in (b"OK", True)
    assert truth(q.info()["paused"]) is True
    assert q.fetch() == []
    assert q.len("ready") == 1
    q.send("e")
    assert q.ack(a.receipt) == 1
    assert q.nack(b.receipt) == 1
    assert q.touch(100, c.receipt) == 1
    q.advance(99)
    assert q.len("running") == 1
    q.advance(1)
    assert (q.len("running"), q.len("ready")) == (0, 4)
    assert q.fetch() == []
    assert q.do("RESUME") in (b"OK", True)
    assert truth(q.info()["paused"]) is False
    assert len(q.fetch("COUNT", 9)) == 4


def test_a_pause_with_for_ends_by_itself(r, key):
    q = Manual(r, key)
    q.send("x")
    q.do("PAUSE", "FOR", 100)
    q.advance(99)
    assert q.fetch() == []
    q.advance(1)
    assert len(q.fetch()) == 1
    assert truth(q.info()["paused"]) is False


def test_a_later_pause_replaces_the_earlier_one(r, key):
    q = Manual(r, key)
    q.send("x")
    q.do("PAUSE", "FOR", 100)
    q.do("PAUSE", "FOR", 300)
    q.advance(200)
    assert q.fetch() == []
    q.do("PAUSE")
    q.advance(100000)
    assert q.fetch() == []
    q.do("RESUME")
    assert len(q.fetch()) == 1


def test_fetch_noack_and_mfetch_deliver_nothing_during_a_pause(r, key):
    q = Manual(r, key)
    q.send("x")
    q.do("PAUSE")
    assert q.fetch("NOACK") == []
    assert r.execute_command("DQ.MFETCH", 1, key) is None
