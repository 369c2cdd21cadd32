"""DQ.CANCEL, RESCHEDULE, UPDATE, PURGE, PAUSE and RESUME."""

import pytest

from tests.harness.replies import Manual, Queue, truth

STATES = "delayed ready blocked retry running finished dead cancelled".split()


@pytest.fixture
def zoo(r, key):
    """One message in each state, ids are the states; and `first`, which runs and blocks its group."""
    q = Manual(r, key, "RETAIN", 10000, "LEASE", 500, "BACKOFF", "FIXED", 300)
    for id in ("finished", "dead", "retry", "running"):
        q.send(id, "ID", id)
    f, d, t, q.running = q.fetch("COUNT", 4)
    q.ack(f.receipt)
    q.nack(d.receipt, "FATAL")
    q.nack(t.receipt)
    q.send("x", "ID", "cancelled")
    q.do("CANCEL", "cancelled")
    q.send("x", "ID", "delayed", "DELAY", 50)
    q.send("x", "ID", "ready")
    q.send("x", "ID", "first", "GROUP", "g", "PRIORITY", -9)
    q.send("x", "ID", "blocked", "GROUP", "g", "PRIORITY", -9)
    assert q.ids() == [b"first"]
    return q


def test_cancel_tells_the_state_each_was_in(zoo):
    assert zoo.do("CANCEL", *STATES, "unknown") == [s.encode() for s in STATES] + [None]
    after = {s: zoo.state(s) for s in STATES}
    assert after == dict.fromkeys(STATES, "cancelled") | {"finished": "finished"}


def test_a_cancelled_running_message_has_a_stale_receipt(zoo):
    zoo.do("CANCEL", "running")
    before = zoo.digest()
    receipt = zoo.running.receipt
    assert (zoo.ack(receipt), zoo.nack(receipt), zoo.touch(9, receipt)) == (0, 0, 0)
    assert zoo.digest() == before
    assert zoo.state("running") == "cancelled"


def test_a_cancelled_message_never_comes(zoo):
    zoo.do("CANCEL", *STATES, "first")
    zoo.advance(5000)
    assert zoo.fetch("COUNT", 99) == []
    assert zoo.len() == 0


