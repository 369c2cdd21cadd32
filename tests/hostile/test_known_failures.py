"""Five known failures of delay queues that are made of scripts around Redis; each must not happen here."""

import threading
import time

import pytest

from tests.harness.replies import Manual, Queue, msgs
from tests.harness.server import now_ms, wait_for
from tests.harness.waiting import all_delayed, steps_between_answers

HANDLER_MS = 300
MESSAGES = 200
# Shorter than twenty handlers of 0.1 s, longer than a machine that is busy keeps one of them waiting.
LEASE = 1500


class Handled:
    """Counts how often each message is handled, and notices two handlers of one message at once."""

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
    """n worker threads that run until `until()`. Each fetches with `fetch` and handles one message after the other."""
    stop = threading.Event()

    def loop():
        with server.wire() as w:
            while not stop.is_set():
                batch = msgs(w.ok("DQ.FETCH", key, "BLOCK", 100, *fetch))
                for i, m in enumerate(batch):
                    # TOUCH keeps the messages that wait in the client.
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


# ---- 136 of 200 messages were deleted unprocessed: the lease ran while they waited in the client ------------------


def test_a_slow_handler_loses_nothing_with_default_options(r3, key):
    """With one message at a time, the lease begins with the handler, and 300 ms are well within it."""
    q = Manual(r3, key)
    q.do("MSEND", MESSAGES, *range(MESSAGES))
    handled = []
    while batch := q.fetch():
        q.advance(HANDLER_MS)
        handled += [int(m.payload) for m in batch]
        assert q.ack(batch[0].receipt) == 1
    assert handled == list(range(MESSAGES))
    assert q.len() == 0
    assert q.info()["timeouts"] == 0


@pytest.mark.parametrize("count", [10, 50, MESSAGES])
def test_messages_whose_lease_ends_in_the_client_are_delivered_again(r3, key, count):
    """A client that takes more than it can handle within the lease gets the rest again, and no message is deleted or
    dead.
    """
    q = Manual(r3, key)
    q.do("MSEND", MESSAGES, *range(MESSAGES))
    acked, rounds = [], 0
    while batch := q.fetch("COUNT", count):
        rounds += 1
        assert rounds <= 10 * MESSAGES / count
        for m in batch:
            q.advance(HANDLER_MS)
            if q.ack(m.receipt):
                acked.append(int(m.payload))
    assert sorted(acked) == list(range(MESSAGES))
    assert q.len() == 0
    info = q.info()
    assert (info["acked"], info["deaths"], info["dead"]) == (MESSAGES, 0, 0)


def test_touch_keeps_the_messages_that_wait_in_the_client(r3, key):
    """With TOUCH for all that it holds, a client handles each message in one delivery, even if many messages wait in
    it.
    """
    q = Manual(r3, key)
    q.do("MSEND", MESSAGES, *range(MESSAGES))
    held = [m.receipt for m in q.fetch("COUNT", MESSAGES)]
    while held:
        q.advance(HANDLER_MS)
        assert q.ack(held.pop(0)) == 1
        assert not held or q.touch(30_000, *held) == len(held)
    info = q.info()
    assert (info["acked"], info["redelivered"], info["timeouts"]) == (MESSAGES, 0, 0)


def test_four_workers_handle_each_message_once_with_default_options(server, r3, key):
    """There are 200 messages with default options: each is handled exactly once, none dies unprocessed."""
    q = Queue(r3, key)
    q.do("MSEND", 200, *range(200))
    handled = Handled(0.02, key)
    run_workers(server, key, handled, 4, (), lambda: q.len() == 0)
    assert set(handled.times.values()) == {1}
    assert len(handled.times) == 200
    assert (q.info()["timeouts"], q.len("dead")) == (0, 0)


def test_touch_keeps_a_prefetched_batch_in_real_time(server, r3, key):
    """A batch takes longer than its lease; TOUCH keeps the messages that wait in the client."""
    q = Queue(r3, key)
    q.do("CREATE", "LEASE", LEASE)
    q.do("MSEND", 60, *range(60))
    handled = Handled(0.1, key)
    run_workers(server, key, handled, 2, ("COUNT", 20), lambda: q.len() == 0)
    assert set(handled.times.values()) == {1}
    assert q.len("dead") == 0


def test_a_late_handler_cannot_ack_the_delivery_of_another(r, key):
    """Prefetched messages whose lease ends are delivered again, and only the current holder can ack them."""
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


# ---- two consumers ran 7 of 60 messages twice ---------------------------------------------------------------------


