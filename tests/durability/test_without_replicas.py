"""A server without replicas and log publishes no log entries; a replica or log that is added later misses nothing."""

import threading
import time

import pytest
from redis.exceptions import ResponseError

from tests.harness.replies import Queue, digest
from tests.harness.server import wait_for
from tests.harness.topology import Pair

# The module asks the server after every ten turns of its cron, which this lets run a hundred times in a second.
OFTEN = {"hz": 100}
ALONE = 0.6


class Steady:
    """Sends, fetches and acks without a pause until the block ends."""

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


def let_all_fall_due(client):
    """Waits until all delayed messages are due on both servers."""
    time.sleep(0.1)
    for name in QUEUES:
        client.execute_command("DQ.SEND", name, "last")


@pytest.fixture(params=["no", "yes"], ids=["disk", "diskless"])
def pair(request):
    pair = Pair(**OFTEN, repl_diskless_sync=request.param, repl_diskless_sync_delay=1)
    pair.primary.start()
    time.sleep(ALONE)
    yield pair
    pair.close()


def attach(pair):
    with pair.replica.wire() as r:
        r.ok("REPLICAOF", "127.0.0.1", pair.primary.port)
    pair.wait_link()


def test_a_replica_attached_during_traffic_is_the_same(pair):
    pair.replica.start()
    with Steady(pair.primary):
        attach(pair)
    let_all_fall_due(pair.primary.client())
    pair.assert_same(*QUEUES)


def leave_and_come_back(pair, sign, value):
    """Detaches the replica during traffic, and attaches it again some time after INFO replication has shown this value."""
    pair.replica.start()
    attach(pair)
    with Steady(pair.primary):
        with pair.replica.wire() as r:
            r.ok("REPLICAOF", "127.0.0.1", 1)
        wait_for(lambda: pair.primary.info("replication")[sign] == value)
        time.sleep(ALONE)
        attach(pair)
    let_all_fall_due(pair.primary.client())
    pair.assert_same(*QUEUES)


def test_a_replica_that_comes_back_resyncs_partially(pair):
    leave_and_come_back(pair, "connected_slaves", "0")
    assert pair.primary.info("stats")["sync_partial_ok"] == "1"


def test_a_replica_without_a_backlog_resyncs_fully(pair):
    pair.primary.client().config_set("repl-backlog-ttl", 1)
    leave_and_come_back(pair, "repl_backlog_active", "0")
    assert pair.primary.info("stats")["sync_full"] == "2"


def test_a_promoted_replica_writes_its_backlog_for_the_old_primary(pair):
    pair.replica.start()
    attach(pair)
    pair.promote()
    time.sleep(ALONE)
    with Steady(pair.replica):
        pair.primary, pair.replica = pair.replica, pair.primary
        attach(pair)
    let_all_fall_due(pair.primary.client())
    pair.assert_same(*QUEUES)


def test_a_server_that_was_a_primary_replays_as_a_replica_whatever_its_primary_sends(pair):
    pair.replica.start()
    time.sleep(ALONE)
    # The replica's own clients may not send such a payload.
    pair.replica.client().config_set("dq.max-payload", 10)
    attach(pair)
    q = Queue(pair.primary.client(), "q0")
    # The SEND that creates the queue is replicated as a log entry. Only those after it are replicated verbatim.
    q.send("first")
    q.send("a payload of more than ten bytes")
    pair.assert_same("q0")
    pair.promote()
    with pytest.raises(ResponseError, match="at most 10 bytes"):
        Queue(pair.replica.client(), "q0").send("a payload of more than ten bytes")


def test_a_log_switched_on_during_traffic_has_everything_since(make_server):
    server = make_server(**OFTEN)
    time.sleep(ALONE)
    with Steady(server):
        server.client().config_set("appendonly", "yes")
    client = server.client()
    let_all_fall_due(client)
    wait_for(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "0")
    wait_for(lambda: server.info("persistence")["aof_rewrite_scheduled"] == "0")
    before = [digest(client, name) for name in QUEUES]
    client.execute_command("DEBUG", "LOADAOF")
    assert before == [digest(client, name) for name in QUEUES]


def test_changes_count_for_snapshots_without_replicas_and_log(make_server):
    server = make_server(**OFTEN)
    time.sleep(ALONE)
    client = server.client()
    changes = int(server.info("persistence")["rdb_changes_since_last_save"])
    for _ in range(10):
        client.execute_command("DQ.SEND", "q", "x")
    assert int(server.info("persistence")["rdb_changes_since_last_save"]) - changes == 10
