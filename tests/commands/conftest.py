"""Fixtures that several files of this folder use."""

import pytest

from tests.harness.replies import Manual


@pytest.fixture
def w(server):
    """A plain connection, with RESP3."""
    return server.wire(3)


@pytest.fixture
def mixed_queue(r, key):
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
