"""Blocked consumers on raw connections, and how late a wake-up may be."""

import resource
import time

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


def noise():
    """How late this machine wakes a sleeping process at this hour, in ms: the median of 20 times."""
    late = []
    for _ in range(20):
        began = time.perf_counter()
        time.sleep(0.01)
        late.append((time.perf_counter() - began) * 1000 - 10)
    return sorted(late)[10]


def in_time_for(load, times):
    """A due time before which `load()` can run so often on this machine at this hour; it runs once to find out."""
    began = now_ms()
    load()
    return now_ms() + 4000 + 3 * times * (now_ms() - began)


def many_sockets(n):
    """Lets this process open n sockets; servers it starts inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < n:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(n, hard) if hard > 0 else n, hard))
