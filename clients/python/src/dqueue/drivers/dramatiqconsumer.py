"""The consumer of the broker for Dramatiq, and the messages that it delivers."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import redis
from dramatiq.broker import Consumer, MessageProxy
from dramatiq.errors import ActorNotFound, ConnectionClosed, DecodeError
from dramatiq.logging import get_logger
from dramatiq.message import Message

from dqueue.protocol import message as dq
from dqueue.protocol.client import socket_timeout
from dqueue.protocol.effects import Effects
from dqueue.protocol.retrying import is_transient, pauses
from dqueue.working.coding import fatal
from dqueue.working.leases import may_end_soon
from dqueue.working.outcomes import Reject, described

LONGEST_PAUSE = 0.5
"""Seconds between two tries of a consumer to reach its server. A stop waits for it."""


class DqMessage(MessageProxy):
    """A delivered message, with the receipt that settles it."""

    def __init__(self, message: Any, receipt: int, consumer: "DqConsumer") -> None:
        super().__init__(message)
        self.receipt: int | None = receipt
        self.consumer = consumer
        self.effects: Effects | None = None

    def apply(self) -> None:
        """Acks the message with its effects, if it has some. Raises the error with which the server refuses them."""
        if self.effects and self.receipt is not None and not self.failed:
            self.consumer.apply(self.receipt, self.effects)
            self.receipt = None


class DqConsumer(Consumer):
    """Takes messages of one queue of a DqBroker, whose module uses this one."""

    def __init__(self, broker: Any, queue_name: str, prefetch: int, timeout: int) -> None:
        self.logger = get_logger("dqueue.dramatiq", type(self))
        self.broker = broker
        self.queue_name = queue_name
        self.queue = broker.queue(queue_name)
        self.held = broker.held(queue_name)
        self.prefetch = prefetch
        limit = socket_timeout(broker.client)
        # A reply that comes after the client's own timeout would be lost, and a heartbeat must not wait for a fetch.
        waits = [timeout, self.held.lease // 3] + ([] if limit is None else [int(limit * 800)])
        self.timeout = max(1, min(waits))
        # Messages that Dramatiq has not taken over. Threads that ack add to them.
        self._fetched: deque[dq.Message] = deque()
        # Token and time of a fetch whose reply has not come.
        self._unanswered: tuple[str, float] | None = None
        self._is_closed = False
        self._pauses = pauses()

    @property
    def outstanding_message_count(self) -> int:
        return len(self.held)

    def ack(self, message: Any) -> None:
        """Finishes the message. If the worker waits for room, the same command brings those that take its place."""
        receipt = getattr(message, "receipt", None)
        if receipt is None:
            return
        if not self.held.finish(receipt, self.prefetch):
            self._persist(self._send_acks)
        if self._is_closed:
            self._give_back_fetched()

    def apply(self, receipt: int, effects: Effects) -> None:
        """Finishes a message together with its effects. Raises the error with which the server refuses them."""
        self._persist(lambda: self._calling(self.queue.ack, receipt, apply=effects))
        self.held.drop(receipt)
        if self._is_closed:
            self._give_back_fetched()

    def _send_acks(self) -> None:
        """Sends the acks that wait, and those that other threads add meanwhile."""
        held = self.held
        while held.acks:
            fetches = held.is_waiting_for_room
            if fetches and not held.fetching.acquire(blocking=False):
                if held.is_waiting_for_room:
                    # Another thread fetches for an ack. It sends these afterwards.
                    return
                continue
            try:
                with held.acks.sending() as acks:
                    if acks and fetches:
                        self._take(len(acks), acks)
                    elif acks:
                        self._calling(self.queue.ack, *acks)
            finally:
                if fetches:
                    held.fetching.release()
            # This wakes the consumer, so it comes last.
            held.drop(*acks)

    def nack(self, message: Any) -> None:
        """Makes the message dead with the reason `rejected`. DQ.REDRIVE brings it back."""
        receipt = getattr(message, "receipt", None)
        if receipt is not None:
            # Dramatiq leaves the exception with the message for those who handle its failure.
            error = getattr(message, "_exception", None) or self._unknown_actor(message)
            text = None if error is None else described(error)
            self._persist(lambda: self._calling(self.queue.nack, receipt, fatal=True, error=text))
            self.held.drop(receipt)

    def _unknown_actor(self, message: Any) -> ActorNotFound | None:
        """Returns the error of a message whose actor nobody has declared. Dramatiq before 2.0 fails it without one."""
        try:
            self.broker.get_actor(message.actor_name)
        except ActorNotFound as error:
            return error
        return None

    def _persist(self, tell: Callable[[], object]) -> None:
        """Tells the server the outcome of a message. Repeats that until the lease is over.

        Dramatiq would repeat it for ever, with pauses that a stop waits for. A worker that stops gives up after LAST_WORDS:
        then the message comes back when its lease ends.
        """
        given_up = time.monotonic() + self.held.lease / 1000
        for seconds in pauses(self.held.lease):
            try:
                tell()
                return
            except ConnectionClosed as error:
                if self.broker.last_words.is_over or time.monotonic() + seconds > given_up:
                    self.logger.error("The server cannot be told what became of a message, which may run again: %s", error)
                    return
            self.broker.last_words.waited(seconds)
            time.sleep(seconds)

    def requeue(self, messages: Iterable[Any]) -> None:
        """Gives messages back at their old positions."""
        self._give_back([message.receipt for message in messages])

    def close(self) -> None:
        self._is_closed = True
        self._send_acks()
        self._give_back_fetched()

    def _give_back_fetched(self) -> None:
        receipts: list[int] = []
        # A thread that acks may take a message at this time.
        with suppress(IndexError):
            while True:
                receipts.append(self._fetched.popleft().receipt)
        self._give_back(receipts)

    def _give_back(self, receipts: list[int]) -> None:
        if receipts:
            self._calling(self.queue.nack, *receipts, silent=True)
        self.held.drop(*receipts)

    def __next__(self) -> DqMessage | None:
        while True:
            try:
                # `_calling` regards any return as an answer of the server, so it is called only if something is sent.
                if self.queue.key not in self.broker.lasting.begun:
                    self._calling(self.broker.lasting.begin, self.queue.key)
                if receipts := self.held.to_touch():
                    self._calling(self.held.touch, receipts)
                if not self._fetched and not self._fetch():
                    return None
            except ConnectionClosed as error:
                # Dramatiq would make another consumer, three seconds later, and a stop would wait for that.
                self.logger.warning("The server cannot be reached, the next try follows: %s", error)
                time.sleep(min(next(self._pauses), LONGEST_PAUSE))
                return None
            self._pauses = pauses()
            message = self._fetched.popleft()
            try:
                if secrets := self.broker.secrets:
                    message.payload, _ = secrets.open(self.queue.key, message.id, message.payload, message.headers)
                return DqMessage(self._task(message.payload), message.receipt, self)
            except (DecodeError, Reject, LookupError) as error:
                self.logger.error("Message %r is none of Dramatiq, or cannot be read.", message.id, exc_info=True)
                self._calling(self.queue.nack, message.receipt, fatal=bool(fatal(error)), error=str(error))
                self.held.drop(message.receipt)

    def _task(self, payload: bytes) -> Any:
        """Reads a message of this queue. Dramatiq takes these parts for granted: its worker would lose a thread for good."""
        task = Message.decode(payload)
        if not (isinstance(task.actor_name, str) and isinstance(task.kwargs, dict) and isinstance(task.options, dict)):
            raise DecodeError("The message has parts of other types.", payload, None)
        if task.queue_name != self.queue_name:
            raise DecodeError(f"The message is one of the queue {task.queue_name!r:.100}.", payload, None)
        return task

    def _fetch(self) -> bool:
        """Waits for room, and then for messages. Returns whether there are any."""
        held = self.held
        try:
            held.wait_for_room(self.prefetch, lambda: bool(self._fetched), self.timeout / 1000)
            with held.fetching:
                held.is_waiting_for_room = False
                # A thread that acks may have fetched messages meanwhile. Then the next fetch follows soon, and takes
                # the acks along.
                if not self._fetched:
                    self._fetch_with_acks()
        finally:
            held.is_waiting_for_room = False
        return bool(self._fetched)

    def _fetch_with_acks(self) -> None:
        with self.held.acks.sending() as acks:
            self.held.drop(*acks)
            room = self.prefetch - len(self.held)
            if acks or room > 0:
                self._take(min(max(room, 1), 1000), acks, block=self.timeout)

    def _take(self, count: int, acks: list[int], **options: Any) -> None:
        """Sends acks and fetches messages for `__next__`."""
        # A fetch after a lost reply has the same token, so that it gets the messages of the lost one.
        token, asked_at = self._unanswered = self._unanswered or (uuid4().hex, time.monotonic())
        messages = self._calling(
            self.queue.fetch,
            count=count,
            lease=self.held.lease,
            consumer=self.held.consumer,
            token=token,
            ack=acks,
            **options,
        )
        self._unanswered = None
        self.held.add(messages)
        self._fetched.extend(messages)
        if messages and may_end_soon(asked_at, self.held.lease):
            try:
                self._calling(self.queue.touch, self.held.lease, *messages)
            except redis.RedisError as error:
                self.logger.warning("The leases of messages could not be renewed: %s", error)

    def _calling(self, call: Any, *args: Any, **options: Any) -> Any:
        """Calls the server. A lost connection becomes the error after which Dramatiq tries again."""
        try:
            with self.broker.calls.on_its_way(options.get("block", 0)):
                return call(*args, **options)
        except (redis.RedisError, OSError) as error:
            if not is_transient(error):
                raise
            raise ConnectionClosed(error) from None
