"""A slot moves to a node whose clock is behind: clients that wait there get its messages, not early and not much too
late.
"""

import pytest

from tests.harness.replies import Queue
from tests.harness.server import wait_for
from tests.harness.topology import Cluster
from tests.torture.preload import WallClock
from tests.torture.target import Rigged

SECOND = 1000
HOUR = 3600 * SECOND


class Apart(Cluster):
    """A cluster whose nodes have clocks of their own."""

    def __init__(self, folder, **conf):
        self.folder, self.walls = folder, {}
        super().__init__(**conf)

    def _make(self):
        wall = WallClock(self.folder / f"clock-{len(self.walls)}")
        server = Rigged(env=wall.env, **self.conf)
        self.walls[server] = wall
        return server


@pytest.fixture
def apart(tmp_path):
    cluster = Apart(tmp_path, nodes=2).start()
    yield cluster
    cluster.close()


@pytest.mark.parametrize("ahead", [30 * SECOND, HOUR, 72 * HOUR])
def test_a_queue_that_comes_ahead_serves_those_who_wait_for_its_family(apart, ahead):
    key = "f:{1}"
    source = apart.owner(key)
    [target] = [node for node in apart.nodes if node is not source]
    apart.walls[source].step(ahead)
    q = Queue(source.client(), key)
    q.send("running", "ID", "running", "PRIORITY", -1)
    receipt = q.one("LEASE", 60 * SECOND).receipt
    q.send("soon", "ID", "soon", "DELAY", 2 * SECOND)
    q.send("late", "ID", "late", "DELAY", HOUR)
    apart.move_slot(apart.slot(key), source, target)
    waiting = target.wire()
    # A wait ends without a message if the queues of the node change.
    name, [[id, next_receipt, *_]] = wait_for(lambda: waiting.ok("DQ.NFETCH", "f", "BLOCK", 10 * SECOND), 60, "a message")
    assert (name, id) == (key.encode(), b"soon")
    assert next_receipt > receipt
    there = Queue(target.client(), key)
    assert there.info()["clock-lead"] <= 60 * SECOND
    assert there.state("late") == "delayed" and there.state("running") == "running"
    assert there.touch(60 * SECOND, receipt) == 1
    with target.wire() as w:
        there.send("next")
        assert w.ok("DQ.MFETCH", 1, key, "BLOCK", 20 * SECOND)[1][0][3] == b"next"
        there.send("in a moment", "DELAY", 300)
        assert w.ok("DQ.MFETCH", 1, key, "BLOCK", 20 * SECOND)[1][0][3] == b"in a moment"
        assert w.ok("DQ.ACK", key, receipt, next_receipt) == 2
