"""The wait list of blocked clients: the clients that are served first, those that are passed over, and the time that
serving takes.

These tests use real time.
"""

import pytest

from tests.harness.replies import Queue, msgs
from tests.harness.server import now_ms, wait_for
from tests.harness.waiting import LATE, given_at, got, waiter
from tests.harness.wire import Error


@pytest.fixture
def q(server, r, key):
    queue = Queue(r, key)
    queue.server = server
    queue.do("CREATE")
    return queue


@pytest.fixture
def small_slices(server):
    """The smallest time for a slice: only a few clients are served in one."""
    client = server.client()
    before = client.config_get("dq.tick-budget-us")["dq.tick-budget-us"]
    client.config_set("dq.tick-budget-us", 10)
    yield
    client.config_set("dq.tick-budget-us", before)


def crowd(server, name, n, *options, protocol=2):
    """n blocked connections, in the order of the wait list."""
    wires = [server.wire(protocol) for _ in range(n)]
    for wire in wires:
        # The PING is answered at the end of the wait.
        wire.send_many([("DQ.FETCH", name, "BLOCK", 0, *options), ("PING",)])
    server.wait_blocked(n, timeout=60)
    return wires


def at_once(server, *commands):
    """Sends commands so that the server reads all of them at once. Returns the replies."""
    with server.wire() as wire:
        wire.send_many(list(commands))
        return [wire.recv() for _ in commands]


def mfetch_waiter(q, *keys):
    w = q.server.wire()
    before = int(q.server.info("clients")["blocked_clients"])
    w.send("DQ.MFETCH", len(keys), *keys, "BLOCK", 0)
    q.server.wait_blocked(before + 1)
    return w


def test_each_waiter_gets_the_first_message_that_it_can_take(q):
    group = waiter(q, "GROUP", "g")
    plain = waiter(q)
    many = mfetch_waiter(q, b"other" + q.key, q.key)
    next_of_group = waiter(q, "GROUP", "g")
    last = waiter(q)
    q.send("1", "GROUP", "h")
    assert got(plain)[0].payload == b"1"
    q.send("2", "GROUP", "g")
    [head] = got(group)
    assert head.payload == b"2"
    # The group is busy, so no client can get its next message.
    q.send("3", "GROUP", "g")
    q.send("4")
    name, reply = many.recv(5)
    assert (name, msgs(reply)[0].payload) == (q.key, b"4")
    assert last.silent(0.05) and next_of_group.silent(0.01)
    q.ack(head.receipt)
    assert got(next_of_group)[0].payload == b"3"
    q.send("5")
    assert got(last)[0].payload == b"5"


def test_a_waiter_of_several_queues_is_served_once(q):
    other = Queue(q.client, b"other" + q.key)
    first = mfetch_waiter(q, q.key, other.key)
    second = mfetch_waiter(q, other.key, q.key)
    replies = at_once(q.server, ("DQ.SEND", q.key, "a"), ("DQ.SEND", other.key, "b"))
    assert not [reply for reply in replies if isinstance(reply, Error)]
    assert first.recv(5)[0] == q.key
    assert second.recv(5)[0] == other.key
    assert (q.info()["blocked-clients"], other.info()["blocked-clients"]) == (0, 0)


def test_mfetch_counts_a_key_named_twice_once(q):
    w = mfetch_waiter(q, q.key, q.key)
    assert q.info()["blocked-clients"] == 1
    q.send("a")
    assert w.recv(5)[0] == q.key
    assert q.info()["blocked-clients"] == 0


@pytest.mark.parametrize("how", ["KILL", "UNBLOCK"])
def test_a_waiter_that_has_just_left_is_passed_over(q, how):
    w = q.server.wire()
    id = w.ok("CLIENT", "ID")
    w.send("DQ.FETCH", q.key, "BLOCK", 0)
    q.server.wait_blocked(1)
    behind = waiter(q)
    kill = ("CLIENT", "KILL", "ID", id) if how == "KILL" else ("CLIENT", "UNBLOCK", id, "ERROR")
    # The message is there before the client goes, but both are read at once.
    assert at_once(q.server, ("DQ.SEND", q.key, "x"), kill)[1] == 1
    [m] = got(behind)
    assert (m.payload, m.attempt) == (b"x", 1)
    if how == "UNBLOCK":
        assert w.recv(5).startswith("UNBLOCKED")
        assert w.call("PING") == b"PONG"


