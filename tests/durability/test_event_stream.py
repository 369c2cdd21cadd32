"""EVENTS: replicas, logs and reloads have the same entries, and the states of all messages follow from them."""

import random
import time

import pytest

from tests.checker import stream
from tests.harness.replies import Queue
from tests.harness.server import wait_for

LOG = {"appendonly": "yes", "auto-aof-rewrite-percentage": 0}


def check(client, key="q", name="events"):
    """The stream agrees with the queue, if no TTL ends meanwhile; messages that have ended may have left no record."""
    ended = {"finished", "dead", "cancelled", None}

    def is_told():
        states, faults = stream.tell(stream.read(client, name))
        assert faults == []
        found = stream.there(client, key)
        return {id: state for id, state in states.items() if id in found or state not in ended} == found

    wait_for(is_told, 10, "a stream that tells what is there")


def churn(client, rng, steps, key="q"):
    """Random operations on a queue on the server's clock."""
    q = Queue(client, key)
    receipts = []
    for n in range(steps):
        what = rng.random()
        id = f"{rng.randrange(40)}"
        if what < 0.35:
            options = rng.choice([(), ("DELAY", rng.randrange(30)), ("GROUP", "g"), ("TTL", 20), ("REPLACE",)])
            q.send("x", "ID", id, *options)
        elif what < 0.6:
            receipts += [m.receipt for m in q.fetch("COUNT", 3, "CONSUMER", "c")]
        elif what < 0.9 and receipts:
            receipt = receipts.pop(rng.randrange(len(receipts)))
            q.do(*rng.choice([("ACK", receipt), ("NACK", receipt), ("NACK", receipt, "FATAL"), ("NACK", receipt, "SILENT")]))
        elif what < 0.93:
            q.do("CANCEL", id)
        elif what < 0.95:
            q.do("RESCHEDULE", id, "DELAY", rng.randrange(30))
        elif what < 0.97:
            q.do("REDRIVE", "ALL")


def create(client, *options):
    Queue(client, "q").do(
        *("CREATE", "LEASE", 20, "RETRIES", 2, "BACKOFF", "FIXED", 5, "RETAIN", 60_000),
        *("EVENTS", "events", "EVENTSLEN", 100_000, *options),
    )


def rest(client):
    """Waits until no more messages fall due or expire."""
    q = Queue(client, "q")
    q.do("PAUSE")
    wait_for(lambda: q.len("delayed") + q.len("retry") + q.len("running") == 0, 10, "the end of all leases")
    # The longest DELAY and TTL of `churn` are 30 and 20 ms.
    end = milliseconds(client) + 30 + 20
    wait_for(lambda: milliseconds(client) > end, 10, "the end of all messages with a TTL")
    # Like each change of a queue it first does what is due, also before the timer has come to it.
    q.do("PAUSE")


def milliseconds(client) -> int:
    seconds, microseconds = client.time()
    return seconds * 1000 + microseconds // 1000


@pytest.mark.parametrize("seed", range(3))
def test_a_replica_has_the_same_entries(replica_pair, seed):
    client = replica_pair.primary.client()
    create(client)
    churn(client, random.Random(seed), 600)
    rest(client)
    replica_pair.wait_sync()
    twin = replica_pair.replica.client()
    wait_for(lambda: client.xrange("events") == twin.xrange("events"), 5, "the same entries")
    replica_pair.assert_same("q", "events")
    check(client)
    client.execute_command("DEBUG", "RELOAD")
    assert client.xrange("events") == twin.xrange("events")
    # A replica that becomes the primary continues where the other one has ended.
    replica_pair.promote()
    Queue(twin, "q").do("RESUME")
    churn(twin, random.Random(seed), 200)
    rest(twin)
    check(twin)


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_the_log_gives_the_same_entries(make_server, preamble):
    server = make_server(**LOG, **{"aof-use-rdb-preamble": preamble})
    client = server.client()
    create(client, "DEADTO", "dead")
    churn(client, random.Random(7), 400)
    client.bgrewriteaof()
    wait_for(lambda: not client.info("persistence")["aof_rewrite_in_progress"], 20, "the rewriting")
    churn(client, random.Random(8), 400)
    rest(client)
    before = client.xrange("events")
    for _ in range(2):
        client.execute_command("DEBUG", "LOADAOF")
        assert client.xrange("events") == before
        server.restart(crash=True)
        client = server.client()
        wait_for(lambda: client.xrange("events")[: len(before)] == before, 5, "the same entries")


def test_a_crash_in_the_middle_leaves_no_gap(make_server):
    # The leases that ran at a crash end soon after the start.
    server = make_server(**LOG, **{"dq.start-grace": 100})
    create(server.client())
    for seed in range(4):
        churn(server.client(), random.Random(seed), 150)
        server.kill9()
        server.start()
        rest(server.client())
        check(server.client())
        Queue(server.client(), "q").do("RESUME")


def test_a_stream_that_expires_is_the_same_on_a_replica(replica_pair):
    client = replica_pair.primary.client()
    create(client)
    q = Queue(client, "q")
    client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    for n in range(20):
        q.send("x", "DELAY", 600_000)
        client.pexpire("events", 1)
        # No command may touch the key before the queue itself does.
        time.sleep(0.01)
        q.send("y", "DELAY", 600_000)
    client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    replica_pair.wait_sync()
    twin = replica_pair.replica.client()
    assert client.xlen("events") == 1
    assert client.xrange("events") == twin.xrange("events")
