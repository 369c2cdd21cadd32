"""The messages of lost connections whose tasks run on: it keeps their leases, and settles them in the end.

Celery closes a channel whose connection was lost, makes another one, and lets its tasks run to their end. Here the closed
channel gives back only what nobody works on. The messages of tasks that run are kept: a thread renews their leases, and
acks them, over connections of its own, for as long as the server takes to come back.
"""

import atexit
import gc
import os
import threading
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from kombu.log import get_logger
from redis.exceptions import RedisError

from dqueue.drivers.kombu.messages import Tag
from dqueue.protocol.retrying import is_transient, pauses
from dqueue.working.lastwords import LAST_WORDS

logger = get_logger("dqueue.kombu")

LOOK = 0.1
"""Seconds between two checks of the kept messages."""

COLLECT = 60.0
"""Seconds between two searches for messages that nobody can reach any more."""


@dataclass(slots=True)
class Kept:
    """A message whose task runs on. `message` is the only reference from here, so that its end can be seen."""

    channel: Any
    message: weakref.ref[Any]
    payload: str | None
    """The message in the form in which it is given back."""


@dataclass(slots=True)
class Unsent:
    """A command that could not be sent, and the time until which it is useful."""

    send: Callable[[], object]
    what: str
    given_up_at: float


class Keeper:
    """The messages that the lost channels of this process hold. Its thread runs only while there is something to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Tag, Kept] = {}
        self._unsent: list[Unsent] = []
        # Messages that have ended without being settled.
        self._dropped: deque[Tag] = deque()
        self._thread: threading.Thread | None = None
        self._touched_at = 0.0

    def __len__(self) -> int:
        return len(self._kept) + len(self._unsent)

    def keep(self, channel: Any, messages: dict[Tag, Any]) -> None:
        """Takes the messages of a channel that is being closed. Messages that no other object refers to are given back.

        It empties `messages`.
        """
        for tag in [*messages]:
            message = messages.pop(tag)
            ref = weakref.ref(message, partial(self._drop, tag))
            kept = Kept(channel, ref, channel.marked(tag, message))
            del message
            with self._lock:
                self._kept[tag] = kept
        self._touched_at = 0.0
        self._start()

    def _drop(self, tag: Tag, _: object) -> None:
        # The callback of a weak reference comes at any time, even while this thread holds the lock. So it only takes a note.
        self._dropped.append(tag)

    def settled(self, tag: Tag) -> None:
        """A kept message needs no heartbeats any more."""
        with self._lock:
            self._kept.pop(tag, None)

    def send_later(self, what: str, lease: int, send: Callable[[], object]) -> None:
        """Repeats a command that did not reach the server until the lease (ms) of its messages is over."""
        with self._lock:
            self._unsent.append(Unsent(send, what, time.monotonic() + lease / 1000))
        self._start()

    def finish(self) -> None:
        """Says the last words before the process ends."""
        until = time.monotonic() + LAST_WORDS
        for pause in pauses():
            self._send_unsent()
            if not self._unsent or time.monotonic() + pause > until:
                break
            time.sleep(pause)
        with self._lock:
            self._dropped.extend(self._kept)
        if not self._unsent:
            self._give_back_dropped()

    # ---- its thread

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dqueue-keeper", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        collected_at = 0.0
        while self._goes_on():
            now = time.monotonic()
            if now - collected_at >= COLLECT:
                # A dropped request may be part of a cycle.
                gc.collect()
                collected_at = now
            self._give_back_dropped()
            self._send_unsent()
            self._touch()
            time.sleep(LOOK)

    def _goes_on(self) -> bool:
        with self._lock:
            if self._kept or self._unsent:
                return True
            self._thread = None
            return False

    def _give_back_dropped(self) -> None:
        dropped: defaultdict[Any, list[tuple[Tag, str | None]]] = defaultdict(list)
        while self._dropped:
            tag = self._dropped.popleft()
            with self._lock:
                kept = self._kept.pop(tag, None)
            if kept is not None:
                dropped[kept.channel].append((tag, kept.payload))
        for channel, marked in dropped.items():
            with self._lock:
                send = partial(channel.give_back_marked, marked)
                self._unsent.append(Unsent(send, "DQ.NACK", time.monotonic() + channel.lease / 1000))

    def _send_unsent(self) -> None:
        with self._lock:
            waiting = [*self._unsent]
        for one in waiting:
            try:
                one.send()
            except Exception as error:
                if _may_pass(error) and time.monotonic() < one.given_up_at:
                    # There is no server for the others, either.
                    return
                logger.error("%s failed, the messages may be delivered again: %s", one.what, error)
            with self._lock:
                self._unsent.remove(one)

    def _touch(self) -> None:
        with self._lock:
            kept = [*self._kept.items()]
        now = time.monotonic()
        if not kept or now - self._touched_at < min(one.channel.beat for _, one in kept):
            return
        of_channel: defaultdict[Any, list[Tag]] = defaultdict(list)
        for tag, one in kept:
            of_channel[one.channel].append(tag)
        try:
            for channel, tags in of_channel.items():
                channel.touch(tags)
        except Exception:
            logger.debug("no connection for a heartbeat, the next one tries again", exc_info=True)
        else:
            self._touched_at = now


def _may_pass(error: Exception) -> bool:
    """Returns whether a command may succeed later.

    Celery closes the connections of a lost channel, also that over which the keeper is reading. redis-py raises ValueError
    or AttributeError then, and such an error must end neither the keeper nor the command.
    """
    return is_transient(error) if isinstance(error, RedisError | OSError) else True


_keepers: dict[int, Keeper] = {}


def keeper() -> Keeper:
    """Returns the keeper of this process. A process that was forked has one of its own."""
    pid = os.getpid()
    if pid not in _keepers:
        _keepers.clear()
        _keepers[pid] = Keeper()
        atexit.register(_keepers[pid].finish)
    return _keepers[pid]


_unread: dict[Any, tuple[str, str]] = {}


def leave_unread(place: Any, consumer: str, token: str) -> None:
    """Leaves a fetch whose reply was lost to the next channel for the same queues, which repeats it."""
    _unread[place] = (consumer, token)


def take_unread(place: Any) -> tuple[str, str] | None:
    """Returns consumer and token of a fetch whose reply was lost, if there is one."""
    return _unread.pop(place, None)
