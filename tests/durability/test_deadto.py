"""DEADTO: the dead message and its letter are one entry of the log, whole on replicas, after a crash and in a cluster."""

import pytest

from tests.harness.aof import commands, increments
from tests.harness.replies import Manual, Queue, digest
from tests.harness.server import wait_for

LOG = {"appendonly": "yes", "appendfsync": "always", "auto-aof-rewrite-percentage": 0}


def run_all(client):
    """Deaths of every kind, with some messages that cannot go."""
    q = Manual(client, "q", "RETRIES", 0, "LEASE", 100, "ONDEAD", "BLOCK", "DEADTO", "d")
    q.do("MSEND", 4, *"abcd", "GROUP", "g")
    q.send("ttl", "TTL", 50, "ID", "taken")
    Queue(client, "d").send("old", "ID", "taken")
    q.do("NACK", q.one().receipt, "FATAL", "ERROR", "e")
    q.do("FETCH", "COUNT", 5)
    q.advance(60)
    q.advance(60)
    Queue(client, "d").do("ALTER", "MAXLEN", 5)
    q.send("1", "ID", "1")
    q.send("2", "ID", "2")
    for m in q.fetch("COUNT", 2):
        q.do("NACK", m.receipt)
    s = Queue(client, "s")
    s.do("CREATE", "RETRIES", 0, "LEASE", 50, "DEADTO", "e")
    s.do("MSEND", 300, *range(300))
    s.do("FETCH", "COUNT", 200)
    s.do("FETCH", "COUNT", 100, "NOACK")
    wait_for(lambda: client.exists("e") and Queue(client, "e").len() == 200, 10, "the letters")
    return ["q", "d", "s", "e"]


def test_it_is_the_same_on_a_replica(replica_pair):
    keys = run_all(replica_pair.primary.client())
    replica_pair.assert_same(*keys)
    twin = replica_pair.replica.client()
    told = Queue(twin, "q").do("EXPLAIN", "taken")
    assert b"moved" in (told.values() if isinstance(told, dict) else told)


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


def test_a_death_and_its_letter_are_one_command_of_the_log(make_server):
    server = make_server(**LOG)
    client = server.client()
    q = Manual(client, "q", "RETRIES", 0, "DEADTO", "d")
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    before = len(commands(server))
    q.do("NACK", receipt)
    [entry] = commands(server)[before:]
    assert entry[0].upper() == b"DQ.OPS"
    assert entry[1::2] == [b"q", b"d", b"q"]


def test_a_log_that_is_torn_anywhere_has_the_message_in_one_place(make_server):
    server = make_server(**LOG, **{"aof-load-truncated": "yes"})
    client = server.client()
    q = Manual(client, "q", "RETRIES", 0, "DEADTO", "d")
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    size = sum(path.stat().st_size for path in increments(server))
    q.do("NACK", receipt)
    [path] = increments(server)[-1:]
    whole = path.read_bytes()
    server.kill9()
    for cut in range(size + 1, len(whole) + 1, 7):
        path.write_bytes(whole[:cut])
        server.start()
        client = server.client()
        here = Queue(client, "q").state("a")
        there = Queue(client, "d").state("a") if client.exists("d") else None
        assert (here, there) in (("running", None), (None, "ready")), cut
        server.kill9()
    path.write_bytes(whole)
    server.start()


def test_in_a_cluster_both_keys_are_in_one_slot(cluster):
    node = cluster.owner("{s}q")
    client = node.client()
    q = Queue(client, "{s}q")
    assert q.fails("CREATE", "DEADTO", "other").endswith("hash to the same slot")
    q.do("CREATE", "RETRIES", 0, "LEASE", 50, "DEADTO", "{s}d")
    assert "another" in q.fails("ALTER", "DEADTO", "{s}q")
    assert q.fails("ALTER", "DEADTO", "other").endswith("hash to the same slot")
    q.send("x", "ID", "a")
    q.do("NACK", q.one().receipt, "FATAL")
    assert Queue(client, "{s}d").state("a") == "ready"
    q.send("x", "ID", "b")
    q.one()
    wait_for(lambda: Queue(client, "{s}d").state("b") == "ready", 5, "the message there")


def test_a_queue_that_came_from_another_slot_keeps_its_dead(cluster):
    node = cluster.owner("{s}q")
    client = node.client()
    q = Queue(client, "{s}q")
    q.do("CREATE", "RETRIES", 0, "DEADTO", "{s}d")
    dump = client.dump("{s}q")
    other = next(key for key in ("{a}q", "{b}q", "{c}q", "{e}q", "{f}q") if cluster.owner(key) is node)
    client.restore(other, 0, dump)
    q = Queue(client, other)
    q.send("x", "ID", "a")
    q.do("NACK", q.one().receipt, "FATAL")
    assert q.state("a") == "dead"
    assert b"slot" in q.info()["deadto-error"]
