"""Acks that go with the next fetch, for frameworks that ack one message at a time."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Ack = TypeVar("Ack")

PATIENCE = 0.001
"""The most seconds that an ack waits for others."""

MANY, SOON = 8, 0.005
"""Acks come fast if there are MANY within SOON seconds."""


class AckBuffer(Generic[Ack]):
    """The acks of a worker until they are sent. Safe to use from several threads.

    An ack goes with the next fetch. It waits only if that fetch is sure to follow at once, and where acks come fast, the
    fetch waits up to PATIENCE for more of them. An ack that waited in vain makes the next ones go at once, because a worker
    without other messages has less to do meanwhile. A message whose worker is killed in this time runs again, as it does
    if the worker is killed just before its ack. docs/clients.md explains it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._acks: list[Ack] = []
        self._times: deque[float] = deque(maxlen=MANY)

    def __len__(self) -> int:
        return len(self._acks)

    def add(self, ack: Ack, now: float, window: int) -> bool:
        """Adds an ack, and returns whether it may wait for the next one.

        `now` is a monotonic time in seconds. `window` is the number of messages that the worker may hold: acks never wait
        for more than half of them, because the worker has work to do while the others are fetched.
        """
        with self._lock:
            self._acks.append(ack)
            self._times.append(now)
            is_fast = len(self._times) == MANY and now - self._times[0] < SOON
            return is_fast and len(self._acks) < min(window, max(2, window // 2))

    def patience_is_over(self) -> None:
        """Says that PATIENCE has passed. If one ack has come in that time, the next MANY - 1 do not wait."""
        if len(self._acks) == 1:
            self._times.clear()

    def take(self) -> list[Ack]:
        """Returns the acks that wait. The caller sends them."""
        with self._lock:
            acks, self._acks = self._acks, []
        return acks

    @contextmanager
    def sending(self) -> Iterator[list[Ack]]:
        """Encloses the sending of all waiting acks. If it fails, they wait again: it does no harm to send them
        twice.
        """
        acks = self.take()
        try:
            yield acks
        except BaseException:
            with self._lock:
                self._acks += acks
            raise
