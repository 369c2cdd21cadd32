"""Lets many processes work, and stops them all between two commands."""

import multiprocessing
import time


class Gate:
    """Open: the actors work. Shut: each waits before its next command, until it is opened or all is over."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self._open = context.Event()
        self._over = context.Event()
        self._resting = context.Value("i", 0)

    def working(self) -> bool:
        """For an actor: true when it may go on, after waiting where the gate is shut; false when all is over."""
        if not self._open.is_set() and not self._over.is_set():
            with self._resting.get_lock():
                self._resting.value += 1
            self._open.wait()
            with self._resting.get_lock():
                self._resting.value -= 1
        return not self._over.is_set()

    def open(self) -> None:
        """Lets everybody work."""
        self._open.set()

    def shut(self, actors: int, timeout: float = 30) -> None:
        """Returns when so many actors rest."""
        self._open.clear()
        deadline = time.monotonic() + timeout
        while self._resting.value < actors:
            assert time.monotonic() < deadline, f"of {actors} actors only {self._resting.value} came to rest"
            time.sleep(0.02)

    def end(self) -> None:
        """Sends everybody home."""
        self._over.set()
        self._open.set()
