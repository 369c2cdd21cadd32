"""Primary and replica: equal state, no action of the replica on its own, promotion, pauses and failover."""

import time

import pytest
import redis

from tests.harness.job_traffic import JobTraffic
from tests.harness.replies import Queue, digest, msgs
from tests.harness.server import Server, now_ms, wait_for
from tests.harness.traffic import Traffic
from tests.harness.wire import Error


@pytest.fixture
def pair(replica_pair):
    return replica_pair


def primary_queue(pair, name="q"):
    return Queue(pair.primary.client(), name)


def replica_queue(pair, name="q"):
    return Queue(pair.replica.client(), name)


@pytest.mark.parametrize("clock", ["MANUAL", "SERVER"])
def test_random_traffic_is_the_same_on_the_replica(pair, clock):
    client = pair.primary.client()
    names = [f"q{seed}" for seed in range(4)]
    for seed, name in enumerate(names):
        Traffic(client, name, seed, "CLOCK", clock, "RETAIN", 300, "DEDUP", 50, "DEADRETAIN", 400).run(400)
    if clock == "SERVER":
        # A replica derives what is due from the times of log entries, so one more entry follows after all is due.
        time.sleep(3)
        for name in names:
            client.execute_command("DQ.SEND", name, "last", "ID", "last")
    pair.assert_same(*names)


@pytest.mark.parametrize("seed", range(2))
def test_traffic_of_jobs_is_the_same_on_a_replica_that_takes_over(pair, seed):
    traffic = JobTraffic(pair.primary.client(), seed)
    for _ in range(10):
        traffic.run(30)
        pair.assert_same(*traffic.keys)
    before = traffic.held()
    pair.promote()
    traffic.go_to(pair.replica.client())
    assert traffic.held() == before
    traffic.run(100)


def test_a_delivery_to_a_waiter_is_replicated(pair):
    q = primary_queue(pair)
    w = pair.primary.wire()
    w.send("DQ.FETCH", "q", "BLOCK", 0, "LEASE", 60000)
    pair.primary.wait_blocked(1)
    id = q.send("x", "DELAY", 30)
    [m] = msgs(w.recv(5))
    assert pair.primary.client().wait(1, 5000) == 1
    pair.wait_sync()
    assert replica_queue(pair).get(id)["receipt"] == m.receipt
    pair.assert_same("q")


def test_a_replica_refuses_writes_and_answers_reads(pair):
    q = primary_queue(pair)
    q.send("x", "ID", "a")
    pair.wait_sync()
    twin = replica_queue(pair)
    assert (twin.len(), twin.get("a")["payload"], len(twin.peek())) == (1, b"x", 1)
    for call in (("SEND", "y"), ("FETCH",), ("FETCH", "BLOCK", 0), ("ACK", 1), ("TICK",), ("PURGE",)):
        with pytest.raises(redis.ReadOnlyError):
            twin.do(*call)
    assert q.len("ready") == 1


def test_a_replica_waits_for_its_primary_to_process_due_events(pair):
    """While the primary is frozen, a lease and a TTL end on the replica: it must wait for the log entries."""
    q = primary_queue(pair)
    q.do("CREATE", "LEASE", 1500, "RETRIES", 0, "TTL", 1500)
    q.do("MSEND", 2, *"ab")
    q.one()
    pair.wait_sync()
    twin = replica_queue(pair)
    pair.primary.pause()
    before = twin.digest()
    assert twin.len("running") == 1
    time.sleep(1.8)
    assert twin.digest() == before
    pair.primary.resume()
    q.send("later", "ID", "later")
    wait_for(lambda: q.len("dead") == 2, 10, "the end of the lease")
    pair.assert_same("q")
    assert twin.len("dead") == 2


def test_a_replica_is_the_same_after_a_partial_resync(pair):
    client = pair.primary.client()
    traffic = Traffic(client, "q", 1, "CLOCK", "MANUAL")
    before = int(pair.primary.info("stats")["sync_partial_ok"])
    for _ in range(3):
        traffic.run(100)
        client.execute_command("CLIENT", "KILL", "TYPE", "replica")
        traffic.run(100)
        pair.wait_link()
    pair.assert_same("q")
    assert int(pair.primary.info("stats")["sync_partial_ok"]) > before


