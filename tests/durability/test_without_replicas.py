"""A server that nobody follows hands no records out; whoever comes later has all the same what the others have."""

import threading
import time

import pytest

from tests.harness.replies import Queue, digest
from tests.harness.server import wait_for
from tests.harness.topology import Pair

# The module asks the server once a second.
ALONE = 2.5


class Steady:
    """Sends, fetches and acks without a pause, until left."""

    def __init__(self, server):
        self.client = server.client()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        n = 0
        while not self.over.is_set():
            n += 1
            q = Queue(self.client, f"q{n % 3}")
            q.send(b"%d" % n, "DELAY", n % 20, *(["GROUP", f"g{n % 5}"] if n % 2 else []))
            for m in q.fetch("COUNT", 2):
                if n % 7:
                    q.ack(m.receipt)

    def __enter__(self):
        self.thread.start()
        time.sleep(0.1)
        return self

    def __exit__(self, *_):
        time.sleep(0.3)
        self.over.set()
        self.thread.join()


QUEUES = ("q0", "q1", "q2")


def settle(client):
    """Lets all fall due that was delayed, on both servers."""
    time.sleep(0.1)
    for name in QUEUES:
        client.execute_command("DQ.SEND", name, "last")


@pytest.fixture(params=["no", "yes"], ids=["disk", "diskless"])
def pair(request):
    pair = Pair(repl_diskless_sync=request.param, repl_diskless_sync_delay=1)
    pair.primary.start()
    time.sleep(ALONE)
    yield pair
    pair.close()


def attach(pair):
    with pair.replica.wire() as r:
        r.ok("REPLICAOF", "127.0.0.1", pair.primary.port)
    pair.wait_link()


def test_a_replica_that_comes_in_the_middle_of_traffic_is_the_same(pair):
    pair.replica.start()
    with Steady(pair.primary):
        attach(pair)
    settle(pair.primary.client())
    pair.assert_same(*QUEUES)


def leave_and_come_back(pair, sign, value):
    """The replica goes amid traffic, and comes back some time after INFO replication gives this sign."""
    pair.replica.start()
    attach(pair)
    with Steady(pair.primary):
        with pair.replica.wire() as r:
            r.ok("REPLICAOF", "127.0.0.1", 1)
        wait_for(lambda: pair.primary.info("replication")[sign] == value)
        time.sleep(ALONE)
        attach(pair)
    settle(pair.primary.client())
    pair.assert_same(*QUEUES)


def test_a_replica_that_comes_back_misses_nothing(pair):
    leave_and_come_back(pair, "connected_slaves", "0")
    assert pair.primary.info("stats")["sync_partial_ok"] == "1"


def test_a_replica_whose_backlog_is_gone_begins_anew(pair):
    pair.primary.client().config_set("repl-backlog-ttl", 1)
    leave_and_come_back(pair, "repl_backlog_active", "0")
    assert pair.primary.info("stats")["sync_full"] == "2"


def test_a_promoted_replica_has_its_backlog_followed(pair):
    pair.replica.start()
    attach(pair)
    pair.promote()
    time.sleep(ALONE)
    with Steady(pair.replica):
        pair.primary, pair.replica = pair.replica, pair.primary
        attach(pair)
    settle(pair.primary.client())
    pair.assert_same(*QUEUES)


def test_a_log_that_is_switched_on_has_all_that_follows(make_server):
    server = make_server(appendfsync="always")
    time.sleep(ALONE)
    with Steady(server):
        server.client().config_set("appendonly", "yes")
    client = server.client()
    settle(client)
    wait_for(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "0")
    wait_for(lambda: server.info("persistence")["aof_rewrite_scheduled"] == "0")
    before = [digest(client, name) for name in QUEUES]
    client.execute_command("DEBUG", "LOADAOF")
    assert before == [digest(client, name) for name in QUEUES]


def test_changes_count_for_snapshots_without_anybody_to_follow(make_server):
    server = make_server()
    time.sleep(ALONE)
    client = server.client()
    changes = int(server.info("persistence")["rdb_changes_since_last_save"])
    for _ in range(10):
        client.execute_command("DQ.SEND", "q", "x")
    assert int(server.info("persistence")["rdb_changes_since_last_save"]) - changes == 10
