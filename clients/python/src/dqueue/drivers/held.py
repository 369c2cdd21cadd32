"""The messages that a process of Dramatiq holds, with their leases and pending acks."""

import threading
import time
from collections.abc import Callable, Iterable

from dqueue._sync.queue import Queue
from dqueue.protocol import message as dq
from dqueue.working.ackbuffer import PATIENCE, AckBuffer
from dqueue.working.leases import pause


class Held:
    """The messages of one queue that this process holds. Safe to use from several threads."""

    def __init__(self, queue: Queue, lease: int, consumer: str) -> None:
        self.queue = queue
        self.lease = lease
        self.consumer = consumer
        self._receipts: set[int] = set()
        self.acks: AckBuffer[int] = AckBuffer()
        self.fetching = threading.Lock()
        """Held during a fetch. A TOKEN repeats the last delivery of its consumer, so there is one fetch at a time."""
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
            if self.acks.add(receipt, time.monotonic(), window) and self.is_waiting_for_room:
                self._changed.notify_all()
                return True
            return False

    def wait_for_room(self, window: int, is_given: Callable[[], bool], timeout: float) -> None:
        """Waits up to `timeout` seconds until fewer than `window` messages are held, an ack has waited, or `is_given`.

        `is_waiting_for_room` is true from then on, until the caller fetches.
        """
        with self._changed:
            self.is_waiting_for_room = True
            self._changed.wait_for(lambda: self._has_room(window) or is_given() or self.acks, timeout)
            if self.acks and not self._changed.wait_for(lambda: self._has_room(window) or is_given(), PATIENCE):
                self.acks.patience_is_over()

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
