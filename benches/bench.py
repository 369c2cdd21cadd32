"""What all parts of the benchmark share: the options of this run, and progress on stderr."""

import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from generator import Generator
from server import Server

QUIET_CORES = 0.1
"""What other programs may use before the run says so."""


def _busy_seconds():
    """Processor time of all programs together since the machine started."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


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
    started: float = field(default_factory=time.monotonic)
    strangers: float = 0.0
    """The most cores that other programs were seen to use between the rows."""

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
        """A sentence where other programs were in the way, else nothing."""
        if self.strangers < QUIET_CORES:
            return ""
        return (
            f"The machine was not quiet: other programs used up to {self.strangers:.1f} of its {os.cpu_count()} cores. "
            "Stall and lateness are theirs as much as the server's."
        )

    def say(self, text):
        """A line of progress."""
        print(f"[{time.monotonic() - self.started:5.0f} s] {text}", file=sys.stderr, flush=True)


def median_ratio(values, others):
    """The median of the ratios round by round: what drifts with the machine drifts for both."""
    return median(value / other for value, other in zip(values, others))
