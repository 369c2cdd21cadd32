"""FETCH BLOCK: what wakes a waiter, and when. Real time."""

import statistics

import pytest

from tests.harness.replies import Queue
from tests.harness.server import now_ms
from tests.harness.waiting import LATE, got, waiter, wakes_at


@pytest.fixture
def q(server, r3, key):
    queue = Queue(r3, key)
    queue.server = server
    return queue


def test_woken_when_a_message_is_sent(q):
    q.do("CREATE")
    w = waiter(q, "WITHMETA", "LEASE", 5000, "CONSUMER", "c")
    id = q.send("x")
    [m] = got(w)
    assert (m.id, m.attempt, m.payload) == (id, 1, b"x")
    assert abs(m.meta["lease-until"] - now_ms() - 5000) < LATE
    assert (q.state(id), q.get(id)["consumer"]) == ("running", b"c")


def test_woken_when_the_key_appears(q):
    w = waiter(q)
    assert q.client.exists(q.key) == 0
    q.send("x")
    assert got(w)[0].payload == b"x"


def test_woken_in_the_millisecond_of_the_due_time(q):
    q.do("CREATE")
    w = q.server.wire()
    late = []
    for _ in range(25):
        w.send("DQ.FETCH", q.key, "BLOCK", 0)
        due = now_ms() + 25
        q.send("x", "AT", due)
        [m] = got(w)
        late.append(now_ms() - due)
        q.ack(m.receipt)
    assert min(late) >= 0
    assert statistics.median(late) <= 5
    assert max(late) <= LATE


def test_woken_when_a_nearer_message_comes_later(q):
    q.send("far", "DELAY", 60000)
    w = waiter(q)
    due = now_ms() + 50
    q.send("near", "AT", due)
    assert wakes_at(w, due)[0].payload == b"near"


def test_woken_when_a_lease_runs_out(q):
    q.send("x")
    until = q.one("LEASE", 100, "WITHMETA").meta["lease-until"]
    assert wakes_at(waiter(q), until)[0].attempt == 2


def test_woken_when_touch_shortens_a_lease(q):
    q.send("x")
    m = q.one("LEASE", 60000)
    w = waiter(q)
    at = now_ms() + 40
    q.touch(40, m.receipt)
    wakes_at(w, at)


def test_woken_when_a_backoff_is_over(q):
    q.do("CREATE", "BACKOFF", "FIXED", 80)
    q.send("x", "ID", "a")
    q.nack(q.one().receipt)
    wakes_at(waiter(q), q.get("a")["due-at"])


def test_woken_by_nack_and_silent_nack(q):
    for how in ((), ("SILENT",)):
        q.send("x")
        m = q.one()
        w = waiter(q)
        q.nack(m.receipt, *how)
        [m] = got(w)
        q.ack(m.receipt)


def test_woken_when_a_slot_of_maxrunning_is_free(q):
    q.do("CREATE", "MAXRUNNING", 1)
    q.do("MSEND", 2, *"ab")
    m = q.one()
    w = waiter(q)
    assert w.silent(0.05)
    q.ack(m.receipt)
    assert got(w)[0].payload == b"b"


def test_woken_when_a_rate_limit_refills(q):
    q.do("CREATE", "RATE", 1, "PER", 120)
    q.do("MSEND", 2, *"ab")
    at = now_ms() + 120
    q.one()
    wakes_at(waiter(q), at)


def test_woken_when_a_pause_ends(q):
    q.send("a")
    q.do("PAUSE")
    w = waiter(q)
    assert w.silent(0.05)
    q.do("RESUME")
    got(w)
    q.send("b")
    at = now_ms() + 100
    q.do("PAUSE", "FOR", 100)
    assert wakes_at(waiter(q), at)[0].payload == b"b"


def test_woken_when_a_limit_is_lifted(q):
    q.do("CREATE", "MAXRUNNING", 1)
    q.do("MSEND", 2, *"ab")
    q.one()
    w = waiter(q)
    q.do("ALTER", "MAXRUNNING", 2)
    got(w)


@pytest.mark.parametrize("change", ["RESCHEDULE", "REDRIVE", "CANCEL"])
def test_woken_by_steering(q, change):
    q.do("CREATE", "RETRIES", 0, "MAXRUNNING", 1 if change == "CANCEL" else 0)
    if change == "RESCHEDULE":
        q.send("x", "ID", "a", "DELAY", 60000)
        w = waiter(q)
        q.do("RESCHEDULE", "a", "DELAY", 0)
    elif change == "REDRIVE":
        q.send("x", "ID", "a")
        q.nack(q.one().receipt)
        w = waiter(q)
        q.do("REDRIVE", "ALL")
    else:
        q.do("MSEND", 1, "first")
        m = q.one()
        q.send("x", "ID", "a")
        w = waiter(q)
        q.do("CANCEL", m.id)
    assert got(w)[0].id == b"a"


def test_woken_by_tick_on_a_manual_queue(q):
    q.do("CREATE", "CLOCK", "MANUAL")
    q.send("x", "DELAY", 100)
    w = waiter(q)
    q.tick("ADVANCE", 99)
    assert w.silent(0.05)
    q.tick("ADVANCE", 1)
    got(w)


@pytest.mark.parametrize("how", ["RENAME", "COPY", "RESTORE", "MOVE", "SWAPDB"])
def test_woken_when_a_queue_arrives_under_the_name(q, how):
    source = b"src" + q.key
    w = waiter(q)
    c = q.client
    if how in ("MOVE", "SWAPDB"):
        other = q.server.client(db=1)
        other.execute_command("DQ.SEND", q.key, "x")
        if how == "MOVE":
            other.execute_command("MOVE", q.key, 0)
        else:
            c.execute_command("SWAPDB", 0, 1)
    else:
        c.execute_command("DQ.SEND", source, "x")
        if how == "RESTORE":
            c.restore(q.key, 0, c.dump(source))
        else:
            c.execute_command(how, source, q.key)
    assert got(w)[0].payload == b"x"


@pytest.mark.parametrize("how", ["RENAME", "COPY", "RESTORE", "MOVE", "SWAPDB"])
def test_delayed_messages_of_an_arrived_queue_wake_on_time(q, how):
    source = b"src" + q.key
    w = waiter(q)
    c = q.client
    due = now_ms() + 150
    if how in ("MOVE", "SWAPDB"):
        other = q.server.client(db=1)
        other.execute_command("DQ.SEND", q.key, "x", "AT", due)
        other.execute_command("MOVE", q.key, 0) if how == "MOVE" else c.execute_command("SWAPDB", 0, 1)
    else:
        c.execute_command("DQ.SEND", source, "x", "AT", due)
        c.restore(q.key, 0, c.dump(source)) if how == "RESTORE" else c.execute_command(how, source, q.key)
    wakes_at(w, due)