@pytest.mark.slow
def test_two_consumers_handle_no_message_twice(server, key):
    """Real time, two consumers, handlers of 5 to 40 ms, and some that outlast the lease by heartbeats."""
    lease = 1500
    q = Queue(server.client(), key)
    q.do("CREATE", "LEASE", lease)
    q.do("MSEND", 60, *range(60))
    runs, errors = [], []

    def consume(client):
        mine = Queue(client, key)
        try:
            while batch := mine.fetch("BLOCK", 100):
                m = batch[0]
                began, number = time.monotonic(), int(m.payload)
                long = number % 15 == 0
                for _ in range(4 if long else 1):
                    time.sleep(0.4 if long else (5 + number % 36) / 1000)
                    assert mine.touch(lease, m.receipt) == 1
                runs.append((number, began, time.monotonic()))
                assert mine.ack(m.receipt) == 1
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=consume, args=(server.client(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(number for number, _, _ in runs) == list(range(60))
    assert q.len() == 0
    assert q.info()["redelivered"] == 0


def test_two_consumers_never_handle_one_message_at_once(server, r3, key):
    q = Queue(r3, key)
    q.do("CREATE", "LEASE", 2000)
    q.do("MSEND", 60, *range(60), "DELAY", 50)
    handled = Handled(0.01, key)
    run_workers(server, key, handled, 2, (), lambda: q.len() == 0)
    assert (handled.twice_at_once, set(handled.times.values()), len(handled.times)) == (0, {1}, 60)


# ---- expired payloads leaked the fetch limit until nothing was delivered ------------------------------------------


@pytest.mark.parametrize("end", ["expire", "cancel", "purge", "dead", "stale-ack"])
def test_every_kind_of_end_frees_its_slot_of_maxrunning(r3, key, end):
    """Slots of MAXRUNNING are free again however their messages end, round after round."""
    slots = 5
    q = Manual(r3, key, "MAXRUNNING", slots, "LEASE", 1000, "RETRIES", 0, *(("TTL", 500) if end == "expire" else ()))
    for _ in range(20):
        q.do("MSEND", 2 * slots, *range(2 * slots))
        held = q.fetch("COUNT", 100)
        assert len(held) == slots, f"{slots - len(held)} slots have leaked"
        assert q.fetch() == []
        if end == "cancel":
            q.do("CANCEL", *(m.id for m in held))
        elif end == "purge":
            q.do("PURGE", "STATE", "running")
        else:
            # The leases end, so the messages expire or are out of retries. A late ACK must not free a slot twice.
            q.advance(1001)
            assert end != "stale-ack" or q.ack(*(m.receipt for m in held)) == 0
        assert q.len("running") == 0
        q.do("PURGE")
    assert q.len() == 0


@pytest.mark.parametrize("limit", [("MAXRUNNING", 3), ("RATE", 3, "PER", 100)])
def test_expired_messages_free_maxrunning_and_rate(r, key, limit):
    """Messages that expire while pending or running free their slots, round after round."""
    q = Manual(r, key, *limit, "TTL", 50, "LEASE", 20, "RETRIES", 1)
    for _ in range(40):
        q.do("MSEND", 10, *range(10))
        assert len(q.fetch("COUNT", 10)) == 3
        q.advance(100)
        assert q.len() == 0
    assert q.info()["running"] == 0


# ---- a million messages due at once stopped the server for 975 ms -------------------------------------------------


@pytest.mark.slow
# Sending a million messages takes long on a very busy machine.
@pytest.mark.timeout(240)
def test_a_million_due_at_once_does_not_stop_the_server(make_server):
    """A client that sends all the time gets its replies while the messages become ready."""
    server = make_server()
    q = Queue(server.client(), "q")
    payloads = [b"x"] * 10_000

    def fill(due):
        for _ in range(100):
            q.do("MSEND", len(payloads), *payloads, "AT", due)

    due = all_delayed(fill, server.client().flushall)
    # The server sleeps beyond the due time, so that all messages are due when it wakes, and the commands wait, too.
    sleep = ("DEBUG", "SLEEP", max(0, due - now_ms()) / 1000 + 0.2)
    steps = steps_between_answers(server, sleep, ask=("DQ.LEN", "q", "delayed"))
    assert len(steps) > 4 and max(steps) < 1_000_000 / 4
    wait_for(lambda: q.len("ready") == 1_000_000, 60, "the end of the burst")
    assert len(q.fetch("COUNT", 100)) == 100


@pytest.mark.slow
def test_many_due_at_once_do_not_stop_a_server_with_a_waiter(make_server):
    """300,000 messages fall due in one millisecond while a consumer waits; other clients are answered all the time."""
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


# ---- a late nack revived a message that was already gone ----------------------------------------------------------


@pytest.mark.parametrize("late", [(), ("DELAY", 5), ("SILENT",), ("FATAL",), ("ERROR", "too late")])
@pytest.mark.parametrize(
    "gone", ["acked", "acked by another", "cancelled", "purged", "id taken anew", "key made anew"]
)
def test_a_late_nack_changes_nothing(r3, key, gone, late):
    q = Manual(r3, key, "LEASE", 1000, "RETRIES", 5)
    q.send("x", "ID", "m")
    receipt = q.one().receipt
    if gone == "acked":
        q.ack(receipt)
    elif gone == "acked by another":
        q.advance(1001)
        q.ack(q.one().receipt)
    elif gone == "cancelled":
        q.do("CANCEL", "m")
    elif gone == "purged":
        q.do("PURGE")
    elif gone == "id taken anew":
        q.ack(receipt)
        q.send("y", "ID", "m")
        q.one()
    else:
        r3.delete(key)
        q.do("CREATE", "CLOCK", "MANUAL", "LEASE", 1000)
        q.send("y", "ID", "m")
        q.one()
    before = q.digest()
    assert q.nack(receipt, *late) == 0
    assert q.digest() == before
    q.advance(10)
    assert q.fetch() == []


def test_a_late_nack_brings_no_ended_message_back(r, key):
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
