"""One row: work, a fault, a check of the remaining messages, and so on."""

import math
import multiprocessing
import tempfile
import time
from pathlib import Path

from tests.torture.losses.books import Outcome
from tests.torture.losses.lasting import Lasting
from tests.torture.losses.rows import Row
from tests.torture.losses.traffic import Clients

# The log is written anew after this number of faults.
REWRITE_EVERY = 20


class Run:
    """The servers of a row, and its rounds."""

    def __init__(self, row: Row, seed: int, folder: Path):
        self.row, self.outcome = row, Outcome(row.name)
        self.place = row.place(folder, seed, row.settings)

    def run(self, faults: int, sends: int, seconds: float) -> Outcome:
        """Makes this number of faults, and more until enough sends have been confirmed or the time is over."""
        began = time.monotonic()
        try:
            self.place.open()
            while self.outcome.faults < faults or self.outcome.sends < sends:
                self.round()
                if time.monotonic() > began + seconds:
                    break
        finally:
            self.place.close()
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    def round(self) -> None:
        place, outcome = self.place, self.outcome
        key = f"losses:{outcome.faults}"
        clients = self.clients(key).start()
        time.sleep(place.rng.uniform(*self.row.pace.work))
        struck = place.strike()
        place.recover()
        place.repair()
        books = clients.end()
        with place.primary.wire(protocol=2) as wire:
            books.audit(wire, key, struck, outcome)
        outcome.faults += 1
        if outcome.faults % REWRITE_EVERY == 0 and self.row.settings["appendonly"] == "yes":
            for member in place.members:
                member.rewrite()

    def clients(self, key: str) -> Clients | Lasting:
        if self.row.durable:
            return Lasting(self.place.port, key, self.row.durable, self.row.pace)
        return Clients(self.place.primary.port, key, self.row.confirm, self.row.pace)


def run(row: Row, faults: int, sends: int = 0, seconds: float = math.inf, seed: int = 1, lanes: int = 1) -> Outcome:
    """Makes a number of faults for this row, or more until enough sends were confirmed, or fewer if the time is over.

    A round mostly waits. `lanes` sets of servers, each with a process and clients of its own, share the faults.
    """
    shares = [(row, math.ceil(faults / lanes), math.ceil(sends / lanes), seconds, seed * lanes + n) for n in range(lanes)]
    if lanes == 1:
        return _lane(*shares[0])
    whole = Outcome(row.name)
    # Each part begins as a new process, because this one may have threads.
    with multiprocessing.get_context("spawn").Pool(lanes) as pool:
        for outcome in pool.starmap(_lane, shares):
            whole.add(outcome)
    return whole


def _lane(row: Row, faults: int, sends: int, seconds: float, seed: int) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="dq-losses-") as folder:
        return Run(row, seed, Path(folder)).run(faults, sends, seconds)
