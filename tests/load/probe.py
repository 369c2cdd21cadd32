"""A client that only sends PINGs, one a millisecond, and records how long each waited."""

import gc
import multiprocessing
import os
import time
from dataclasses import dataclass

from tests.harness.absence import Absences
from tests.harness.wire import Wire

PERIOD = 0.001


@dataclass
class Waits:
    """The waits of one probe, or of several, in ms."""

    count: int
    p99: float
    longest: float
    # The time for which a processor was absent during the longest wait.
    absent: float
    # The longest without the absences.
    own: float

    @classmethod
    def of(cls, absences: Absences, *probes: "Probe") -> "Waits":
        pings = [ping for probe in probes for ping in probe.pings]
        times = sorted(waited for _, waited in pings)
        began, longest = max(pings, key=lambda ping: ping[1])
        own = max(waited - absences.during(began, began + waited) for began, waited in pings)
        absent = absences.during(began, began + longest)
        return cls(len(times), times[len(times) * 99 // 100] * 1000, longest * 1000, absent * 1000, own * 1000)


class Probe:
    """A probe in a separate process, from entering the `with` until leaving it.

    Then `pings` are when each was sent, by time.time(), and how long it waited, in s. It runs on `core`, or on any: on
    that of the server it would take from the server what it measures. With the server's `pid`, the time for which the
    server itself waited for a processor, behind other programs of this machine, is not a part of those waits.
    """

    def __init__(self, port: int, core: int | None = None, pid: int | None = None):
        self.port = port
        self.core = core
        self.pid = pid
        self.pings = []

    def __enter__(self) -> "Probe":
        context = multiprocessing.get_context("fork")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_ping, args=(self.port, self.core, self.pid, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._ours.recv()
        return self

    def __exit__(self, *_) -> None:
        self._ours.send(None)
        self.pings = self._ours.recv()
        self._process.join()


def _behind_others(pid: int | None):
    """Returns a function: for how long the main thread of a process has waited for a processor so far, in s."""
    try:
        stat = os.open(f"/proc/{pid}/task/{pid}/schedstat", os.O_RDONLY)
    except OSError:
        return lambda: 0.0
    return lambda: int(os.pread(stat, 100, 0).split()[1]) / 1e9


def _ping(port, core, pid, pipe) -> None:
    if core is not None:
        os.sched_setaffinity(0, {core})
    # Otherwise this process's own waits for a core would count as the server's. Not everybody may do it.
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass
    gc.disable()
    pings = []
    behind_others = _behind_others(pid)
    with Wire(port, protocol=2, timeout=600) as wire:
        wire.call("PING")
        pipe.send(None)
        due = time.perf_counter()
        while not pipe.poll():
            behind = behind_others()
            sent, began = time.time(), time.perf_counter()
            wire.sock.sendall(b"PING\r\n")
            wire.recv()
            ended = time.perf_counter()
            pings.append((sent, max(0.0, ended - began - (behind_others() - behind))))
            # After a long wait the missed turns are not made up for: they were that one wait.
            due = max(due + PERIOD, ended)
            time.sleep(max(0.0, due - time.perf_counter()))
    pipe.send(pings)
