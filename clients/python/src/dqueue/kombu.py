"""A transport for kombu and Celery: `broker_url = "dq://host:port/db"`, or `dqs://` for TLS.

Importing this module makes the two URL schemes known. Exchanges, bindings, fan-out (events, remote control, mingle,
gossip) and the connections are those of kombu's Redis transport. The queues are dq's: priorities, due times, leases,
redelivery and expiry are the server's work, and no worker polls or sweeps.

    import dqueue.kombu  # noqa: F401
    app = Celery("shop", broker="dq://localhost:6379/0", backend="redis://localhost:6379/1")
"""

import ssl
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from math import ceil
from queue import Empty
from time import monotonic, time
from typing import Any

from kombu.log import get_logger
from kombu.transport import TRANSPORT_ALIASES, virtual
from kombu.transport import redis as kombu_redis
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import dumps, loads
from redis.exceptions import ConnectionError, ResponseError

from dqueue.connection import is_transient
from dqueue.leases import consumer_name
from dqueue.options import Word

logger = get_logger(__name__)

TRANSPORT_ALIASES["dq"] = "dqueue.kombu:Transport"
TRANSPORT_ALIASES["dqs"] = "dqueue.kombu:SecureTransport"

MAX_COUNT = 64
"""The most messages of one fetch."""

MAX_TYPE = 1024
"""The most bytes of a message's type. A longer name of a task is left out."""

QUEUE_OPTIONS = {"DEADRETAIN": 7 * 24 * 3_600_000, "DEADCOUNT": 10_000}
"""Options of the queues that the transport creates. AMQP drops rejected and expired messages; here they are kept for a
week, where they can be looked at and redriven."""


class Tag(str):
    """The delivery tag of one delivery. It knows what the server needs to settle the message."""

    queue: str
    receipt: int
    id: str

    @classmethod
    def of(cls, queue: str, receipt: int, id: str) -> "Tag":
        # The receipt makes it unique even where one process has two deliveries of a message.
        tag = cls(f"{id}:{receipt}")
        tag.queue, tag.receipt, tag.id = queue, receipt, id
        return tag


class DueHeaders(dict[str, Any]):
    """The headers of a task whose eta the server has waited for.

    A Celery worker that reads the eta would put the task on a timer and raise its prefetch count meanwhile, so `get`
    hides it. It stays in the dictionary, so the task can still read `request.eta`.
    """

    def get(self, key: str, default: Any = None) -> Any:
        return default if key == "eta" else super().get(key, default)

    def copy(self) -> "DueHeaders":
        return DueHeaders(self)


