"""Commands that are replicated verbatim: at the time of the change before, a command needs no log entry with a time.

Replicas and a replayed log must come to the same queue.
"""

import time

import pytest

from tests.harness.aof import commands
from tests.harness.replies import Queue, digest, msgs
from tests.harness.server import wait_for

AOF = {"appendonly": "yes"}
CLOCKS = pytest.mark.parametrize("clock", ["MANUAL", "SERVER"])


def names_since(server, before):
    return [command[0].upper() for command in commands(server)[before:]]


def log_of(server, do):
    """The names of the commands that do() appends to the log."""
    before = len(commands(server))
    do()
    return names_since(server, before)


def finish_times(q):
    return [q.get(id)["finished-at"] for id in q.do("LIST", "finished", "COUNT", 300, "IDS")[1]]


def test_an_ack_at_the_time_of_the_change_before_is_logged_verbatim(make_server):
    server = make_server(**AOF)
    q = Queue(server.client(), "q")
    q.do("CREATE", "CLOCK", "MANUAL", "RETAIN", 1000, "LEASE", 60_000)
    q.do("MSEND", 9, *range(9))
    receipts = [m.receipt for m in q.fetch("COUNT", 9)]
    assert log_of(server, lambda: q.ack(receipts[0])) == [b"DQ.ACK"]
    assert log_of(server, lambda: q.ack(receipts[0])) == [], "it is stale"
    assert log_of(server, lambda: q.ack(7, *receipts[:3], "RESULT", "done")) == [b"DQ.ACK"]
    assert log_of(server, lambda: q.ack(1, 2, 3, 4, receipts[4])) == [b"DQ.OP"], "for this many receipts a log entry is shorter"
    script = "return redis.call('DQ.ACK', KEYS[1], ARGV[1])"
    assert log_of(server, lambda: server.client().eval(script, 1, "q", receipts[5])) == [b"DQ.ACK"]

    def transaction():
        with server.client().pipeline(transaction=True) as pipe:
            pipe.execute_command("DQ.ACK", "q", receipts[6])
            pipe.execute_command("DQ.SEND", "q", "x")
            assert pipe.execute()[0] == 1

    assert log_of(server, transaction) == [b"MULTI", b"DQ.ACK", b"DQ.SEND", b"EXEC"]
    before = digest(server.client(), "q")
    assert q.len("finished") == 6
    server.restart(crash=True)
    assert digest(server.client(), "q") == before


def test_a_send_without_a_duration_is_logged_verbatim(make_server):
    server = make_server(**AOF)
    q = Queue(server.client(), "q")
    q.do("CREATE", "CLOCK", "MANUAL", "MAXLEN", 5)
    r = Queue(server.client(), "r")
    assert log_of(server, lambda: r.send("x")) == [b"DQ.OP"], "it creates its queue"
    for options in ([], ["ID", "a"], ["ID", "a", "REPLACE"], ["GROUP", "g", "PRIORITY", 3]):
        assert log_of(server, lambda options=options: q.send("long", *options)) == [b"DQ.SEND"]
    assert log_of(server, lambda: q.do("SEND", "x", "ID", "a")) == [b"DQ.SEND"], "a duplicate is counted"
    for options in (["DELAY", 0], ["DELAY", 5], ["AT", 10**13], ["LEASE", 5], ["TTL", 5]):
        assert log_of(server, lambda options=options: q.send("x", "ID", "t", "REPLACE", *options)) == [b"DQ.OP"]
    assert log_of(server, lambda: q.do("MSEND", 1, "x")) == [b"DQ.OP"]
    assert log_of(server, lambda: q.fails("SEND", "one too many")) == []
    ids, info, same = q.do("LIST", "ready", "IDS"), q.info(), digest(server.client(), "q")
    assert info["duplicates"] == 1
    # The log is loaded even if dq.max-payload is smaller by then.
    server.client().config_set("dq.max-payload", 2)
    server.client().config_rewrite()
    server.restart(crash=True)
    q = Queue(server.client(), "q")
    assert (q.do("LIST", "ready", "IDS"), digest(server.client(), "q")) == (ids, same)


def receipts_of(q):
    return [q.get(id)["receipt"] for id in q.do("LIST", "running", "COUNT", 300, "IDS")[1]]


