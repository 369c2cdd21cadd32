"""A channel: sends to the queues, fetches from them, and settles the fetched messages."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any
from uuid import uuid4

from kombu.log import get_logger
from kombu.transport import redis as kombu_redis
from kombu.transport import virtual
from kombu.utils.encoding import bytes_to_str
from redis.exceptions import RedisError, ResponseError

from dqueue.drivers.kombu.connection import (
    Following,
    FollowingConnection,
    FollowingSSLConnection,
)
from dqueue.drivers.kombu.fetching import FetchingChannel
from dqueue.drivers.kombu.keeper import keeper
from dqueue.drivers.kombu.messages import Message, Tag, by_queue, redelivered, sending
from dqueue.drivers.kombu.qos import QoS
from dqueue.protocol.options import LOST_WORKERS, Word
from dqueue.protocol.options import words as option_words
from dqueue.protocol.retrying import is_transient
from dqueue.working.coding import Coding

logger = get_logger("dqueue.kombu")

QUEUE_OPTIONS = {"DEADRETAIN": 7 * 24 * 3_600_000, "DEADCOUNT": 10_000}
"""Options of the queues that the transport creates. AMQP drops rejected and expired messages; here they are kept for a
week, where they can be looked at and redriven."""


class Channel(FetchingChannel):
    """A channel with the queues of the server."""

    QoS = QoS
    Message = Message

    connection_class = FollowingConnection
    connection_class_ssl = FollowingSSLConnection

    from_transport_options = (*kombu_redis.Channel.from_transport_options, "queue_options", "bind_grace", "lost_workers", "secrets")

    bind_grace: float = 15
    """Seconds after the loss of its connection for which a worker with an event loop keeps its messages. Heartbeats
    over another connection prolong it. 0: the messages come back when their leases end."""

    lost_workers = LOST_WORKERS
    """With how many lost workers a message is given up. 0: never."""

    secrets: Coding | None = None
    """A `dqueue.secrets.Secrets`, or another coding (docs/secrets.md), that encrypts messages."""

    queue_options = QUEUE_OPTIONS
    """Options of DQ.CREATE for the queues that this channel creates."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._created: set[str] = set()
        self._no_ack: dict[str, str] = {}
        self._touched_at = self._expiry_refreshed_at = monotonic()
        super().__init__(*args, **kwargs)

    @property
    def lease(self) -> int:
        """Milliseconds that a consumer may hold a message for without a heartbeat."""
        return max(1, int(self.visibility_timeout * 1000))

    @property
    def grace(self) -> int:
        """Milliseconds that leases go on after the loss of the connection. 0: until they end."""
        # A channel that is closed has no transport.
        if self.connection is None:
            return self._last_grace
        if not self.connection.in_event_loop or not self.knows("GRACE"):
            return 0
        return int(self.bind_grace * 1000)

    @property
    def beat(self) -> float:
        """Seconds between heartbeats, so short that one may get lost."""
        return min(self.lease, self.grace or self.lease) / 3000

    def knows(self, option: str) -> bool:
        """Returns whether the module, which may be older than this package, has an option of FETCH or SEND."""
        if self.connection.known_options is None:
            try:
                docs = self.call("COMMAND DOCS", "dq.fetch", "dq.send")
            except ResponseError:
                # The user has no right to ask.
                docs = ()
            self.connection.known_options = frozenset(_texts(docs))
        return option in self.connection.known_options

    def key(self, queue: str) -> str:
        return f"{self.global_keyprefix}{queue}"

    def call(self, *words: Word) -> Any:
        with self.conn_or_acquire() as client:
            return client.execute_command(*words)

    def call_all(self, commands: Iterable[tuple[Word, ...]], transaction: bool = False) -> list[Any]:
        with self.conn_or_acquire() as client, client.pipeline(transaction=transaction) as pipe:
            for words in commands:
                pipe.execute_command(*words)
            replies: list[Any] = pipe.execute()
            return replies

    def _connparams(self, asynchronous: bool = False) -> Any:
        parameters = super()._connparams(asynchronous=asynchronous)
        if issubclass(parameters["connection_class"], Following):
            self.connection.place.prefix = self.global_keyprefix
            parameters["place"] = self.connection.place
        return parameters

    # ---- sending

    def _put(self, queue: str, message: dict[str, Any], **kwargs: Any) -> None:
        commands = [tuple(self._sending(queue, message))]
        if queue in self._expires:
            # The client adds the prefix to the key of this command.
            commands.append(("PEXPIRE", queue, self._expires[queue]))
        batch = kwargs.get("_publish_batch")
        if batch is not None:
            # A batch is short, so it is enough to make the queue once.
            made = vars(batch).setdefault("queues_made", set())
            if queue not in made and self._is_lasting(queue):
                self.call(*self._creating(queue))
                made.add(queue)
            for words in commands:
                batch.add("execute_command", *words)
        elif self._is_lasting(queue):
            # The server may have lost the queue since this process has made it (FLUSHALL, DEL, an empty replica).
            self.call_all([self._creating(queue), *commands])
        elif len(commands) == 1:
            self.call(*commands[0])
        else:
            self.call_all(commands)

    @property
    def counts_lost_workers(self) -> bool:
        return bool(self.lost_workers) and self.knows("MAXTIMEOUTS")

    def _sending(self, queue: str, message: dict[str, Any]) -> list[Word]:
        lost = self.lost_workers if self.counts_lost_workers else 0
        words = sending(self.key(queue), message, self._get_message_priority(message), self.knows("EXPIREAT"), lost)
        if self.secrets is not None:
            words[2], headers = self.secrets.seal(self.key(queue), message["properties"]["delivery_tag"], str(words[2]))
            words += option_words({"headers": headers})
        return words

    # ---- receiving

    def basic_consume(self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **kwargs: Any) -> Any:
        if no_ack:
            self._no_ack[consumer_tag] = queue
        return super().basic_consume(queue, no_ack, callback, consumer_tag, **kwargs)

    def _basic_cancel(self, consumer_tag: str) -> Any:
        self._no_ack.pop(consumer_tag, None)
        canceled = super()._basic_cancel(consumer_tag)
        self.send_acks()
        return canceled

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        # redis-py repeats a command after a lost reply. The token makes the server repeat its reply.
        options = self._fetch_options(1, no_ack, uuid4().hex)
        for delivery in self.call("DQ.FETCH", self.key(queue), *options) or ():
            payload = self._payload(queue, delivery)
            if payload is not None:
                message = self.Message(payload, channel=self)
                if not no_ack:
                    self.qos.append(message, message.delivery_tag)
                return message
        return None

    # ---- settling

    def settle(self, what: str, tags: Iterable[Tag], send: Callable[[], object]) -> None:
        """Sends the commands that settle messages. If the connection is lost, the commands are sent again over
        another one.
        """
        try:
            send()
        except (RedisError, OSError) as error:
            if not is_transient(error):
                raise
            keeper().send_later(what, self.lease, send)
        if self.connection is None:
            for tag in tags:
                keeper().settled(tag)

    def ack(self, tag: Tag) -> None:
        self.ack_all([tag])

    def ack_all(self, tags: Iterable[Tag]) -> None:
        # NOACK has the receipt 0.
        for same in by_queue(tag for tag in tags if tag.receipt):
            self._check_acks(same, self.call(*self._ack_command(same)))

    def _check_acks(self, tags: list[Tag], held: int) -> None:
        """Says which acks came too late. `tags` are those of one queue."""
        if held < len(tags):
            logger.warning(
                "%d of the messages %s of queue %s were acked after their leases: they may run again",
                len(tags) - held,
                ", ".join(tag.id for tag in tags),
                tags[0].queue,
            )

    def give_back(self, held: Iterable[tuple[Tag, Any]]) -> None:
        """Puts messages back at their old positions, marked as redelivered."""
        self.give_back_marked([(tag, self.marked(tag, message)) for tag, message in held])

    def marked(self, tag: Tag, message: Any) -> str | None:
        """Returns the payload with which a message is given back, or None: that which it has."""
        # An encrypted payload stays as it is: a mark would need the key and the headers that it was sent with.
        return redelivered(message, tag) if self.secrets is None else None

    def give_back_marked(self, held: Iterable[tuple[Tag, str | None]]) -> None:
        """Puts messages back at their old positions, with these payloads."""
        commands: list[tuple[Word, ...]] = []
        receipts = defaultdict(list)
        for tag, payload in held:
            receipts[tag.queue].append(tag.receipt)
            if payload is not None:
                commands.append(("DQ.UPDATE", self.key(tag.queue), tag.id, payload))
        nacks: list[tuple[Word, ...]] = [
            ("DQ.NACK", self.key(queue), *given, "SILENT") for queue, given in receipts.items()
        ]
        if not nacks:
            return
        try:
            # One transaction, so that nobody gets a message without the mark.
            self.call_all([*nacks, *commands], transaction=True)
        except ResponseError:
            # A full server refuses to store the mark.
            self.call_all(nacks)

    def _restore(self, message: Any, leftmost: bool = False) -> None:
        if isinstance(message.delivery_tag, Tag) and message.delivery_tag.receipt:
            self.give_back([(message.delivery_tag, message)])
        else:
            virtual.Channel._restore(self, message)

    def end_lease(self, tag: Tag) -> None:
        """Gives a message back as if its worker were lost, so that it counts for MAXTIMEOUTS."""
        self.call("DQ.TOUCH", self.key(tag.queue), 1, tag.receipt)

    def touch(self, tags: Iterable[Tag]) -> None:
        """Extends the leases of messages."""
        self.call_all(
            [
                ("DQ.TOUCH", self.key(same[0].queue), self.lease, *(tag.receipt for tag in same))
                for same in by_queue(tag for tag in tags if tag.receipt)
            ]
        )

    def keep_leases(self) -> None:
        """Extends the leases of held messages, when that is due."""
        now = monotonic()
        if self._qos is None or now - self._touched_at < self.beat:
            return
        self._touched_at = now
        if isinstance(self._qos, QoS):
            self._qos.touch()

    # ---- queues

    def _is_lasting(self, queue: str) -> bool:
        return queue not in self._expires and queue not in self.auto_delete_queues

    def _creating(self, queue: str) -> tuple[Word, ...]:
        """The command that makes the queue, and leaves one that is there as it is."""
        return ("DQ.CREATE", self.key(queue), "NX", *self._settings)

    @property
    def _settings(self) -> tuple[Word, ...]:
        return tuple(word for option in self.queue_options.items() for word in option)

    def _ensure(self, queue: str) -> None:
        """Creates the queue if it is not there."""
        if queue in self._created or not self._is_lasting(queue):
            return
        is_new = self.call(*self._creating(queue)) is not None
        if not is_new and "queue_options" in self.connection.client.transport_options:
            # The settings of the program take effect at its next start. The defaults are left to DQ.ALTER.
            self.call("DQ.ALTER", self.key(queue), *self._settings)
        self._created.add(queue)

    def queue_bind(
        self, queue: str, exchange: str | None = None, routing_key: str = "", arguments: Any = None, **kwargs: Any
    ) -> None:
        exchange = exchange or "amq.direct"
        # kombu leaves it out then, but the server may have lost it.
        is_again = self.state.has_binding(queue, exchange, routing_key)
        super().queue_bind(queue, exchange, routing_key, arguments, **kwargs)
        if is_again:
            self._queue_bind(exchange, *self.typeof(exchange).prepare_bind(queue, exchange, routing_key, arguments))

    def get_table(self, exchange: str) -> list[Any]:
        """Returns the bindings of an exchange. Bindings of this connection that the server has lost are made again."""
        table: list[Any] = super().get_table(exchange)
        there = {(binding[0], binding[2]) for binding in table}
        for routing_key, pattern, queue in self.state.exchanges.get(exchange, {}).get("table", ()):
            is_lost = (routing_key or "", queue) not in there and self.state.has_binding(queue, exchange, routing_key)
            if is_lost and self._is_lasting(queue):
                self._queue_bind(exchange, routing_key, pattern, queue)
                table.append((routing_key or "", pattern or "", queue))
        return table

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        super()._queue_bind(exchange, routing_key, pattern, queue)
        if queue not in self._fanout_queues:
            self._ensure(queue)

    def maybe_refresh_binding_expiry(self) -> None:
        """Keeps bindings and queues with x-expires alive while they have a consumer."""
        super().maybe_refresh_binding_expiry()
        expiring = [queue for queue in self.active_queues if queue in self._expires]
        now = monotonic()
        if expiring and (now - self._expiry_refreshed_at) * 3000 >= min(self._expires[queue] for queue in expiring):
            self._expiry_refreshed_at = now
            self.call_all([("PEXPIRE", queue, self._expires[queue]) for queue in expiring])

    def _size(self, queue: str) -> int:
        """Returns the number of messages that nobody holds."""
        key = self.key(queue)
        total, running = self.call_all([("DQ.LEN", key), ("DQ.LEN", key, "running")])
        return int(total) - int(running)

    def _purge(self, queue: str) -> int:
        """Removes the messages that nobody holds. Returns how many there were."""
        # In the direction in which messages move, so that none escapes.
        states = ("delayed", "retry", "blocked", "ready")
        return sum(map(int, self.call_all([("DQ.PURGE", self.key(queue), "STATE", state) for state in states])))

    def _delete(self, queue: str, exchange: str, routing_key: str, pattern: str, *args: Any, **kwargs: Any) -> None:
        self.auto_delete_queues.discard(queue)
        self._created.discard(queue)
        member = self.sep.join([routing_key or "", pattern or "", queue or ""])
        with self.conn_or_acquire(client=kwargs.get("client")) as client:
            client.srem(self.keyprefix_queue % (exchange,), member)
            client.srem(self.keyprefix_binding_permanent % (exchange,), member)
            client.execute_command("UNLINK", self.key(queue))

    def _has_queue(self, queue: str, **kwargs: Any) -> bool:
        return bool(self.call("EXISTS", self.key(queue)))


def _texts(reply: Any) -> Iterator[str]:
    """Yields all strings of a reply."""
    if isinstance(reply, dict):
        reply = [*reply.keys(), *reply.values()]
    if isinstance(reply, bytes | str):
        yield bytes_to_str(reply)
    elif isinstance(reply, Iterable):
        for part in reply:
            yield from _texts(part)
