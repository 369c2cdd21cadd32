"""An idle server sleeps, whatever it holds; and delivery is punctual under a spread of due times."""

import os
import time

import pytest

from tests.harness.replies import Queue, msgs
from tests.harness.server import now_ms
from tests.harness.waiting import LATE, least, noise


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
    """400 messages over two seconds, and a waiter for each: none early, and the server never late by much."""
    q = Queue(r3, key)

    def late():
        """The median in ms, as the server counts it: this process may sleep longer than it."""
        r3.delete(key)
        q.do("CREATE")
        waiters = [server.wire(2) for _ in range(400)]
        for w in waiters:
            w.send("DQ.FETCH", key, "BLOCK", 0)
        server.wait_blocked(400)
        start = now_ms() + 1000
        dues = {b"%d" % n: start + n * 5 for n in range(400)}
        with server.wire() as w:
            w.send_many([("DQ.SEND", key, "x", "ID", id, "AT", due) for id, due in dues.items()])
            assert [w.recv() for _ in dues] == list(dues)
        # Waiters are served in the order they came.
        for w, (id, due) in zip(waiters, dues.items()):
            [m] = msgs(w.recv())
            assert m.id == id and now_ms() >= due
            w.close()
        info = q.info()
        assert 0 <= info["lateness-max"] <= LATE
        assert (info["delivered"], info["redelivered"], info["timeouts"]) == (400, 0, 0)
        return info["lateness-p50"] - 2 * noise()

    assert least(late, enough=5, rounds=5) <= 5
