"""When a processor was there for no program: taken by the host, or held by the kernel.

A watcher on each processor sleeps for a millisecond at a time, above everything else in priority.
No program can keep it from waking, whatever it does; so where it wakes late, whoever waited for a
server at that time would have waited without the server's doing, too.
"""

import gc
import multiprocessing
import os
import time
from bisect import bisect_right

PERIOD = 0.001
# Waking takes a tenth of that where nothing is wrong.
LATE = 0.0005
# Above whatever probe measures beside it.
PRIORITY = 2


class Absences:
    """Watches these processors, or all, from entering the `with` until leaving it.

    Then `spans` are the absences, of one processor or another, as pairs of seconds by time.time():
    less than there were by a millisecond each, never more. None are seen by who may not set priorities.
    """

    def __init__(self, processors=None):
        self.spans = []
        self._processors = sorted(processors or os.sched_getaffinity(0))
        self._watchers = []

    def __enter__(self) -> "Absences":
        context = multiprocessing.get_context("fork")
        for processor in self._processors:
            ours, theirs = context.Pipe()
            process = context.Process(target=_watch, args=(processor, theirs), daemon=True)
            process.start()
            theirs.close()
            ours.recv()
            self._watchers.append((process, ours))
        return self

    def __exit__(self, *_) -> None:
        found = []
        for process, pipe in self._watchers:
            pipe.send(None)
            found += pipe.recv()
            process.join()
        self.spans = _apart(sorted(found))

    def during(self, began: float, ended: float) -> float:
        """For how many of the seconds between these times some processor was absent."""
        missing = 0.0
        for at in range(max(0, bisect_right(self.spans, (began,)) - 1), len(self.spans)):
            since, until = self.spans[at]
            if since >= ended:
                break
            missing += max(0.0, min(until, ended) - max(since, began))
        return missing


def _apart(spans) -> list:
    """Spans in the order of their beginnings, those that overlap made one."""
    apart = []
    for since, until in spans:
        if apart and since <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(until, apart[-1][1]))
        else:
            apart.append((since, until))
    return apart


def _watch(processor, pipe) -> None:
    spans = []
    os.sched_setaffinity(0, {processor})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except PermissionError:
        pipe.send(None)
        pipe.recv()
        pipe.send(spans)
        return
    gc.disable()
    pipe.send(None)
    while not pipe.poll():
        due = time.time() + PERIOD
        time.sleep(PERIOD)
        woke = time.time()
        if woke - due > LATE:
            spans.append((due, woke))
    pipe.send(spans)
