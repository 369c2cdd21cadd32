"""A queue under virtual time: `dqueue.testing` has its page and its fixtures."""

import asyncio
import inspect
from typing import Any, Unpack

from dqueue._sync.queue import Queue
from dqueue.protocol import calls
from dqueue.protocol.client import Client
from dqueue.protocol.message import Message
from dqueue.protocol.options import Instant, Millis, QueueOptions, encode, millis, words
from dqueue.protocol.records import Info
from dqueue.working.handlers import Handlers
from dqueue.working.outcomes import Done, acked, failure, success

_LIMIT = 100_000


class ManualQueue(Queue):
    """A queue whose clock stands still until it is moved. It is created with its options, at `start` (Unix ms)."""

    def __init__(self, client: Client, key: str, start: Instant = 0, **options: Unpack[QueueOptions]) -> None:
        super().__init__(client, key)
        # words() converts a datetime. Its first word is the name of the option.
        begin = words({"start": start})[1]
        client.execute_command("DQ.CREATE", encode(key), "CLOCK", "MANUAL", begin, *words(options))

    @property
    def now(self) -> int:
        """Returns the time of the queue, in Unix ms."""
        now = self.info()["now"]
        assert isinstance(now, int)
        return now

    def advance(self, span: Millis) -> Info:
        """Moves the clock forward and processes due events in their order. Returns how much of each kind (DQ.TICK)."""
        return self._do(calls.tick(self.key, {"advance": millis(span)}))

    def advance_to(self, at: Instant) -> Info:
        """Moves the clock forward to a time."""
        return self._do(calls.tick(self.key, {"to": at}))

    def work(self, handlers: Handlers[Any], *, limit: int = _LIMIT) -> list[Message]:
        """Handles the messages that can be delivered now, as a worker would. Returns them in that order.

        `handlers` is a Worker of either kind, or a Handlers. Raises AssertionError after `limit` messages: a handler
        keeps failing without a backoff, or sends the messages that it handles.
        """
        return work(self, handlers, limit=limit)

    def run(self, handlers: Handlers[Any], span: Millis, *, limit: int = _LIMIT) -> list[Message]:
        """Works through a span of time: calls `work`, moves to the next time at which something can happen, and so on.

        The cost depends on the number of messages, not on the span.
        """
        end = self.now + millis(span)
        handled = self.work(handlers, limit=limit)
        while (moment := self._next_moment()) is not None and moment <= end:
            self.advance_to(moment)
            handled += self.work(handlers, limit=limit - len(handled))
        self.advance_to(end)
        return handled

    def _next_moment(self) -> int | None:
        """Returns the next time at which a message is due, a lease, pause or limit ends, or a schedule fires."""
        info = self.info()
        now = info["now"]
        moments: list[object] = [info["next-due-at"], *(schedule.next_at for schedule in self.schedules())]
        for state in ("ready", "blocked", "running"):
            for record in self._do(calls.listing(self.key, state, {"count": 1})).items:
                why = self.explain(record.id)
                moments += [record.lease_until, why and why.until]
        return min((at for at in moments if isinstance(at, int) and isinstance(now, int) and at > now), default=None)


def work(queue: Queue, handlers: Handlers[Any], *, limit: int = _LIMIT) -> list[Message]:
    """Handles the messages of a queue that can be delivered now: `ManualQueue.work` says how."""
    handled: list[Message] = []
    while batch := queue.fetch():
        for message in batch:
            assert len(handled) < limit, f"still messages after {limit}"
            _handle(queue, handlers, message)
            handled.append(message)
    return handled


def _handle(queue: Queue, handlers: Handlers[Any], message: Message) -> None:
    try:
        result = handlers.find(message.type)(message)
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
    except Exception as error:
        queue._do(failure(message, error))
    else:
        verdict = success(message, result)
        for call in acked([verdict]) if isinstance(verdict, Done) else [verdict]:
            queue._do(call)


async def _awaited(result: Any) -> Any:
    return await result
