"""The state that the loops of a worker share: who fetches, which messages have arrived, and which acks are pending.

This decides for `QueueFetching`, which waits and calls around it, in threads or in tasks of asyncio.
"""

import itertools
import secrets
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dqueue.protocol.message import Message
from dqueue.working.outcomes import Done

MOST = 1000
"""The most messages of one FETCH. A TOKEN allows no more."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Tells a loop to fetch up to `count` messages, and to ack those that are `done` with it."""

    count: int
    done: list[Done]
    may_wait: bool
    """Whether it may wait at the server. Messages that are finished meanwhile are acked by the loops that have
    finished them.
    """


@dataclass(frozen=True, slots=True)
class Ack:
    """Tells a loop to ack these."""

    done: list[Done]


class FetchPlan:
    """Gives each idle loop of a worker its next step.

    One of the idle loops fetches as many messages as there are idle loops. So messages that end together are acked and
    replaced in one round trip, and at concurrency 1 each message costs one round trip.
    """

    def __init__(self, loops: int) -> None:
        self._loops = loops
        self._idle = 0
        self._arrived: deque[Message] = deque()
        self._done: list[Done] = []
        self._fetch: Fetch | None = None
        self._is_drained = True
        """Whether the last fetch got less than it asked for."""

    def add_idle(self, done: Done | None) -> None:
        """A loop is idle. `done` is the message that it has handled, if that is to be acked."""
        self._idle += 1
        if done is not None:
            self._done.append(done)

    def task(self) -> Message | Fetch | Ack | None:
        """Returns a message for an idle loop, which is no longer idle then, or a command, or None if it has to wait."""
        if self._arrived:
            self._idle -= 1
            return self._arrived.popleft()
        if self._fetch is None:
            if with_result := self._take_mixed():
                return Ack(with_result)
            may_wait = self._is_drained or self._idle == self._loops
            self._fetch = Fetch(min(self._idle, MOST), self._take_done(), may_wait)
            return self._fetch
        if self._fetch.may_wait and self._done:
            return Ack(self._take_done())
        return None

    @property
    def has_work(self) -> bool:
        """Whether there is work for another idle loop."""
        return bool(self._arrived) or self._fetch is None

    def end_fetch(self, fetch: Fetch, messages: list[Message] | None) -> None:
        """A fetch has ended. If `messages` is None it has failed, and the next one acks what it should have acked."""
        self._fetch = None
        if messages is None:
            self._done[:0] = fetch.done
        else:
            self._is_drained = len(messages) < fetch.count
            self._arrived.extend(messages)

    def close(self) -> tuple[list[Done], list[Message]]:
        """Returns the acks that are pending and the messages to give back when the worker stops."""
        arrived, self._arrived = list(self._arrived), deque()
        return self._take_done(), arrived

    def _take_mixed(self) -> list[Done]:
        # RESULTS has a text for each receipt, and an empty text is not the same as no result.
        with_result = [one for one in self._done if one.result is not None]
        if len(with_result) == len(self._done):
            return []
        self._done = [one for one in self._done if one.result is None]
        return with_result

    def _take_done(self) -> list[Done]:
        done, self._done = self._done, []
        return done


def acks(done: Sequence[Done]) -> dict[str, Any]:
    """Returns the options of a FETCH that acks these. All of them have a result, or none has."""
    messages = [one.message for one in done]
    results = [one.result for one in done if one.result is not None]
    return {"ack": messages, "results": results} if results else {"ack": messages}


def tokens() -> Iterator[str]:
    """Yields a TOKEN for each FETCH. A FETCH whose reply was lost is repeated with its TOKEN, and gives the same messages."""
    start = secrets.token_urlsafe(9)
    return (f"{start}{number}" for number in itertools.count())
