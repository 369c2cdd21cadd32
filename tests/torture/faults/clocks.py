"""The wall clock of the server is set forward and back while it runs."""

import tempfile
import time
from pathlib import Path

from tests.checker.history import ClockStep, clock
from tests.torture.preload import WallClock
from tests.torture.target import Alone, Rigged

STEPS_MS = (500, 5_000, 60_000, 3_600_000)
# Queues with a schedule of one millisecond each, whose timers take about half of the server's time.
FIRING = 500


class ClockSteps(Alone):
    """Steps of half a second to an hour. Forward, leases and delays end; back, time goes on at half speed."""

    pause = 0.8

    def make(self) -> Rigged:
        self.folder = tempfile.TemporaryDirectory(prefix="dq-clock-")
        self.wall = WallClock(Path(self.folder.name) / "offset")
        return Rigged(env=self.wall.env, **self.settings)

    def inject(self) -> None:
        ms = self.rng.choice(STEPS_MS) * self.rng.choice((1, -1))
        if self.wall.offset + ms < -3_600_000:
            ms = -ms
        self.step(ms)
        self.probe(ms)

    def step(self, ms: int) -> None:
        """Sets the clock forward, or back where ms is negative, and notes that for the checker."""
        begin = clock()
        self.wall.step(ms)
        self.steps.append(ClockStep(ms, begin, clock()))

    def probe(self, ms) -> None:
        """A delay and a waiting consumer on a separate queue: time must not stand still."""
        with self.server.wire() as w:
            begin = time.monotonic()
            w.ok("DQ.SEND", "probe", "x", "DELAY", 200)
            [[_, receipt, *_]] = w.ok("DQ.FETCH", "probe", "BLOCK", 0)
            took = (time.monotonic() - begin) * 1000
            w.ok("DQ.ACK", "probe", receipt)
        # At half speed a delay takes twice as long. Much later it would be one that waits for the old time to come again.
        if not 180 <= took <= 15_000:
            self.differences.append(f"a delay of 200 ms took {took:.0f} ms after a step of {ms} ms")

    def finish(self) -> None:
        """After a restart the server only has the wall clock, which is not the subject of this fault."""
        self.wall.step(-self.wall.offset)
        self.listen(self.server)

    def close(self) -> None:
        super().close()
        self.folder.cleanup()


class ClockStepsAmongTimers(ClockSteps):
    """The same while the server runs timers nearly all the time, so that many steps come in the middle of one.

    The server goes by a time that it has read before its timers run, and a step back makes that the future.
    """

    def created(self) -> None:
        super().created()
        with self.server.wire() as w:
            for n in range(FIRING):
                # A full queue takes no more, so the schedules fire and memory does not grow.
                w.ok("DQ.CREATE", f"firing:{n}", "MAXLEN", 1)
                w.ok("DQ.SCHEDULE", f"firing:{n}", "often", "EVERY", 1, "PAYLOAD", "x", "MISSED", "SKIP")

    def inject(self) -> None:
        for _ in range(10):
            for ms in (3_600_000, -3_600_000):
                self.step(ms)
                with self.server.wire() as w:
                    w.ok("PING")
        super().inject()
