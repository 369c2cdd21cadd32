"""Which loop of a worker fetches for all of them, what has come, and what is done and not acked yet.

This is the part of fetching that knows no threads, tasks and connections. `dqueue.fetching` and
`dqueue.asyncio.fetching` wait and call around it.
"""

import itertools
import secrets
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dqueue.handlers import Done
from dqueue.protocol.message import Message

MOST = 1000
"""The most messages of one FETCH. A TOKEN allows no more."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """What a loop is to do: fetch up to `count` messages, and ack those that are `done` with it."""

    count: int
    done: list[Done]
    may_wait: bool
    """Whether it may wait at the server. What is done meanwhile is acked by the loops that have done it."""


@dataclass(frozen=True, slots=True)
class Ack:
    """What a loop is to do: ack these."""

    done: list[Done]


class Feed:
    """Gives each idle loop of a worker something to do.

    One of the idle loops fetches, as many messages as loops are idle. So what ends together is acked together and
    replaced together, in one round trip, and at concurrency 1 it is one round trip for each message.
    """

    def __init__(self, loops: int) -> None:
        self._loops = loops
        self._idle = 0
        self._came: deque[Message] = deque()
        self._done: list[Done] = []
        self._fetch: Fetch | None = None
        self._is_drained = True
        """Whether the last fetch got less than it asked for."""

    def add_idle(self, done: Done | None) -> None:
        """A loop has nothing to do. `done` is what it has handled, if that is to be acked."""
        self._idle += 1
        if done is not None:
            self._done.append(done)

    def task(self) -> Message | Fetch | Ack | None:
        """Returns what an idle loop is to do: handle a message, which ends its idleness, or a command, or None: wait."""
        if self._came:
            self._idle -= 1
            return self._came.popleft()
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
        """Whether another idle loop, if there is one, has something to do."""
        return bool(self._came) or self._fetch is None

    def end_fetch(self, fetch: Fetch, messages: list[Message] | None) -> None:
        """A fetch has ended. None: it has failed, and the next one acks what it should have acked."""
        self._fetch = None
        if messages is None:
            self._done[:0] = fetch.done
        else:
            self._is_drained = len(messages) < fetch.count
            self._came.extend(messages)

    def close(self) -> tuple[list[Done], list[Message]]:
        """Returns what is to be acked, and what is to be given back, as the worker stops."""
        came, self._came = list(self._came), deque()
        return self._take_done(), came

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
    """Yields a TOKEN for each FETCH. One whose reply was lost is sent again with the same, and gives the same messages."""
    start = secrets.token_urlsafe(9)
    return (f"{start}{number}" for number in itertools.count())
