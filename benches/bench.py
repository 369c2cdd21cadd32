"""What all parts of the benchmark share: the options of this run, and progress on stderr."""

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
# What tests and benchmarks both need is with the tests.
sys.path.append(str(ROOT))
INSTRUCTIONS = ROOT / "target" / "instructions.md"
"""The table that `instructions.py` has written last."""
QUIET_CORES = 0.1
"""What other programs may use before the run says so."""
QUIET_PERCENT = 1
"""The same of the host."""


def parser(description):
    """What all that measures on a server can be told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=re.compile, default="", metavar="REGEX", help="only rows whose name matches")
    parser.add_argument("--module", type=Path, default=ROOT / "target/release/libdq.so")
    parser.add_argument("--built", default="", metavar="TEXT", help="how that was built, for the page")
    parser.add_argument("--floor", type=Path, default=ROOT / "target/floor/release/libdq_floor.so")
    parser.add_argument("--redis-server", default=os.environ.get("REDIS_SERVER") or "redis-server")
    parser.add_argument("--generator", type=Path, default=ROOT / "target/load/release/dq-load")
    return parser


def _busy_seconds():
    """Processor time of all programs together since the machine started."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


class Taken:
    """What of the time of all cores the host gives to others within a `with`: then `percent` tells."""

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
    floor: Path
    """The module whose commands do next to nothing."""
    generator: Generator
    rounds: int
    quick: bool
    rows: re.Pattern
    built: str = ""
    """How the module was built, as the page says it."""
    started: float = field(default_factory=time.monotonic)
    strangers: float = 0.0
    """The most cores that other programs were seen to use between the rows."""
    by_host: Taken = field(default_factory=Taken)

    def wanted(self, *names):
        """Whether `--rows` names one of them."""
        return any(self.rows.search(name) for name in names)

    def scaled(self, count):
        """The count of a full run; a hundredth of it in a quick one, but not less than a hundred of many."""
        return max(count // 100, min(count, 100)) if self.quick else count

    def server(self, **options):
        """A server with the module."""
        return Server(self.binary, [self.module], **options)

    def server_with_floor(self, **options):
        """The same, with the module beside it whose commands do next to nothing."""
        return Server(self.binary, [self.module, self.floor], **options)

    def bare_server(self):
        """A server without it."""
        return Server(self.binary, [])

    def look_around(self):
        """Notes what other programs use of the processor; to be called while nothing of the benchmark has work to do.

        The rows about time mean little where a server has to wait for its core.
        """
        before, start = _busy_seconds(), time.monotonic()
        time.sleep(0.5)
        self.strangers = max(self.strangers, (_busy_seconds() - before) / (time.monotonic() - start))

    def disturbance(self):
        """Sentences about who else used the processors, where anybody did; else nothing."""
        found = []
        if self.by_host.percent >= QUIET_PERCENT:
            found.append(f"The host took {self.by_host.percent:.0f} % of this machine's processors away during the run.")
        if self.strangers >= QUIET_CORES:
            found.append(f"Other programs used up to {self.strangers:.1f} of its {os.cpu_count()} cores.")
        if found:
            found.append("Stall and lateness are theirs as much as the server's, and medians still differ from run to run.")
        return " ".join(found)

    def say(self, text):
        """A line of progress."""
        print(f"[{time.monotonic() - self.started:5.0f} s] {text}", file=sys.stderr, flush=True)


def median_ratio(values, others):
    """The median of the ratios round by round: what drifts with the machine drifts for both."""
    return median(value / other for value, other in zip(values, others))
