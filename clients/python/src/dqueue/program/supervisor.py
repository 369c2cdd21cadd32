"""The parent of the processes of `dq-worker`: starts them, and again if one ends or the sources change."""

import argparse
import logging
import os
import queue as queues
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from dqueue.logs import configure
from dqueue.program.work import UNUSABLE, Unusable

log = logging.getLogger("dqueue")

_SHORTEST = 0.5
_LONGEST = 30.0
"""Seconds between the end of a process and the start of the next one. They double while the processes are short-lived."""


class Child:
    """A process. `number` is its place among the processes."""

    def __init__(self, number: int, words: list[str], ended: "queues.SimpleQueue[Any]") -> None:
        self.number = number
        self.began = time.monotonic()
        # A separate process group: Ctrl-C reaches only the parent, which stops the children once. A child notices by
        # its standard input that the parent is gone.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dqueue.program", *words, "--is-child"], stdin=subprocess.PIPE, process_group=0
        )
        threading.Thread(target=lambda: ended.put((self, self.process.wait())), daemon=True).start()


class Supervisor:
    """Keeps `processes` processes running until a signal comes."""

    def __init__(self, words: list[str], options: argparse.Namespace) -> None:
        if options.processes < 1:
            raise Unusable(f"--processes must be at least 1, not {options.processes}")
        self._words = words
        self._options = options
        # Signals, changed files, and children that have ended. A signal handler may call put().
        self._events: queues.SimpleQueue[Any] = queues.SimpleQueue()
        self._children: dict[int, Child] = {}
        self._pauses: dict[int, float] = {}
        self._stopping = False
        self._code = 0

    def run(self) -> int:
        """Returns the exit code: 0 after a signal, or that of a child that says that it can never work."""
        configure(self._options.log_level, self._options.log_format)
        changes = self._watched() if self._options.reload else None
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, lambda *_: self._events.put("signal"))
        for number in range(self._options.processes):
            self._start(number)
        if changes is not None:
            threading.Thread(target=self._watch, args=(changes,), name="dqueue-watch", daemon=True).start()
        while self._children or not self._stopping:
            self._on(self._events.get())
        return self._code

    def _on(self, event: Any) -> None:
        if event == "signal":
            # The second one ends the children at once.
            self._stopping = True
            self._tell_all()
        elif event == "changed":
            log.info("a file has changed, starting anew")
            self._tell_all()
            for number in range(self._options.processes):
                self._start(number)
        elif isinstance(event, int):
            self._start(event)
        else:
            self._ended(*event)

    def _tell_all(self) -> None:
        for child in self._children.values():
            child.process.send_signal(signal.SIGTERM)

    def _start(self, number: int) -> None:
        if not self._stopping and number not in self._children:
            self._children[number] = Child(number, self._words, self._events)

    def _ended(self, child: Child, code: int) -> None:
        del self._children[child.number]
        assert child.process.stdin is not None
        child.process.stdin.close()
        if self._stopping:
            return
        # While a file is being edited, it may be unusable for a moment.
        if code == UNUSABLE and not self._options.reload:
            self._code, self._stopping = code, True
            self._tell_all()
            return
        pause = 0.0
        if code != 0:
            lived = time.monotonic() - child.began
            before = self._pauses.get(child.number, 0.0)
            pause = _SHORTEST if lived > _LONGEST else min(max(_SHORTEST, before * 2), _LONGEST)
            log.error("process %d ended with %d, the next one starts in %s s", child.process.pid, code, pause)
        self._pauses[child.number] = pause
        timer = threading.Timer(pause, self._events.put, [child.number])
        timer.daemon = True
        timer.start()

    def _watched(self) -> Iterator[Any]:
        try:
            import watchfiles
        except ImportError:
            raise Unusable("--reload needs the package watchfiles: pip install 'dq-queue[reload]'") from None
        places = self._options.watch or [self._options.path]
        for place in places:
            if not os.path.isdir(place):
                raise Unusable(f"--watch: {place} is no directory")
        changes: Iterator[Any] = watchfiles.watch(
            *places, watch_filter=watchfiles.PythonFilter(), raise_interrupt=False
        )
        return changes

    def _watch(self, changes: Iterator[Any]) -> None:
        for _ in changes:
            self._events.put("changed")