def fetched_at_once(server, *fetches, fill=()):
    """The names in the log of fetches that the server reads at once, usually within one millisecond."""
    with server.wire() as w:
        before = len(commands(server))
        w.send_many([*fill, *(("DQ.FETCH", "q", *options) for options in fetches)])
        for _ in (*fill, *fetches):
            w.recv()
    return names_since(server, before)[len(fill) :]


@CLOCKS
def test_a_fetch_whose_receipts_can_be_derived_is_logged_verbatim(make_server, clock):
    server = make_server(**AOF)
    q = Queue(server.client(), "q")
    q.do("CREATE", "CLOCK", clock, "LEASE", 600_000, "RETAIN", 600_000)
    q.do("MSEND", 300, *range(300))
    time.sleep(0.005)
    names = fetched_at_once(server, *([()] * 100), ("COUNT", 3, "CONSUMER", "c"), ("NOACK",), ("PERGROUP", 2))
    assert set(names) == {b"DQ.OP", b"DQ.FETCH"} and names[0] == b"DQ.OP" and len(names) == 103
    for options in (["LEASE", 500_000], ["BLOCK", 1], ["BIND"]):
        assert set(fetched_at_once(server, options, options)) == {b"DQ.OP"}
    time.sleep(0.005)
    names = fetched_at_once(server, *(("ACK", 1, receipt) for receipt in receipts_of(q)[:40]))
    assert set(names) == {b"DQ.OP", b"DQ.FETCH"}
    assert q.len("finished") == 41
    same, receipts = digest(server.client(), "q"), receipts_of(q)
    time.sleep(0.02)
    server.restart(crash=True)
    q = Queue(server.client(), "q")
    assert (digest(server.client(), "q"), receipts_of(q)) == (same, receipts)
    assert q.one().receipt > max(receipts)


def test_two_queues_never_give_out_the_same_receipt(make_server):
    server = make_server(**AOF)
    client = server.client()
    for name in "qr":
        Queue(client, name).do("CREATE", "LEASE", 600_000)
        Queue(client, name).do("MSEND", 100, *range(100))
    with server.wire() as w:
        w.send_many([("DQ.FETCH", "qqr"[n % 3]) for n in range(120)])
        given = [w.recv()[0][1] for _ in range(120)]
    assert given == sorted(set(given))
    same = [digest(client, name) for name in "qr"]
    server.restart(crash=True)
    assert [digest(server.client(), name) for name in "qr"] == same


def test_an_ack_at_a_later_time_is_a_log_entry_with_its_time(make_server):
    server = make_server(**AOF)
    q = Queue(server.client(), "q")
    q.do("CREATE", "RETAIN", 60_000)
    q.send("x")
    [m] = q.fetch()
    time.sleep(0.01)
    assert log_of(server, lambda: q.ack(m.receipt)) == [b"DQ.OP"]


def test_events_due_before_an_ack_survive_a_crash(make_server):
    server = make_server(**AOF)
    q = Queue(server.client(), "q")
    q.do("CREATE", "LEASE", 60_000)
    q.send("x")
    q.do("MSEND", 500, *range(500), "DELAY", 1)
    [m] = q.fetch("COUNT", 1)
    time.sleep(0.05)
    q.ack(m.receipt)
    before = digest(server.client(), "q")
    server.restart(crash=True)
    assert digest(server.client(), "q") == before


@pytest.mark.parametrize("preamble", ["yes", "no"])
@CLOCKS
def test_acks_after_a_rewrite_of_the_log_keep_their_times(make_server, clock, preamble):
    server = make_server(**AOF, aof_use_rdb_preamble=preamble)
    client = server.client()
    q = Queue(client, "q")
    q.do("CREATE", "CLOCK", clock, "RETAIN", 600_000, "LEASE", 60_000)
    q.do("MSEND", 40, *range(40))
    if clock == "MANUAL":
        q.do("TICK", "TO", 7)
    receipts = [m.receipt for m in q.fetch("COUNT", 40)]
    client.execute_command("BGREWRITEAOF")
    wait_for(lambda: not client.info("persistence")["aof_rewrite_in_progress"], 20, "the rewrite")
    with server.wire() as w:
        w.send_many([("DQ.ACK", "q", r) for r in receipts])
        assert [w.recv() for _ in receipts] == [1] * len(receipts)
    same, finished = digest(client, "q"), finish_times(q)
    server.restart(crash=True)
    assert (digest(server.client(), "q"), finish_times(q)) == (same, finished)


