"""One fault: its servers, the actors against them, the fault again and again, the verdict."""

import multiprocessing
import os
import random
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.checker.check import check
from tests.checker.history import History, clock
from tests.torture.stage import RETRIES, Stage

LEASE = 300
# Seconds that the actors may take to drain the queue after the last fault.
DRAINING = 60


@dataclass
class Row:
    """What became of one fault."""

    fault: str
    operations: int
    injected: int
    gone: int = 0
    """Sends that were answered and then undone by a crash or failover, which Redis allows there."""
    violations: list = field(default_factory=list)
    seconds: float = 0.0


def run(name: str, stage: Stage, seconds: float, seed: int, producers: int = 3, consumers: int = 5) -> Row:
    """Does the fault for so many seconds, then lets everything end and judges the history."""
    began = time.monotonic()
    stage.open()
    try:
        with tempfile.TemporaryDirectory(prefix="dq-torture-") as folder:
            stage.journals = Path(folder)
            stage.create()
            stage.created()
            until = clock() + seconds * 1000
            crew = Crew(stage, Path(folder), seed, until, producers, consumers)
            try:
                inject(stage, until)
                stage.heal()
                (Path(folder) / "healed").touch()
                crew.join(until)
            finally:
                crew.stop()
            stage.finish()
            history = read(stage, folder)
    finally:
        stage.close()
    return Row(
        name, history.operations + stage.extra_operations, stage.injected, history.gone, check(history),
        time.monotonic() - began,
    )  # fmt: skip


def inject(stage, until) -> None:
    # Enough work must lie between two faults for there to be something to break.
    time.sleep(min(stage.pause, 0.7))
    while clock() < until:
        stage.do()
        left = (until - clock()) / 1000
        time.sleep(max(0.0, min(left, stage.pause * stage.rng.uniform(0.5, 1.5))))


def read(stage, folder) -> History:
    final, dead = stage.end_state()
    return History.read(
        sorted(Path(folder).glob("*.jsonl")), final=final, dead=dead, retries=RETRIES, windows=stage.windows,
        steps=stage.steps, disturbed=stage.disturbed, quiet=stage.quiet, differences=stage.differences,
    )  # fmt: skip


class Crew:
    """The processes of the actors."""

    def __init__(self, stage, folder, seed, until, producers, consumers):
        rng, context = random.Random(seed), multiprocessing.get_context("fork")
        ports = list(stage.ports)
        produce, consume = stage.actors
        self.processes = []
        for n in range(producers):
            args = (ports, stage.key, folder / f"p{n}.jsonl", f"p{n}", rng.randrange(2**31), until, 60)
            self.processes.append(context.Process(target=produce, args=args))
        for n in range(consumers):
            args = (ports, stage.key, folder, f"c{n}", rng.randrange(2**31), until, LEASE, 0.003)
            self.processes.append(context.Process(target=consume, args=args))
        for process in self.processes:
            process.start()

    def join(self, until) -> None:
        """Returns when all have come to their end by themselves."""
        deadline = until / 1000 + DRAINING
        for process in self.processes:
            process.join(max(0.1, deadline - clock() / 1000))
        codes = [process.exitcode for process in self.processes]
        assert not any(codes) and None not in codes, f"actors failed or did not end: exit codes {codes}"

    def stop(self) -> None:
        for process in self.processes:
            if process.is_alive():
                # A consumer is a group of its own: whoever keeps it alive, and its present life.
                for kill in (os.killpg, os.kill):
                    try:
                        kill(process.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                process.join()
