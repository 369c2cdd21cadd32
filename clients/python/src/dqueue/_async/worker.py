"""A worker whose handlers are asyncio tasks."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from dqueue._async.family import Family
from dqueue._async.fetching import FamilyFetching, Fetching, QueueFetching
from dqueue._async.handlers import AsyncHandlers, enter
from dqueue._async.queue import Queue
from dqueue._async.settling import Settling
from dqueue.consumer import worker_name
from dqueue.protocol import calls
from dqueue.protocol.calls import Call
from dqueue.protocol.message import Message, about
from dqueue.protocol.options import LOST_WORKERS, Millis
from dqueue.working.lastwords import LAST_WORDS
from dqueue.working.leases import Leases, Timing
from dqueue.working.middleware import Middleware
from dqueue.working.outcomes import (
    Done,
    Ended,
    Outcome,
    Park,
    Snooze,
    failure,
    given_back,
    given_up,
    may_have_killed,
    success,
)

log = logging.getLogger("dqueue")


class Worker(AsyncHandlers):
    """Handles the messages of a queue or of a family with `concurrency` tasks.

    It works like `dqueue.Worker`, but handlers are coroutine functions and can be stopped: one that has not finished
    after `grace` ms is cancelled, and its message is given back. A handler must not block the event loop for longer
    than two thirds of `lease`, because the heartbeat runs in the same loop.
    """

    def __init__(
        self,
        queue: Queue | Family,
        *,
        concurrency: int = 1,
        consumer: str | None = None,
        lease: Millis = 30_000,
        block: Millis = 2_000,
        grace: Millis = 20_000,
        time_limit: Millis | None = None,
        lost_workers: int = LOST_WORKERS,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        super().__init__(middleware)
        self.queue = queue
        self.concurrency = concurrency
        self.consumer = consumer or worker_name()
        self.lost_workers = lost_workers
        self._timing = Timing(queue.client, lease, block, grace, time_limit)
        self._leases = Leases()
        self._handling: set[asyncio.Future[Outcome]] = set()
        self._stopping = asyncio.Event()
        self._fatal: BaseException | None = None
        self._settling = Settling(queue, self._timing.lease, self._stopping)
        shared = (queue, self._timing, self.consumer, self._settling, self._stopping)
        is_family = isinstance(queue, Family)
        self._fetching: Fetching = FamilyFetching(*shared) if is_family else QueueFetching(concurrency, *shared)

    async def run(self, *, signals: bool = True) -> None:
        """Works until it is stopped. Raises errors that will not pass (no right, a key of another type).

        `signals`: whether to handle SIGTERM and SIGINT. Cancelling `run` stops it without grace. A worker runs once.
        """
        async with AsyncExitStack() as stack:
            stack.enter_context(self._signals(signals))
            for context in self.around_work():
                await enter(stack, context)
            heart = asyncio.create_task(self._beat())
            loops = [asyncio.create_task(self._loop()) for _ in range(self.concurrency)]
            try:
                await self._stopping.wait()
                self._fetching.stop()
                await asyncio.wait(loops, timeout=self._timing.grace / 1000)
                for handling in self._handling:
                    handling.cancel()
                # The loops are not cancelled while the server may answer: a cancelled fetch may already have taken a message.
                await asyncio.wait(loops, timeout=LAST_WORDS / 2)
            finally:
                for task in (heart, *loops):
                    task.cancel()
                await asyncio.gather(heart, *loops, return_exceptions=True)
                await self._fetching.close()
                if isinstance(self.queue, Family):
                    await self.queue.aclose()
        if self._fatal is not None:
            raise self._fatal

    def stop(self) -> None:
        """Makes `run` stop gracefully and return. To be called in the event loop."""
        self._stopping.set()

    async def note(self, message: Message, text: str) -> bool:
        """Leaves a note with a message that is being handled, and extends its lease (DQ.TOUCH ... NOTE).

        The next attempt finds it in `message.note`, so it can go on where this one stopped. Returns False if the lease
        is lost, so that the handler can end.
        """
        return await self.queue.touch(self._timing.lease, message, note=text) == 1

    @contextmanager
    def _signals(self, wanted: bool) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT) if wanted else ()

        def restore() -> None:
            for number in numbers:
                loop.remove_signal_handler(number)

        def on_signal() -> None:
            restore()
            self.stop()

        for number in numbers:
            loop.add_signal_handler(number, on_signal)
        try:
            yield
        finally:
            restore()

    async def _loop(self) -> None:
        done: Done | None = None
        try:
            while (message := await self._fetching.next(done)) is not None:
                done = await self._handle(message)
        except Exception as error:
            self._fatal = self._fatal or error
            self._stopping.set()

    async def _handle(self, message: Message) -> Done | None:
        """Handles a message. Returns what is to be acked, if there is anything left to do for it."""
        self._leases.add(message)
        verdict: Call[Any] | Done
        try:
            if may_have_killed(message, self.lost_workers):
                await self._refuse_killer(message)
            result = await self._run_handler(message)
        except asyncio.CancelledError as error:
            if _is_cancelled():
                await self._settling.give_back([message])
                self._leases.drop(message)
                raise
            if self._stopping.is_set():
                (verdict,) = given_back([message])
            else:
                # The handler cancelled itself. If the message were given back, it would come again at once, for ever.
                verdict = failure(message, error)
        except (Snooze, Park) as error:
            log.info("%s is given back in attempt %d: %s", message.id, message.attempt, error, extra=about(message))
            verdict = failure(message, error)
        except Exception as error:
            log.warning("%s failed in attempt %d", message.id, message.attempt, exc_info=True, extra=about(message))
            verdict = failure(message, error)
        else:
            verdict = success(message, result)
        if isinstance(verdict, Call):
            await self._settling.run(verdict, message)
        self._leases.drop(message)
        if message.lost:
            log.warning("%s was finished after its lease was over", message.id)
        return verdict if isinstance(verdict, Done) and not message.lost else None

    async def _run_handler(self, message: Message) -> Outcome:
        # A task of its own can be cancelled while the loop goes on and gives the message back.
        handling = asyncio.ensure_future(_contained(self.find(message.type)(message)))
        self._handling.add(handling)
        try:
            return await handling
        finally:
            self._handling.discard(handling)

    async def _refuse_killer(self, message: Message) -> None:
        try:
            record = await self.queue._do(calls.get(message.queue, message.id))
        except Exception as error:
            log.warning("whether %s kills its workers is unknown: %s", message.id, error)
            return
        if (end := given_up(record, self.lost_workers)) is not None:
            raise end

    async def _beat(self) -> None:
        was_sent = True
        while True:
            await asyncio.sleep(self._timing.pause(was_sent))
            messages = self._leases.to_touch(self._timing.time_limit)
            try:
                if messages and await self.queue.touch(self._timing.lease, *messages) < len(messages):
                    await self._find_lost(messages)
                was_sent = True
            except Exception as error:
                was_sent = False
                log.warning("heartbeat failed: %s", error)

    async def _find_lost(self, messages: list[Message]) -> None:
        for message in messages:
            # A message that was finished in the meantime has no lease any more.
            if await self.queue.touch(self._timing.lease, message) == 0 and self._leases.holds(message):
                message.lost = True
                log.warning("the lease of %s is lost", message.id)


async def _contained(handler: Awaitable[Outcome]) -> Outcome:
    """Runs a handler. SystemExit and the like become errors, because from a task they would end the loop of the program."""
    try:
        return await handler
    except (asyncio.CancelledError, Exception):
        raise
    except BaseException as error:
        raise Ended(error) from error


def _is_cancelled() -> bool:
    """Returns whether the loop itself is being cancelled, and not only the handler that it waits for."""
    task: asyncio.Task[Any] | None = asyncio.current_task()
    return task is not None and task.cancelling() > 0
