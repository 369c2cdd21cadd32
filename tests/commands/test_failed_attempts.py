"""ERRORS: a message keeps its last failed attempts, each with its time, consumer and text."""

import pytest

from tests.harness.replies import Manual, Queue, as_map
from tests.harness.server import wait_for

KEPT = 4096
START = 100


@pytest.fixture
def q(r, key):
    return Manual(r, key, "LEASE", 1000, "RETRIES", -1, "BACKOFF", "FIXED", 0, "ERRORS", 3, start=START)


def errors(q, id="m"):
    return q.get(id)["errors"]


def fail(q, consumer, *words):
    """The consumer takes one message and sends a NACK for it."""
    assert q.nack(q.one("CONSUMER", consumer).receipt, *words) == 1


def test_the_last_failed_attempts_are_kept_with_time_consumer_and_text(q):
    q.send("x", "ID", "m")
    assert errors(q) == []
    q.advance(5)
    fail(q, "ann", "ERROR", "no luck")
    assert errors(q) == [[1, START + 5, b"ann", b"no luck"]]
    q.one("CONSUMER", "ben")
    q.advance(1000)
    fail(q, "ann")
    others = [[2, START + 1005, b"ben", b"timeout"], [3, START + 1005, b"ann", b""]]
    assert errors(q) == [[1, START + 5, b"ann", b"no luck"], *others]
    q.nack(q.one().receipt, "FATAL", "ERROR", "no such user")
    dead = [*others, [4, START + 1005, None, b"no such user"]]
    assert errors(q) == dead
    assert q.get("m")["error"] == b"no such user"
    [listed] = q.do("LIST", "dead")[1]
    assert as_map(listed)["errors"] == dead
    [found] = q.do("FIND", "dead")[1]
    assert as_map(found)["errors"] == dead
    assert q.do("REDRIVE", "ALL") == 1
    assert errors(q) == dead
    [next_one] = q.peek()
    assert next_one["errors"] == dead
    fail(q, "cat", "ERROR", "again")
    assert errors(q) == [*dead[1:], [1, START + 1005, b"cat", b"again"]]


def test_what_is_no_failed_attempt_is_not_kept(q):
    q.send("x", "ID", "m")
    fail(q, "ann", "SILENT", "ERROR", "busy")
    fail(q, "ann", "SILENT", "DELAY", 10, "ERROR", "later")
    assert (errors(q), q.get("m")["error"]) == ([], b"later")
    q.advance(10)
    q.do("CANCEL", "m")
    q.send("x", "ID", "m")
    fail(q, "ann", "ERROR", "old")
    q.send("y", "ID", "m", "REPLACE")
    assert errors(q) == []


def test_a_text_is_cut_at_4_kib_behind_a_character(q):
    q.send("x", "ID", "m")
    for text in ["x" * (KEPT - 1) + "\u20ac", "\u20ac" * 2000, "x" * KEPT, "x" * 70_000]:
        fail(q, "ann", "ERROR", text)
        kept = errors(q)[-1][3]
        assert KEPT - 3 < len(kept) <= KEPT
        assert text.startswith(kept.decode())
    fail(q, "ann", "ERROR", b"\xff\x00" * 3000)
    assert errors(q)[-1][3] == b"\xff\x00" * (KEPT // 2)
    assert q.get("m")["error"] == b"\xff\x00" * 3000


def test_alter_holds_from_the_next_failure_on(q):
    q.send("x", "ID", "m")
    for text in ("1", "2", "3"):
        fail(q, "ann", "ERROR", text)
    q.do("ALTER", "ERRORS", 2)
    assert (q.info()["errors"], len(errors(q))) == (2, 3)
    fail(q, "ann", "ERROR", "4")
    assert [error[3] for error in errors(q)] == [b"3", b"4"]
    q.do("ALTER", "ERRORS", 0)
    fail(q, "ann", "ERROR", "5")
    assert (q.info()["errors"], errors(q)) == (0, [])
    q.do("ALTER", "ERRORS", 100)
    for n in range(101):
        fail(q, "ann", "ERROR", n)
    assert [error[3] for error in errors(q)] == [b"%d" % n for n in range(1, 101)]


def test_it_can_be_given_wherever_a_message_is_sent(r, key):
    q = Manual(r, key, "RETRIES", -1, "BACKOFF", "FIXED", 0)
    q.send("x", "ID", "none")
    q.send("x", "ID", "sent", "ERRORS", 1)
    [many] = q.do("MSEND", 1, "x", "ERRORS", 1)
    _, pushed = q.do("GROUPPUSH", '{"g": 1}', "GROUPBY", 1, "g", "ERRORS", 1)
    q.do("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "ERRORS", 1)
    q.advance(10)
    q.do("UNSCHEDULE", "s")
    q.send("x", "ID", "first", "PRIORITY", -1)
    q.do("ACKSEND", q.one().receipt, "NEXT", key, "x", "ID", "next", "ERRORS", 1)
    for _ in range(2):
        for m in q.fetch("COUNT", 9):
            q.nack(m.receipt, "ERROR", m.id)
    assert errors(q, "none") == []
    for id in (b"sent", many, pushed, b"s@10", b"next"):
        assert errors(q, id) == [[2, 10, None, id]]


def test_a_lease_that_was_lost_with_its_connection_is_a_timeout(make_server):
    server = make_server()
    q = Queue(server.client(), "q")
    q.do("CREATE", "RETRIES", -1, "BACKOFF", "FIXED", 0, "ERRORS", 9)
    q.send("x", "ID", "m")
    with server.wire() as w:
        w.ok("DQ.FETCH", "q", "CONSUMER", "ann", "BIND", "BLOCK", 0)
    wait_for(lambda: q.get("m")["timeouts"] == 1, 10, "the lease to end with its connection")
    [[attempt, at, consumer, text]] = errors(q)
    assert (attempt, consumer, text) == (1, b"ann", b"timeout")
    assert at >= q.get("m")["started-at"]


def test_they_count_in_memory_usage_and_only_where_they_are(r, key):
    q = Manual(r, key, "RETRIES", -1, "BACKOFF", "FIXED", 0)
    q.send("x", "ID", "m")
    usage = lambda: r.memory_usage(key, samples=0)  # noqa: E731
    fail(q, "ann", "ERROR", "e" * 4000)
    without = usage()
    q.do("ALTER", "ERRORS", 10)
    for n in range(1, 4):
        fail(q, "ann", "ERROR", "e" * 4000)
        assert n * 4000 < usage() - without < n * 5200
    q.do("ALTER", "ERRORS", 0)
    fail(q, "ann", "ERROR", "e" * 4000)
    assert usage() == without