class QoS(virtual.QoS):
    """The messages that a channel holds. A lease on the server stands for each."""

    def ack(self, delivery_tag: str) -> None:
        if isinstance(delivery_tag, Tag):
            self.channel._ack(delivery_tag)
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Gives the message back at its old position, or makes it dead with the reason `rejected`."""
        if isinstance(delivery_tag, Tag):
            if requeue:
                self.channel._give_back([(delivery_tag, self._delivered.get(delivery_tag))])
            else:
                self.channel._do("DQ.NACK", self.channel._key(delivery_tag.queue), delivery_tag.receipt, "FATAL")
        super().ack(delivery_tag)

    def restore_unacked(self) -> None:
        """Gives all messages back."""
        self._flush()
        self.channel._give_back([one for one in self._delivered.items() if isinstance(one[0], Tag)])
        self._delivered.clear()

    def touch(self) -> None:
        """Extends the leases of all messages that are held."""
        receipts = defaultdict(list)
        for tag in [*self._delivered]:
            if isinstance(tag, Tag) and tag not in self._dirty:
                receipts[tag.queue].append(tag.receipt)
        if receipts:
            self.channel._pipe(
                [
                    ("DQ.TOUCH", self.channel._key(queue), self.channel.lease, *given)
                    for queue, given in receipts.items()
                ]
            )


class Channel(kombu_redis.Channel):
    """A channel whose queues are those of the server."""

    QoS = QoS

    from_transport_options = (*kombu_redis.Channel.from_transport_options, "queue_options")

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

    def _key(self, queue: str) -> str:
        return f"{self.global_keyprefix}{queue}"

    def _do(self, *words: Word) -> Any:
        with self.conn_or_acquire() as client:
            return client.execute_command(*words)

    def _pipe(self, commands: Iterable[tuple[Word, ...]], transaction: bool = False) -> list[Any]:
        with self.conn_or_acquire() as client, client.pipeline(transaction=transaction) as pipe:
            for words in commands:
                pipe.execute_command(*words)
            replies: list[Any] = pipe.execute()
            return replies

    # ---- sending

    def _put(self, queue: str, message: dict[str, Any], **kwargs: Any) -> None:
        self._ensure(queue)
        commands = [self._send(queue, message)]
        if queue in self._expires:
            # The client adds the prefix to the key of this command.
            commands.append(("PEXPIRE", queue, self._expires[queue]))
        batch = kwargs.get("_publish_batch")
        if batch is not None:
            for words in commands:
                batch.add("execute_command", *words)
        elif len(commands) == 1:
            self._do(*commands[0])
        else:
            self._pipe(commands)

    def _send(self, queue: str, message: dict[str, Any]) -> tuple[Word, ...]:
        properties = message["properties"]
        # The tag is new for each publication. A task's id is not, because a retry has it again.
        words: list[Word] = ["DQ.SEND", self._key(queue), dumps(message), "ID", properties["delivery_tag"]]
        # Frameworks count attempts themselves.
        words += ["RETRIES", -1]
        if priority := self._get_message_priority(message):
            words += ["PRIORITY", priority]
        headers = message.get("headers") or {}
        at = _eta(headers)
        if at is not None:
            words += ["AT", at]
        ttl = _ttl(properties, at)
        if ttl is not None:
            words += ["TTL", ttl]
        name = headers.get("task")
        if isinstance(name, str) and 0 < len(name.encode()) <= MAX_TYPE:
            words += ["TYPE", name]
        return tuple(words)

    # ---- receiving

    def basic_consume(self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **kwargs: Any) -> Any:
        if no_ack:
            self._no_ack[consumer_tag] = queue
        return super().basic_consume(queue, no_ack, callback, consumer_tag, **kwargs)

    def _basic_cancel(self, consumer_tag: str) -> Any:
        self._no_ack.pop(consumer_tag, None)
        return super()._basic_cancel(consumer_tag)

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        for delivery in self._do("DQ.FETCH", self._key(queue), *self._fetch_options(1, no_ack)) or ():
            payload = self._payload(queue, delivery)
            if payload is not None:
                message = self.Message(payload, channel=self)
                if not no_ack:
                    self.qos.append(message, message.delivery_tag)
                return message
        return None

    def _fetch_options(self, count: int, no_ack: bool) -> list[Word]:
        options: list[Word] = ["COUNT", count, "CONSUMER", consumer_name()]
        # Without ack_emulation kombu acks nothing.
        return [*options, "NOACK"] if no_ack or not self.ack_emulation else [*options, "LEASE", self.lease]

    def _brpop_start(self, timeout: float | None = None) -> None:
        """Sends the blocking fetch. The name is that of the Redis transport, whose event loop calls it."""
        queues = self._queue_cycle.consume(len(self.active_queues))
        if not queues:
            return
        in_loop = self.connection.in_event_loop
        seconds = self.brpop_timeout if timeout is None else timeout
        # Without an event loop nothing but the end of the fetch gives time for a heartbeat.
        block = int(seconds * 1000) if in_loop else min(int(seconds * 1000), self.lease // 3 or 1)
        # drain_events delivers one message a call, an event loop all that there is room for.
        count = self._room() // len(queues) if in_loop else 1
        no_ack = set(self._no_ack.values()).issuperset(queues)
        options = [*self._fetch_options(max(count, 1), no_ack), "BLOCK", block]
        connection = self.client.connection
        self._in_poll = connection
        self._brpop_sent_at = monotonic()
        connection.send_command("DQ.MFETCH", len(queues), *map(self._key, queues), *options)

    def _room(self) -> int:
        # worker_disable_prefetch replaces this method, and then one message at a time is asked for.
        if "can_consume" in vars(self.qos):
            return 1
        room = self.qos.can_consume_max_estimate()
        return MAX_COUNT if room is None else min(room, MAX_COUNT)

    def _brpop_read(self, **options: Any) -> bool:
        """Reads the reply of the blocking fetch and delivers the messages."""
        connection = self.client.connection
        try:
            try:
                reply = self.client.parse_response(connection, "DQ.MFETCH", **options)
            except self.connection_errors:
                connection.disconnect()
                raise
            except ResponseError as error:
                if not is_transient(error):
                    raise
                # The server has become a replica. kombu connects again after an error of this class.
                connection.disconnect()
                raise ConnectionError(str(error)) from error
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()
        if not reply:
            raise Empty
        queue = bytes_to_str(reply[0])[len(self.global_keyprefix) :]
        self._queue_cycle.rotate(queue)
        self._deliver(queue, reply[1])
        return True

    def _deliver(self, queue: str, deliveries: list[Any]) -> None:
        waiting = list(deliveries)
        try:
            while waiting:
                payload = self._payload(queue, waiting.pop(0))
                if payload is None:
                    continue
                if queue in self._no_ack.values():
                    self._ack(payload["properties"]["delivery_tag"])
                self.connection._deliver(payload, queue)
        finally:
            # Only where a callback has failed.
            receipts = [int(one[1]) for one in waiting if int(one[1])]
            if receipts:
                self._do("DQ.NACK", self._key(queue), *receipts, "SILENT")

    def _payload(self, queue: str, delivery: Any) -> dict[str, Any] | None:
        """Returns the message of a delivery. One that kombu has not written becomes dead, and the result is None."""
        id, receipt, attempt, body = delivery
        tag = Tag.of(queue, int(receipt), bytes_to_str(id))
        try:
            payload: dict[str, Any] = loads(bytes_to_str(body))
            properties = payload["properties"]
            properties["delivery_tag"] = tag
            if int(attempt) > 1:
                _mark_redelivered(payload)
            if _eta(payload.get("headers") or {}) is not None:
                payload["headers"] = DueHeaders(payload["headers"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            logger.error("%s of queue %s is no message of kombu: %r", tag.id, queue, error)
            if tag.receipt:
                self._do("DQ.NACK", self._key(queue), tag.receipt, "FATAL", "ERROR", f"no message of kombu: {error!r}")
            return None
        return payload

    # ---- settling

    def _ack(self, tag: Tag) -> None:
        # NOACK has the receipt 0.
        if tag.receipt and not self._do("DQ.ACK", self._key(tag.queue), tag.receipt):
            logger.warning("%s of queue %s was acked after its lease: it may run again", tag.id, tag.queue)

    def _give_back(self, held: Iterable[tuple[Tag, Any]]) -> None:
        """Puts messages back at their old positions, marked as redelivered."""
        commands: list[tuple[Word, ...]] = []
        receipts = defaultdict(list)
        for tag, message in held:
            receipts[tag.queue].append(tag.receipt)
            payload = _redelivered(message, tag)
            if payload is not None:
                commands.append(("DQ.UPDATE", self._key(tag.queue), tag.id, payload))
        nacks: list[tuple[Word, ...]] = [
            ("DQ.NACK", self._key(queue), *given, "SILENT") for queue, given in receipts.items()
        ]
        if not nacks:
            return
        try:
            # One transaction, so that nobody gets a message without the mark.
            self._pipe([*nacks, *commands], transaction=True)
        except ResponseError:
            # A full server refuses to store the mark.
            self._pipe(nacks)

    def _restore(self, message: Any, leftmost: bool = False) -> None:
        if isinstance(message.delivery_tag, Tag) and message.delivery_tag.receipt:
            self._give_back([(message.delivery_tag, message)])
        else:
            virtual.Channel._restore(self, message)

    def keep_leases(self) -> None:
        """Extends the leases of what is held, at most three times a lease."""
        now = monotonic()
        if self._qos is None or (now - self._touched_at) * 3000 < self.lease:
            return
        self._touched_at = now
        if isinstance(self._qos, QoS):
            self._qos.touch()

    # ---- queues

    def _ensure(self, queue: str) -> None:
        """Creates the queue if it is not there."""
        if queue in self._created or queue in self._expires or queue in self.auto_delete_queues:
            return
        options = [word for option in self.queue_options.items() for word in option]
        try:
            self._do("DQ.CREATE", self._key(queue), *options)
        except ResponseError as error:
            if "already exists" not in str(error):
                raise
        self._created.add(queue)

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
            self._pipe([("PEXPIRE", queue, self._expires[queue]) for queue in expiring])

    def _size(self, queue: str) -> int:
        """Returns the number of messages that nobody holds."""
        key = self._key(queue)
        total, running = self._pipe([("DQ.LEN", key), ("DQ.LEN", key, "running")])
        return int(total) - int(running)

    def _purge(self, queue: str) -> int:
        """Removes the messages that nobody holds. Returns how many there were."""
        # In the direction in which messages move, so that none escapes.
        states = ("delayed", "retry", "blocked", "ready")
        return sum(map(int, self._pipe([("DQ.PURGE", self._key(queue), "STATE", state) for state in states])))

    def _delete(self, queue: str, exchange: str, routing_key: str, pattern: str, *args: Any, **kwargs: Any) -> None:
        self.auto_delete_queues.discard(queue)
        self._created.discard(queue)
        member = self.sep.join([routing_key or "", pattern or "", queue or ""])
        with self.conn_or_acquire(client=kwargs.get("client")) as client:
            client.srem(self.keyprefix_queue % (exchange,), member)
            client.srem(self.keyprefix_binding_permanent % (exchange,), member)
            client.execute_command("UNLINK", self._key(queue))

    def _has_queue(self, queue: str, **kwargs: Any) -> bool:
        return bool(self._do("EXISTS", self._key(queue)))


class Poller(kombu_redis.MultiChannelPoller):
    """Waits for the connections of all channels, and sends their heartbeats."""

    def get(self, callback: Any, timeout: float | None = None) -> Any:
        self.keep_leases()
        return super().get(callback, timeout)

    def keep_leases(self) -> None:
        for channel in [*self._channels]:
            try:
                channel.keep_leases()
            except channel.connection_errors:
                logger.debug("no connection for a heartbeat, the next one tries again", exc_info=True)


class Transport(kombu_redis.Transport):
    """`dq://host:port/db`"""

    Channel = Channel
    driver_name = "dq"
    # Mingle, gossip, fan-out of events and worker_disable_prefetch look for the driver_type "redis", which is inherited.

    in_event_loop = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cycle = Poller()

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        super().register_with_event_loop(connection, loop)
        self.in_event_loop = True
        # The timer of the Redis transport would look for messages to restore. This one sends the heartbeats.
        self.cycle._restore_messages_tref.cancel()
        lease = connection.client.transport_options.get("visibility_timeout", Channel.visibility_timeout)
        self.cycle._restore_messages_tref = loop.call_repeatedly(max(lease / 3, 0.01), self.cycle.keep_leases)


class SecureTransport(Transport):
    """`dqs://host:port/db`: over TLS. The server's certificate is checked unless the URL or broker_use_ssl say other."""

    def __init__(self, client: Any, **kwargs: Any) -> None:
        client.ssl = client.ssl if isinstance(client.ssl, dict) else {"ssl_cert_reqs": ssl.CERT_REQUIRED}
        super().__init__(client, **kwargs)


