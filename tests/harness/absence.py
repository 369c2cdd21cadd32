"""The times in which a processor ran no program: taken by the host, or held by the kernel.

A watcher on each processor (absence.c) sleeps for a tenth of a millisecond at a time, above everything else in
priority. No program's own code can keep it from waking; so where it wakes late, whoever waited for a server at that
time would have waited without that code's doing, too. The kernel can hold a processor for work that cannot be
interrupted, such as receiving packets.
"""

import os
import subprocess
from bisect import bisect_right
from pathlib import Path

from tests.harness.compiled import compiled

_SOURCE = Path(__file__).with_name("absence.c")


class Absences:
    """Watches these processors, or all, from entering the `with` until leaving it.

    Then `spans` are the absences, of one processor or another, as pairs of seconds by time.time(): each is less than it
    was by up to a tenth of a millisecond, and the shortest are not seen. A user who may not set priorities sees none.
    """

    def __init__(self, processors=None):
        self.spans = []
        self._processors = sorted(processors or os.sched_getaffinity(0))
        self._watchers = []

    def __enter__(self) -> "Absences":
        program = compiled(_SOURCE)
        for processor in self._processors:
            watcher = subprocess.Popen(
                [program, str(processor)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            watcher.stdout.readline()
            self._watchers.append(watcher)
        return self

    def __exit__(self, *_) -> None:
        found = []
        for watcher in self._watchers:
            lines, _ = watcher.communicate()
            found += [tuple(map(float, line.split())) for line in lines.splitlines()]
        self.spans = _apart(sorted(found))

    def during(self, began: float, ended: float) -> float:
        """The seconds between these times in which some processor was absent."""
        missing = 0.0
        for at in range(max(0, bisect_right(self.spans, (began,)) - 1), len(self.spans)):
            since, until = self.spans[at]
            if since >= ended:
                break
            missing += max(0.0, min(until, ended) - max(since, began))
        return missing


def _apart(spans) -> list:
    """Spans in the order of their beginnings, with overlapping ones merged."""
    apart = []
    for since, until in spans:
        if apart and since <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(until, apart[-1][1]))
        else:
            apart.append((since, until))
    return apart
