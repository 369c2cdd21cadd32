"""Pauses many processes between two commands, so that the memory can be measured while none of them works."""

import multiprocessing
import time


class Pauses:
    """Between `pause` and `resume` each actor waits before its next command."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self._resumed = context.Event()
        self._over = context.Event()
        self._waiting = context.Value("i", 0)

    def working(self) -> bool:
        """For an actor: waits during a pause. Returns whether it is to go on."""
        if not self._resumed.is_set() and not self._over.is_set():
            with self._waiting.get_lock():
                self._waiting.value += 1
            self._resumed.wait()
            with self._waiting.get_lock():
                self._waiting.value -= 1
        return not self._over.is_set()

    def resume(self) -> None:
        """Lets all actors work."""
        self._resumed.set()

    def pause(self, actors: int, timeout: float = 30) -> None:
        """Returns when all of this number of actors wait."""
        self._resumed.clear()
        deadline = time.monotonic() + timeout
        while self._waiting.value < actors:
            assert time.monotonic() < deadline, f"of {actors} actors only {self._waiting.value} have paused"
            time.sleep(0.02)

    def end(self) -> None:
        """Ends all actors."""
        self._over.set()
        self._resumed.set()