def _eta(headers: dict[str, Any]) -> int | None:
    """Returns the time (Unix ms) of Celery's header eta. Like Celery it takes one without a zone for UTC."""
    eta = dict.get(headers, "eta")
    if not isinstance(eta, str):
        return None
    try:
        moment = datetime.fromisoformat(eta)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0, ceil(aware.timestamp() * 1000))
    except (OverflowError, ValueError):
        # The worker reports it, when it gets the task.
        return None


def _ttl(properties: dict[str, Any], at: int | None) -> int | None:
    """Returns the TTL (ms, from the due time) of a message with an expiration, which counts from the send."""
    try:
        expiration = int(properties["expiration"])
    except (KeyError, TypeError, ValueError):
        return None
    ahead = 0 if at is None else max(0, at - int(time() * 1000))
    return max(1, expiration - ahead)


def _mark_redelivered(payload: dict[str, Any]) -> None:
    for marked in (payload.get("headers"), payload["properties"].get("delivery_info")):
        if isinstance(marked, dict):
            marked["redelivered"] = True


def _redelivered(message: Any, tag: Tag) -> str | None:
    """Returns the payload with the mark, or None where there is nothing to mark."""
    raw = getattr(message, "_raw", None)
    if raw is None:
        return None
    try:
        _mark_redelivered(raw)
        raw["properties"]["delivery_tag"] = tag.id
        payload: str = dumps(raw)
    except Exception:
        # Whatever a callback has done to it: it goes back as it was.
        logger.warning("%s of queue %s cannot be marked as redelivered", tag.id, tag.queue, exc_info=True)
        return None
    return payload
