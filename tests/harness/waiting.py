"""Blocked consumers on raw connections, and how late a wake-up may be."""

import resource
import time

from tests.harness.replies import as_map, msgs
from tests.harness.server import now_ms
from tests.harness.wire import Error

# How late a wake-up may be on a noisy machine, in ms; medians over many are held tighter.
LATE = 400


def waiter(q, *options, protocol=3):
    """A connection blocked in FETCH on q; q.server is the server."""
    w = q.server.wire(protocol)
    before = int(q.server.info("clients")["blocked_clients"])
    w.send("DQ.FETCH", q.key, "BLOCK", 0, *options)
    q.server.wait_blocked(before + 1)
    return w


def waits_after(q, *commands, fetch=()):
    """Commands on q and FETCH BLOCK, sent as one: the wait begins in the moment in which they are done.

    (connection, replies of the commands). What ends the wait may come soon, however slow this process is.
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
    """When the server gave a message that runs, by its own clock."""
    return as_map(q.do("GET", m.id))["started-at"]


def wakes_at(q, w, at):
    """The waiter's messages, which the server must have given in time but not before `at`."""
    reply = got(w)
    assert reply
    for m in reply:
        assert at <= given_at(q, m) <= at + LATE
    return reply


def woken_by(q, w, verb, *args):
    """The messages that a command on q wakes the waiter with: given at once, not when a timer looks next."""
    with q.server.wire() as wire:
        wire.send_many([("TIME",), (f"DQ.{verb}", q.key, *args)])
        seconds, us = map(int, wire.recv())
        reply = wire.recv()
    assert not isinstance(reply, Error), reply
    woken = got(w)
    for m in woken:
        assert given_at(q, m) <= seconds * 1000 + us // 1000 + LATE
    return woken


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


def least(measure, enough=0.1, rounds=3):
    """The least of several measurements; the first one that is small enough is the last.

    What the server does to a number it does every time; what else runs on the machine does not. A measurement that
    the machine was too slow for is None.
    """
    seen = []
    for _ in range(rounds):
        one = measure()
        seen += [one] if one is not None else []
        if seen and min(seen) <= enough:
            break
    assert seen, "the machine is too slow for this test's timing"
    return min(seen)


def many_sockets(n):
    """Lets this process open n sockets; servers it starts inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < n:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(n, hard) if hard > 0 else n, hard))
