"""ACKSEND changes several queues by one log entry: whole on replicas, in the log and in a cluster, or not at all."""

import pytest

from tests.harness.aof import commands, increments
from tests.harness.replies import Queue, digest
from tests.harness.server import wait_for
from tests.harness.wire import Error

LOG = {"appendonly": "yes", "appendfsync": "always", "auto-aof-rewrite-percentage": 0}


def start(client, key, *options) -> int:
    """A queue with a running message. Returns its receipt."""
    q = Queue(client, key)
    q.do("CREATE", "LEASE", 600_000, *options)
    q.send("x", "ID", "a")
    return q.one().receipt


def run_all(client):
    """ACKSENDs of every kind."""
    receipt = start(client, "q", "RETAIN", 60_000)
    q = Queue(client, "q")
    q.do("ACKSEND", receipt, "RESULT", "r", "NEXT", "d1", "p", "NEXT", "q", "p", "ID", "a", "NEXT", "d2", "p", "DELAY", 90_000)
    receipt = q.one().receipt
    q.do("ACKSEND", receipt, "NEXT", "d1", "p", "ID", "one", "NEXT", "d1", "p", "ID", "one", "NEXT", "d1", "p", "GROUP", "g")
    q.send("y")
    receipt = q.one().receipt
    q.do("ALTER", "MAXLEN", 1)
    with pytest.raises(Exception, match="QUEUEFULL"):
        q.do("ACKSEND", receipt, "NEXT", "d3", "p", "NEXT", "q", "p", "NEXT", "q", "p")
    q.do("ACKSEND", receipt, "NEXT", "d1", "p", "NEXT", "q", "p", "TTL", 500_000)
    return ["q", "d1", "d2"]


def test_it_is_the_same_on_a_replica(replica_pair):
    keys = run_all(replica_pair.primary.client())
    replica_pair.assert_same(*keys)
    twin = replica_pair.replica.client()
    assert (Queue(twin, "d1").len(), twin.exists("d3")) == (4, 0)
    with replica_pair.replica.wire() as w:
        assert w.call("DQ.ACKSEND", "q", 1, "NEXT", "q", "p").startswith("READONLY")


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_it_is_the_same_after_the_log_was_loaded(make_server, preamble):
    server = make_server(**LOG, **{"aof-use-rdb-preamble": preamble})
    keys = run_all(server.client())
    before = [digest(server.client(), key) for key in keys]
    for _ in range(2):
        server.client().execute_command("DEBUG", "LOADAOF")
        assert [digest(server.client(), key) for key in keys] == before
        server.restart(crash=True)
        assert [digest(server.client(), key) for key in keys] == before
        server.client().bgrewriteaof()


def test_it_is_one_command_of_the_log(make_server):
    server = make_server(**LOG)
    client = server.client()
    receipt = start(client, "q")
    before = len(commands(server))
    Queue(client, "q").do("ACKSEND", receipt, "NEXT", "q", "1", "NEXT", "d", "2", "NEXT", "q", "3")
    [entry] = commands(server)[before:]
    assert entry[0].upper() == b"DQ.OPS"
    assert entry[1::2] == [b"q", b"d"]


def test_of_one_queue_it_is_an_ordinary_entry(make_server):
    server = make_server(**LOG)
    client = server.client()
    receipt = start(client, "q")
    before = len(commands(server))
    Queue(client, "q").do("ACKSEND", receipt, "NEXT", "q", "1", "NEXT", "q", "3")
    [entry] = commands(server)[before:]
    assert entry[:2] == [b"DQ.OP", b"q"]


def test_a_stale_one_and_a_refused_one_leave_no_trace(make_server):
    server = make_server(**LOG)
    client = server.client()
    receipt = start(client, "q", "MAXLEN", 1)
    before = len(commands(server))
    assert Queue(client, "q").do("ACKSEND", 7, "NEXT", "d", "1") is None
    with pytest.raises(Exception, match="QUEUEFULL"):
        Queue(client, "q").do("ACKSEND", receipt, "NEXT", "d", "1", "NEXT", "q", "1", "NEXT", "q", "1")
    assert len(commands(server)) == before


