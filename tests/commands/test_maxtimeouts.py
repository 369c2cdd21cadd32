"""MAXTIMEOUTS: a message that has killed too many of its workers is dead, regardless of RETRIES."""

import pytest

from tests.harness.replies import Manual, Queue
from tests.harness.server import wait_for


def lose(q):
    """A worker takes the message and dies."""
    [m] = q.fetch()
    q.advance(1000)
    return m


@pytest.fixture
def q(r, key):
    return Manual(r, key, "LEASE", 1000, "RETRIES", -1, "MAXTIMEOUTS", 3)


def test_a_message_is_dead_after_so_many_leases_that_ran_out(q):
    q.send("x", "ID", "pill")
    for left in (2, 1, 0):
        assert lose(q).id == b"pill"
        assert q.len("dead") == (left == 0)
    dead = q.get("pill")
    assert (dead["state"], dead["reason"], dead["timeouts"]) == (b"dead", b"timeouts", 3)
    assert q.info()["maxtimeouts"] == 3


def test_nacks_do_not_count(q):
    q.send("x", "ID", "m")
    for _ in range(5):
        [m] = q.fetch()
        q.do("NACK", m.receipt, "DELAY", 0)
    assert q.len("ready") == 1
    lose(q)
    assert q.get("m")["timeouts"] == 1


def test_fewer_retries_end_it_earlier(r, key):
    q = Manual(r, key, "LEASE", 1000, "RETRIES", 0, "MAXTIMEOUTS", 3)
    q.send("x", "ID", "m")
    lose(q)
    assert q.get("m")["reason"] == b"retries"


def test_a_message_can_have_its_own_limit_and_an_altered_queue_a_new_one(q):
    q.send("own", "ID", "own", "MAXTIMEOUTS", 1)
    lose(q)
    assert q.get("own")["reason"] == b"timeouts"
    q.send("none", "ID", "none", "MAXTIMEOUTS", 0)
    for _ in range(4):
        lose(q)
    assert q.get("none")["state"] == b"ready"
    q.do("CANCEL", "none")
    q.do("ALTER", "MAXTIMEOUTS", 1)
    q.send("x", "ID", "m")
    lose(q)
    assert q.get("m")["reason"] == b"timeouts"


def test_it_can_be_given_wherever_a_message_is_sent(q):
    q.do("MSEND", 1, "x", "MAXTIMEOUTS", 1)
    q.do("GROUPPUSH", '{"g": 1}', "GROUPBY", 1, "g", "MAXTIMEOUTS", 1)
    q.do("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "MAXTIMEOUTS", 1)
    q.advance(10)
    q.do("UNSCHEDULE", "s")
    assert len(q.fetch("COUNT", 9)) == 3
    q.advance(1000)
    assert q.len("dead") == 3


def test_a_redriven_message_has_all_of_its_timeouts_again(q):
    q.send("x", "ID", "m", "MAXTIMEOUTS", 1)
    lose(q)
    q.do("REDRIVE", "ALL")
    assert q.get("m")["timeouts"] == 0
    lose(q)
    assert q.get("m")["reason"] == b"timeouts"


def test_a_connection_that_closes_counts(make_server):
    server = make_server()
    q = Queue(server.client(), "q")
    q.do("CREATE", "RETRIES", -1, "BACKOFF", "FIXED", 0, "MAXTIMEOUTS", 2)
    q.send("x", "ID", "m")
    for n in (1, 2):
        with server.wire() as w:
            w.ok("DQ.FETCH", "q", "BIND", "BLOCK", 0)
        wait_for(lambda: q.get("m")["timeouts"] == n, 10, "the lease to end with its connection")
    assert q.get("m")["reason"] == b"timeouts"