def test_a_waiter_gets_one_reply_if_messages_come_at_its_timeout(q):
    wires = [q.server.wire() for _ in range(100)]
    for n, w in enumerate(wires):
        w.send("DQ.FETCH", q.key, "BLOCK", 60 + n // 10)
    until = now_ms() + 66
    q.do("MSEND", 50, *range(50), "AT", until)
    given = [m for w in wires for m in got(w)]
    assert len({m.id for m in given}) == len(given) == q.len("running")
    assert all(m.attempt == 1 for m in given)
    assert all(w.call("PING") == b"PONG" for w in wires)
    assert q.len("ready") == 50 - len(given)


def test_a_noack_waiter_is_served_though_maxrunning_is_reached(q):
    q.do("ALTER", "MAXRUNNING", 1)
    q.send("a")
    a = q.one()
    leasing, taking = waiter(q), waiter(q, "NOACK")
    q.send("b")
    assert got(taking)[0].payload == b"b"
    q.send("c")
    assert leasing.silent(0.05)
    q.ack(a.receipt)
    assert got(leasing)[0].payload == b"c"


def test_a_send_in_a_script_wakes_after_it(q):
    w = waiter(q)
    script = """
        redis.call('DQ.SEND', KEYS[1], 'a', 'ID', 'a')
        redis.call('DQ.CANCEL', KEYS[1], 'a')
        return redis.call('DQ.SEND', KEYS[1], 'b', 'ID', 'b')
    """
    q.client.eval(script, 1, q.key)
    assert got(w)[0].id == b"b"


def test_a_fetch_does_not_overtake_the_waiters(q):
    w = waiter(q)
    assert at_once(q.server, ("DQ.SEND", q.key, "a"), ("DQ.FETCH", q.key))[1] == []
    assert got(w)[0].payload == b"a"
    w = mfetch_waiter(q, q.key)
    assert at_once(q.server, ("DQ.SEND", q.key, "b"), ("DQ.MFETCH", 1, q.key))[1] is None
    assert msgs(w.recv(5)[1])[0].payload == b"b"
    # A transaction can fetch what it has sent itself.
    w = waiter(q)
    reply = at_once(q.server, ("MULTI",), ("DQ.SEND", q.key, "c"), ("DQ.FETCH", q.key), ("EXEC",))[-1]
    assert msgs(reply[1])[0].payload == b"c"
    assert w.silent(0.05)


def test_a_fetch_does_not_overtake_waiters_served_in_later_slices(q, small_slices):
    q.send("first")
    m = q.one()
    wires = crowd(q.server, q.key, 200)
    with q.server.wire() as late:
        late.send_many(
            [
                ("DQ.MSEND", q.key, 201, *range(201)),
                ("DQ.FETCH", q.key, "BLOCK", 0, "ACK", 1, m.receipt),
                ("DQ.LEN", q.key, "finished"),
            ]
        )
        late.recv()
        [last] = msgs(late.recv(20))
        late.recv()
    payloads = [got(w)[0].payload for w in wires]
    assert payloads + [last.payload] == [b"%d" % n for n in range(201)]
    assert q.info()["acked"] == 1


def test_waiters_are_served_in_order_over_many_slices(q, small_slices):
    wires = crowd(q.server, q.key, 300)
    q.do("MSEND", 300, *range(300), "DELAY", 30)
    assert [got(w)[0].payload for w in wires] == [b"%d" % n for n in range(300)]


def test_every_waiter_of_a_group_gets_its_messages(q, small_slices):
    groups = [waiter(q, "GROUP", f"g{n}") for n in range(50)]
    any_group = waiter(q)
    at_once(q.server, *[("DQ.SEND", q.key, n, "GROUP", f"g{n}") for n in (49, 7, 0, 30)])
    for n in (0, 7, 30):
        assert got(groups[n])[0].payload == b"%d" % n
    assert got(groups[49])[0].payload == b"49"
    q.send("x", "GROUP", "other")
    assert got(any_group)[0].payload == b"x"


def test_two_thousand_waiters_are_served_once_and_in_order(replica_pair):
    primary = replica_pair.primary
    q = Queue(primary.client(), "q")
    q.do("CREATE")
    wires = crowd(primary, "q", 2000, "LEASE", 600_000)
    q.do("MSEND", 2000, *range(2000))
    assert [got(w)[0].payload for w in wires] == [b"%d" % n for n in range(2000)]
    assert all(w.recv() == b"PONG" for w in wires)
    assert q.len("running") == 2000
    primary.wait_blocked(0)
    replica_pair.assert_same("q")


@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("wait", ["fetch", "list"])
def test_a_message_sent_by_an_unblocked_client_wakes_a_waiter(q, wait, delay):
    """The client runs when the server is about to sleep. `make load` measures how soon its message wakes the server."""
    other = Queue(q.client, b"other" + q.key)
    other.do("CREATE")
    other.server = q.server
    w = waiter(other)
    c = q.server.wire()
    first = ("DQ.FETCH", q.key, "BLOCK", 0) if wait == "fetch" else ("BLPOP", b"list" + q.key, 0)
    c.send_many([first, ("DQ.SEND", other.key, "x", "ID", "sent", "DELAY", delay)])
    q.server.wait_blocked(2)
    if wait == "fetch":
        q.send("go")
    else:
        q.client.rpush(b"list" + q.key, "go")
    assert [m.id for m in got(w)] == [b"sent"]


def test_nothing_is_delivered_when_a_client_pause_begins(q):
    w = waiter(q)
    before = now_ms()
    replies = at_once(q.server, ("DQ.SEND", q.key, "x"), ("CLIENT", "PAUSE", 300, "WRITE"))
    assert replies[1] == b"OK"
    [m] = got(w)
    assert before + 290 <= given_at(q, m) <= before + 300 + LATE


def test_nothing_is_delivered_when_the_server_becomes_a_replica(make_server):
    server = make_server()
    q = Queue(server.client(), "q")
    q.server = server
    q.do("CREATE")
    w = waiter(q)
    at_once(server, ("DQ.SEND", "q", "x"), ("REPLICAOF", "127.0.0.1", 1), ("REPLICAOF", "NO", "ONE"))
    assert w.recv(5).startswith("UNBLOCKED")
    [m] = Queue(server.client(), "q").fetch()
    assert (m.payload, m.attempt) == (b"x", 1)


def test_a_waiter_that_closes_its_connection_leaves_the_wait_list(q):
    wires = crowd(q.server, q.key, 20)
    for w in wires[::2]:
        w.close()
    q.server.wait_blocked(10)
    assert q.info()["blocked-clients"] == 10
    q.do("MSEND", 10, *range(10))
    assert [got(w)[0].payload for w in wires[1::2]] == [b"%d" % n for n in range(10)]
    wait_for(lambda: q.info()["blocked-clients"] == 0, 5, "an empty wait list")
