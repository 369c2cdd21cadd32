"""Primary and replica have clocks that differ, by seconds to days, and the replica takes over."""

import tempfile
import time
from pathlib import Path

from tests.checker.history import ClockStep, clock
from tests.harness.server import wait_for
from tests.harness.topology import Pair
from tests.torture.faults.replicas import Promotion
from tests.torture.preload import WallClock
from tests.torture.target import Rigged, wait_link

SECOND = 1_000
# The differences of the next primary's clock from the right time.
APART = (0, 2 * SECOND, 40 * SECOND, 600 * SECOND, 3 * 86_400 * SECOND)


class ClocksApart(Promotion):
    """The clock of the new primary is ahead or behind. A queue that is moved is a step of its clock, and no more.

    Half of the time the primary is killed, else it hands its role over.
    """

    pause = 2.5

    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="dq-apart-")
        walls = [WallClock(Path(self.folder.name) / f"clock-{n}") for n in range(2)]
        self.servers = [Rigged(env=wall.env, **self.settings) for wall in walls]
        self.walls = dict(zip(self.servers, walls))
        for server in self.servers:
            server.start()
        self.first, self.second = self.servers
        self.follow()

    def follow(self) -> None:
        self.second.client().execute_command("REPLICAOF", "127.0.0.1", self.first.port)
        wait_link(self.first, self.second)

    def inject(self) -> None:
        old, new = self.walls[self.first], self.walls[self.second]
        # On a replica the step moves no queue.
        new.step(self.rng.choice(APART) * self.rng.choice((1, -1)) - new.offset)
        apart = new.offset - old.offset
        begin = clock()
        if self.rng.random() < 0.5:
            super().inject()
        else:
            self.hand_over()
        self.steps.append(ClockStep(apart, begin, clock()))
        self.probe(apart)
        self.compare()

    def hand_over(self) -> None:
        wait_link(self.first, self.second)
        self.first.client().execute_command("FAILOVER", "TO", "127.0.0.1", self.second.port, "TIMEOUT", 5000)
        wait_for(lambda: self.first.info("replication")["master_failover_state"] == "no-failover", 15, "the failover")
        if Pair.role(self.first) == "slave":
            self.first, self.second = self.second, self.first
        wait_link(self.first, self.second)

    def probe(self, apart: int) -> None:
        """A queue that is made now has the time of its server, regardless of the times with which the others came."""
        with self.first.wire() as w:
            begin = time.monotonic()
            key = f"{self.key}:probe:{self.injected}"
            w.ok("DQ.SEND", key, "x", "DELAY", 200)
            [[_, receipt, *_]] = w.ok("DQ.FETCH", key, "BLOCK", 0)
            took = (time.monotonic() - begin) * 1000
            w.ok("DQ.ACK", key, receipt)
        if not 180 <= took <= 15_000:
            self.differences.append(f"a delay of 200 ms took {took:.0f} ms on a server whose clock was {apart} ms apart")

    def close(self) -> None:
        super().close()
        self.folder.cleanup()
