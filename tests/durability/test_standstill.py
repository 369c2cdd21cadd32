"""The effect of a standstill of the server, or of a restart, on leases and schedules. A server that was stopped, one
that ran a long command, and one whose clock stepped forward are alike."""

import time

import pytest

from tests.durability.test_clock_lead import wrong  # noqa: F401
from tests.harness.replies import Queue, digest
from tests.harness.server import now_ms, wait_for
from tests.harness.topology import wait_replicated

SECOND = 1000
# Outlasts a lease of a second that was given before it.
OVER_A_SECOND = 1.1


def stopped(server, seconds, meanwhile):
    """Stops the process for this time; `meanwhile` happens when it has just been stopped."""
    server.pause()
    meanwhile()
    time.sleep(seconds)
    server.resume()


def asleep(server, seconds, meanwhile):
    """The server runs one long command for this time; `meanwhile` happens when it has just begun."""
    with server.wire() as wire:
        wire.send("DEBUG", "SLEEP", seconds)
        time.sleep(0.1)
        meanwhile()
        wire.recv(20)


@pytest.fixture(params=[stopped, asleep], ids=["stopped", "long-command"])
def stand_still(request):
    return request.param


@pytest.mark.parametrize("verb", ["ACK", "TOUCH", "NACK"])
def test_a_command_that_arrived_in_time_counts_after_a_standstill(make_server, stand_still, verb):
    server = make_server()
    q = Queue(server.client(), "q")
    q.send("x", "ID", "x")
    receipt = q.one("LEASE", SECOND).receipt
    worker, other, third = server.wire(), server.wire(), server.wire()
    for wire in (worker, other, third):
        wire.ok("PING")
    words = {"ACK": ("DQ.ACK", "q", receipt), "TOUCH": ("DQ.TOUCH", "q", 60_000, receipt), "NACK": ("DQ.NACK", "q", receipt, "DELAY", 60_000)}

    def meanwhile():
        # The other clients come first, and must not get the message.
        other.send("DQ.FETCH", "q")
        worker.send(*words[verb])
        third.send("DQ.FETCH", "q", "BLOCK", 300)

    stand_still(server, OVER_A_SECOND, meanwhile)
    assert worker.recv(20) == 1
    assert other.recv(20) == []
    assert third.recv(20) in ([], None)
    assert q.info()["timeouts"] == 0


def test_a_lease_that_nobody_renews_ends_after_a_standstill(make_server, stand_still):
    server = make_server()
    q = Queue(server.client(), "q")
    q.send("x")
    q.one("LEASE", SECOND)
    waiting = server.wire()
    waiting.send("DQ.FETCH", "q", "BLOCK", 20_000)
    stand_still(server, OVER_A_SECOND, lambda: None)
    [[_, _, attempt, *_]] = waiting.recv(20)
    assert attempt == 2


def test_leases_that_are_spared_are_the_same_on_a_replica_and_in_the_log(make_server):
    server, replica = make_server(appendonly="yes"), make_server()
    replica.client().execute_command("REPLICAOF", "127.0.0.1", server.port)
    q = Queue(server.client(), "q")
    for n in range(20):
        q.send("x", "GROUP", f"g{n % 3}") if n % 2 else q.send("x")
    receipts = [m.receipt for m in q.fetch("COUNT", 12, "LEASE", 500)]
    wait_for(lambda: Queue(replica.client(), "q").len() == 20, 20, "replication")
    asleep(server, 0.9, lambda: None)
    q.ack(receipts[0])
    wait_for(lambda: q.info()["running"] == 0, 10, "the ends of the leases")
    q.send("y")
    wait_replicated(server, replica)
    same = digest(server.client(), "q")
    assert digest(replica.client(), "q") == same
    server.client().execute_command("DEBUG", "LOADAOF")
    assert digest(server.client(), "q") == same


@pytest.mark.parametrize("conf", [{}, {"appendonly": "yes"}], ids=["rdb", "aof"])
def test_a_worker_has_time_to_come_back_after_a_restart(make_server, conf):
    server = make_server(**conf)
    q = Queue(server.client(), "q")
    q.send("x", "ID", "x")
    q.send("long", "ID", "long")
    receipt = q.one("LEASE", 200).receipt
    q.one("LEASE", 600_000)
    long_until = q.get("long")["lease-until"]
    server.client().execute_command("SAVE")
    server.stop()
    time.sleep(0.4)
    server.start()
    q = Queue(server.client(), "q")
    assert q.fetch() == []
    assert q.get("long")["lease-until"] == long_until
    left = q.get("x")["lease-until"] - now_ms()
    assert 0 < left <= 5 * SECOND
    assert q.touch(60_000, receipt) == 1


def test_a_lease_that_is_given_after_a_restart_has_its_own_length(make_server):
    server = make_server()
    server.restart()
    q = Queue(server.client(), "q")
    q.send("x")
    q.one("LEASE", 100)
    assert q.one("BLOCK", 2000).attempt == 2


