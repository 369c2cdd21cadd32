"""The tests of each driver: the outcome for its worker and its message when a fault occurs at some moment.

Those in which no handler has begun yet are the same for all (`driver_faults`).
"""

import pytest

from tests.harness.driver_faults import *  # noqa: F403
from tests.harness.driver_faults import ACKS, FAULTS, LASTS, LEASE, SLACK


def most_runs(fault):
    """How often a handler may begin. It begins again only if its lease has ended at a server that was away."""
    return 2 if fault == "long" else 1


@pytest.mark.parametrize("fault", [*FAULTS, "emptied", "deleted"])
def test_running(scene, fault):
    seconds = LASTS.get(fault, 0.0) + 1.5
    # Without heartbeats a handler must be shorter than the lease.
    id = scene.send(seconds if scene.driver.has_heartbeats else min(seconds, LEASE / 1000 - 1.5))
    scene.wait_begun(id)
    scene.strike(fault)
    if fault in LASTS:
        scene.wait_done(id, SLACK)
        assert scene.runs(id)["begin"] <= most_runs(fault)
    # The worker continues, also if the queue of its message is gone.
    following = scene.send()
    scene.wait_done(following, SLACK)
    assert scene.runs(following)["begin"] == 1, scene.said()


@pytest.mark.parametrize("is_reply", [False, True], ids=["command", "reply"])
@pytest.mark.parametrize("fault", FAULTS)
def test_ack(scene, fault, is_reply):
    for place in (0, 1, 3) if fault == "cut" else (0,):
        strike = None if fault == "cut" else lambda: scene.strike(fault)
        trap = scene.proxy.trap(*ACKS, reply=is_reply, bytes=place, strike=strike)
        id = scene.send(0.3)
        assert trap.sprung.wait(30), scene.said()
        scene.wait_done(id, SLACK)
        assert scene.runs(id)["begin"] <= most_runs(fault)


@pytest.mark.parametrize("is_running", [False, True], ids=["idle", "running"])
@pytest.mark.parametrize("fault", ["none", "cut", "kill", "gone", "silent"])
def test_stop(own_scene, fault, is_running):
    scene = own_scene
    if fault == "silent" and not scene.driver.heeds_silence:
        pytest.skip("it waits for as long as the read timeout of its connection says")
    if is_running:
        id = scene.send(1.0)
        scene.wait_begun(id)
    if fault == "gone":
        scene.server.kill9()
    elif fault == "silent":
        scene.server.pause()
    elif fault != "none":
        scene.strike(fault)
    took = scene.stop()
    assert took < (scene.driver.stop_without if fault == "gone" else scene.driver.stop_seconds), f"{took:.1f} s\n{scene.said()}"
    if fault == "gone":
        scene.server.start()
    scene.server.resume()
    if is_running:
        assert scene.runs(id)["end"] == 1
    if is_running and fault in ("none", "cut", "kill"):
        assert scene.left() == 0
