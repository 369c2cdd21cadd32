"""The events that wake a client that is blocked in FETCH, and the time at which they do so. These tests use real
time.
"""

import pytest

from tests.harness.replies import Queue
from tests.harness.server import now_ms
from tests.harness.waiting import (
    LATE,
    got,
    waiter,
    waits_after,
    wakes_at,
    woken_by,
)


@pytest.fixture
def q(server, r3, key):
    queue = Queue(r3, key)
    queue.server = server
    return queue


def test_a_waiter_is_woken_when_a_message_is_sent(q):
    q.do("CREATE")
    w = waiter(q, "WITHMETA", "LEASE", 5000, "CONSUMER", "c")
    [m] = woken_by(q, w, "SEND", "x", "ID", "a")
    assert (m.id, m.attempt, m.payload) == (b"a", 1, b"x")
    assert (q.state("a"), q.get("a")["consumer"]) == ("running", b"c")
    assert m.meta["lease-until"] == q.get("a")["started-at"] + 5000


def test_a_waiter_is_woken_when_its_key_appears(q):
    w = waiter(q)
    assert q.client.exists(q.key) == 0
    assert woken_by(q, w, "SEND", "x")[0].payload == b"x"


def test_a_waiter_is_woken_at_the_due_time_and_not_before(q):
    """The test repeats this 25 times, each with its own due time; nothing else can wake the waiter."""
    w = q.server.wire()
    for _ in range(25):
        w.send("DQ.FETCH", q.key, "BLOCK", 0)
        due = now_ms() + 25
        q.send("x", "AT", due)
        [m] = wakes_at(q, w, due)
        assert now_ms() >= due
        q.ack(m.receipt)
    assert 0 <= q.info()["lateness-max"] <= LATE


def test_a_waiter_is_woken_by_a_later_message_with_an_earlier_due_time(q):
    q.send("far", "DELAY", 60000)
    w = waiter(q)
    due = now_ms() + 50
    q.send("near", "AT", due)
    assert wakes_at(q, w, due)[0].payload == b"near"


def test_a_waiter_is_woken_when_a_lease_ends(q):
    q.send("x")
    w, [[m]] = waits_after(q, ("FETCH", "LEASE", 100, "WITHMETA"))
    assert wakes_at(q, w, m[4][b"lease-until"])[0].attempt == 2


def test_a_waiter_is_woken_when_touch_shortens_a_lease(q):
    q.send("x")
    m = q.one("LEASE", 60000)
    w = waiter(q)
    at = now_ms() + 40
    q.touch(40, m.receipt)
    wakes_at(q, w, at)


def test_a_waiter_is_woken_when_a_backoff_ends(q):
    q.do("CREATE", "BACKOFF", "FIXED", 80)
    q.send("x", "ID", "a")
    w, _ = waits_after(q, ("NACK", q.one().receipt))
    wakes_at(q, w, q.get("a")["due-at"])


def test_a_waiter_is_woken_by_nack_and_silent_nack(q):
    for how in ((), ("SILENT",)):
        q.send("x")
        m = q.one()
        [m] = woken_by(q, waiter(q), "NACK", m.receipt, *how)
        q.ack(m.receipt)


def test_a_waiter_is_woken_when_a_slot_of_maxrunning_is_free(q):
    q.do("CREATE", "MAXRUNNING", 1)
    q.do("MSEND", 2, *"ab")
    m = q.one()
    w = waiter(q)
    assert w.silent(0.05)
    assert woken_by(q, w, "ACK", m.receipt)[0].payload == b"b"


def test_a_waiter_is_woken_when_a_slot_of_rate_is_free(q):
    q.do("CREATE", "RATE", 1, "PER", 120)
    q.do("MSEND", 2, *"ab")
    w, [[first]] = waits_after(q, ("FETCH",))
    wakes_at(q, w, q.get(first[0])["started-at"] + 120)


def test_a_waiter_is_woken_when_a_pause_ends(q):
    q.send("a")
    q.do("PAUSE")
    w = waiter(q)
    assert w.silent(0.05)
    assert woken_by(q, w, "RESUME")
    q.send("b")
    w, [now, _] = waits_after(q, ("INFO",), ("PAUSE", "FOR", 100))
    assert wakes_at(q, w, now[b"now"] + 100)[0].payload == b"b"


def test_a_waiter_is_woken_when_a_limit_is_raised(q):
    q.do("CREATE", "MAXRUNNING", 1)
    q.do("MSEND", 2, *"ab")
    q.one()
    assert woken_by(q, waiter(q), "ALTER", "MAXRUNNING", 2)


@pytest.mark.parametrize("change", ["RESCHEDULE", "REDRIVE", "CANCEL"])
def test_a_waiter_is_woken_by_reschedule_redrive_and_cancel(q, change):
    q.do("CREATE", "RETRIES", 0, "MAXRUNNING", 1 if change == "CANCEL" else 0)
    if change == "RESCHEDULE":
        q.send("x", "ID", "a", "DELAY", 60000)
        how = "a", "DELAY", 0
    elif change == "REDRIVE":
        q.send("x", "ID", "a")
        q.nack(q.one().receipt)
        how = ("ALL",)
    else:
        q.do("MSEND", 1, "first")
        m = q.one()
        q.send("x", "ID", "a")
        how = (m.id,)
    assert woken_by(q, waiter(q), change, *how)[0].id == b"a"


def test_a_waiter_is_woken_by_tick_on_a_manual_clock(q):
    q.do("CREATE", "CLOCK", "MANUAL")
    q.send("x", "DELAY", 100)
    w = waiter(q)
    q.tick("ADVANCE", 99)
    assert w.silent(0.05)
    q.tick("ADVANCE", 1)
    assert got(w)


@pytest.mark.parametrize("how", ["RENAME", "COPY", "RESTORE", "MOVE", "SWAPDB"])
def test_a_waiter_is_woken_when_a_queue_is_moved_to_its_key(q, how):
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
def test_delayed_messages_of_a_moved_queue_wake_a_waiter_on_time(q, how):
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
    wakes_at(q, w, due)