@pytest.mark.parametrize("load", ["disabled", "swapdb"])
def test_a_new_replica_is_the_same_after_a_full_sync_under_traffic(pair, load):
    client = pair.primary.client()
    traffic = Traffic(client, "q", 2, "CLOCK", "MANUAL")
    traffic.run(200)
    fresh = Server(repl_diskless_load=load).start()
    try:
        fresh.client().execute_command("DQ.SEND", "old", "gone after the sync")
        fresh.client().execute_command("REPLICAOF", "127.0.0.1", pair.primary.port)
        traffic.run(200)
        wait_for(lambda: fresh.info("replication").get("master_link_status") == "up", 20, "the full sync")
        traffic.run(100)

        def same():
            p = pair.primary.info("replication")["master_repl_offset"]
            return fresh.info("replication").get("slave_repl_offset") == p

        wait_for(same, 20, "the new replica")
        assert digest(fresh.client(), "q") == digest(client, "q")
        assert fresh.client().exists("old") == 0
    finally:
        fresh.close()


def test_a_promoted_replica_delivers_on_time(pair):
    q = primary_queue(pair)
    due = now_ms() + 600
    q.send("leased", "ID", "leased")
    m = q.one("LEASE", 60000)
    q.send("short", "ID", "short")
    until = q.one("LEASE", 900, "WITHMETA").meta["lease-until"]
    q.send("overdue", "DELAY", 50)
    q.send("due", "AT", due)
    pair.wait_sync()
    pair.primary.kill9()
    time.sleep(0.1)
    pair.promote()
    promoted = now_ms()
    w, twin = pair.replica.wire(), replica_queue(pair)
    for payload, at in ((b"overdue", 0), (b"due", due), (b"short", until)):
        w.send("DQ.FETCH", "q", "BLOCK", 0)
        [got] = msgs(w.recv())
        assert got.payload == payload
        assert at <= twin.get(got.id)["started-at"] <= max(at, promoted) + 1000
        assert got.receipt > m.receipt
    assert twin.ack(m.receipt) == 1


def test_receipts_that_the_promoted_replica_never_saw_are_stale(pair):
    """The old primary went on alone: the receipts that it gave out then are stale on the new one."""
    q = primary_queue(pair)
    q.do("MSEND", 4, *"abcd")
    pair.wait_sync()
    pair.promote()
    lost = [m.receipt for m in q.fetch("COUNT", 4)]
    twin = replica_queue(pair)
    assert twin.ack(*lost) == 0
    again = [m.receipt for m in twin.fetch("COUNT", 4)]
    assert len(again) == 4
    assert twin.ack(*lost) == 0
    assert twin.ack(*again) == 4


def test_a_promoted_replica_keeps_its_own_replicas_in_step(pair):
    """The timers of the promoted node must not disturb the replicas below it."""
    below = Server().start()
    try:
        q = primary_queue(pair)
        q.do("CREATE", "LEASE", 100, "RETRIES", -1)
        below.client().execute_command("REPLICAOF", "127.0.0.1", pair.replica.port)
        wait_for(lambda: below.info("replication").get("master_link_status") == "up", 20, "the chain")
        q.do("MSEND", 20, *range(20), "DELAY", 150)
        pair.wait_sync()
        w = pair.replica
        pair.promote()
        waiting = w.wire()
        waiting.send("DQ.FETCH", "q", "BLOCK", 0, "COUNT", 20)
        assert msgs(waiting.recv(5))
        time.sleep(0.3)
        twin = replica_queue(pair)
        twin.send("last", "ID", "last")
        wait_for(lambda: Queue(below.client(), "q").get("last") is not None, 10, "the record below")
        assert digest(below.client(), "q") == twin.digest()
        assert below.alive() and pair.replica.alive()
    finally:
        below.close()