def test_the_grace_after_a_start_can_be_set_and_switched_off(make_server):
    server = make_server()
    q = Queue(server.client(), "q")
    q.send("x")
    q.one("LEASE", 100)
    server.client().config_set("dq.start-grace", 0)
    time.sleep(0.2)
    server.client().execute_command("DEBUG", "RELOAD")
    assert Queue(server.client(), "q").one("BLOCK", 2000).attempt == 2
    server.client().config_set("dq.start-grace", 600_000)
    server.client().execute_command("DEBUG", "RELOAD")
    [until] = [Queue(server.client(), "q").do("LIST", "running", "IDS")]
    assert len(until[1]) == 1
    got = Queue(server.client(), "q").get(until[1][0])
    assert got["lease-until"] > now_ms() + 500_000


def fires(q):
    return q.info()["sent"]


STANDS = {"stopped": lambda server, wall: stopped(server, 1.6, lambda: None), "long-command": lambda server, wall: asleep(server, 1.6, lambda: None), "step-forward": lambda server, wall: wall.step(3_600_000)}


@pytest.mark.parametrize("stand", STANDS)
@pytest.mark.parametrize("missed", ["SKIP", "ONCE"])
def test_missed_decides_after_a_standstill(wrong, stand, missed):  # noqa: F811
    server = wrong()
    q = Queue(server.client(), "q")
    q.do("SCHEDULE", "s", "EVERY", 100, "MISSED", missed, "PAYLOAD", "x")
    wait_for(lambda: fires(q) >= 2, 10, "two fires")
    before = fires(q)
    began = time.monotonic()
    STANDS[stand](server, server.wall)
    after = fires(q)
    # Those of the time in which it ran, and one more with ONCE. By the interval there were 16 or 36,000.
    ran = (time.monotonic() - began) - (0 if stand == "step-forward" else 1.5)
    assert after - before <= ran * 10 + 3
    wait_for(lambda: fires(q) >= after + 3, 10, "three fires more")


def test_missed_all_makes_up_for_a_standstill(make_server):
    server = make_server()
    q = Queue(server.client(), "q")
    start = q.do("SCHEDULE", "s", "EVERY", 100, "MISSED", "ALL", "PAYLOAD", "x")
    stopped(server, 1.6, lambda: None)
    # Without those of the standstill there would always be sixteen too few.
    wait_for(lambda: fires(q) >= (now_ms() - start) // 100, 10, "all fires")


def test_a_schedule_with_a_longer_interval_than_the_standstill_fires_late(make_server):
    server = make_server()
    q = Queue(server.client(), "q")
    # The fire time lies in the standstill, and SKIP concerns only those fires that a standstill has passed over.
    q.do("SCHEDULE", "s", "EVERY", 60_000, "START", now_ms() + 500, "MISSED", "SKIP", "PAYLOAD", "x")
    stopped(server, 1.3, lambda: None)
    wait_for(lambda: fires(q) == 1, 10, "the fire")


def test_a_queue_goes_on_while_a_schedule_makes_up_for_what_it_missed(make_server):
    server = make_server()
    q = Queue(server.client(), "q")
    for _ in range(1000):
        q.send("purged", "GROUP", "purged")
    q.do("PAUSE", "GROUP", "other")
    # All commands arrive before the fires are made up for, so no delay of a client counts.
    worker = server.wire()
    worker.send("DQ.FETCH", "q", "GROUP", "mine", "BLOCK", 60_000)
    server.wait_blocked(1)
    q.send("due", "ID", "due", "DELAY", 3000, "GROUP", "mine")
    q.send("dies", "ID", "dies", "TTL", 3000, "GROUP", "other")
    for n in range(16):
        q.do("SCHEDULE", f"s{n}", "EVERY", 1, "MISSED", "ALL", "PAYLOAD", "x", "GROUP", "fired")

    def meanwhile():
        worker.send("DQ.PURGE", "q", "GROUP", "purged")
        worker.send("DQ.GET", "q", "dies")
        worker.send("DQ.INFO", "q")

    # 64,000 fires are to be made up for, in log entries of their own. The timer delivers the message between them.
    stopped(server, 4, meanwhile)
    [[ident, *_]] = worker.recv(60)
    assert ident == b"due"
    assert worker.recv(20) == 1000
    assert worker.recv(20)[b"state"] == b"dead"
    assert worker.recv(20)[b"sent"] < 32_000, "it was not the end of all fires that let the others go on"
    wait_for(lambda: fires(q) >= 64_000, 60, "all fires")


@pytest.mark.parametrize("call", [("DQ.MFETCH", 2, "f:{1}", "f:{2}"), ("DQ.NFETCH", "f")], ids=["mfetch", "nfetch"])
def test_a_fetch_of_several_queues_gets_nothing_that_was_acked_in_a_standstill(make_server, stand_still, call):
    server = make_server()
    q = Queue(server.client(), "f:{1}")
    q.send("x")
    receipt = q.one("LEASE", SECOND).receipt
    worker, other, third = server.wire(), server.wire(), server.wire()
    for wire in (worker, other, third):
        wire.ok("PING")
    third.send(*call, "BLOCK", 1500)
    server.wait_blocked(1)

    def meanwhile():
        other.send(*call)
        worker.send("DQ.ACK", "f:{1}", receipt)

    stand_still(server, OVER_A_SECOND, meanwhile)
    assert worker.recv(20) == 1
    assert not other.recv(20)
    assert not third.recv(20)
    assert q.len() == 0
