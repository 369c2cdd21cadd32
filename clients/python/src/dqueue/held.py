"""What a process of Dramatiq holds: leases that go on, and acks that wait for one another."""

import threading
import time
from collections.abc import Callable, Iterable

from dqueue import message as dq
from dqueue.leases import pause
from dqueue.pace import PATIENCE, AckPace
from dqueue.queue import Queue


class Leases:
    """The messages of one queue that this process holds. Safe to use from several threads."""

    def __init__(self, queue: Queue, lease: int, consumer: str) -> None:
        self.queue = queue
        self.lease = lease
        self.consumer = consumer
        self._receipts: set[int] = set()
        # Those whose ack is still to be sent.
        self._finished: set[int] = set()
        self._pace = AckPace()
        self._changed = threading.Condition()
        self.is_waiting_for_room = False
        self._touched_at = time.monotonic()
        self._was_sent = True

    def __len__(self) -> int:
        with self._changed:
            return len(self._receipts)

    def add(self, messages: Iterable[dq.Message]) -> None:
        with self._changed:
            self._receipts.update(message.receipt for message in messages)

    def drop(self, *receipts: int) -> None:
        with self._changed:
            self._receipts.difference_update(receipts)
            self._changed.notify_all()

    def finish(self, receipt: int, window: int) -> bool:
        """Adds an ack that is to be sent. Returns whether it may wait: `wait_for_room` ends soon, and takes it along.

        `window` is how many messages may be held.
        """
        with self._changed:
            self._finished.add(receipt)
            may_wait = self._pace.may_wait(time.monotonic(), len(self._finished), window)
            if may_wait and self.is_waiting_for_room:
                self._changed.notify_all()
                return True
            return False

    def take_finished(self) -> list[int]:
        """Returns the acks that are to be sent. Whoever sends them drops them then, or puts them back."""
        with self._changed:
            taken = [*self._finished]
            self._finished.clear()
            return taken

    def put_back(self, receipts: list[int]) -> None:
        """Keeps acks that could not be sent. It does no harm to send them twice."""
        with self._changed:
            self._finished.update(receipts)

    def wait_for_room(self, window: int, is_given: Callable[[], bool], timeout: float) -> None:
        """Waits up to `timeout` seconds until fewer than `window` messages are held, an ack has waited, or `is_given`."""
        with self._changed:
            self.is_waiting_for_room = True
            try:
                self._changed.wait_for(lambda: self._has_room(window) or is_given() or self._finished, timeout)
                if self._finished and not self._changed.wait_for(lambda: self._has_room(window) or is_given(), PATIENCE):
                    self._pace.has_waited(len(self._finished))
            finally:
                self.is_waiting_for_room = False

    def _has_room(self, window: int) -> bool:
        return len(self._receipts) < window

    def to_touch(self) -> list[int]:
        """Returns the leases to renew now. They are renewed three times in their time."""
        now = time.monotonic()
        with self._changed:
            if now - self._touched_at < pause(self.lease, self._was_sent):
                return []
            self._touched_at = now
            self._was_sent = not self._receipts
            return [*self._receipts]

    def touch(self, receipts: list[int]) -> None:
        self.queue.touch(self.lease, *receipts)
        self._was_sent = True
