"""Full memory: commands that add are refused, commands that drain work; eviction, slow readers, big backlogs."""

import pytest

from tests.harness.replies import Queue, msgs
from tests.harness.server import wait_for
from tests.harness.wire import Error


@pytest.fixture
def full(make_server):
    """A server at its limit, with ten ready messages, one running and one dead in `q`."""
    server = make_server(maxmemory_policy="noeviction")
    w = server.wire()
    w.ok("DQ.CREATE", "q", "LEASE", 600000)
    w.ok("DQ.MSEND", "q", 12, *["x" * 100] * 12)
    w.ok("DQ.SEND", "q", "d", "ID", "delayed", "DELAY", 600000)
    [[_, w.running, _, _], [_, dead, _, _]] = w.ok("DQ.FETCH", "q", "COUNT", 2)
    w.ok("DQ.NACK", "q", dead, "FATAL")
    w.ok("CONFIG", "SET", "maxmemory", 1)
    return w


@pytest.mark.parametrize(
    "call",
    [("DQ.SEND", "q", "x"), ("DQ.MSEND", "q", 2, "x", "y"), ("DQ.SEND", "new", "x"), ("DQ.CREATE", "new")]
    + [("DQ.GROUPPUSH", "q", '{"a":1}', "GROUPBY", 1, "a"), ("DQ.SCHEDULE", "q", "n", "EVERY", 5, "PAYLOAD", "p")],
)
def test_commands_that_add_are_refused_on_a_full_server(full, call):
    before = full.ok("DEBUG", "DIGEST-VALUE", "q", "new")
    reply = full.call(*call)
    assert isinstance(reply, Error) and reply.startswith("OOM")
    assert full.ok("DEBUG", "DIGEST-VALUE", "q", "new") == before


def test_commands_that_drain_work_on_a_full_server(full):
    assert full.ok("DQ.TOUCH", "q", 700000, full.running) == 1
    assert full.ok("DQ.NACK", "q", full.running) == 1
    receipts = [m.receipt for m in msgs(full.ok("DQ.FETCH", "q", "COUNT", 5, "CONSUMER", "new"))]
    assert full.ok("DQ.ACK", "q", *receipts) == 5
    assert full.ok("DQ.CANCEL", "q", "delayed", "unknown") == [b"delayed", None]
    got = full.ok("DQ.FETCH", "q", "COUNT", 3, "BLOCK", 0, "ACK", 1, 5)
    assert len(got) == 3
    assert full.ok("DQ.MFETCH", 1, "q")[0] == b"q"
    full.ok("DQ.TICK", "q")
    assert full.ok("DQ.PURGE", "q") > 0
    assert full.ok("DQ.LEN", "q") == 0


def test_due_messages_wake_waiters_on_a_full_server(full):
    while full.ok("DQ.FETCH", "q", "COUNT", 100, "NOACK"):
        pass
    full.ok("DQ.RESCHEDULE", "q", "delayed", "DELAY", 100)
    reply = msgs(full.ok("DQ.FETCH", "q", "BLOCK", 5000))
    assert [m.id for m in reply] == [b"delayed"]


def test_sends_work_again_after_maxmemory_is_raised(full):
    full.ok("CONFIG", "SET", "maxmemory", 0)
    assert full.ok("DQ.SEND", "q", "x", "ID", "a") == b"a"


def test_waiters_of_an_evicted_queue_are_served_later(make_server):
    server = make_server(maxmemory_policy="allkeys-random")
    w, waiting = server.wire(), server.wire()
    w.ok("DQ.MSEND", "q", 100, *range(100), "DELAY", 60000)
    waiting.send("DQ.FETCH", "q", "BLOCK", 0)
    server.wait_blocked(1)
    w.ok("CONFIG", "SET", "maxmemory", 1)
    wait_for(lambda: w.ok("DBSIZE") == 0 or isinstance(w.call("SET", "k", "v"), Error), 10, "the eviction")
    w.ok("CONFIG", "SET", "maxmemory", 0)
    w.ok("DEL", "q")
    w.ok("DQ.SEND", "q", "new")
    assert msgs(waiting.recv(5))[0].payload == b"new"


def test_a_client_that_does_not_read_is_closed_and_nothing_is_lost(make_server):
    server = make_server(client_output_buffer_limit="normal 1mb 1mb 1")
    q = Queue(server.client(), "q")
    q.do("CREATE", "LEASE", 500, "RETRIES", -1)
    for n in range(40):
        q.send(b"%d" % n + b"x" * 200_000, "ID", n)
    w = server.wire()
    id = str(w.ok("CLIENT", "ID"))
    w.send_many([("DQ.FETCH", "q")] * 40)
    wait_for(lambda: id not in {c["id"] for c in q.client.client_list()}, 20, "the cut")
    assert q.info()["delivered"] > 0
    wait_for(lambda: q.len("ready") == 40, 20, "the leases' end")
    ids = set()
    while got := q.fetch("COUNT", 5, "LEASE", 60000):
        ids |= {m.id for m in got}
    assert ids == {b"%d" % n for n in range(40)}


def test_maxbytes_limits_the_size_of_a_reply(r3, key):
    q = Queue(r3, key)
    for _ in range(10):
        q.send(b"x" * 100_000)
    assert len(q.fetch("COUNT", 1000, "MAXBYTES", 350_000)) == 3


def test_messages_that_come_and_go_leak_no_memory(make_server):
    """Messages come and go for a while, and the memory of the queue does not grow."""
    server = make_server()
    w = server.wire()

    def round_trips(n):
        for _ in range(n):
            w.send_many([("DQ.MSEND", "q", 500, *["x" * 100] * 500), ("DQ.FETCH", "q", "COUNT", 500)])
            w.recv()
            receipts = [m[1] for m in w.recv()]
            w.ok("DQ.ACK", "q", *receipts)

    round_trips(20)
    before = int(server.info("memory")["used_memory"])
    round_trips(60)
    assert int(server.info("memory")["used_memory"]) < before + 500_000
    assert w.ok("MEMORY", "USAGE", "q") < 1_000_000
