"""One pipeline on one server: work, a failure, a check of the remaining items, and so on; then all items are
finished.
"""

import os
import random
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.server import assert_clean, wait_for
from tests.harness.wire import Wire
from tests.torture.pipeline.pipelines import STAGES
from tests.torture.preload import Power
from tests.torture.target import Rigged

# If this many items are in the pipeline, the producer adds one only every PAUSE seconds.
FILLED, PAUSE = 40, 0.005
# The log is torn once after this number of power failures: at any byte that was written since the last failure.
TORN_EVERY = 4
# Seconds of work between two failures, at most.
WORK = 0.06
# Seconds for the items to come to the end after the last failure.
DRAINING = 60


@dataclass
class Outcome:
    """The outcome of one pipeline. `wrong` names each item that was doubled, lost and so on, by the kind of error.
    `wrong` names each item that was doubled, lost and so on, by what it was.
    """

    name: str
    failures: int = 0
    torn: int = 0
    # Bytes of the logs that were lost in the failures.
    gone: int = 0
    handed_on: int = 0
    finished: int = 0
    # The number of finished items that a batch had held.
    released: int = 0
    seconds: float = 0.0
    wrong: dict = field(default_factory=dict)

    def complain(self, what: str, number: int, why: str) -> None:
        """The first complaint about an item is the one that counts: the others follow from it."""
        if not any(number in items for items in self.wrong.values()):
            self.wrong.setdefault(what, {})[number] = why

    def count(self, what: str) -> int:
        return len(self.wrong.get(what, ()))


class Books:
    """The items that must be in the pipeline, and those that have come out of it."""

    def __init__(self, outcome: Outcome):
        self.outcome = outcome
        self.lock = threading.Lock()
        # Items that are surely in the log, and those that have come out.
        self.sure, self.out = set(), Counter()
        # The number of items at the last count, so that the producer knows when to pause.
        self.filled = 0

    def sent(self, number: int) -> None:
        with self.lock:
            self.sure.add(number)
            self.filled += 1

    def check(self, found: list, held_wrongly: list, torn: bool, stock: set) -> None:
        """Compares an inventory with the items that must exist: after a torn log, those of the last inventory."""
        places = Counter(f.item.number for f in found)
        complain = self.outcome.complain
        for number, count in places.items():
            if count + self.out[number] > 1:
                complain("doubled", number, f"{count} times in the pipeline, {self.out[number]} times out of it")
        if torn:
            self.sure &= stock
        for number in self.sure - set(places) - set(self.out):
            complain("lost", number, "in no stage")
        self.sure = set(places)
        for f in found:
            expected = tuple(int(stage < f.stage) for stage in range(STAGES))
            if f.item.counts != expected:
                complain("miscounted", f.item.number, f"{f.item.counts} in stage {f.stage}")
        for number in held_wrongly:
            complain("held", number, "held or released against its batch")
        self.filled = len([f for f in found if f.stage < STAGES])

    def collected(self, items: list) -> None:
        for item in items:
            self.out[item.number] += 1
            self.sure.discard(item.number)
            if self.out[item.number] > 1:
                self.outcome.complain("doubled", item.number, "came out twice")
            if item.counts != (1,) * STAGES:
                self.outcome.complain("miscounted", item.number, f"{item.counts} at the end")
        self.outcome.finished += len(items)


