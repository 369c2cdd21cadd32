"""An idle server sleeps, whatever it holds; and delivery is punctual under a spread of due times."""

import os
import statistics
import time

import pytest

from tests.harness.replies import Queue, msgs
from tests.harness.server import now_ms
from tests.harness.waiting import LATE, noise


def cpu_seconds(pid):
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_an_idle_server_uses_no_cpu_worth_measuring(make_server):
    """100,000 delayed messages in 100 queues, 100 waiters: not two percent of a core above nothing."""
    server = make_server()
    w = server.wire()
    for n in range(100):
        w.ok("DQ.MSEND", f"q{n}", 1000, *["x"] * 1000, "DELAY", 600000 + n)
    for n in range(100):
        server.wire(2).send("DQ.FETCH", f"q{n}", "BLOCK", 0)
    server.wait_blocked(100)
    bare = make_server()
    time.sleep(0.2)
    before = cpu_seconds(server.pid), cpu_seconds(bare.pid)
    time.sleep(3)
    ours, nothing = cpu_seconds(server.pid) - before[0], cpu_seconds(bare.pid) - before[1]
    assert ours - nothing < 3 * 0.02


@pytest.mark.slow
def test_lateness_of_messages_spread_over_time(server, r3, key):
    """400 messages over two seconds, four waiters, every one timed by the receiver: none early."""
    q = Queue(r3, key)
    allowed = 5 + 2 * noise()
    start = now_ms() + 1000
    dues = {b"%d" % n: start + n * 5 for n in range(400)}
    with server.wire() as w:
        w.send_many([("DQ.SEND", key, "x", "ID", id, "AT", due) for id, due in dues.items()])
        assert [w.recv() for _ in dues] == list(dues)
    waiters = [server.wire(2) for _ in range(4)]
    late = []
    for w in waiters:
        w.send("DQ.FETCH", key, "BLOCK", 0)
    # Waiters are served in the order they came, so the next reply is always the oldest waiter's.
    for n in range(400):
        w = waiters[n % 4]
        [m] = msgs(w.recv())
        late.append(now_ms() - dues[m.id])
        w.send("DQ.FETCH", key, "BLOCK", 0, "ACK", 1, m.receipt)
    allowed = max(allowed, 5 + 2 * noise())
    assert len(late) == 400 and min(late) >= 0
    assert statistics.median(late) <= 2 * allowed
    # What the last ones were late by this process may have been late itself: the server counts its own part.
    info = q.info()
    assert info["lateness-p50"] <= allowed
    assert 0 <= info["lateness-max"] <= LATE
    assert (info["delivered"], info["redelivered"], info["timeouts"]) == (400, 0, 0)
