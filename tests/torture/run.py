"""One fault: its servers, the actors against them, the fault again and again, the verdict."""

import multiprocessing
import os
import random
import signal
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.checker.history import clock
from tests.torture.target import Target

# Seconds that the actors may take to drain the queues after the last fault.
DRAINING = 60


@dataclass
class Row:
    """The outcome of one fault."""

    fault: str
    operations: int
    injected: int
    gone: int = 0
    """Sends that were answered and then undone by a crash or failover, which Redis allows there."""
    violations: list = field(default_factory=list)
    seconds: float = 0.0


def run(name: str, target: Target, seconds: float, seed: int) -> Row:
    """Does the fault for `seconds`, then lets all actors end and checks the histories."""
    began = time.monotonic()
    row = Row(name, 0, 0)
    target.open()
    try:
        with tempfile.TemporaryDirectory(prefix="dq-torture-") as folder:
            target.journals = Path(folder)
            target.create()
            target.created()
            until = clock() + seconds * 1000
            crew = Crew(target, seed, until)
            try:
                inject(target, until)
                target.heal()
                (target.journals / "healed").touch()
                crew.join(until)
            finally:
                crew.stop()
            target.finish()
            for workload in target.workloads:
                operations, gone, violations = workload.judge(target)
                row.operations += operations
                row.gone += gone
                row.violations += [f"{violation} ({workload.name})" for violation in violations]
    finally:
        target.close()
    row.operations += target.extra_operations
    row.violations += [f"same_state: {difference}" for difference in target.differences]
    row.injected, row.seconds = target.injected, time.monotonic() - began
    return row


def inject(target, until) -> None:
    # Enough work must lie between two faults for there to be something to break.
    time.sleep(min(target.pause, 0.7))
    while clock() < until:
        target.do()
        left = (until - clock()) / 1000
        time.sleep(max(0.0, min(left, target.pause * target.rng.uniform(0.5, 1.5))))


class Crew:
    """The processes of the actors."""

    def __init__(self, target, seed, until):
        self.rng, self.context = random.Random(seed), multiprocessing.get_context("fork")
        self.processes = []
        for workload in target.workloads:
            ways, folder = replace(workload.ways, **target.ways), target.journals
            where, name = (list(target.ports), target.key + workload.suffix), workload.name
            for n in range(workload.producers):
                journal = folder / f"{name}.p{n}.jsonl"
                self.start(workload.produce, *where, journal, f"p{n}", self.rng.randrange(2**31), until, ways)
            for n in range(workload.consumers):
                seed = self.rng.randrange(2**31)
                self.start(workload.consume, *where, folder, f"{name}.c{n}", seed, until, target.lease, ways)
            for end, watcher in workload.watchers():
                self.start(watcher, *where, folder / f"{name}.{end}.jsonl", until)

    def start(self, target, *args) -> None:
        process = self.context.Process(target=target, args=args)
        process.start()
        self.processes.append(process)

    def join(self, until) -> None:
        """Returns when all processes have ended on their own."""
        deadline = until / 1000 + DRAINING
        for process in self.processes:
            process.join(max(0.1, deadline - clock() / 1000))
        codes = [process.exitcode for process in self.processes]
        assert not any(codes) and None not in codes, f"actors failed or did not end: exit codes {codes}"

    def stop(self) -> None:
        for process in self.processes:
            if process.is_alive():
                # A consumer is a process group: the process that restarts it, and its present process.
                for kill in (os.killpg, os.kill):
                    try:
                        kill(process.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                process.join()