def test_a_cluster_node_logs_no_command_verbatim(make_server):
    server = make_server(**AOF, cluster_enabled="yes")
    client = server.client()
    client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    wait_for(lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"), 10, "the cluster")
    q = Queue(client, "q")
    q.do("CREATE", "CLOCK", "MANUAL")
    q.send("x")
    [m] = q.fetch()
    assert log_of(server, lambda: q.ack(m.receipt)) == [b"DQ.OP"]


@CLOCKS
def test_replicas_have_the_same_queue_after_verbatim_commands(replica_pair, clock):
    pair = replica_pair
    q = Queue(pair.primary.client(), "q")
    q.do("CREATE", "CLOCK", clock, "RETAIN", 600_000, "LEASE", 60_000, "GROUPCONCURRENCY", 2)
    q.do("MSEND", 200, *range(200))
    for n in range(200):
        q.send(n, "GROUP", f"g{n % 7}", "DELAY", n % 3)
    time.sleep(0.01)
    if clock == "MANUAL":
        q.do("TICK", "TO", 5)
    with pair.primary.wire() as w:
        for round in range(12):
            # The server reads them at once, so most of them have the same time.
            w.send_many([("DQ.FETCH", "q", "COUNT", 5, "CONSUMER", f"c{round % 2}")] * 4)
            receipts = [m.receipt for _ in range(4) for m in msgs(w.recv())]
            w.send_many([("DQ.ACK", "q", r, "RESULT", f"r{r}") for r in receipts])
            assert [w.recv() for _ in receipts] == [1] * len(receipts)
            w.send_many([("DQ.SEND", "q", "x", "GROUP", f"g{n}", "ID", n % 12) for n in range(20)])
            assert all(w.recv() in (None, str(n % 12).encode()) for n in range(20))
    pair.wait_sync()
    pair.assert_same("q")
    id = q.do("LIST", "finished", "IDS")[1][0]
    assert Queue(pair.replica.client(), "q").get(id) == q.get(id)


def test_acks_of_one_event_loop_are_replayed_at_their_times(make_server):
    server = make_server(**AOF)
    q = Queue(server.client(), "q")
    q.do("CREATE", "RETAIN", 600_000, "LEASE", 60_000)
    q.do("MSEND", 300, *range(300))
    receipts = [m.receipt for m in q.fetch("COUNT", 300)]
    before = len(commands(server))
    with server.wire() as w:
        w.send_many([("DQ.ACK", "q", r) for r in receipts])
        assert [w.recv() for _ in receipts] == [1] * 300
    names = names_since(server, before)
    assert len(names) == 300 and set(names) == {b"DQ.OP", b"DQ.ACK"}
    finished = finish_times(q)
    same = digest(server.client(), "q")
    time.sleep(0.05)
    server.restart(crash=True)
    assert digest(server.client(), "q") == same
    assert finish_times(q) == finished


SCRIPT = """
for n = 1, 30 do redis.call('DQ.SEND', KEYS[1], n, 'GROUP', 'g' .. n % 3) end
local given = redis.call('DQ.FETCH', KEYS[1], 'COUNT', 3)
for _, m in ipairs(given) do redis.call('DQ.ACK', KEYS[1], m[2]) end
return #redis.call('DQ.FETCH', KEYS[1], 'COUNT', 2)
"""


@CLOCKS
def test_replicas_have_the_same_queue_after_scripts(replica_pair, clock):
    pair = replica_pair
    client = pair.primary.client()
    q = Queue(client, "q")
    q.do("CREATE", "CLOCK", clock, "RETAIN", 600_000, "LEASE", 600_000, "GROUPCONCURRENCY", 20)
    for _ in range(5):
        assert client.eval(SCRIPT, 1, "q") == 2
    assert (q.len("finished"), q.len("running")) == (15, 10)
    pair.assert_same("q")


@CLOCKS
def test_a_promoted_replica_gives_out_no_receipt_again(replica_pair, clock):
    pair = replica_pair
    q = Queue(pair.primary.client(), "q")
    q.do("CREATE", "CLOCK", clock, "LEASE", 600_000)
    q.do("MSEND", 200, *range(200))
    with pair.primary.wire() as w:
        w.send_many([("DQ.FETCH", "q")] * 150)
        receipts = [msgs(w.recv())[0].receipt for _ in range(150)]
    assert receipts == sorted(set(receipts))
    pair.assert_same("q")
    pair.promote()
    q = Queue(pair.replica.client(), "q")
    assert [m.receipt > receipts[-1] for m in q.fetch("COUNT", 50)] == [True] * 50
