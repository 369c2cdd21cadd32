"""DQ.CANCEL, DQ.RESCHEDULE and DQ.UPDATE, and changes of a missing queue."""

import pytest

from tests.harness.replies import Manual

STATES = "delayed ready blocked retry running finished dead cancelled".split()


def test_cancel_replies_the_state_of_each_message(mixed_queue):
    assert mixed_queue.do("CANCEL", *STATES, "unknown") == [s.encode() for s in STATES] + [None]
    after = {s: mixed_queue.state(s) for s in STATES}
    assert after == dict.fromkeys(STATES, "cancelled") | {"finished": "finished"}


def test_a_cancelled_running_message_has_a_stale_receipt(mixed_queue):
    mixed_queue.do("CANCEL", "running")
    before = mixed_queue.digest()
    receipt = mixed_queue.running.receipt
    assert (mixed_queue.ack(receipt), mixed_queue.nack(receipt), mixed_queue.touch(9, receipt)) == (0, 0, 0)
    assert mixed_queue.digest() == before
    assert mixed_queue.state("running") == "cancelled"


def test_a_cancelled_message_is_never_delivered(mixed_queue):
    mixed_queue.do("CANCEL", *STATES, "first")
    mixed_queue.advance(5000)
    assert mixed_queue.fetch("COUNT", 99) == []
    assert mixed_queue.len() == 0


def test_cancel_without_retain_leaves_nothing(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a")
    assert q.do("CANCEL", "a", "a") == [b"ready", None]
    assert q.get("a") is None
    assert q.info()["cancellations"] == 1


def test_cancel_counts_an_id_that_is_named_twice_as_two(mixed_queue):
    assert mixed_queue.do("CANCEL", "ready", "ready") == [b"ready", b"cancelled"]
    assert mixed_queue.info()["cancellations"] == 2


@pytest.mark.parametrize("state", STATES)
def test_reschedule_and_update_change_pending_messages_only(mixed_queue, state):
    want = int(state in ("delayed", "ready", "blocked", "retry"))
    before = mixed_queue.digest()
    assert mixed_queue.do("UPDATE", state, b"new\0") == want
    assert mixed_queue.do("RESCHEDULE", state, "AT", 700) == want
    record = mixed_queue.get(state)
    if want:
        assert (record["payload"], record["due-at"]) == (b"new\0", 700)
        assert record["state"] == (b"retry" if state == "retry" else b"delayed")
    else:
        assert mixed_queue.digest() == before


def test_reschedule_moves_a_due_time_earlier_or_later(r, key):
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


def test_update_keeps_the_position_and_counts_the_new_bytes(r, key):
    q = Manual(r, key, "MAXBYTES", 10)
    q.send("aaaa", "ID", "a")
    q.send("bbbb", "ID", "b")
    assert q.do("UPDATE", "a", "AA") == 1
    assert q.info()["bytes"] == 6
    assert q.payloads("COUNT", 2) == [b"AA", b"bbbb"]


def test_cancel_says_whether_it_was_in_time(r, key):
    """An order that is paid cancels its own closing, and the reply says whether that came too late."""
    q = Manual(r, key, "RETAIN", 3_600_000)
    thirty = 30 * 60 * 1000
    for id in ("waiting", "closing", "closed"):
        q.send(id, "ID", id, "DELAY", thirty if id != "waiting" else thirty * 2)
    q.advance(thirty)
    got = {m.id: m.receipt for m in q.fetch("COUNT", 9)}
    q.ack(got[b"closed"])
    assert q.do("CANCEL", "waiting", "closing", "closed", "never") == [b"delayed", b"running", b"finished", None]
    assert q.ack(got[b"closing"]) == 0
