"""The faults, and the tests that are the same for every driver: those in which no handler has begun yet."""

import pytest

from tests.harness.faulty_worker import AWAY, LEASE, LONG

FETCHES = (b"DQ.FETCH", b"DQ.MFETCH")
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


@pytest.mark.parametrize("left", [0.7, 1.5])
def test_fetching_again_late(scene, left):
    """A fetch gives messages once more whose leases have little time left, and whose handlers take longer."""
    scene.wait_idle()
    with scene.proxy.held():
        scene.cut_and_wait()
        trap = scene.proxy.trap(*FETCHES, reply=True, strike=lambda: scene.hide(LEASE / 1000 - left))
        id = scene.send(LEASE / 1000 - 2)
    assert trap.sprung.wait(30), scene.said()
    scene.wait_done(id, SLACK)
    assert scene.runs(id)["begin"] == 1, scene.said()
