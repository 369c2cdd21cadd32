import pytest

from tests.drivers.faults.matrix import *  # noqa: F403
from tests.drivers.faults.workers import BULLMQ
from tests.harness.driver_faults import ACKS, FETCHES, SLACK

DRIVERS = [BULLMQ]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LONGEST = {False: 240, True: 120}
"""Bytes of the longest command and of the longest reply, and some more: a cut behind the end is one, too."""


@pytest.mark.parametrize("is_reply", [False, True], ids=["command", "reply"])
@pytest.mark.parametrize("words", [FETCHES, ACKS], ids=["fetch", "ack"])
def test_a_cut_at_any_byte(scene, words, is_reply):
    """The worker continues, and its job has run once."""
    for place in range(LONGEST[is_reply]):
        scene.wait_idle()
        if words is FETCHES:
            # The waiting fetch was sent before the trap was set, so it ends first.
            scene.cut()
        trap = scene.proxy.trap(*words, reply=is_reply, bytes=place)
        id = scene.send()
        assert trap.sprung.wait(30), scene.said()
        scene.wait_done(id, SLACK)
        assert scene.runs(id)["begin"] == 1, f"cut after {place} bytes"