def test_a_torn_log_has_all_of_it_or_nothing(make_server):
    server = make_server(**LOG, **{"aof-load-truncated": "yes"})
    client = server.client()
    receipt = start(client, "q")
    [path] = increments(server)
    whole = path.stat().st_size
    Queue(client, "q").do("ACKSEND", receipt, "NEXT", "d1", "p" * 40, "NEXT", "d2", "p" * 40, "NEXT", "q", "p" * 40)
    entry = path.stat().st_size - whole
    assert entry > 120
    server.stop()
    data = path.read_bytes()
    for lost in (1, entry // 3, entry // 2, entry - 1):
        path.write_bytes(data[: len(data) - lost])
        server.start()
        client = server.client()
        q = Queue(client, "q")
        assert (q.state("a"), q.len(), client.exists("d1", "d2")) == ("running", 1, 0), lost
        server.stop()
    path.write_bytes(data)
    server.start()
    client = server.client()
    assert (Queue(client, "q").len(), Queue(client, "d1").len(), Queue(client, "d2").len()) == (1, 1, 1)


def test_in_a_transaction_it_is_replicated_with_it(replica_pair):
    client = replica_pair.primary.client()
    receipt = start(client, "q")
    pipe = client.pipeline()
    pipe.execute_command("DQ.SEND", "other", "x", "ID", "x")
    pipe.execute_command("DQ.ACKSEND", "q", receipt, "NEXT", "d", "p", "NEXT", "other", "p")
    pipe.set("k", "v")
    pipe.execute()
    replica_pair.assert_same("q", "d", "other")
    assert replica_pair.replica.client().get("k") == b"v"


def test_in_a_script_it_is_replicated_and_logged(replica_pair):
    client = replica_pair.primary.client()
    receipt = start(client, "q")
    script = "return redis.call('DQ.ACKSEND', KEYS[1], ARGV[1], 'NEXT', KEYS[2], 'p', 'NEXT', KEYS[1], 'p', 'ID', 'b')"
    assert len(client.eval(script, 2, "q", "d", receipt)) == 2
    replica_pair.assert_same("q", "d")


def test_a_promoted_replica_goes_on_with_what_follows(replica_pair):
    client = replica_pair.primary.client()
    receipt = start(client, "q")
    Queue(client, "q").do("ACKSEND", receipt, "NEXT", "d", "next", "ID", "a")
    replica_pair.wait_sync()
    replica_pair.promote()
    twin = replica_pair.replica.client()
    assert Queue(twin, "q").do("ACKSEND", receipt, "NEXT", "d", "again") is None
    assert (Queue(twin, "q").len(), Queue(twin, "d").payloads("COUNT", 9)) == (0, [b"next"])


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_it_is_the_same_after_a_rewrite_of_the_log(make_server, preamble):
    server = make_server(**LOG, **{"aof-use-rdb-preamble": preamble})
    client = server.client()
    keys = run_all(client)
    client.bgrewriteaof()
    wait_for(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "0", 20, "the rewrite")
    assert len(Queue(client, "d1").do("ACKSEND", Queue(client, "d1").one().receipt, "NEXT", "d2", "later")) == 1
    before = [digest(client, key) for key in keys]
    server.restart(crash=True)
    assert [digest(server.client(), key) for key in keys] == before


def test_in_a_cluster_all_keys_are_of_one_slot(cluster):
    owner = cluster.owner("{a}q")
    other = next(n for n in cluster.nodes if n is not owner)
    client = owner.client()
    receipt = start(client, "{a}q")
    with owner.wire() as w:
        assert w.call("DQ.ACKSEND", "{a}q", receipt, "NEXT", "{b}d", "p").startswith("CROSSSLOT")
        assert w.call("DQ.ACKSEND", "{a}q", receipt, "NEXT", "{a}d", "p", "NEXT", "{b}d", "p").startswith("CROSSSLOT")
        sent = w.ok("DQ.ACKSEND", "{a}q", receipt, "NEXT", "{a}d", "NEXT", "NEXT", "{a}q", "p")
        assert len(sent) == 2 and not isinstance(sent, Error)
    with other.wire() as w:
        assert w.call("DQ.ACKSEND", "{a}q", receipt, "NEXT", "{a}d", "p").startswith("MOVED")
    assert Queue(client, "{a}d").payloads() == [b"NEXT"]
