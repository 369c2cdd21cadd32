"""Blocked consumers on raw connections: the events that wake them, and the answers of the server to others
meanwhile.
"""

import resource
import threading

from tests.harness.replies import as_map, msgs
from tests.harness.server import now_ms
from tests.harness.wire import Error

# A reply that is later than this, in ms, was not woken by the event that should have woken it. It is no measure of
# speed: how punctual the server is, `make load` says.
LATE = 15_000


def waiter(q, *options, protocol=3):
    """A connection blocked in FETCH on q; q.server is the server."""
    w = q.server.wire(protocol)
    before = int(q.server.info("clients")["blocked_clients"])
    w.send("DQ.FETCH", q.key, "BLOCK", 0, *options)
    q.server.wait_blocked(before + 1)
    return w


def waits_after(q, *commands, fetch=()):
    """Commands on q and FETCH BLOCK, sent as one: the wait begins in the moment in which they are done.

    (connection, replies of the commands). The command that ends the wait may follow soon, even if this process is slow.
    """
    w = q.server.wire()
    called = [(f"DQ.{verb}", q.key, *args) for verb, *args in commands]
    w.send_many([*called, ("DQ.FETCH", q.key, "BLOCK", 0, *fetch)])
    replies = [w.recv() for _ in commands]
    assert not [reply for reply in replies if isinstance(reply, Error)], replies
    return w, replies


def got(w, timeout=20):
    return msgs(w.recv(timeout))


def given_at(q, m):
    """When the server delivered a running message, by its own clock."""
    return as_map(q.do("GET", m.id))["started-at"]


def wakes_at(q, w, at):
    """Returns the messages of the waiter, which must have been delivered in time but not before `at`."""
    reply = got(w)
    assert reply
    for m in reply:
        assert at <= given_at(q, m) <= at + LATE
    return reply


def woken_by(q, w, verb, *args):
    """Runs a command on q. Returns the messages that the waiter gets, which must be delivered at once."""
    with q.server.wire() as wire:
        wire.send_many([("TIME",), (f"DQ.{verb}", q.key, *args)])
        seconds, us = map(int, wire.recv())
        reply = wire.recv()
    assert not isinstance(reply, Error), reply
    woken = got(w)
    for m in woken:
        assert given_at(q, m) <= seconds * 1000 + us // 1000 + LATE
    return woken


def all_delayed(fill, empty):
    """Calls fill(due) so that all it sends is sent before it is due, and returns that time; a slow machine gets longer.

    empty() removes messages that came too late.
    """
    for seconds in (3, 15, 60):
        due = now_ms() + seconds * 1000
        fill(due)
        if now_ms() + 500 < due:
            return due
        empty()
    raise AssertionError("the machine is too slow to send this in a minute")


def steps_between_answers(server, *begin, ask, times=20_000):
    """The steps in which a count falls from one answer to the next while the server does the work of `commands`.

    All is sent as one: begin, then always the same question. The server takes some hundred questions out of what it has
    received, sees to other work, takes the next. So a step is what it did without letting others in between, however
    busy the machine is.
    """
    with server.wire(timeout=60) as wire:
        sender = threading.Thread(target=wire.send_many, args=([*begin, *[ask] * times],))
        sender.start()
        for _ in begin:
            reply = wire.recv()
            assert not isinstance(reply, Error), reply
        answers = [wire.recv() for _ in range(times)]
        sender.join()
    return [before - after for before, after in zip(answers, answers[1:]) if before != after]


def many_sockets(n):
    """Lets this process open n sockets; servers it starts inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < n:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(n, hard) if hard > 0 else n, hard))
