"""Blocked FETCH and MFETCH: the clients that are served, their replies, and the ends of the waiting. These tests use
real time.
"""

import selectors

import pytest

from tests.harness.replies import Queue, msgs
from tests.harness.server import now_ms, wait_for
from tests.harness.waiting import LATE, got, waiter
from tests.harness.wire import Error


@pytest.fixture
def q(server, r3, key):
    queue = Queue(r3, key)
    queue.server = server
    return queue


def test_waiters_are_served_in_the_order_they_came(q):
    q.do("CREATE")
    waiters = [waiter(q) for _ in range(8)]
    for n in range(8):
        q.send(n)
    assert [got(w)[0].payload for w in waiters] == [b"%d" % n for n in range(8)]


def test_a_waiter_is_served_as_soon_as_there_is_a_message(q):
    q.do("CREATE")
    first, second = waiter(q, "COUNT", 10), waiter(q, "COUNT", 10)
    q.do("MSEND", 3, *"abc")
    assert [m.payload for m in got(first)] == [b"a", b"b", b"c"]
    q.do("MSEND", 2, *"de")
    assert [m.payload for m in got(second)] == [b"d", b"e"]


def test_msend_serves_many_waiters(q):
    q.do("CREATE")
    waiters = [waiter(q, "COUNT", 2) for _ in range(3)]
    q.do("MSEND", 5, *"abcde")
    assert [[m.payload for m in got(w)] for w in waiters] == [[b"a", b"b"], [b"c", b"d"], [b"e"]]


def test_a_timeout_gives_an_empty_array(q):
    for protocol in (2, 3):
        w = q.server.wire(protocol)
        before = now_ms()
        assert w.call("DQ.FETCH", q.key, "BLOCK", 60) == []
        assert 55 <= now_ms() - before <= 60 + LATE
    assert q.client.exists(q.key) == 0


def test_a_timeout_is_real_time_on_a_manual_clock(q):
    q.do("CREATE", "CLOCK", "MANUAL")
    w = q.server.wire()
    assert w.call("DQ.FETCH", q.key, "BLOCK", 30) == []


def test_ack_in_a_blocking_fetch_happens_before_the_wait(q):
    q.send("a")
    m = q.one()
    w = waiter(q, "ACK", 1, m.receipt)
    assert (q.len(), q.info()["acked"]) == (0, 1)
    q.send("b")
    assert got(w)[0].payload == b"b"
    assert q.info()["acked"] == 1


def test_noack_and_maxbytes_apply_to_a_waiter(q):
    q.do("CREATE")
    w = waiter(q, "NOACK", "COUNT", 5, "MAXBYTES", 2)
    q.do("MSEND", 3, *"abc")
    assert [(m.receipt, m.payload) for m in got(w)] == [(0, b"a"), (0, b"b")]
    assert q.len() == 1


def test_bind_applies_to_a_waiter(q):
    q.do("CREATE", "LEASE", 600000)
    w = waiter(q, "BIND")
    id = q.send("x")
    got(w)
    assert q.state(id) == "running"
    w.close()
    wait_for(lambda: q.state(id) == "ready", 5, "the bound lease's end")


def test_info_counts_blocked_clients(q):
    q.do("CREATE")
    a, b = waiter(q), waiter(q)
    assert q.info()["blocked-clients"] == 2
    a.close()
    q.server.wait_blocked(1)
    assert q.info()["blocked-clients"] == 1
    q.send("x")
    got(b)
    assert q.info()["blocked-clients"] == 0


@pytest.mark.parametrize("reason", ["TIMEOUT", "ERROR"])
def test_client_unblock_ends_a_blocked_fetch(q, reason):
    q.do("CREATE")
    w = q.server.wire()
    id = w.ok("CLIENT", "ID")
    w.send("DQ.FETCH", q.key, "BLOCK", 0)
    q.server.wait_blocked(1)
    assert q.client.execute_command("CLIENT", "UNBLOCK", id, reason) == 1
    reply = w.recv(5)
    assert reply == [] if reason == "TIMEOUT" else isinstance(reply, Error) and reply.startswith("UNBLOCKED")
    q.send("x")
    assert len(q.fetch()) == 1
    assert w.call("PING") == b"PONG"


def test_a_waiter_stays_when_its_key_is_deleted_or_another_type(q):
    q.do("CREATE")
    w = waiter(q)
    q.client.delete(q.key)
    q.client.set(q.key, "text")
    assert w.silent(0.05)
    q.client.delete(q.key)
    q.send("x")
    assert got(w)[0].payload == b"x"


def test_a_waiter_that_has_left_takes_no_message(q):
    q.do("CREATE")
    w = waiter(q)
    w.close()
    q.server.wait_blocked(0)
    id = q.send("x")
    assert q.state(id) == "ready"