class Run:
    """A pipeline, its server and its workers."""

    def __init__(self, pipeline, seed: int, folder: Path):
        self.pipeline, self.rng = pipeline, random.Random(seed)
        self.power = Power(folder / "table")
        self.server = Rigged(
            env=self.power.env, load_module=pipeline.module, appendonly="yes", appendfsync="always",
            auto_aof_rewrite_percentage=0, aof_load_truncated="yes",
        )  # fmt: skip
        self.outcome = Outcome(pipeline.name)
        self.books = Books(self.outcome)
        self.producer = pipeline.producer()
        self.workers = [pipeline.worker(stage) for stage in range(STAGES)]
        self.stock, self.marks, self.broken = set(), {}, []

    def run(self, failures: int) -> Outcome:
        began = time.monotonic()
        try:
            self.start()
            with self.wire() as wire:
                self.pipeline.create(wire)
            while self.outcome.failures < failures:
                self.round(torn=False)
                if self.outcome.failures % TORN_EVERY == 0:
                    self.round(torn=True)
            self.drain()
        finally:
            self.server.close(check_log=False)
        self.outcome.released = sum(map(self.pipeline.was_held, self.books.out))
        self.outcome.handed_on = sum(worker.handed_on for worker in self.workers)
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    def wire(self) -> Wire:
        return Wire(self.server.port, protocol=2, timeout=30)

    def start(self) -> None:
        # The lines that the server has logged in earlier lives are read once. A torn transaction makes it complain, and
        # go on.
        if self.server.log_path.exists():
            if self.pipeline.module:
                assert_clean(self.server.log())
            self.server.log_path.unlink()
        self.server.start()

    def round(self, torn: bool) -> None:
        """Work, a failure, and a check of the remaining items."""
        threads = self.at_work()
        time.sleep(self.rng.random() * WORK)
        if torn:
            self.server.kill9()
            self.tear()
            self.outcome.torn += 1
        else:
            self.power.approach()
            wait_for(self.power.struck, 30, "a sync for the power to fail in")
            self.server.kill9()
            self.outcome.gone += self.power.fail(self.server.dir, self.rng)
            self.outcome.failures += 1
        self.join(threads)
        self.start()
        with self.wire() as wire:
            self.pipeline.restarted(wire, torn)
            self.audit(wire, torn)
            if (self.outcome.failures + self.outcome.torn) % self.pipeline.rewrite_every == 0:
                self.rewrite(wire)
        self.marks = {path: path.stat().st_size for path in self.log_files()}

    def audit(self, wire: Wire, torn: bool = False) -> None:
        found = self.pipeline.inventory(wire)
        self.books.check(found, self.pipeline.held_wrongly(found), torn, self.stock)
        self.books.collected(self.pipeline.collect(wire))
        self.stock = {f.item.number for f in found}

    def at_work(self, producing: bool = True) -> list:
        """Starts the producer and the workers, each in a thread that ends with its connection."""

        def produce(wire):
            if self.books.filled >= FILLED:
                time.sleep(PAUSE)
            self.producer.step(wire, self.books.sent)

        steps = [lambda wire, w=worker: w.step(wire, self.complain) for worker in self.workers]
        if producing:
            steps.append(produce)
        threads = [threading.Thread(target=self.go_on, args=(step,)) for step in steps]
        for thread in threads:
            thread.start()
        return threads

    def go_on(self, step) -> None:
        try:
            with self.wire() as wire:
                while True:
                    step(wire)
        except OSError:
            # The server is dead.
            pass
        except BaseException as error:
            self.broken.append(error)

    def complain(self, *what) -> None:
        with self.books.lock:
            self.outcome.complain(*what)

    def join(self, threads: list) -> None:
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a worker does not notice that its server is dead"
        if self.broken:
            raise self.broken[0]

    def log_files(self) -> list:
        return [path for path in (self.server.dir / "appendonlydir").iterdir() if path.suffix == ".aof"]

    def tear(self) -> None:
        """The end of the log is lost, from any byte on that was written since the last start."""
        for path in self.log_files():
            size = path.stat().st_size
            left = self.rng.randint(self.marks.get(path, 0), size)
            os.truncate(path, left)
            self.outcome.gone += size - left

    def rewrite(self, wire: Wire) -> None:
        wire.ok("BGREWRITEAOF")

        def done():
            info = self.server.info("persistence")
            return info["aof_rewrite_in_progress"] == info["aof_rewrite_scheduled"] == "0"

        wait_for(done, 60, "the rewriting of the log")

    def drain(self) -> None:
        """No more failures: all items of the pipeline are finished."""
        threads = self.at_work(producing=False)
        with self.wire() as wire:
            deadline = time.monotonic() + DRAINING
            while True:
                self.audit(wire)
                if not self.stock or time.monotonic() > deadline:
                    break
                time.sleep(0.05)
        self.server.kill9()
        self.join(threads)
        for number in self.stock:
            self.outcome.complain("stuck", number, "did not come out")


def run(pipeline, failures: int, seed: int) -> Outcome:
    """Makes a number of power failures, and a torn log after every TORN_EVERY of them, for this pipeline."""
    with tempfile.TemporaryDirectory(prefix="dq-pipeline-") as folder:
        return Run(pipeline, seed, Path(folder)).run(failures)
