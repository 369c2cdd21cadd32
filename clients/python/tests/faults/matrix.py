"""The tests of each driver: the outcome for its worker and its message when a fault occurs at some moment.

Those in which no handler has begun yet are the same for all (`driver_faults`).
"""

import time

import pytest

from clients.python.tests.faults.drivers import KILLS
from clients.python.tests.faults.scene import GRACE
from tests.harness.driver_faults import *  # noqa: F403
from tests.harness.driver_faults import ACKS, FAULTS, LASTS, SLACK

pytestmark = pytest.mark.slow

BUSY = 3.0
"""Seconds that a busy machine may take beside the two that are promised for a stop. A worker that hangs takes far
longer.
"""


def most_runs(scene, fault):
    """How often a handler may begin. It begins again only if the lease has ended at a server that was away."""
    return 2 if fault == "long" or scene.driver.runs_again() else 1


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
