"""The tests of each driver: the outcome for its worker and its message when a fault occurs at some moment."""


import pytest

from tests.drivers.faults.scene import AWAY, LEASE, LONG

FETCHES = (b"DQ.FETCH", b"DQ.MFETCH")
ACKS = (b"DQ.ACK", b"\r\nACK\r\n")

LASTS = {"cut": 0.0, "kill": 0.0, "away": AWAY, "long": LONG, "failover": 0.0}
FAULTS = list(LASTS)
SLACK = 2 * LEASE / 1000 + 10
"""Seconds after which a message has been handled that has come back once."""


def most_runs(fault):
    """How often a handler may begin. It begins again only if its lease has ended at a server that was away."""
    return 2 if fault == "long" else 1


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
