"""How long a worker of a framework that is told to stop waits for a server that does not answer."""

import threading

LAST_WORDS = 2.0
"""Seconds for which a stopping worker repeats a command to a server that does not answer."""

SHORTEST = 0.05
"""Seconds that a command gets if nothing is left. A server that is there answers in this time."""


class LastWords:
    """The time that is left of LAST_WORDS. All commands share it as long as none of them is answered. Safe to use
    from several threads.
    """

    def __init__(self) -> None:
        self._left = LAST_WORDS
        self._is_stopping = threading.Event()

    def begin(self) -> None:
        """The worker is told to stop."""
        self._is_stopping.set()

    def end(self) -> None:
        """The worker continues, or another one begins."""
        self._is_stopping.clear()
        self._left = LAST_WORDS

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping.is_set()

    @property
    def left(self) -> float:
        """Seconds that the next command may wait."""
        return max(self._left, SHORTEST)

    @property
    def is_over(self) -> bool:
        """Whether a stopping worker gives up on its server."""
        return self.is_stopping and self._left <= 0

    def waited(self, seconds: float) -> None:
        """Seconds have passed without a reply to a command, or before it was repeated."""
        if self.is_stopping:
            self._left -= seconds

    def answered(self) -> None:
        """The server has replied, so the next command has all the time again."""
        if self._left != LAST_WORDS:
            self._left = LAST_WORDS
