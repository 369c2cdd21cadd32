"""The faults, and the tests that are the same for every driver: those in which no handler has begun yet."""

import time

import pytest

from tests.harness.faulty_worker import AWAY, LEASE, LONG

FETCHES = (rb"\*\d+\r\n\$\d+\r\nDQ.M?FETCH",)
"""The commands, and not a question about them: COMMAND DOCS dq.fetch."""
ACKS = (b"DQ.ACK", b"\r\nACK\r\n")

LASTS = {"cut": 0.0, "kill": 0.0, "away": AWAY, "long": LONG, "failover": 0.0}
FAULTS = list(LASTS)
SLACK = 2 * LEASE / 1000 + 10
"""Seconds after which a message has been handled that has come back once."""


@pytest.mark.parametrize("fault", [*FAULTS, "emptied", "deleted"])
def test_idle(scene, fault):
    scene.wait_idle()
    scene.strike(fault)
    id = scene.send()
    scene.wait_done(id, SLACK)
    assert scene.runs(id)["begin"] == 1, scene.said()


@pytest.mark.parametrize("fault", FAULTS)
def test_fetching(scene, fault):
    for place in (0, 1, 5, 24, 80, 200) if fault == "cut" else (0,):
        scene.wait_idle()
        strike = None if fault == "cut" else lambda: scene.strike(fault)
        # The next fetch finds the message, so that no reply without one can spring the trap before it is sent.
        with scene.proxy.held():
            scene.cut_and_wait()
            trap = scene.proxy.trap(*FETCHES, reply=True, bytes=place, strike=strike)
            id = scene.send()
        assert trap.sprung.wait(30), scene.said()
        scene.wait_done(id, SLACK)
        assert scene.runs(id)["begin"] == 1, scene.said()


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "long"])
def test_reserved(scene, fault):
    """A message that a worker has reserved begins once, and soon: here when the next one asks, or at its old worker."""
    scene.wait_idle()
    slots, ahead = scene.driver.slots, scene.driver.ahead
    busy = [scene.send(LASTS[fault] + 1.5) for _ in range(slots)]
    for id in busy:
        scene.wait_begun(id)
    # Until Celery knows of the begin, it takes the task for one that has not begun.
    time.sleep(0.2)
    reserved = [scene.send() for _ in range(ahead + 1)]
    # The one more than it takes ahead has room at the worker only where those that run are acked.
    scene.wait_running(len(reserved) if scene.driver.is_early else slots + ahead)
    scene.strike(fault)
    for id in [*busy, *reserved]:
        scene.wait_ended(id, SLACK)
    scene.wait_done(reserved[-1], SLACK)
    assert [scene.runs(id)["begin"] for id in reserved] == [1] * len(reserved), scene.said()


def test_fetching_again_late(scene):
    """A fetch gives a message once more whose lease has little time left. The lease is renewed before the handler begins."""
    scene.wait_idle()
    with scene.proxy.held():
        scene.cut_and_wait()
        scene.deleted()
        now = int(time.time() * 1000)
        scene.client.execute_command("DQ.CREATE", scene.key, "CLOCK", "MANUAL", now)
        trap = scene.proxy.trap(*FETCHES, reply=True, strike=lambda: scene.hide(LEASE / 2000, now + LEASE - 1))
        id = scene.send(1.5)
    assert trap.sprung.wait(30), scene.said()
    scene.wait_begun(id)
    assert scene.lease_until() > now + LEASE, scene.said()
    scene.wait_done(id, SLACK)
    assert scene.runs(id)["begin"] == 1, scene.said()
    scene.deleted()
