"""Timeouts of BLOCK and WAIT while the server's wall clock is set."""

import time

import pytest

from tests.harness.replies import Queue
from tests.torture.preload import WallClock
from tests.torture.target import Rigged

HOUR = 3_600_000
WAITS = {
    "BLOCK": ("DQ.FETCH", "q", "BLOCK", 300, "GROUP", "nothing"),
    "BLOCK of several": ("DQ.MFETCH", 2, "nothing:1", "nothing:2", "BLOCK", 300),
    "WAIT": ("DQ.WAIT", "q", "a", 300),
}


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    """A server and its wall clock, which can be set."""
    wall = WallClock(tmp_path_factory.mktemp("wall") / "offset")
    server = Rigged(env=wall.env).start()
    Queue(server.client(), "q").send("x", "ID", "a")
    yield server, wall
    server.close()


def blocked(server, call, protocol):
    wire = server.wire(protocol)
    wire.send(*call)
    server.wait_blocked(1)
    return wire


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("kind", WAITS)
def test_a_clock_step_forward_does_not_end_a_wait_early(stepped, kind, protocol):
    server, wall = stepped
    began = time.monotonic()
    wire = blocked(server, WAITS[kind], protocol)
    wall.step(HOUR)
    assert not wire.recv()
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("kind", WAITS)
def test_a_clock_step_back_does_not_prolong_a_wait(stepped, kind, protocol):
    server, wall = stepped
    wire = blocked(server, WAITS[kind], protocol)
    wall.step(-HOUR)
    # By the wall clock this would take an hour.
    assert not wire.recv(20)
    # Later waits end in time too.
    wire = blocked(server, WAITS[kind], protocol)
    assert not wire.recv(20)


def test_each_of_many_waits_ends_after_its_own_time(server, r, key):
    began = time.monotonic()
    wires = {}
    for ms in (90, 30, 60, 10, 120):
        wires[ms] = server.wire()
        wires[ms].send("DQ.FETCH", key, "BLOCK", ms)
    for ms in sorted(wires):
        assert wires[ms].recv() == []
        assert time.monotonic() - began >= ms / 1000


def test_a_wait_on_a_replica_ends_after_its_time(replica_pair):
    primary, replica = replica_pair.primary, replica_pair.replica
    Queue(primary.client(), "q").send("x", "ID", "a")
    replica_pair.wait_sync()
    began = time.monotonic()
    assert replica.client().execute_command("DQ.WAIT", "q", "a", 50) is None
    assert time.monotonic() - began >= 0.05
