"""What all parts of the benchmark share: the options of this run, and progress on stderr."""

import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from generator import Generator
from server import Server


@dataclass
class Bench:
    """One run of the benchmark."""

    binary: str
    module: Path
    generator: Generator
    rounds: int
    quick: bool
    rows: re.Pattern
    started: float = field(default_factory=time.monotonic)

    def wanted(self, *names):
        """Whether `--rows` names one of them."""
        return any(self.rows.search(name) for name in names)

    def scaled(self, count):
        """The count of a full run; a hundredth of it in a quick one, but not less than a hundred of many."""
        return max(count // 100, min(count, 100)) if self.quick else count

    def server(self, **options):
        """A server with the module."""
        return Server(self.binary, self.module, **options)

    def bare_server(self):
        """A server without it."""
        return Server(self.binary, None)

    def say(self, text):
        """A line of progress."""
        print(f"[{time.monotonic() - self.started:5.0f} s] {text}", file=sys.stderr, flush=True)


def median_ratio(values, others):
    """The median of the ratios round by round: what drifts with the machine drifts for both."""
    return median(value / other for value, other in zip(values, others))
