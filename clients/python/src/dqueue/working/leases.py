"""The messages that a worker is handling, and their leases."""

import threading
import time

from dqueue.protocol.client import socket_timeout
from dqueue.protocol.message import Message
from dqueue.protocol.options import Millis, millis


class Timing:
    """The times of a worker, in ms. `Worker` explains them."""

    def __init__(self, client: object, lease: Millis, block: Millis, grace: Millis, time_limit: Millis | None) -> None:
        self.lease = millis(lease)
        self.grace = millis(grace)
        self.time_limit = None if time_limit is None else millis(time_limit)
        limit = socket_timeout(client)
        self.block = millis(block) if limit is None else max(1, min(millis(block), int(limit * 500)))
        if self.lease < 1:
            raise ValueError("lease must be at least 1 ms")

    def pause(self, was_sent: bool) -> float:
        """Returns the seconds until the next heartbeat."""
        return pause(self.lease, was_sent)


def pause(lease: float, was_sent: bool) -> float:
    """Returns the seconds until the next heartbeat. `lease` is in ms, and `was_sent` says whether the last one got through.

    They are so short that one may get lost without ending a lease. One that did not get through is repeated soon, so that
    a server that has come back finds the leases renewed before they end.
    """
    return lease / (3000 if was_sent else 12000)


def may_end_soon(asked_at: float, lease: float) -> bool:
    """Returns whether leases (ms) may end before the first heartbeat, where a fetch was first sent at `asked_at`.

    A fetch whose reply was lost is repeated and gives the same messages, whose leases began at the first one. The time is
    that of `time.monotonic`. redis-py repeats commands, too, so only the time tells.
    """
    return time.monotonic() - asked_at > pause(lease, True)


class Leases:
    """The messages that are being handled. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int], tuple[Message, float]] = {}

    def add(self, message: Message) -> None:
        with self._lock:
            self._running[message.queue, message.receipt] = (message, time.monotonic())

    def drop(self, message: Message) -> bool:
        """Ends the handling of a message. Returns False if `take` has ended it before."""
        with self._lock:
            return self._running.pop((message.queue, message.receipt), None) is not None

    def holds(self, message: Message) -> bool:
        with self._lock:
            return (message.queue, message.receipt) in self._running

    def take(self) -> list[Message]:
        """Ends the handling of all messages and returns them."""
        with self._lock:
            messages = [message for message, _ in self._running.values()]
            self._running.clear()
            return messages

    def to_touch(self, time_limit: int | None) -> list[Message]:
        """Returns the messages to extend: those not lost, and not handled for longer than the limit (ms)."""
        now = time.monotonic()
        with self._lock:
            return [
                message
                for message, since in self._running.values()
                if not message.lost and (time_limit is None or (now - since) * 1000 < time_limit)
            ]
