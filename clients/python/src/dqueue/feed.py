"""Which loop of a worker fetches for all of them, what has come, and what is done and not acked yet.

This is the part of fetching that knows no threads, tasks and connections. `dqueue.fetching` and
`dqueue.asyncio.fetching` wait and call around it.
"""

from collections import deque
from dataclasses import dataclass

from dqueue.message import Message

MOST = 1000
"""The most messages of one FETCH, which bounds the size of its reply."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """What a loop is to do: fetch up to `count` messages, and ack those that are `done` with it."""

    count: int
    done: list[Message]
    may_wait: bool
    """Whether it may wait at the server. What is done meanwhile is acked by the loops that have done it."""


@dataclass(frozen=True, slots=True)
class Ack:
    """What a loop is to do: ack these messages."""

    done: list[Message]


class Feed:
    """Gives each idle loop of a worker something to do.

    One of the idle loops fetches, as many messages as loops are idle. So what ends together is acked together and
    replaced together, in one round trip, and at concurrency 1 it is one round trip for each message.
    """

    def __init__(self, loops: int) -> None:
        self._loops = loops
        self._idle = 0
        self._came: deque[Message] = deque()
        self._done: list[Message] = []
        self._fetch: Fetch | None = None
        self._is_drained = True
        """Whether the last fetch got less than it asked for."""

    def add_idle(self, done: Message | None) -> None:
        """A loop has nothing to do. `done` is the message that it has handled, if that is to be acked."""
        self._idle += 1
        if done is not None:
            self._done.append(done)

    def task(self) -> Message | Fetch | Ack | None:
        """Returns what an idle loop is to do: handle a message, which ends its idleness, or a command, or None: wait."""
        if self._came:
            self._idle -= 1
            return self._came.popleft()
        if self._fetch is None:
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

    def close(self) -> tuple[list[Message], list[Message]]:
        """Returns what is to be acked, and what is to be given back, as the worker stops."""
        came, self._came = list(self._came), deque()
        return self._take_done(), came

    def _take_done(self) -> list[Message]:
        done, self._done = self._done, []
        return done
