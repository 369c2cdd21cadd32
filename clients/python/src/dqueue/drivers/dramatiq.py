"""A broker for Dramatiq.

    import dramatiq
    from dqueue.dramatiq import DqBroker

    dramatiq.set_broker(DqBroker(url="redis://localhost:6379/0"))

Its options are those of Dramatiq's RedisBroker. Delayed messages wait in the server, not in a worker's memory, for as
long as need be. Waiting workers do not poll, and no command does maintenance.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from threading import get_ident
from typing import Any
from uuid import uuid4

import redis
from dramatiq.broker import Broker, Consumer, MessageProxy
from dramatiq.errors import ConnectionClosed, DecodeError, QueueJoinTimeout
from dramatiq.logging import get_logger
from dramatiq.message import Message

from dqueue._sync.queue import Queue
from dqueue.connection import open_client
from dqueue.consumer import worker_name
from dqueue.drivers.held import Held
from dqueue.drivers.lasting import Lasting
from dqueue.drivers.pending import PendingCalls
from dqueue.protocol import message as dq
from dqueue.protocol.client import socket_timeout
from dqueue.protocol.effects import Effects
from dqueue.protocol.options import LOST_WORKERS
from dqueue.protocol.retrying import is_transient, pauses
from dqueue.working.coding import Coding, fatal
from dqueue.working.lastwords import LastWords
from dqueue.working.leases import may_end_soon
from dqueue.working.outcomes import Reject, described

HEARTBEAT_TIMEOUT = 60_000
"""Milliseconds without a heartbeat after which the messages of a worker go to another one."""

DEAD_MESSAGE_TTL = 7 * 24 * 3_600_000
"""Milliseconds for which dead messages are kept."""

LONGEST_PAUSE = 0.5
"""Seconds between two tries of a consumer to reach its server. A stop waits for it."""


class DqBroker(Broker):
    """A broker with the queues of dq.

    Parameters:
      url: of the server, a cluster or Sentinels, see `dqueue.connection.open_client`.
      middleware: as in every broker.
      namespace: the prefix of the keys. The key of a queue is `namespace:name`.
      heartbeat_timeout: how long (ms) a message belongs to a worker that does not renew it.
      dead_message_ttl: how long (ms) dead messages are kept, a week by default. If it is given, it takes effect at the next
        start. If not, it holds for queues that the broker creates.
      lost_workers: with how many lost workers a message is given up. 0: never.
      secrets: a `dqueue.secrets.Secrets`, or another coding (docs/secrets.md), that encrypts messages.
      client: a client of redis-py to use. `parameters` are those of `redis.Redis`.
      maintenance_chance: accepted for the sake of RedisBroker. There is no maintenance.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        middleware: list[Any] | None = None,
        namespace: str = "dramatiq",
        maintenance_chance: int = 0,
        heartbeat_timeout: int = HEARTBEAT_TIMEOUT,
        dead_message_ttl: int | None = None,
        lost_workers: int = LOST_WORKERS,
        secrets: Coding | None = None,
        client: redis.Redis | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(middleware=middleware)
        self.namespace = namespace
        self.heartbeat_timeout = heartbeat_timeout
        self.dead_message_ttl = DEAD_MESSAGE_TTL if dead_message_ttl is None else dead_message_ttl
        self.lost_workers = lost_workers
        self.secrets = secrets
        self.queues: set[str] = set()
        if client is None:
            client = open_client(url) if url else redis.Redis(**parameters)
        self.client = client
        given = set() if dead_message_ttl is None else {"dead_retain"}
        self.lasting = Lasting(client, {"dead_retain": self.dead_message_ttl}, given)
        self.last_words = LastWords()
        self.calls = PendingCalls(client, self.last_words)
        self._held: dict[tuple[str, int], Held] = {}

    def emit_before(self, signal: str, *args: Any, **kwargs: Any) -> None:
        if signal == "worker_boot":
            self.last_words.end()
        elif signal == "worker_shutdown":
            self.calls.hurry()
        elif signal == "process_message":
            _running.set(args[0])
        super().emit_before(signal, *args, **kwargs)

    def emit_after(self, signal: str, *args: Any, **kwargs: Any) -> None:
        super().emit_after(signal, *args, **kwargs)
        if signal in ("process_message", "skip_message") and isinstance(args[0], DqMessage):
            _running.set(None)
            if signal == "process_message" and kwargs.get("exception") is None:
                # An error of the server makes the message fail, as if it were the actor's.
                args[0].apply()

    def close(self) -> None:
        self.client.close()

    def queue(self, queue_name: str) -> Queue:
        """Returns the queue on the server."""
        return Queue(self.client, f"{self.namespace}:{queue_name}")

    def held(self, queue_name: str) -> Held:
        """Returns the messages of a queue that this thread holds. They outlive a consumer, which a lost connection or a pause replaces."""
        # Each worker has a thread for each queue.
        place = (queue_name, get_ident())
        if place not in self._held:
            self._held[place] = Held(self.queue(queue_name), self.heartbeat_timeout, worker_name())
        return self._held[place]

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> "DqConsumer":
        """Returns a consumer that holds at most `prefetch` messages and waits up to `timeout` ms for one."""
        return DqConsumer(self, queue_name, prefetch, timeout)

    def declare_queue(self, queue_name: str) -> None:
        """Declares the queue. It has no queue for delayed messages beside it."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.emit_after("declare_queue", queue_name)

    def get_declared_queues(self) -> set[str]:
        return self.queues.copy()

    def enqueue(self, message: Any, *, delay: int | None = None) -> Any:
        """Sends the message. `delay` is in milliseconds, without a limit."""
        # A retry has the message id of the first try, so each sending has an id of its own.
        message = message.copy(options={"redis_message_id": str(uuid4())})
        self.logger.debug("Enqueueing message %r on queue %r.", message.message_id, message.queue_name)
        self.emit_before("enqueue", message, delay)
        key, id = self.queue(message.queue_name).key, message.options["redis_message_id"]
        payload, headers = message.encode(), None
        if self.secrets is not None:
            payload, headers = self.secrets.seal(key, id, payload)
        self.lasting.sender(key).send(
            payload,
            id=id,
            headers=headers,
            delay=None if delay is None else max(0, int(delay)),
            priority=self._priority(message.actor_name),
            type=message.actor_name if len(message.actor_name.encode()) <= 1024 else None,
            # The middleware Retries counts the attempts.
            retries=-1,
            max_timeouts=self.lost_workers,
        )
        self.emit_after("enqueue", message, delay)
        return message

    def _priority(self, actor_name: str) -> int | None:
        """Returns the priority of an actor of this broker. Lower numbers go first, here and in Dramatiq."""
        actor = self.actors.get(actor_name)
        return max(-128, min(127, actor.priority)) if actor is not None and actor.priority else None

    def flush(self, queue_name: str) -> None:
        """Removes all messages of a queue, also those that a worker has."""
        self.queue(queue_name).purge()

    def flush_all(self) -> None:
        for queue_name in self.queues:
            self.flush(queue_name)

    def join(self, queue_name: str, *, interval: int = 100, timeout: int | None = None) -> None:
        """Waits until the queue is empty, for tests. Raises QueueJoinTimeout after `timeout` ms."""
        deadline = time.monotonic() + timeout / 1000 if timeout else None
        while self.queue(queue_name).len():
            if deadline is not None and time.monotonic() >= deadline:
                raise QueueJoinTimeout(queue_name)
            time.sleep(interval / 1000)


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


_running: ContextVar[DqMessage | None] = ContextVar("dqueue_dramatiq_message", default=None)


def effects() -> Effects:
    """Returns the effects of the message whose actor runs: changes of Redis keys that are done together with its ack.

    All are done or none is: nothing if the actor fails, or if the lease of the message is over. If the server refuses them,
    the message has failed. Raises RuntimeError outside of an actor whose message came by a DqBroker.
    """
    message = _running.get()
    if not isinstance(message, DqMessage):
        raise RuntimeError("no actor runs here whose message came by a DqBroker")
    if message.effects is None:
        message.effects = Effects()
    return message.effects


class DqConsumer(Consumer):
    """Takes messages of one queue."""

    def __init__(self, broker: DqBroker, queue_name: str, prefetch: int, timeout: int) -> None:
        self.logger = get_logger("dqueue.dramatiq", type(self))
        self.broker = broker
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
            error = getattr(message, "_exception", None)
            text = None if error is None else described(error)
            self._persist(lambda: self._calling(self.queue.nack, receipt, fatal=True, error=text))
            self.held.drop(receipt)

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
                return DqMessage(Message.decode(message.payload), message.receipt, self)
            except (DecodeError, Reject, LookupError) as error:
                self.logger.error("Message %r is none of Dramatiq, or cannot be read.", message.id, exc_info=True)
                self._calling(self.queue.nack, message.receipt, fatal=bool(fatal(error)), error=str(error))
                self.held.drop(message.receipt)

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
