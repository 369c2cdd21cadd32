"""An idle server sleeps, regardless of the content of its queues, and each due message wakes one waiter."""

import time

import pytest

from tests.harness.replies import Queue, msgs
from tests.harness.server import now_ms
from tests.harness.waiting import LATE


def sleeps(pid):
    """How often a process has gone to sleep so far."""
    with open(f"/proc/{pid}/status") as f:
        [line] = [line for line in f if line.startswith("voluntary_ctxt_switches")]
    return int(line.split()[1])


@pytest.mark.slow
def test_an_idle_server_sleeps(make_server):
    """With 100,000 delayed messages in 100 queues and 100 waiters, it wakes no more often than an empty server."""
    server, bare = make_server(), make_server()
    w = server.wire()
    for n in range(100):
        w.ok("DQ.MSEND", f"q{n}", 1000, *["x"] * 1000, "DELAY", 600000 + n)
    for n in range(100):
        server.wire(2).send("DQ.FETCH", f"q{n}", "BLOCK", 0)
    server.wait_blocked(100)
    time.sleep(0.2)
    slices, before = server.info("dq")["dq_slices"], (sleeps(server.pid), sleeps(bare.pid))
    time.sleep(3)
    ours, nothing = sleeps(server.pid) - before[0], sleeps(bare.pid) - before[1]
    assert server.info("dq")["dq_slices"] == slices
    # An empty server wakes ten times a second, more often once a replica or a client has gone.
    assert ours < 2 * nothing + 30


@pytest.mark.slow
def test_each_due_message_wakes_one_waiter(server, r3, key):
    """400 messages over two seconds, and a waiter for each: none is early, and each goes to the first waiter."""
    q = Queue(r3, key)
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
