"""The known failures of script-based delay queues, each shown not to happen here."""

import threading
import time

import pytest

from tests.harness.replies import Manual, Queue, msgs
from tests.harness.server import now_ms, wait_for
from tests.harness.waiting import all_delayed, steps_between_answers

# Shorter than twenty handlers of 0.1 s, longer than a machine that is busy keeps one of them waiting.
LEASE = 1500


class Handled:
    """Counts who handles what, and notices two at once."""

    def __init__(self, seconds, key):
        self.seconds = seconds
        self.key = key
        self.lock = threading.Lock()
        self.active = set()
        self.times = {}
        self.twice_at_once = 0

    def __call__(self, m, w):
        with self.lock:
            self.twice_at_once += m.id in self.active
            self.active.add(m.id)
            self.times[m.id] = self.times.get(m.id, 0) + 1
        time.sleep(self.seconds)
        with self.lock:
            self.active.discard(m.id)
        w.ok("DQ.ACK", self.key, m.receipt)


def run_workers(server, key, handler, n, fetch, until, seconds=40):
    """n worker threads until `until()`; each fetches with `fetch` and hands over one by one."""
    stop = threading.Event()

    def loop():
        with server.wire() as w:
            while not stop.is_set():
                batch = msgs(w.ok("DQ.FETCH", key, "BLOCK", 100, *fetch))
                for i, m in enumerate(batch):
                    # A message that waits its turn in the client is kept alive by a heartbeat.
                    rest = [x.receipt for x in batch[i:]]
                    if len(batch) > 1:
                        w.ok("DQ.TOUCH", key, LEASE, *rest)
                    handler(m, w)

    threads = [threading.Thread(target=loop, daemon=True) for _ in range(n)]
    for t in threads:
        t.start()
    deadline = time.monotonic() + seconds
    while not until() and time.monotonic() < deadline:
        time.sleep(0.01)
    stop.set()
    for t in threads:
        t.join(20)
    assert until()


def test_a_steady_handler_loses_nothing_with_default_options(server, r3, key):
    """200 messages, default options: each is handled exactly once, none dies unprocessed."""
    q = Queue(r3, key)
    q.do("MSEND", 200, *range(200))
    handled = Handled(0.02, key)
    run_workers(server, key, handled, 4, (), lambda: q.len() == 0)
    assert set(handled.times.values()) == {1}
    assert len(handled.times) == 200
    assert (q.info()["timeouts"], q.len("dead")) == (0, 0)


def test_prefetched_messages_live_by_heartbeats(server, r3, key):
    """A batch takes longer than its lease; TOUCH keeps what waits in the client."""
    q = Queue(r3, key)
    q.do("CREATE", "LEASE", LEASE)
    q.do("MSEND", 60, *range(60))
    handled = Handled(0.1, key)
    run_workers(server, key, handled, 2, ("COUNT", 20), lambda: q.len() == 0)
    assert set(handled.times.values()) == {1}
    assert q.len("dead") == 0


def test_two_consumers_never_run_one_message_at_once(server, r3, key):
    q = Queue(r3, key)
    q.do("CREATE", "LEASE", 2000)
    q.do("MSEND", 60, *range(60), "DELAY", 50)
    handled = Handled(0.01, key)
    run_workers(server, key, handled, 2, (), lambda: q.len() == 0)
    assert (handled.twice_at_once, set(handled.times.values()), len(handled.times)) == (0, {1}, 60)


def test_without_heartbeats_a_late_handler_cannot_finish_anothers_work(r, key):
    """Unprocessed prefetched messages come back, are counted, and only the current holder can ack."""
    q = Manual(r, key, "LEASE", 100, "RETRIES", 20)
    q.do("MSEND", 10, *range(10))
    acked = 0
    for _ in range(10):
        batch = q.fetch("COUNT", 10)
        for m in batch:
            q.advance(30)
            acked += q.ack(m.receipt)
        if q.len() == 0:
            break
    assert (acked, q.len(), q.len("dead")) == (10, 0, 0)


@pytest.mark.parametrize("limit", [("MAXRUNNING", 3), ("RATE", 3, "PER", 100)])
def test_expired_messages_leak_no_limit(r, key, limit):
    """Payloads that expire while pending or running give back what they held, however often."""
    q = Manual(r, key, *limit, "TTL", 50, "LEASE", 20, "RETRIES", 1)
    for _ in range(40):
        q.do("MSEND", 10, *range(10))
        assert len(q.fetch("COUNT", 10)) == 3
        q.advance(100)
        assert q.len() == 0
    assert q.info()["running"] == 0


def test_a_late_nack_revives_nothing(r, key):
    q = Manual(r, key, "LEASE", 10, "RETRIES", 5, "RETAIN", 10000)
    q.send("acked", "ID", "acked")
    late = q.one().receipt
    q.advance(10)
    q.ack(q.one().receipt)
    q.send("cancelled", "ID", "cancelled")
    gone = q.one().receipt
    q.do("CANCEL", "cancelled")
    q.send("purged", "ID", "purged")
    purged = q.one().receipt
    q.do("PURGE", "STATE", "running")
    for receipt in (late, gone, purged):
        for how in ((), ("SILENT",), ("DELAY", 0), ("FATAL",)):
            assert q.nack(receipt, *how) == 0
        assert q.touch(1000, receipt) == 0
    q.advance(100000)
    assert q.fetch("COUNT", 10) == []
    assert {q.state(i) for i in ("acked", "cancelled", "purged")} == {None}


def test_a_paid_order_is_told_where_it_was(r, key):
    """CANCEL answers the one question the payer has: was it still in time?"""
    q = Manual(r, key, "RETAIN", 3_600_000)
    thirty = 30 * 60 * 1000
    for id in ("waiting", "closing", "closed"):
        q.send(id, "ID", id, "DELAY", thirty if id != "waiting" else thirty * 2)
    q.advance(thirty)
    got = {m.id: m.receipt for m in q.fetch("COUNT", 9)}
    q.ack(got[b"closed"])
    assert q.do("CANCEL", "waiting", "closing", "closed", "never") == [b"delayed", b"running", b"finished", None]
    assert q.ack(got[b"closing"]) == 0


@pytest.mark.slow
def test_very_many_due_at_once_do_not_stop_the_server(make_server):
    """300,000 fall due in one millisecond, for one of whom a consumer waits; others are answered all along."""
    server = make_server()
    w = server.wire()
    batch = 1000

    def fill(due):
        for _ in range(15):
            w.send_many([("DQ.MSEND", "q", batch, *["x"] * batch, "AT", due)] * 20)
            for _ in range(20):
                assert len(w.recv()) == batch

    due = all_delayed(fill, lambda: w.ok("FLUSHALL"))
    waiter = server.wire()
    waiter.send("DQ.FETCH", "q", "BLOCK", 0, "COUNT", 10)
    server.wait_blocked(1)
    sleep = ("DEBUG", "SLEEP", max(0, due - now_ms()) / 1000 + 0.2)
    steps = steps_between_answers(server, sleep, ask=("DQ.LEN", "q", "delayed"))
    assert len(steps) > 4 and max(steps) < 300_000 / 4
    assert len(msgs(waiter.recv())) == 10
    wait_for(lambda: w.ok("DQ.LEN", "q", "delayed") == 0, 60, "the end of the burst")
    assert len(w.ok("DQ.FETCH", "q", "COUNT", 1000)) == 1000
