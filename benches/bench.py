"""Shared by all parts of the benchmark: the options of a run, and progress on stderr."""

import argparse
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from generator import Generator
from server import Server

ROOT = Path(__file__).resolve().parent.parent
# Modules that both tests and benchmarks need are in tests/.
sys.path.append(str(ROOT))
"""The last table that `instructions.py` has written."""
QUIET_CORES = 0.1
"""Cores that other programs may use before the page mentions it."""
QUIET_PERCENT = 1
"""Percent of the processors' time that the host may take away before the page mentions it."""


def parser(description):
    """Returns a parser of the options that all programs which measure a server have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=re.compile, default="", metavar="REGEX", help="only rows whose name matches")
    parser.add_argument("--module", type=Path, default=ROOT / "target/release/libdq.so")
    parser.add_argument("--built", default="", metavar="TEXT", help="how that was built, for the page")
    parser.add_argument("--redis-server", default=os.environ.get("REDIS_SERVER") or "redis-server")
    parser.add_argument("--generator", type=Path, default=ROOT / "target/load/release/dq-load")
    return parser


def _busy_seconds():
    """Returns the processor time of all programs since the machine started, in seconds."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


class Taken:
    """Measures how much of the time of all cores the host gives to others during a `with`: `percent`."""

    percent = 0.0

    def __enter__(self):
        self._before, self._start = self._seconds(), time.monotonic()
        return self

    def __exit__(self, *_):
        elapsed = (time.monotonic() - self._start) * os.cpu_count()
        self.percent = (self._seconds() - self._before) / elapsed * 100

    @staticmethod
    def _seconds():
        return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")


@dataclass
class Bench:
    """One run of the benchmark."""

    binary: str
    module: Path
    generator: Generator
    rounds: int
    quick: bool
    rows: re.Pattern
    built: str = ""
    """The options with which the module was built, in the words of the page."""
    started: float = field(default_factory=time.monotonic)
    strangers: float = 0.0
    """Maximum number of cores that other programs used while the benchmark was idle."""
    by_host: Taken = field(default_factory=Taken)

    def wanted(self, *names):
        """Returns whether `--rows` matches one of the names."""
        return any(self.rows.search(name) for name in names)

    def scaled(self, count):
        """Returns `count`, or in a quick run a hundredth of it, but no less than the lesser of `count` and 100."""
        return max(count // 100, min(count, 100)) if self.quick else count

    def server(self, **options):
        """Starts a server with the module."""
        return Server(self.binary, [self.module], **options)

    def bare_server(self):
        """Starts a server without a module."""
        return Server(self.binary, [])

    def look_around(self):
        """Measures how many cores other programs use. To be called while the benchmark has nothing to do.

        The rows about time mean little where a server has to wait for its core.
        """
        before, start = _busy_seconds(), time.monotonic()
        time.sleep(0.5)
        self.strangers = max(self.strangers, (_busy_seconds() - before) / (time.monotonic() - start))

    def disturbance(self):
        """Returns sentences about who else used the processors, or an empty string if nobody did."""
        found = []
        if self.by_host.percent >= QUIET_PERCENT:
            found.append(f"The host took {self.by_host.percent:.0f} % of this machine's processors away during the run.")
        if self.strangers >= QUIET_CORES:
            found.append(f"Other programs used up to {self.strangers:.1f} of its {os.cpu_count()} cores.")
        if found:
            found.append("Stall and lateness are theirs as much as the server's, and medians still differ from run to run.")
        return " ".join(found)

    def say(self, text):
        """Prints a line about the progress."""
        print(f"[{time.monotonic() - self.started:5.0f} s] {text}", file=sys.stderr, flush=True)


def median_ratio(values, others):
    """Returns the median of the ratios of each round. A machine that gets slower does so for both values of a round."""
    return median(value / other for value, other in zip(values, others))
