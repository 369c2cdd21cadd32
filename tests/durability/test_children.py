"""Children count at their parents once: in one entry of the log, on replicas, after crashes and failover, in a cluster."""

import pytest

from tests.harness.aof import commands, increments
from tests.harness.replies import Manual, Queue, as_map, digest
from tests.harness.server import wait_for

LOG = {"appendonly": "yes", "appendfsync": "always", "auto-aof-rewrite-percentage": 0}


def family(client):
    """Parents with children that have ended in all ways, and some that have not."""
    p = Manual(client, "p", "RETRIES", 0, "LEASE", 100, start=1000)
    c = Manual(client, "c", "RETRIES", 0, "LEASE", 100, "RETAIN", 10_000, start=5000)
    for id, total in (("held", 9), ("done", 2), ("dies", 3), ("late", 2)):
        p.send("x", "ID", id, "CHILDREN", total, "DELAY", 10)
    for n in range(6):
        c.send(n, "ID", f"h{n}", "PARENT", "p", "held", *(["ONDEAD", "GO"] if n == 4 else []))
    for m in c.fetch("COUNT", 5):
        c.do(*(("ACK", m.receipt, "RESULT", "r") if m.id in (b"h0", b"h1") else ("NACK", m.receipt, "FATAL", "ERROR", "e")))
    c.do("CANCEL", "h2")
    for n in range(2):
        p.send(n, "ID", f"d{n}", "PARENT", "p", "done")
    p.do("FETCH", "NOACK", "COUNT", 2)
    c.send("x", "ID", "i", "PARENT", "p", "dies", "ONDEAD", "DIE", "PRIORITY", -1)
    c.do("NACK", c.one().receipt)
    c.send("x", "ID", "l", "PARENT", "p", "late", "PRIORITY", -1)
    assert (p.state("done"), p.state("dies"), p.state("held")) == ("delayed", "dead", "held")
    return p, c


def outcome(p, c):
    """The events of the messages from then on."""
    seen = []
    for step in (
        lambda: c.do("REDRIVE", "ALL"),
        lambda: c.do("FETCH", "COUNT", 9, "NOACK"),
        lambda: p.advance(20),
        lambda: c.send("x", "ID", "l2", "PARENT", "p", "late"),
        lambda: c.do("CANCEL", "l2"),
        lambda: c.do("PURGE"),
        lambda: p.do("FETCH", "COUNT", 9, "NOACK"),
    ):
        step()
        held = p.get("held")
        seen.append([held and as_map(held["children"]), p.state("late"), p.len("ready"), p.do("CHILDREN", "held")])
    return seen


KEYS = ["p", "c"]


def digests(client):
    return [digest(client, key) for key in KEYS]


def test_they_are_the_same_on_a_replica_and_after_a_failover(replica_pair):
    client = replica_pair.primary.client()
    family(client)
    replica_pair.assert_same(*KEYS)
    wanted = outcome(Queue2(client, "p"), Queue2(client, "c"))
    replica_pair.assert_same(*KEYS)
    client.flushall()
    family(client)
    replica_pair.wait_sync()
    replica_pair.promote()
    client = replica_pair.replica.client()
    assert outcome(Queue2(client, "p"), Queue2(client, "c")) == wanted


class Queue2(Queue):
    """An existing queue with a manual clock."""

    def advance(self, ms):
        return self.tick("ADVANCE", ms)


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_they_are_the_same_after_a_crash_and_a_rewrite(make_server, preamble):
    server = make_server(**LOG, **{"aof-use-rdb-preamble": preamble})
    client = server.client()
    family(client)
    before = digests(client)
    for _ in range(2):
        server.restart(crash=True)
        assert digests(server.client()) == before
        server.client().bgrewriteaof()
        wait_for(lambda: server.client().info("persistence")["aof_rewrite_in_progress"] == 0, 10, "the rewrite")
    client = server.client()
    client.execute_command("DEBUG", "RELOAD")
    assert digests(client) == before
    dumped = {key: client.dump(key) for key in KEYS}
    wanted = outcome(Queue2(client, "p"), Queue2(client, "c"))
    for key, data in dumped.items():
        client.restore(key, 0, data, replace=True)
    assert outcome(Queue2(client, "p"), Queue2(client, "c")) == wanted


