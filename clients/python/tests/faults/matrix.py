"""The tests of each driver: the outcome for its worker and its message when a fault occurs at some moment."""

import time

import pytest

from clients.python.tests.faults.drivers import KILLS
from clients.python.tests.faults.scene import AWAY, GRACE, LEASE, LONG

FETCHES = (b"DQ.FETCH", b"DQ.MFETCH")
ACKS = (b"DQ.ACK", b"\r\nACK\r\n")

LASTS = {"cut": 0.0, "kill": 0.0, "away": AWAY, "long": LONG, "failover": 0.0}
FAULTS = list(LASTS)
SLACK = 2 * LEASE / 1000 + 10
"""Seconds after which a message has been handled that has come back once."""
BUSY = 3.0
"""Seconds that a busy machine may take beside the two that are promised for a stop. A worker that hangs takes far
longer.
"""


def most_runs(scene, fault):
    """How often a handler may begin. It begins again only if the lease has ended at a server that was away."""
    return 2 if fault == "long" or scene.driver.runs_again() else 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*FAULTS, "emptied", "deleted"])
def test_idle(scene, fault):
    scene.wait_idle()
    scene.strike(fault)
    id = scene.send()
    scene.wait_done(id, SLACK)
    assert scene.runs(id)["begin"] == 1, scene.said()


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_fetching(scene, fault):
    places = (0, 1, 5, 24, 80, 200) if fault == "cut" else (0,)
    for place in places:
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*FAULTS, "emptied", "deleted"])
def test_running(scene, fault):
    id = scene.send(LASTS.get(fault, 0.0) + 1.5)
    scene.wait_begun(id)
    # Until Celery knows of the begin, it takes the task for one that has not begun.
    time.sleep(0.2)
    scene.strike(fault)
    if fault in LASTS:
        scene.wait_done(id, SLACK)
        time.sleep(0.2)
        assert scene.runs(id)["begin"] <= most_runs(scene, fault), scene.said()
    # The worker continues, also if the queue of its message is gone.
    following = scene.send()
    scene.wait_done(following, SLACK)
    assert scene.runs(following)["begin"] == 1, scene.said()


@pytest.mark.slow
@pytest.mark.parametrize("is_reply", [False, True], ids=["command", "reply"])
@pytest.mark.parametrize("fault", FAULTS)
def test_ack(scene, fault, is_reply):
    for place in (0, 1, 20) if fault == "cut" else (0,):
        strike = None if fault == "cut" else lambda: scene.strike(fault)
        id = scene.send(0.3)
        scene.wait_begun(id)
        trap = scene.proxy.trap(*ACKS, reply=is_reply, bytes=place if not is_reply else min(place, 3), strike=strike)
        assert trap.sprung.wait(30), scene.said()
        scene.wait_done(id, SLACK)
        time.sleep(0.2)
        assert scene.runs(id)["begin"] <= most_runs(scene, fault), scene.said()


@pytest.mark.slow
@pytest.mark.parametrize("is_running", [False, True], ids=["idle", "running"])
@pytest.mark.parametrize("fault", ["none", "cut", "kill", "gone", "silent"])
def test_stop(own_scene, fault, is_running):
    scene = own_scene
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
    assert took < GRACE + 2 + BUSY, f"{took:.1f} s\n{scene.said()}"
    if fault == "gone":
        scene.server.start()
    scene.server.resume()
    if is_running:
        assert scene.runs(id)["end"] == 1


RAISED = {
    "error": "LookupError",
    "unprintable": "Unprintable",
    "sys.exit": "SystemExit",
    "SystemExit": "SystemExit",
    "KeyboardInterrupt": "KeyboardInterrupt",
    "GeneratorExit": "GeneratorExit",
    "BaseException": "Odd",
    "asynchronous": "Odd",
    # Python does not let a coroutine raise this error.
    "StopIteration": "StopIteration",
}
LOST_WORKERS = 3


@pytest.mark.slow
@pytest.mark.parametrize("how", RAISED)
def test_ends_by_raising(scene, how):
    id = scene.send(0.0, how)
    following = scene.send()
    scene.wait_until(lambda: scene.runs(following)["end"], SLACK, f"the message after {how}")
    scene.wait_until(lambda: scene.left() == 0, LOST_WORKERS * SLACK, f"an empty queue after {how}")
    assert (scene.runs(id)["begin"] <= LOST_WORKERS, scene.runs(id)["end"]) == (True, 0), scene.said()
    if scene.driver.keeps_errors:
        assert RAISED[how] in scene.dead(id).error
    # The next test finds a worker that waits.
    scene.wait_until(scene.waiting, 20, "a worker")


@pytest.mark.slow
@pytest.mark.parametrize("how", sorted(KILLS))
def test_ends_with_its_process(scene, how):
    id = scene.send(0.0, how)
    scene.wait_until(lambda: scene.left() == 0, LOST_WORKERS * SLACK, f"the end of what kills by {how}")
    # A message that a worker holds together with the killer is lost with it each time, and given up with it.
    following = scene.send()
    scene.wait_until(lambda: scene.runs(following)["end"], SLACK, f"the message after {how}")
    assert (scene.runs(id)["begin"], scene.runs(id)["end"]) == (LOST_WORKERS, 0), scene.said()
    assert scene.dead(id) is not None
    scene.wait_until(scene.waiting, 20, "a worker")