def test_block_does_not_wait_in_multi_and_lua(q):
    q.do("CREATE")
    w = q.server.wire()
    script = "return redis.call('DQ.FETCH', KEYS[1], 'BLOCK', '0')"
    for expected in ([], [b"x"]):
        w.ok("MULTI")
        w.ok("DQ.FETCH", q.key, "BLOCK", 0)
        [reply] = w.ok("EXEC")
        assert [m.payload for m in msgs(reply)] == expected
        if not expected:
            assert w.ok("EVAL", script, 1, q.key) == []
            q.do("MSEND", 2, "x", "x")
    assert [m.payload for m in msgs(w.ok("EVAL", script, 1, q.key))] == [b"x"]
    w.ok("MULTI")
    w.ok("DQ.MFETCH", 1, q.key, "BLOCK", 0)
    assert not w.ok("EXEC")[0]


def test_a_send_in_a_transaction_wakes_after_it(q):
    q.do("CREATE")
    w = waiter(q)
    c = q.server.wire()
    c.ok("MULTI")
    c.ok("DQ.SEND", q.key, "a", "ID", "a")
    c.ok("DQ.CANCEL", q.key, "a")
    c.ok("DQ.SEND", q.key, "b", "ID", "b")
    assert c.ok("EXEC")[1] == [b"ready"]
    assert got(w)[0].id == b"b"


def test_mfetch_waits_on_several_queues(q):
    keys = [q.key, b"second" + q.key, b"third" + q.key]
    w = q.server.wire()
    for n in (1, 0, 2):
        w.send("DQ.MFETCH", 3, *keys, "BLOCK", 0)
        q.server.wait_blocked(1)
        q.client.execute_command("DQ.SEND", keys[n], n)
        name, reply = w.recv(5)
        assert (name, msgs(reply)[0].payload) == (keys[n], b"%d" % n)
    assert not w.call("DQ.MFETCH", 3, *keys, "BLOCK", 20)


def test_waiters_of_mfetch_and_fetch_are_served_in_one_order(q):
    q.do("CREATE")
    a = q.server.wire()
    a.send("DQ.MFETCH", 2, b"other" + q.key, q.key, "BLOCK", 0)
    q.server.wait_blocked(1)
    b = waiter(q)
    q.send("1")
    assert a.recv(5)[0] == q.key
    q.send("2")
    assert got(b)[0].payload == b"2"


def test_one_message_wakes_one_of_a_thousand_waiters(q):
    q.do("CREATE")
    waiters = [q.server.wire(protocol=2) for _ in range(1000)]
    for n, w in enumerate(waiters):
        w.send("DQ.FETCH", q.key, "BLOCK", 0, "CONSUMER", n)
    q.server.wait_blocked(1000, timeout=20)
    q.send("one")
    with selectors.DefaultSelector() as served:
        for w in waiters:
            served.register(w, selectors.EVENT_READ)
        [(key, _)] = served.select(20)
    first = key.fileobj
    assert got(first)[0].payload == b"one"
    assert q.len("running") == 1
    assert all(w.silent(0.0005) for w in waiters)
    q.do("MSEND", 999, *range(999))
    seen = [got(w)[0].payload for w in waiters if w is not first]
    assert sorted(seen, key=int) == [b"%d" % n for n in range(999)]
    assert q.len("running") == 1000
    q.server.wait_blocked(0)


def test_a_waiter_stays_over_a_reload(q):
    q.do("CREATE")
    w = waiter(q)
    q.client.execute_command("DEBUG", "RELOAD")
    q.send("x", "DELAY", 30)
    assert got(w)[0].payload == b"x"


def test_a_waiter_stays_over_flushall(q):
    q.send("x", "DELAY", 60000)
    w = waiter(q)
    q.client.flushall()
    q.send("y", "DELAY", 30)
    assert got(w)[0].payload == b"y"


def test_a_server_with_waiters_shuts_down_cleanly(make_server):
    server = make_server()
    Queue(server.client(), "q").send("x", "DELAY", 600000)
    waiters = [server.wire() for _ in range(20)]
    for w in waiters:
        w.send("DQ.FETCH", "q", "BLOCK", 0)
    server.wait_blocked(20)
    server.wire().send("SHUTDOWN", "NOSAVE")
    assert server.process.wait(10) == 0


def test_an_evicted_waiter_does_not_disturb_the_others(make_server):
    """maxmemory-clients drops waiters whose buffers are too large; the others are served."""
    server = make_server(maxmemory_clients="0")
    q = Queue(server.client(), "q")
    q.do("CREATE")
    fat = server.wire()
    fat.send("DQ.FETCH", "q", "BLOCK", 0, "CONSUMER", "fat")
    server.wait_blocked(1)
    thin = server.wire()
    thin.send("DQ.FETCH", "q", "BLOCK", 0)
    server.wait_blocked(2)
    fat.send("SET", "k", b"x" * 20_000_000)
    q.client.execute_command("CONFIG", "SET", "maxmemory-clients", "4mb")
    server.wait_blocked(1)
    q.send("x")
    assert got(thin)[0].payload == b"x"
    assert server.alive()
