"""The commands in MULTI, Lua scripts and functions, and which calls touch a watched key."""

import pytest

from tests.harness.replies import Manual, Queue
from tests.harness.verbs import KEYS, WRITES
from tests.harness.wire import NULL_ARRAY, Error

# Calls that write, of verbs that otherwise only read.
CHANGES = [("SCHEDULES", "k", "PAUSE", "n"), ("SCHEDULES", "k", "RESUME", "n")]

# Calls without effect on a queue with one delayed and one running message.
IDLE = [
    ("DQ.FETCH",),
    ("DQ.FETCH", "ACK", 1, 5),
    ("DQ.ACK", 5),
    ("DQ.ACKSEND", 5, "NEXT", "elsewhere", "x"),
    ("DQ.NACK", 5),
    ("DQ.TOUCH", 9, 5),
    ("DQ.TICK",),
    ("DQ.GET", "d"),
    ("DQ.LEN",),
    ("DQ.PEEK",),
    ("DQ.INFO",),
    ("DQ.CANCEL", "unknown"),
    ("DQ.UPDATE", "unknown", "x"),
    ("DQ.RESCHEDULE", "unknown", "DELAY", 0),
]
# Calls that change that queue.
BUSY = [
    ("DQ.SEND", "x"),
    ("DQ.ALTER", "LEASE", 9),
    ("DQ.CANCEL", "d"),
    ("DQ.UPDATE", "d", "y"),
    ("DQ.RESCHEDULE", "d", "DELAY", 3),
    ("DQ.PURGE",),
    ("DQ.PAUSE",),
    ("DQ.TICK", "ADVANCE", 100),
]


def watched(server, key, call):
    """Whether `call` by another client aborts this client's transaction."""
    w = server.wire(2)
    w.ok("WATCH", key)
    other = server.wire(2)
    reply = other.call(call[0], key, *call[1:])
    assert not isinstance(reply, Error), reply
    w.ok("MULTI")
    w.ok("PING")
    return w.call("EXEC") is NULL_ARRAY


@pytest.fixture
def q(r3, key):
    q = Manual(r3, key)
    q.send("r", "ID", "r")
    q.one("LEASE", 1000)
    q.send("d", "ID", "d", "DELAY", 50)
    return q


@pytest.mark.parametrize("call", IDLE, ids=lambda c: " ".join(map(str, c)))
def test_a_call_without_effect_does_not_touch_a_watched_key(server, q, call):
    assert not watched(server, q.key, call)


@pytest.mark.parametrize("call", BUSY, ids=lambda c: " ".join(map(str, c)))
def test_a_call_that_changes_the_queue_touches_a_watched_key(server, q, call):
    assert watched(server, q.key, call)


def test_a_delivery_touches_a_watched_key(server, q):
    q.advance(50)
    assert watched(server, q.key, ("DQ.FETCH",))


def test_ack_and_touch_touch_a_watched_key(server, q):
    receipt = q.get("r")["receipt"]
    assert watched(server, q.key, ("DQ.TOUCH", 5000, receipt))
    assert watched(server, q.key, ("DQ.ACK", receipt))


def test_send_works_in_a_function(server):
    w = server.wire(2)
    body = "#!lua name=lib\nredis.register_function('send', function(keys, args) return redis.call('DQ.SEND', keys[1], args[1]) end)"
    w.ok("FUNCTION", "LOAD", "REPLACE", body)
    assert w.ok("FCALL", "send", 1, "new", "payload")
    assert w.ok("DQ.LEN", "new") == 1
    w.ok("FUNCTION", "FLUSH")


def of_script(call):
    return "return redis.call(%s)" % ", ".join(f"'{a}'" for a in call)


@pytest.mark.parametrize("call", [c for c, _ in KEYS if c[0] in WRITES] + CHANGES, ids=str)
def test_a_script_that_may_not_write_can_call_nothing_that_writes(server, call):
    w = server.wire(2)
    w.ok("DQ.SEND", "k", "p")
    w.ok("DQ.SCHEDULE", "k", "n", "EVERY", 100_000_000, "PAYLOAD", "p")
    before = w.ok("DQ.SCHEDULES", "k"), w.ok("DUMP", "k")
    script = of_script((f"DQ.{call[0]}", *call[1:]))
    for words in ("EVAL_RO", script), ("EVAL", "#!lua flags=no-writes\n" + script):
        reply = w.call(*words, 0)
        assert isinstance(reply, Error) and "Write commands are not allowed" in reply, reply
    assert (w.ok("DQ.SCHEDULES", "k"), w.ok("DUMP", "k")) == before


@pytest.mark.parametrize("call", CHANGES, ids=str)
def test_what_only_writes_with_some_words_works_in_a_script_that_may_write(server, call):
    w = server.wire(2)
    w.ok("DQ.SCHEDULE", "k", "n", "EVERY", 100_000_000, "PAYLOAD", "p")
    assert w.ok("EVAL", of_script((f"DQ.{call[0]}", *call[1:])), 0) == 1


def test_commands_of_a_transaction_take_effect_one_after_the_other(server, key):
    """Commands of one EXEC happen at the same time, but in sequence."""
    w = server.wire()
    w.ok("MULTI")
    w.ok("DQ.SEND", key, "a", "ID", "a")
    w.ok("DQ.FETCH", key)
    w.ok("DQ.SEND", key, "b", "ID", "a")
    _, fetched, again = w.ok("EXEC")
    assert fetched[0][0] == b"a"
    assert again is None


def test_an_error_in_a_transaction_does_not_undo_the_rest(server, r3, key):
    w = server.wire()
    w.ok("MULTI")
    w.ok("DQ.SEND", key, "a")
    w.ok("DQ.SEND", key, "b", "DELAY", "soon")
    w.ok("DQ.SEND", key, "c")
    replies = w.ok("EXEC")
    assert isinstance(replies[1], Error)
    assert Queue(r3, key).len() == 2
