"""Consumers whose connection ends: while they wait, while they are served, and while they hold leases."""

import random
import socket
import struct
import time

import pytest

from tests.harness.replies import Queue
from tests.harness.server import wait_for


def reset(w):
    """Closes the connection with RST, as a machine that lost power and came back would."""
    w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    w.close()


def drain(q, n):
    """Fetches n messages, waiting for leases to end. Returns id -> attempt."""
    found = {}

    def all_found():
        for m in q.fetch("COUNT", 1000, "LEASE", 600000):
            assert m.id not in found, "two live leases of one message"
            found[m.id] = m.attempt
        return len(found) == n

    wait_for(all_found, 15, f"{n} messages")
    return found


@pytest.mark.parametrize("bind", [False, True])
def test_a_client_that_leaves_while_it_is_served_loses_no_message(server, r3, key, bind):
    """Whether the message or the close comes first, nothing is lost and no attempt is counted twice."""
    q = Queue(r3, key)
    q.do("CREATE", "LEASE", 600000 if bind else 300, "RETRIES", -1)
    rng = random.Random(5)
    ids = set()
    sender = server.wire()
    for n in range(300):
        w = server.wire(protocol=2)
        w.send("DQ.FETCH", key, "BLOCK", 0, *["BIND"] * bind)
        if rng.random() < 0.5:
            time.sleep(0.001)
        if rng.random() < 0.5:
            sender.send("DQ.SEND", key, n, "ID", n)
            reset(w)
        else:
            reset(w)
            sender.send("DQ.SEND", key, n, "ID", n)
        ids.add(sender.recv())
    server.wait_blocked(0)
    found = drain(q, 300)
    assert set(found) == ids
    assert all(attempt >= 1 for attempt in found.values())
    info = q.info()
    assert info["delivered"] == sum(found.values())
    assert info["timeouts"] == info["delivered"] - 300


def test_a_message_in_an_unread_reply_is_delivered_again(server, r3, key):
    q = Queue(r3, key)
    q.do("CREATE", "LEASE", 1500, "RETRIES", 5)
    q.do("MSEND", 50, *range(50))
    for _ in range(5):
        w = server.wire(protocol=2)
        w.send("DQ.FETCH", key, "COUNT", 10)
        w.sock.recv(1)
        reset(w)
    assert q.len("running") == 50
    found = drain(q, 50)
    assert set(found.values()) == {2}


def test_waiters_that_have_left_are_passed_over(server, r3, key):
    q = Queue(r3, key)
    q.do("CREATE")
    waiters = [server.wire(protocol=2) for _ in range(30)]
    for n, w in enumerate(waiters):
        w.send("DQ.FETCH", key, "BLOCK", 0)
        server.wait_blocked(n + 1)
    for w in waiters[:10] + waiters[20:]:
        reset(w)
    server.wait_blocked(10)
    q.do("MSEND", 10, *range(10))
    got = [w.recv(5)[0][3] for w in waiters[10:20]]
    assert got == [b"%d" % n for n in range(10)]


ENDS = {
    "closed": [],
    "killed": ["KILL", "ID", "@"],
    "unblocked": ["UNBLOCK", "@"],
    "unblocked with an error": ["UNBLOCK", "@", "ERROR"],
    "timed out": [],
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("command", ["DQ.FETCH", "DQ.NFETCH", "DQ.WAIT"])
def test_clients_that_come_and_go_leak_no_memory(server, r3, key, command, end):
    q = Queue(r3, key)
    q.send("x", "ID", "a", "DELAY", 600_000)
    block = 5 if end == "timed out" else 0
    call = {
        "DQ.FETCH": ["DQ.FETCH", key, "BLOCK", block, "CONSUMER", "churn"],
        "DQ.NFETCH": ["DQ.NFETCH", key, "BLOCK", block, "CONSUMER", "churn"],
        "DQ.WAIT": ["DQ.WAIT", key, "a", block],
    }[command]

    def churn(n):
        for _ in range(n // 100):
            waiters = [server.wire(protocol=2) for _ in range(100)]
            ids = [w.ok("CLIENT", "ID") for w in waiters]
            for w in waiters:
                w.send(*call)
            if end != "timed out":
                server.wait_blocked(100)
            if words := ENDS[end]:
                for id in ids:
                    r3.execute_command("CLIENT", *[id if word == "@" else word for word in words])
            if end not in ("closed", "killed"):
                for w in waiters:
                    w.recv()
            for w in waiters:
                w.close()
            server.wait_blocked(0)

    def used():
        return int(server.info("memory")["used_memory"])

    churn(300)
    before = used()
    churn(500)
    # The server frees closed clients gradually.
    wait_for(lambda: used() < before + 500_000, 20, "the memory of those who left")


def test_the_message_of_a_killed_client_is_delivered_again_at_its_lease_end(server, r3, key):
    q = Queue(r3, key)
    q.send("x", "ID", "a")
    w = server.wire()
    id = w.ok("CLIENT", "ID")
    w.ok("DQ.FETCH", key, "LEASE", 1000)
    r3.execute_command("CLIENT", "KILL", "ID", id)
    assert q.state("a") == "running"
    other = server.wire()
    other.send("DQ.FETCH", key, "BLOCK", 0)
    assert other.recv()[0][2] == 2
