"""A worker whose handlers run in threads."""

import logging
import queue as queues
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast

from dqueue._sync.family import Family
from dqueue._sync.fetching import FamilyFetching, Fetching, QueueFetching
from dqueue._sync.handlers import SyncHandlers
from dqueue._sync.queue import Queue
from dqueue._sync.settling import Settling
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
    Park,
    Snooze,
    failure,
    given_up,
    may_have_killed,
    success,
)

log = logging.getLogger("dqueue")


class Worker(SyncHandlers):
    """Handles the messages of a queue or of a family with `concurrency` threads.

    One of the idle threads fetches for all of them, and acks what is done in the same round trip. While handlers run, a
    heartbeat extends their leases, all in one command. So `lease` (ms) is not the time that a handler may take, but the
    time after a crash of this process until others get its messages. `time_limit` (ms) is the time that a handler may
    take. After it the lease is no longer extended, and the message is delivered again.

    SIGTERM, SIGINT and `stop` end the worker. It fetches no more, gives its handlers `grace` ms to finish, and gives
    back the messages that are not finished as if they had not been delivered (NACK SILENT). A thread cannot be stopped
    from outside, so its handler goes on until the process ends. Its ack is refused, and the fencing token makes it
    possible to refuse its writes. A second signal has its usual effect.

    Lost connections are made anew, for as long as it takes. Messages that were handled meanwhile are acked then.
    `block` (ms) is how long one fetch waits at the server. It is kept below the socket timeout of the client, and
    `stop` may take that long.

    Of a queue it has one waiting connection, of a `Family` one for each node. It closes the family in the end.

    A message that has taken `lost_workers` processes with it is dead, with the reason `rejected`, where its RETRIES have no
    limit (-1). 0 means never. Where they have one, a lost worker counts for it like a failure.

    `consumer` is the name that DQ.CONSUMERS shows. The default is host and process id, and a
    number from the second worker of a process on. `middleware` is for all handlers.
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
        # A signal handler may call put() of a SimpleQueue at any time, but not set() of an Event.
        self._reports: queues.SimpleQueue[BaseException | None] = queues.SimpleQueue()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._busy: set[threading.Thread] = set()
        self._settling = Settling(queue, self._timing.lease, self._stopping)
        shared = (queue, self._timing, self.consumer, self._settling, self._stopping)
        is_family = isinstance(queue, Family)
        self._fetching: Fetching = FamilyFetching(*shared) if is_family else QueueFetching(concurrency, *shared)

    def run(self, *, signals: bool = True) -> None:
        """Works until it is stopped. Raises errors that will not pass (no right, a key of another type).

        `signals` says whether to handle SIGTERM and SIGINT, which only the main thread can do. A worker runs only once.
        """
        is_main = threading.current_thread() is threading.main_thread()
        with self._signals(signals and is_main), ExitStack() as stack:
            for context in self.around_work():
                stack.enter_context(cast(Any, context))
            heart = threading.Thread(target=self._beat, name="dqueue-heartbeat", daemon=True)
            loops = [
                threading.Thread(target=self._loop, name=f"dqueue-{number}", daemon=True)
                for number in range(self.concurrency)
            ]
            for thread in (heart, *loops):
                thread.start()
            reason = self._reports.get()
            self._stopping.set()
            self._fetching.stop()
            self._finish(loops)
            if isinstance(self.queue, Family):
                self.queue.close()
            self._ended.set()
            heart.join()
        if reason is not None:
            raise reason

    def stop(self) -> None:
        """Makes `run` stop gracefully and return. It may be called in any thread or signal handler."""
        self._reports.put(None)

    def note(self, message: Message, text: str) -> bool:
        """Leaves a note with a message that is being handled, and extends its lease (DQ.TOUCH ... NOTE).

        The next attempt finds it in `message.note`, so it can go on where this one stopped. Returns False if the lease
        is lost, so that the handler can end.
        """
        return self.queue.touch(self._timing.lease, message, note=text) == 1

    @contextmanager
    def _signals(self, wanted: bool) -> Iterator[None]:
        if not wanted:
            yield
            return
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.getsignal(number) for number in numbers}

        def restore() -> None:
            for number in numbers:
                signal.signal(number, before[number])

        def on_signal(_number: int, _frame: Any) -> None:
            restore()
            self.stop()

        for number in numbers:
            signal.signal(number, on_signal)
        try:
            yield
        finally:
            restore()

    def _finish(self, loops: list[threading.Thread]) -> None:
        now = time.monotonic()
        _join(loops, now + self._timing.grace / 1000)
        unfinished = self._leases.take()
        if unfinished:
            log.warning("%d messages not finished in time are given back", len(unfinished))
            self._settling.give_back(unfinished)
        # A blocked fetch may take its whole BLOCK to return, and its messages must be given back.
        _join([loop for loop in loops if loop not in self._busy], now + self._timing.block / 1000 + LAST_WORDS)

    def _loop(self) -> None:
        done: Done | None = None
        try:
            while (message := self._fetching.next(done)) is not None:
                done = self._handle(message)
        except Exception as error:
            self._reports.put(error)

    def _handle(self, message: Message) -> Done | None:
        """Handles a message. Returns what is to be acked, if there is anything left to do for it."""
        self._leases.add(message)
        verdict: Call[Any] | Done
        self._busy.add(threading.current_thread())
        try:
            if may_have_killed(message, self.lost_workers):
                self._refuse_killer(message)
            result = self.find(message.type)(message)
        except (Snooze, Park) as error:
            log.info("%s is given back in attempt %d: %s", message.id, message.attempt, error, extra=about(message))
            verdict = failure(message, error)
        except BaseException as error:
            # In this thread SystemExit and KeyboardInterrupt are the handler's own: those of the process are signals.
            log.warning("%s failed in attempt %d", message.id, message.attempt, exc_info=True, extra=about(message))
            verdict = failure(message, error)
        else:
            verdict = success(message, result)
        self._busy.discard(threading.current_thread())
        if isinstance(verdict, Call) and self._leases.holds(message):
            self._settling.run(verdict, message)
        held = self._leases.drop(message)
        if message.lost:
            log.warning("%s was finished after its lease was over", message.id)
        return verdict if isinstance(verdict, Done) and held and not message.lost else None

    def _refuse_killer(self, message: Message) -> None:
        try:
            record = self.queue._do(calls.get(message.queue, message.id))
        except Exception as error:
            log.warning("whether %s kills its workers is unknown: %s", message.id, error)
            return
        if (end := given_up(record, self.lost_workers)) is not None:
            raise end

    def _beat(self) -> None:
        was_sent = True
        while not self._ended.wait(self._timing.pause(was_sent)):
            messages = self._leases.to_touch(self._timing.time_limit)
            try:
                if messages and self.queue.touch(self._timing.lease, *messages) < len(messages):
                    self._find_lost(messages)
                was_sent = True
            except Exception as error:
                was_sent = False
                log.warning("heartbeat failed: %s", error)

    def _find_lost(self, messages: list[Message]) -> None:
        for message in messages:
            # A message that was finished in the meantime has no lease, either.
            if self.queue.touch(self._timing.lease, message) == 0 and self._leases.holds(message):
                message.lost = True
                log.warning("the lease of %s is lost", message.id)


def _join(threads: list[threading.Thread], deadline: float) -> None:
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
