"""DQ.GET, DQ.LEN, DQ.PEEK and DQ.INFO show every field and change nothing."""

import pytest

from tests.harness.replies import Manual, Queue, truth

RECORD = (
    "id status state payload attempt failures timeouts retries-left group score priority type headers sent-at due-at "
    "first-started-at started-at lease-until finished-at consumer receipt error result reason note signal batch after parent children "
    "first-sent-at rerun limits cost errors"
).split()
STATES = "delayed ready blocked retry running finished dead cancelled".split()
TOTALS = "sent duplicates delivered redelivered acked nacked timeouts deaths expired cancellations redriven".split()
OTHER = (
    "bytes groups consumers blocked-clients paused now next-due-at oldest-ready-age oldest-due-age lateness-p50 lateness-p99 lateness-max breakers-open batches "
    "parents parked"
).split()
OPTIONS = (
    "lease retries backoff maxbackoff jitter ttl retain retaincount deadretain deadcount dedup maxlen maxbytes "
    "maxrunning rate groupconcurrency onretry ondead clock breaker sends maxtimeouts errors fair"
).split()


@pytest.fixture
def mixed_queue(r, key):
    """One message in each state; ids are the states. The clock stands at 100."""
    q = Manual(r, key, "RETAIN", 10000, "RETRIES", 1, "LEASE", 500, "BACKOFF", "FIXED", 300, start=100)
    for id in ("finished", "dead", "retry", "running"):
        q.send(id, "ID", id)
    f, d, t, _ = q.fetch("COUNT", 4, "CONSUMER", "w")
    q.do("ACK", f.receipt, "RESULT", "done")
    q.nack(d.receipt, "FATAL", "ERROR", "bad")
    q.nack(t.receipt, "ERROR", "try again")
    q.send("cancelled", "ID", "cancelled")
    q.do("CANCEL", "cancelled")
    q.send("delayed", "ID", "delayed", "DELAY", 50, "TYPE", "t", "PRIORITY", 7)
    q.send("ready", "ID", "ready")
    q.send("held", "ID", "first", "GROUP", "g", "PRIORITY", -9)
    q.send("held", "ID", "blocked", "GROUP", "g", "PRIORITY", -9)
    assert q.ids("CONSUMER", "v") == [b"first"]
    return q


@pytest.mark.parametrize("state", STATES)
def test_get_has_every_field(mixed_queue, state):
    assert sorted(mixed_queue.get(state)) == sorted(RECORD)


def test_get_shows_the_times_and_results_of_each_state(mixed_queue):
    fields = "due-at first-started-at started-at lease-until finished-at consumer error result reason attempt".split()
    seen = {s: [mixed_queue.get(s)[f] for f in fields] for s in STATES}
    n = None
    assert seen == {
        "delayed": [150, n, n, n, n, n, n, n, n, 0],
        "ready": [100, n, n, n, n, n, n, n, n, 0],
        "blocked": [100, n, n, n, n, n, n, n, n, 0],
        "retry": [400, 100, 100, n, n, b"w", b"try again", n, n, 1],
        "running": [100, 100, 100, 600, n, b"w", n, n, n, 1],
        "finished": [100, 100, 100, n, 100, b"w", n, b"done", n, 1],
        "dead": [100, 100, 100, n, 100, b"w", b"bad", n, b"rejected", 1],
        "cancelled": [100, n, n, n, 100, n, n, n, n, 0],
    }


def test_get_of_an_unknown_id_is_null(r, key):
    q = Queue(r, key)
    assert q.get("a") is None
    q.send("x", "ID", "a")
    assert q.get("b") is None
    assert q.get("A") is None


def test_len_counts_the_messages_of_each_state(mixed_queue):
    assert {s: mixed_queue.len(s) for s in STATES} == dict.fromkeys(STATES, 1) | {"running": 2}
    assert mixed_queue.len("DEAD") == 1
    assert mixed_queue.len() == 6


def test_peek_shows_what_fetch_returns_and_takes_nothing(r, key):
    q = Manual(r, key)
    for n in range(10):
        q.send(n, "ID", n, "PRIORITY", n % 3)
    before = q.digest()
    peeked = q.peek("COUNT", 6)
    assert q.digest() == before
    assert sorted(peeked[0]) == sorted(RECORD)
    assert [m["id"] for m in q.peek()] == [peeked[0]["id"]]
    assert [m["id"] for m in peeked] == q.ids("COUNT", 6)


def test_peek_and_get_count_no_attempt(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a")
    q.peek()
    assert q.get("a")["attempt"] == 0
    assert q.one().attempt == 1


def test_info_has_every_field(mixed_queue):
    info = mixed_queue.info()
    assert set(STATES + TOTALS + OTHER + OPTIONS) <= set(info)


def test_info_counts_messages_groups_consumers_and_bytes(mixed_queue):
    info = mixed_queue.info()
    assert [info[s] for s in STATES] == [1, 1, 1, 1, 2, 1, 1, 1]
    want = dict(sent=9, duplicates=0, delivered=5, redelivered=0, acked=1, nacked=2, timeouts=0)
    want |= dict(deaths=1, expired=0, cancellations=1, redriven=0, groups=1, consumers=2, now=100)
    assert {name: info[name] for name in want} == want
    assert truth(info["paused"]) is False
    assert info["blocked-clients"] == 0
    assert info["next-due-at"] == 150
    payloads = ("retry", "running", "delayed", "ready", "held", "held")
    assert info["bytes"] == sum(len(p) for p in payloads)


@pytest.mark.parametrize("verb", ["GET", "LEN", "PEEK", "INFO"])
def test_inspecting_changes_nothing(mixed_queue, verb):
    before = mixed_queue.digest()
    mixed_queue.do(verb, *{"GET": ["running"], "LEN": [], "PEEK": ["COUNT", 9], "INFO": []}[verb])
    assert mixed_queue.digest() == before


def test_long_errors_and_results_come_back_whole(r, key):
    q = Manual(r, key, "RETAIN", 1000)
    text = bytes(range(256)) * 40
    q.send("x", "ID", "a")
    q.nack(q.one().receipt, "ERROR", text)
    assert q.get("a")["error"] == text
    q.do("ACK", q.one().receipt, "RESULT", text[::-1])
    assert q.get("a")["result"] == text[::-1]


def test_a_section_of_info_has_nothing_of_the_others(server):
    whole = server.info("dq")
    parts = [server.info(f"dq_{part}") for part in ("module", "queues", "timer", "lateness", "calls")]
    assert [len(part) > 0 for part in parts] == [True] * 5
    assert sum(len(part) for part in parts) == len(whole)
    assert "dq_queues" in parts[1] and "dq_slices" in parts[2]