def test_cancel_without_retain_leaves_nothing(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a")
    assert q.do("CANCEL", "a", "a") == [b"ready", None]
    assert q.get("a") is None
    assert q.info()["cancellations"] == 1


def test_cancel_of_one_id_twice_in_a_call(zoo):
    assert zoo.do("CANCEL", "ready", "ready") == [b"ready", b"cancelled"]
    assert zoo.info()["cancellations"] == 2


def test_missing_keys_are_not_made(r, key):
    q = Queue(r, key)
    assert q.do("CANCEL", "a", "b") == [None, None]
    assert q.do("RESCHEDULE", "a", "DELAY", 5) == 0
    assert q.do("UPDATE", "a", "x") == 0
    assert q.do("PURGE") == 0
    assert (q.ack(1), q.nack(1), q.touch(1, 1)) == (0, 0, 0)
    assert q.do("RESUME") in (b"OK", True)
    assert q.do("REDRIVE", "ALL") == 0
    assert r.exists(key) == 0


@pytest.mark.parametrize("state", STATES)
def test_reschedule_and_update_take_pending_ones_only(zoo, state):
    want = int(state in ("delayed", "ready", "blocked", "retry"))
    before = zoo.digest()
    assert zoo.do("UPDATE", state, b"new\0") == want
    assert zoo.do("RESCHEDULE", state, "AT", 700) == want
    record = zoo.get(state)
    if want:
        assert (record["payload"], record["due-at"]) == (b"new\0", 700)
        assert record["state"] == (b"retry" if state == "retry" else b"delayed")
    else:
        assert zoo.digest() == before


def test_reschedule_moves_both_ways(r, key):
    q = Manual(r, key, start=1000)
    q.send("x", "ID", "a", "DELAY", 500)
    assert q.do("RESCHEDULE", "a", "DELAY", 100) == 1
    assert q.get("a")["due-at"] == 1100
    assert q.do("RESCHEDULE", "a", "AT", 5) == 1
    assert (q.state("a"), q.get("a")["due-at"]) == ("ready", 1000)
    assert q.do("RESCHEDULE", "a", "DELAY", 300) == 1
    assert q.fetch() == []
    q.to(1299)
    assert q.fetch() == []
    q.to(1300)
    assert q.ids() == [b"a"]


def test_reschedule_of_a_failed_one_only_moves_its_time(r, key):
    q = Manual(r, key, "BACKOFF", "FIXED", 300)
    q.send("x", "ID", "a")
    q.nack(q.one().receipt, "ERROR", "e")
    q.do("RESCHEDULE", "a", "DELAY", 10)
    record = q.get("a")
    assert (record["state"], record["due-at"], record["attempt"], record["failures"]) == (b"retry", 10, 1, 1)
    q.to(10)
    assert q.one().attempt == 2


def test_update_keeps_place_and_counts_bytes(r, key):
    q = Manual(r, key, "MAXBYTES", 10)
    q.send("aaaa", "ID", "a")
    q.send("bbbb", "ID", "b")
    assert q.do("UPDATE", "a", "AA") == 1
    assert q.info()["bytes"] == 6
    assert q.payloads("COUNT", 2) == [b"AA", b"bbbb"]


def test_purge_of_a_state(zoo):
    for state, n in (("DELAYED", 1), ("dead", 1), ("finished", 1), ("running", 2), ("cancelled", 1), ("dead", 0)):
        assert zoo.do("PURGE", "STATE", state) == n
    assert zoo.ack(zoo.running.receipt) == 0
    assert [zoo.state(i) for i in ("delayed", "dead", "running", "finished", "cancelled")] == [None] * 5
    assert zoo.send("x", "ID", "running") == b"running"


def test_purge_of_all_frees_every_id(zoo):
    assert zoo.do("PURGE") == 9
    assert zoo.len() == 0
    assert zoo.info()["bytes"] == 0
    assert [zoo.send("x", "ID", s) for s in STATES] == [s.encode() for s in STATES]
    assert zoo.ack(zoo.running.receipt) == 0


def test_purge_keeps_the_queue_and_its_options(zoo):
    zoo.do("PURGE")
    assert zoo.info()["retain"] == 10000


def test_a_full_purge_empties_the_dedup_memory(r, key):
    q = Manual(r, key, "DEDUP", 1000)
    q.send("x", "ID", "a")
    q.ack(q.one().receipt)
    q.do("PURGE", "STATE", "ready")
    assert q.send("x", "ID", "a") is None
    q.do("PURGE")
    assert q.send("x", "ID", "a") == b"a"


def test_purging_many_is_seen_at_once(r3, key):
    q = Manual(r3, key)
    for _ in range(30):
        q.do("MSEND", 1000, *["x"] * 1000)
    q.do("MSEND", 5, *"abcde", "DELAY", 10)
    assert q.do("PURGE", "STATE", "ready") == 30000
    assert q.fetch() == []
    assert q.len() == 5
    q.advance(10)
    assert q.payloads("COUNT", 9) == list(map(str.encode, "abcde"))


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


def test_pause_for_ends_by_itself(r, key):
    q = Manual(r, key)
    q.send("x")
    q.do("PAUSE", "FOR", 100)
    q.advance(99)
    assert q.fetch() == []
    q.advance(1)
    assert len(q.fetch()) == 1
    assert truth(q.info()["paused"]) is False


def test_the_last_pause_counts(r, key):
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


def test_pause_makes_the_queue(r, key):
    q = Queue(r, key)
    q.do("PAUSE")
    assert r.type(key) == b"dqueue-rs"
    q.send("x")
    assert q.fetch() == []


def test_noack_and_mfetch_obey_the_pause(r, key):
    q = Manual(r, key)
    q.send("x")
    q.do("PAUSE")
    assert q.fetch("NOACK") == []
    assert r.execute_command("DQ.MFETCH", 1, key) is None
