"""Blocked consumers on raw connections, and how late a wake-up may be."""

import resource

from tests.harness.replies import msgs
from tests.harness.server import now_ms

# How late a wake-up may be on a noisy machine, in ms; medians over many are held tighter.
LATE = 400


def waiter(q, *options, protocol=3):
    """A connection blocked in FETCH on q; q.server is the server."""
    w = q.server.wire(protocol)
    before = int(q.server.info("clients")["blocked_clients"])
    w.send("DQ.FETCH", q.key, "BLOCK", 0, *options)
    q.server.wait_blocked(before + 1)
    return w


def got(w, timeout=5):
    return msgs(w.recv(timeout))


def wakes_at(w, at):
    """The waiter's messages, which must come in time but not before `at`."""
    reply = got(w)
    assert at <= now_ms() <= at + LATE
    assert reply
    return reply


def many_sockets(n):
    """Lets this process open n sockets; servers it starts inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < n:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(n, hard) if hard > 0 else n, hard))
