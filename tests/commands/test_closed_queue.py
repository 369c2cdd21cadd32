"""SENDS OFF: a closed queue takes no new messages, so that it can be emptied, and all other work continues."""

import pytest

from tests.harness.replies import Manual
from tests.harness.wire import Error

CLOSED = "QUEUECLOSED the queue takes no new messages (SENDS OFF)"


@pytest.mark.parametrize("protocol", [2, 3])
def test_what_would_add_a_message_is_refused(server, key, protocol):
    calls = [
        ("DQ.SEND", key, "x"),
        ("DQ.SEND", key, "x", "ID", "a", "REPLACE"),
        ("DQ.SEND", key, "x", "GROUP", "g", "DELAY", 5),
        ("DQ.MSEND", key, 2, "x", "y"),
        ("DQ.GROUPPUSH", key, '{"g": 1}', "GROUPBY", 1, "g"),
    ]
    with server.wire(protocol) as w:
        w.ok("DQ.CREATE", key, "SENDS", "OFF")
        for call in calls:
            assert w.call(*call) == Error(CLOSED)
        assert w.call("DQ.LEN", key) == 0
        w.ok("DQ.ALTER", key, "SENDS", "ON")
        for call in calls:
            assert not isinstance(w.call(*call), Error)


def test_a_queue_is_emptied(r, key):
    q = Manual(r, key)
    q.send("1", "ID", "a")
    q.send("2", "ID", "b", "DELAY", 10)
    q.do("ALTER", "SENDS", "OFF")
    first = q.one()
    assert first.payload == b"1"
    q.nack(first.receipt)
    assert q.ack(q.one().receipt) == 1
    q.advance(10)
    assert q.ack(q.one().receipt) == 1
    assert q.fails("SEND", "x") == CLOSED
    assert (q.len(), q.info()["sends"], q.info()["sent"]) == (0, b"OFF", 2)


def test_a_message_that_follows_is_refused_and_its_parent_goes_on_running(r, key):
    q, closed = Manual(r, key), Manual(r, key + b":closed", "SENDS", "OFF")
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    before = q.digest(), closed.digest()
    for nexts in (["NEXT", closed.key, "y"], ["NEXT", key, "y", "NEXT", closed.key, "z"]):
        assert q.fails("ACKSEND", receipt, *nexts) == CLOSED
    assert (q.digest(), closed.digest()) == before
    q.do("ALTER", "SENDS", "OFF")
    # Its own message leaves the queue, but another one would enter it.
    assert q.fails("ACKSEND", receipt, "NEXT", key, "y", "ID", "a") == CLOSED
    assert q.do("ACKSEND", receipt, "NEXT", key + b":other", "y", "ID", "b") == [b"b"]


def test_what_adds_no_message_goes_on(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "dead", "RETRIES", 0)
    q.nack(q.one().receipt)
    q.send("old", "ID", "waits")
    q.do("ALTER", "SENDS", "OFF")
    assert q.do("SEND", "new", "ID", "waits", "REPLACE") == b"waits"
    assert q.do("SEND", "new", "ID", "waits") is None
    assert q.do("SEND", "x", "GROUP", "none", "IFGROUP") is None
    assert q.do("UPDATE", "waits", "newer") == 1
    assert q.do("REDRIVE", "ALL") == 1
    assert sorted(q.ids("COUNT", 5)) == [b"dead", b"waits"]


def test_firings_are_skipped_and_counted(server, r, key):
    q = Manual(r, key, "SENDS", "OFF")
    skipped = lambda: int(server.info("dq")["dq_skipped_fires"])  # noqa: E731
    before = skipped()
    q.do("SCHEDULE", "s", "EVERY", 100, "PAYLOAD", "x")
    assert q.advance(350)["fired"] == 0
    assert (q.len(), skipped() - before) == (0, 3)
    q.do("ALTER", "SENDS", "ON")
    assert q.advance(50)["fired"] == 1
