"""Gives the threads of a worker their messages."""

import logging
import threading
import time
from typing import Any

from dqueue._sync.settling import Settling
from dqueue.protocol.message import Message
from dqueue.protocol.retrying import is_transient, pauses
from dqueue.working.fetch_plan import Ack, Fetch, FetchPlan, acks, tokens
from dqueue.working.leases import Timing, may_end_soon
from dqueue.working.outcomes import Done

log = logging.getLogger("dqueue")


class Fetching:
    """The state that the threads of a worker share."""

    def __init__(self, queue: Any, timing: Timing, consumer: str, settling: Settling, stopping: threading.Event) -> None:
        self._queue = queue
        self._timing = timing
        self._consumer = consumer
        self._settling = settling
        self._stopping = stopping

    def next(self, done: Done | None) -> Message | None:
        """Acks `done`, and returns another message, or None when the worker stops. Raises errors that will not pass."""
        raise NotImplementedError

    def stop(self) -> None:
        """The event of stopping has been set: threads that wait here return."""

    def _call(self, count: int, done: list[Done], may_wait: bool, **options: Any) -> list[Message]:
        found: list[Message] = self._queue.fetch(
            count=count,
            block=self._timing.block if may_wait else None,
            lease=self._timing.lease,
            consumer=self._consumer,
            **acks(done),
            **options,
        )
        return found

    def _rest(self, error: Exception, seconds: float) -> None:
        """Waits before a fetch that has failed is tried again. Raises the error if it will not pass."""
        if not is_transient(error):
            raise error
        log.warning("fetching from %s failed, trying again: %s", self._queue, error)
        self._stopping.wait(seconds)


class QueueFetching(Fetching):
    """Messages of a queue. One of the idle threads fetches for all (`FetchPlan`)."""

    def __init__(self, loops: int, *shared: Any) -> None:
        super().__init__(*shared)
        self._plan = FetchPlan(loops)
        self._changed = threading.Condition()
        self._asleep = 0
        self._is_one_woken = False
        self._tries = pauses()
        self._tokens = tokens()
        self._token = next(self._tokens)
        self._asked_at: float | None = None

    def next(self, done: Done | None) -> Message | None:
        with self._changed:
            self._plan.add_idle(done)
        while (task := self._task()) is not None:
            if isinstance(task, Message):
                return task
            if isinstance(task, Ack):
                self._settling.ack(task.done)
            else:
                self._run(task)
        with self._changed:
            done_last, came = self._plan.close()
        self._settling.ack(done_last)
        self._settling.give_back(came)
        return None

    def stop(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _task(self) -> Message | Fetch | Ack | None:
        with self._changed:
            while not self._stopping.is_set():
                task = self._plan.task()
                if task is not None:
                    self._wake_one()
                    return task
                self._asleep += 1
                self._changed.wait()
                self._asleep -= 1
                self._is_one_woken = False
        return None

    def _wake_one(self) -> None:
        # Each one that wakes up wakes the next. If handlers end at once, this thread may have done all by then, and the
        # others have not been woken for nothing.
        if self._plan.has_work and self._asleep and not self._is_one_woken:
            self._is_one_woken = True
            self._changed.notify()

    def _run(self, fetch: Fetch) -> None:
        messages: list[Message] | None = None
        asked_at = self._asked_at = self._asked_at or time.monotonic()
        try:
            messages = self._call(fetch.count, fetch.done, fetch.may_wait, token=self._token)
            self._token, self._asked_at = next(self._tokens), None
            if messages and may_end_soon(asked_at, self._timing.lease):
                self._settling.renew(messages)
            self._tries = pauses()
        except Exception as error:
            if not fetch.done or is_transient(error):
                self._rest(error, next(self._tries))
            else:
                # The server may have refused a result. If it refuses the fetch, it does so again without the acks.
                self._settling.ack(fetch.done)
                fetch = Fetch(fetch.count, [], fetch.may_wait)
        finally:
            with self._changed:
                self._plan.end_fetch(fetch, messages)


class FamilyFetching(Fetching):
    """Messages of a family, whose waiting connections all threads share (`NodeConnections`)."""

    def next(self, done: Done | None) -> Message | None:
        if done is not None:
            self._settling.ack([done])
        tries = pauses()
        while not self._stopping.is_set():
            try:
                found = self._call(1, [], may_wait=True)
            except Exception as error:
                self._rest(error, next(tries))
                continue
            if self._stopping.is_set():
                self._settling.give_back(found)
            elif found:
                return found[0]
            tries = pauses()
        return None
