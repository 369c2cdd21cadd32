"""Gives the tasks of a worker their messages."""

import asyncio
import logging
import time
from collections import deque
from typing import Any

from dqueue._async.settling import Settling
from dqueue.protocol.message import Message
from dqueue.protocol.retrying import is_transient, pauses
from dqueue.working.fetch_plan import Ack, Fetch, FetchPlan, acks, tokens
from dqueue.working.leases import Timing, may_end_soon
from dqueue.working.outcomes import Done

log = logging.getLogger("dqueue")


class Fetching:
    """The state that the tasks of a worker share."""

    def __init__(self, queue: Any, timing: Timing, consumer: str, settling: Settling, stopping: asyncio.Event) -> None:
        self._queue = queue
        self._timing = timing
        self._consumer = consumer
        self._settling = settling
        self._stopping = stopping

    async def next(self, done: Done | None) -> Message | None:
        """Acks the message `done`, and returns another message, or None when the worker stops. Raises errors that
        will not pass.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """The event of stopping has been set: tasks that wait here return."""

    async def close(self) -> None:
        """Acks the finished messages, and gives back those that no handler has begun, if the tasks were cancelled."""

    async def _call(self, count: int, done: list[Done], may_wait: bool, **options: Any) -> list[Message]:
        found: list[Message] = await self._queue.fetch(
            count=count,
            block=self._timing.block if may_wait else None,
            lease=self._timing.lease,
            consumer=self._consumer,
            **acks(done),
            **options,
        )
        return found

    async def _rest(self, error: Exception, seconds: float) -> None:
        """Waits before a fetch that has failed is tried again. Raises the error if it will not pass."""
        if not is_transient(error):
            raise error
        log.warning("fetching from %s failed, trying again: %s", self._queue, error)
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            pass


class QueueFetching(Fetching):
    """Messages of a queue. One of the idle tasks fetches for all (`FetchPlan`)."""

    def __init__(self, loops: int, *shared: Any) -> None:
        super().__init__(*shared)
        self._plan = FetchPlan(loops)
        self._asleep: deque[asyncio.Future[None]] = deque()
        self._tries = pauses()
        self._tokens = tokens()
        self._token = next(self._tokens)
        self._asked_at: float | None = None

    async def next(self, done: Done | None) -> Message | None:
        self._plan.add_idle(done)
        while (task := await self._task()) is not None:
            if isinstance(task, Message):
                return task
            if isinstance(task, Ack):
                await self._settling.ack(task.done)
            else:
                await self._run(task)
        await self.close()
        return None

    async def close(self) -> None:
        done, came = self._plan.close()
        await self._settling.ack(done)
        await self._settling.give_back(came)

    def stop(self) -> None:
        while self._asleep:
            self._wake_one()

    async def _task(self) -> Message | Fetch | Ack | None:
        while not self._stopping.is_set():
            task = self._plan.task()
            if task is not None:
                if self._plan.has_work and self._asleep:
                    self._wake_one()
                return task
            waking = asyncio.get_running_loop().create_future()
            self._asleep.append(waking)
            await waking
        return None

    def _wake_one(self) -> None:
        waking = self._asleep.popleft()
        if not waking.done():
            waking.set_result(None)

    async def _run(self, fetch: Fetch) -> None:
        messages: list[Message] | None = None
        asked_at = self._asked_at = self._asked_at or time.monotonic()
        try:
            messages = await self._call(fetch.count, fetch.done, fetch.may_wait, token=self._token)
            self._token, self._asked_at = next(self._tokens), None
            if messages and may_end_soon(asked_at, self._timing.lease):
                await self._settling.renew(messages)
            self._tries = pauses()
        except Exception as error:
            if not fetch.done or is_transient(error):
                await self._rest(error, next(self._tries))
            else:
                # The server may have refused a result. If it refuses the fetch, it does so again without the acks.
                await self._settling.ack(fetch.done)
                fetch = Fetch(fetch.count, [], fetch.may_wait)
        finally:
            self._plan.end_fetch(fetch, messages)


class FamilyFetching(Fetching):
    """Messages of a family, whose waiting connections all tasks share (`NodeConnections`)."""

    async def next(self, done: Done | None) -> Message | None:
        if done is not None:
            await self._settling.ack([done])
        tries = pauses()
        while not self._stopping.is_set():
            try:
                found = await self._call(1, [], may_wait=True)
            except Exception as error:
                await self._rest(error, next(tries))
                continue
            if self._stopping.is_set():
                await self._settling.give_back(found)
            elif found:
                return found[0]
            tries = pauses()
        return None
