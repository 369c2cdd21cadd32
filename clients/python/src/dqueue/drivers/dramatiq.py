"""A broker for Dramatiq.

    import dramatiq
    from dqueue.dramatiq import DqBroker

    dramatiq.set_broker(DqBroker(url="redis://localhost:6379/0"))

Its options are those of Dramatiq's RedisBroker. Delayed messages wait in the server, not in a worker's memory, for as
long as need be. Waiting workers do not poll, and no command does maintenance.
"""

import time
from contextvars import ContextVar
from threading import get_ident
from typing import Any
from uuid import uuid4

import redis
from dramatiq.broker import Broker
from dramatiq.errors import QueueJoinTimeout

from dqueue._sync.queue import Queue
from dqueue.connection import open_client
from dqueue.consumer import worker_name
from dqueue.drivers.dramatiqconsumer import DqConsumer, DqMessage
from dqueue.drivers.held import Held
from dqueue.drivers.lasting import Lasting
from dqueue.drivers.pending import PendingCalls
from dqueue.protocol.effects import Effects
from dqueue.protocol.options import LOST_WORKERS
from dqueue.working.coding import Coding
from dqueue.working.lastwords import LastWords

HEARTBEAT_TIMEOUT = 60_000
"""Milliseconds without a heartbeat after which the messages of a worker go to another one."""

DEAD_MESSAGE_TTL = 7 * 24 * 3_600_000
"""Milliseconds for which dead messages are kept."""


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

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> DqConsumer:
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