def test_an_end_and_its_count_are_one_command_of_the_log(make_server):
    server = make_server(**LOG)
    client = server.client()
    p, c = Queue(client, "p"), Queue(client, "c")
    p.send("x", "ID", "p", "CHILDREN", 2)
    for id, keys in (("a", [b"c", b"p"]), ("b", None)):
        before = len(commands(server))
        c.send("x", "ID", id, "PARENT", "p", "p")
        [entry] = commands(server)[before:]
        # The first child reports its queue to the parent.
        assert (entry[1::2] if keys else entry[1]) == (keys or b"c")
    for _ in range(2):
        receipt = c.one().receipt
        before = len(commands(server))
        c.ack(receipt)
        [entry] = commands(server)[before:]
        assert (entry[0].upper(), entry[1::2]) == (b"DQ.OPS", [b"c", b"p"])
    assert p.state("p") == "ready"


def test_a_log_that_is_torn_anywhere_has_the_end_and_its_count_or_neither(make_server):
    server = make_server(**LOG, **{"aof-load-truncated": "yes"})
    client = server.client()
    p, c = Queue(client, "p"), Queue(client, "c")
    p.send("x", "ID", "p", "CHILDREN", 1)
    c.send("x", "ID", "a", "PARENT", "p", "p")
    c.do("ALTER", "LEASE", 600_000)
    receipt = c.one().receipt
    [path] = increments(server)[-1:]
    size = path.stat().st_size
    c.ack(receipt)
    whole = path.read_bytes()
    server.kill9()
    for cut in range(size + 1, len(whole) + 1, 7):
        path.write_bytes(whole[:cut])
        server.start()
        client = server.client()
        states = Queue(client, "c").state("a"), Queue(client, "p").state("p")
        assert states in (("running", "held"), (None, "ready")), cut
        server.kill9()
    path.write_bytes(whole)
    server.start()


def test_time_ends_children_in_the_same_entry(make_server):
    server = make_server(**LOG)
    client = server.client()
    p, c = Queue(client, "p"), Queue(client, "c")
    p.send("x", "ID", "p", "CHILDREN", 300)
    c.do("CREATE", "TTL", 50)
    for n in range(300):
        c.send(n, "PARENT", "p", "p", "ONDEAD", "GO")
    wait_for(lambda: p.state("p") == "ready", 20, "the parent")
    assert as_map(p.get("p")["children"])["dead"] == 300
    server.restart(crash=True)
    client = server.client()
    assert as_map(Queue(client, "p").get("p")["children"])["dead"] == 300


def test_in_a_cluster_both_keys_are_in_one_slot(cluster):
    node = cluster.owner("{s}q")
    client = node.client()
    p, c = Queue(client, "{s}p"), Queue(client, "{s}c")
    with node.wire() as w:
        for call in (("SEND", "{s}c", "x"), ("MSEND", "{s}c", 1, "x")):
            assert w.call(f"DQ.{call[0]}", *call[1:], "PARENT", "other", "p").startswith("CROSSSLOT")
    p.send("x", "ID", "p", "CHILDREN", 1)
    c.send("x", "ID", "a", "PARENT", "{s}p", "p")
    assert len(p.do("CHILDREN", "p")[1]) == 1
    c.ack(c.one().receipt)
    assert p.one().id == b"p"


def test_children_from_another_slot_do_no_harm(cluster):
    node = cluster.owner("{s}q")
    client = node.client()
    p, c = Queue(client, "{s}p"), Queue(client, "{s}c")
    p.send("x", "ID", "p", "CHILDREN", 1)
    c.send("x", "ID", "a", "PARENT", "{s}p", "p")
    other = next(key for key in ("{a}q", "{b}q", "{c}q", "{e}q", "{f}q") if cluster.owner(key) is node)
    client.restore(other, 0, client.dump("{s}c"))
    Queue(client, other).do("CANCEL", "a")
    assert p.state("p") == "held"