def test_a_demoted_primary_unblocks_its_waiters(pair):
    q = primary_queue(pair)
    q.do("CREATE")
    q.send("soon", "DELAY", 1500)
    w = pair.primary.wire()
    w.send("DQ.FETCH", "q", "BLOCK", 0)
    pair.primary.wait_blocked(1)
    pair.wait_sync()
    pair.promote()
    pair.primary.client().execute_command("REPLICAOF", "127.0.0.1", pair.replica.port)
    reply = w.recv(5)
    assert isinstance(reply, Error) and reply.startswith("UNBLOCKED")
    wait_for(lambda: len(replica_queue(pair).fetch()) == 1, 10, "the delivery by the new primary")


@pytest.mark.parametrize("mode", ["WRITE", "ALL"])
def test_nothing_is_delivered_during_a_client_pause(pair, mode):
    q = primary_queue(pair)
    q.do("CREATE", "RETRIES", -1)
    q.send("leased")
    m = q.one("LEASE", 60000)
    admin = pair.primary.wire()
    waiters = [pair.primary.wire() for _ in range(4)]
    for w in waiters:
        w.send("DQ.FETCH", "q", "BLOCK", 0, "LEASE", 60000)
    pair.primary.wait_blocked(4)
    # The commands are sent together, so that the pause begins before anything is due.
    admin.send_many(
        [("DQ.MSEND", "q", 3, *"abc", "DELAY", 400), ("DQ.TOUCH", "q", 400, m.receipt), ("TIME",), ("CLIENT", "PAUSE", 900, mode)]
    )
    assert admin.recv() and admin.recv() == 1
    seconds, us = map(int, admin.recv())
    end = seconds * 1000 + us // 1000 + 900
    assert admin.recv() == b"OK"
    for w in waiters:
        [m] = msgs(w.recv())
        assert end - 10 <= q.get(m.id)["started-at"] <= end + 1000
    assert pair.primary.alive()
    pair.assert_same("q")


def test_failover_loses_no_message_that_falls_due(pair):
    q = primary_queue(pair)
    q.do("CREATE", "LEASE", 300, "RETRIES", -1)
    sent = set()
    for n in range(300):
        sent.add(q.send(n, "DELAY", n * 5))
    waiters = [pair.primary.wire() for _ in range(3)]
    for w in waiters:
        w.send("DQ.FETCH", "q", "BLOCK", 0, "LEASE", 300)
    admin = pair.primary.client()
    time.sleep(0.3)
    pair.wait_link()
    admin.execute_command("FAILOVER", "TO", "127.0.0.1", pair.replica.port, "TIMEOUT", 5000)
    wait_for(lambda: pair.role(pair.primary) == "slave", 10, "the failover")
    wait_for(lambda: pair.role(pair.replica) == "master", 10, "the promotion")
    seen = set()
    w = pair.replica.wire()
    deadline = time.monotonic() + 40
    while len(seen) < 300 and time.monotonic() < deadline:
        for m in msgs(w.call("DQ.FETCH", "q", "COUNT", 100, "BLOCK", 500)):
            seen.add(m.id)
            w.ok("DQ.ACK", "q", m.receipt)
    assert seen == sent
    assert pair.primary.alive() and pair.replica.alive()


def test_a_frozen_primary_processes_what_fell_due_meanwhile(pair):
    q = primary_queue(pair)
    q.do("CREATE", "LEASE", 100, "RETRIES", -1)
    q.do("MSEND", 5, *"abcde", "DELAY", 50)
    q.send("leased", "ID", "leased")
    old = q.one().receipt
    pair.primary.pause()
    time.sleep(0.4)
    pair.primary.resume()
    # The lease lasts until the commands that had arrived were read.
    wait_for(lambda: q.info()["timeouts"] == 1, 10, "the end of the lease")
    assert q.ack(old) == 0
    assert sorted(q.payloads("COUNT", 10, "LEASE", 60_000)) == [b"a", b"b", b"c", b"d", b"e", b"leased"]
    assert q.info()["timeouts"] == 1
    pair.assert_same("q")
