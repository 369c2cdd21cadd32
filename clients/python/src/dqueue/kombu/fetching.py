"""The part of a channel that waits for messages in an event loop, and hands them on."""

from collections.abc import Callable
from queue import Empty
from threading import get_ident
from time import monotonic
from typing import Any
from uuid import uuid4

from kombu.log import get_logger
from kombu.transport import redis as kombu_redis
from kombu.utils.encoding import bytes_to_str
from redis.exceptions import ConnectionError, ResponseError

from dqueue.connection import is_transient
from dqueue.kombu.messages import UNREADABLE, Tag, delivered
from dqueue.leases import consumer_name
from dqueue.options import Word

logger = get_logger(__name__)

MAX_COUNT = 64
"""The most messages of one fetch."""


class FetchingChannel(kombu_redis.Channel):
    """A channel with a blocking fetch on its way, on a connection of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The token of a blocking fetch whose reply has not been read.
        self._token: str | None = None
        # The ack that was sent with this fetch, until its reply has been read.
        self._riding: Tag | None = None
        # Whether a delivery of the last reply has not been handed on yet.
        self._is_delivering = False
        # The thread of the event loop. No other one may use the connection of the fetch.
        self._loop_thread: int | None = None
        super().__init__(*args, **kwargs)

    def _fetch_options(self, count: int, no_ack: bool, token: str) -> list[Word]:
        options: list[Word] = ["COUNT", count, "CONSUMER", f"{consumer_name()}:{self.channel_id}"]
        # Without ack_emulation kombu acks nothing.
        if no_ack or not self.ack_emulation:
            return [*options, "NOACK"]
        options += ["LEASE", self.lease]
        return [*options, "TOKEN", token] if self.knows("TOKEN") else options

    def _brpop_start(self, timeout: float | None = None) -> None:
        """Sends the blocking fetch. The name is that of the Redis transport, whose event loop calls it."""
        self._loop_thread = get_ident()
        self._fetch(timeout, self._room())

    def _fetch(self, timeout: float | None, room: int, ack: Tag | None = None) -> bool:
        """Sends a blocking fetch, and in front of it an ack. Without queues to fetch from it returns False."""
        queues = self._queue_cycle.consume(len(self.active_queues))
        if not queues:
            return False
        in_loop = self.connection.in_event_loop
        seconds = self.brpop_timeout if timeout is None else timeout
        # Without an event loop nothing but the end of the fetch gives time for a heartbeat.
        block = int(seconds * 1000) if in_loop else min(int(seconds * 1000), self.lease // 3 or 1)
        # drain_events delivers one message a call, an event loop all that there is room for.
        count = room // len(queues) if in_loop else 1
        no_ack = set(self._no_ack.values()).issuperset(queues)
        # Where the last reply was lost, the same token gets the same messages.
        self._token = self._token or uuid4().hex
        options = [*self._fetch_options(max(count, 1), no_ack, self._token), "BLOCK", block]
        if self.grace and "LEASE" in options:
            options += ["BIND", "GRACE", self.grace]
        commands: list[tuple[Word, ...]] = [("DQ.MFETCH", len(queues), *map(self.key, queues), *options)]
        if ack is not None:
            commands.insert(0, ("DQ.ACK", self.key(ack.queue), ack.receipt))
        if self._riding is not None:
            # The connection has ended before the reply to this ack was read.
            self.ack(self._riding)
        connection = self.client.connection
        self._in_poll, self._riding = connection, ack
        self._brpop_sent_at = monotonic()
        connection.send_packed_command(connection.pack_commands(commands))
        return True

    def ack_and_fetch(self, tag: Tag, room: int) -> bool:
        """Sends an ack and the next fetch at once, which costs the server half as much as one after the other.

        `room` is for how many messages there is room after the ack. Returns False, and does nothing, where the fetch
        cannot be sent now.
        """
        # Without an event loop nobody would read the reply until the program drains events again.
        is_looping = self.connection.in_event_loop and get_ident() == self._loop_thread
        is_free = not self._in_poll and not self._is_delivering and not self._closing
        if not is_looping or not is_free or not tag.receipt or room < 1:
            return False
        connection = getattr(self.client, "connection", None)
        # The event loop must know the connection, and it forgets one that has ended.
        known = self.connection.cycle._chan_to_sock
        if getattr(connection, "_sock", None) is None or (self, self.client, "BRPOP") not in known:
            return False
        try:
            return self._fetch(None, min(room, MAX_COUNT), tag)
        except self.connection_errors:
            # The connection has ended. The event loop makes a new one for the fetch.
            self.client.connection.disconnect()
            self._in_poll = self._riding = None
            return False

    def _room(self) -> int:
        # worker_disable_prefetch replaces this method, and then one message at a time is asked for.
        if "can_consume" in vars(self.qos):
            return 1
        room = self.qos.can_consume_max_estimate()
        return MAX_COUNT if room is None else min(room, MAX_COUNT)

    def _brpop_read(self, **options: Any) -> bool:
        """Reads the reply of the blocking fetch and delivers the messages. Returns whether it has come."""
        riding, self._riding = self._riding, None
        if riding is not None:
            self._read(lambda: self._read_ack(riding))
            # The reply of the ack comes at once, that of the fetch when there is a message. Only a channel that is
            # closed waits for it.
            if not self._closing and not self._in_poll.can_read(timeout=0):
                return False
        try:
            reply = self._read(lambda: self.client.parse_response(self._in_poll, "DQ.MFETCH", **options))
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()
        self._token = None
        if not reply:
            raise Empty
        queue = bytes_to_str(reply[0])[len(self.global_keyprefix) :]
        self._queue_cycle.rotate(queue)
        self._deliver(queue, reply[1])
        return True

    def _read(self, read: Callable[[], Any]) -> Any:
        """Reads a reply from the connection of the fetch. Ends the connection if it is of no use any more."""
        connection = self._in_poll
        try:
            return read()
        except ResponseError as error:
            if not is_transient(error):
                raise
            # The server has become a replica. kombu connects again after an error of this class.
            self._in_poll = None
            connection.disconnect()
            raise ConnectionError(str(error)) from error
        except self.connection_errors:
            self._in_poll = None
            connection.disconnect()
            raise

    def _read_ack(self, tag: Tag) -> None:
        try:
            was_held = self._in_poll.read_response()
        except ResponseError as error:
            if is_transient(error):
                raise
            logger.error("%s of queue %s could not be acked: %s", tag.id, tag.queue, error)
        except self.connection_errors:
            # Nobody knows whether the server has got it. It does no harm twice.
            self.ack(tag)
            raise
        else:
            self._check_ack(tag, was_held)

    def _deliver(self, queue: str, deliveries: list[Any]) -> None:
        waiting = list(deliveries)
        try:
            while waiting:
                payload = self._payload(queue, waiting.pop(0))
                self._is_delivering = bool(waiting)
                if payload is None:
                    continue
                if queue in self._no_ack.values():
                    self.ack(payload["properties"]["delivery_tag"])
                self.connection._deliver(payload, queue)
        finally:
            self._is_delivering = False
            # Only where a callback has failed.
            receipts = [int(one[1]) for one in waiting if int(one[1])]
            if receipts:
                self.call("DQ.NACK", self.key(queue), *receipts, "SILENT")

    def _payload(self, queue: str, delivery: Any) -> dict[str, Any] | None:
        """Returns the message of a delivery. One that kombu has not written becomes dead, and the result is None."""
        id, receipt, attempt, body = delivery
        tag = Tag.of(queue, int(receipt), bytes_to_str(id))
        try:
            return delivered(body, tag, int(attempt))
        except UNREADABLE as error:
            logger.error("%s of queue %s is no message of kombu: %r", tag.id, queue, error)
            if tag.receipt:
                self.call("DQ.NACK", self.key(queue), tag.receipt, "FATAL", "ERROR", f"no message of kombu: {error!r}")
            return None
