"""The part of a channel that waits for messages in an event loop, hands them on, and acks while it fetches others."""

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty
from threading import get_ident
from time import monotonic
from typing import Any
from uuid import uuid4

from kombu.log import get_logger
from kombu.transport import virtual
from kombu.utils.encoding import bytes_to_str
from redis.exceptions import ConnectionError, RedisError, ResponseError

from dqueue.consumer import consumer_name
from dqueue.drivers.kombu.keeper import leave_unread, take_unread
from dqueue.drivers.kombu.messages import Tag, by_queue, delivered, is_misread
from dqueue.drivers.kombu.older import Older
from dqueue.protocol.options import Word, encode
from dqueue.protocol.retrying import is_transient
from dqueue.working.ackbuffer import PATIENCE, AckBuffer
from dqueue.working.coding import fatal, opened
from dqueue.working.leases import may_end_soon

logger = get_logger("dqueue.kombu")

MAX_COUNT = 64
"""The most messages of one fetch."""


class FetchingChannel(Older):
    """A channel with a blocking fetch on its way, on a connection of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The token of a blocking fetch whose reply has not been read, and the consumer, if that was another channel.
        self._token: str | None = None
        # When that fetch was first sent.
        self._asked_at = 0.0
        self._consumer: str | None = None
        # Acks that are still to be sent, and the entry in the event loop that ends their wait.
        self._acks: AckBuffer[Tag] = AckBuffer()
        self._end_of_wait: Any = None
        # Acks that were sent with this fetch, until the replies have been read.
        self._riding: list[Tag] = []
        # Whether a delivery of the last reply has not been handed on yet.
        self._is_delivering = False
        self._closing = False
        # The pool that the channel had when it was closed, and whether its connection was lost.
        self._last_pool: Any = None
        self._last_grace = 0
        self.is_lost = False
        # The thread of the event loop. No other one may use the connection of the fetch.
        self._loop_thread: int | None = None
        super().__init__(*args, **kwargs)

    def _fetch_options(self, count: int, no_ack: bool, token: str) -> list[Word]:
        options: list[Word] = ["COUNT", count, "CONSUMER", self._consumer or f"{consumer_name()}:{self.channel_id}"]
        if self.secrets is not None:
            # The key of a message is in its headers.
            options.append("WITHMETA")
        # Without ack_emulation kombu does not ack.
        if no_ack or not self.ack_emulation:
            return [*options, "NOACK"]
        options += ["LEASE", self.lease]
        return [*options, "TOKEN", token] if self.knows("TOKEN") else options

    def _brpop_start(self, timeout: float | None = None) -> None:
        """Sends the blocking fetch. The name is that of the Redis transport, whose event loop calls it."""
        self._loop_thread = get_ident()
        # The waiting acks are sent with the fetch.
        if self._end_of_wait is None:
            self._fetch(timeout, self._room())

    def _fetch(self, timeout: float | None, room: int) -> bool:
        """Sends a blocking fetch, and in front of it the acks that wait. Without queues to fetch from it returns False."""
        queues = self._queue_cycle.consume(len(self.active_queues))
        if not queues:
            return False
        in_loop = self.connection.in_event_loop
        seconds = self.brpop_timeout if timeout is None else timeout
        # Without an event loop only the end of the fetch leaves time for a heartbeat.
        block = int(seconds * 1000) if in_loop else min(int(seconds * 1000), self.lease // 3 or 1)
        # drain_events delivers one message a call, an event loop as many as there is room for.
        count = room // len(queues) if in_loop else 1
        no_ack = set(self._no_ack.values()).issuperset(queues)
        # If the last reply was lost, the same token gets the same messages.
        if self._token is None:
            unread = take_unread(self._place(queues))
            self._asked_at = 0.0 if unread else monotonic()
            self._consumer, self._token = unread or (None, uuid4().hex)
        options = [*self._fetch_options(max(count, 1), no_ack, self._token), "BLOCK", block]
        if (grace := self.grace) and "LEASE" in options:
            self._last_grace = grace
            options += ["BIND", "GRACE", grace]
        # If the connection has ended before the replies to these acks were read.
        self._ack_again()
        connection = self.client.connection
        fetch = ("DQ.MFETCH", len(queues), *map(self.key, queues), *options)
        with self._acks.sending() as acks:
            connection.send_packed_command(connection.pack_commands([*map(self._ack_command, by_queue(acks)), fetch]))
        self._in_poll, self._riding = connection, acks
        self._brpop_sent_at = monotonic()
        return True

    def _ack_command(self, tags: list[Tag]) -> tuple[Word, ...]:
        """Returns the command that acks messages of one queue."""
        return ("DQ.ACK", self.key(tags[0].queue), *(tag.receipt for tag in tags))

    def ack_soon(self, tag: Tag, room: int, window: int) -> bool:
        """Sends an ack with the next fetch, which costs the server half as much as one after the other.

        `room` is for how many messages there is room after the ack, of `window` in all. Returns False, and does nothing,
        where the ack must be sent alone.
        """
        # Without an event loop nobody would read the reply until the program drains events again, and nobody would end the
        # wait. A worker that stops cancels its consumers, and then its tasks end without the loop.
        # A channel that is closed has no transport, and its messages are acked until their tasks have ended.
        if self._closing or self.connection is None or not self.active_queues:
            return False
        is_looping = self.connection.in_event_loop and get_ident() == self._loop_thread
        if not is_looping or not tag.receipt or room < 1:
            return False
        if not self._acks.add(tag, monotonic(), window):
            self.send_acks(room)
        elif self._end_of_wait is None:
            self._end_of_wait = self.connection.loop.call_later(PATIENCE, self._end_wait)
        return True

    def _end_wait(self) -> None:
        self._acks.patience_is_over()
        self.send_acks()

    def send_acks(self, room: int | None = None) -> None:
        """Sends the acks that wait: with a fetch if one can be sent now, else alone."""
        if self._end_of_wait is not None:
            self._end_of_wait.cancel()
            self._end_of_wait = None
        if not self._acks:
            return
        try:
            if self._can_fetch() and self._fetch(None, min(room or self._room(), MAX_COUNT)):
                return
        except self.connection_errors:
            # The connection has ended. The event loop makes a new one for the fetch.
            self.client.connection.disconnect()
        acks = self._acks.take()
        self.settle("DQ.ACK", acks, lambda: self.ack_all(acks))

    def _ack_again(self) -> None:
        """Repeats acks whose replies will not be read. It does no harm twice."""
        acks, self._riding = self._riding, []
        if acks:
            self.settle("DQ.ACK", acks, lambda: self.ack_all(acks))

    def _can_fetch(self) -> bool:
        if self._in_poll or self._is_delivering or self._closing:
            return False
        connection = getattr(self.client, "connection", None)
        # The connection must be registered with the event loop, which drops a connection that has ended.
        known = self.connection.cycle._chan_to_sock
        return getattr(connection, "_sock", None) is not None and (self, self.client, "BRPOP") in known

    def _place(self, queues: Iterable[str]) -> tuple[Any, ...]:
        """Returns a value that identifies the queues of this channel."""
        client = self.connection.client
        place = (client.hostname, client.port, client.virtual_host, tuple(client.alt or ()))
        return (*place, frozenset(map(self.key, queues)))

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self.is_lost = self._has_error()
            if self.is_lost:
                self._leave_fetch()
                if self._qos is not None:
                    # The following commands may fail while there is no server.
                    self._qos.restore_unacked_once()
            if not self._in_poll:
                self._ack_again()
            self.send_acks()
        super().close()

    def _has_error(self) -> bool:
        """Returns whether the channel is being closed because of an error of its connection."""
        error = sys.exception()
        while error is not None and not isinstance(error, self.connection_errors):
            error = error.__context__
        return error is not None

    def _leave_fetch(self) -> None:
        """Ends the connection of the fetch. The next channel for its queues gets the reply, if there was one."""
        if self._token is not None:
            consumer = self._consumer or f"{consumer_name()}:{self.channel_id}"
            leave_unread(self._place(self.active_queues), consumer, self._token)
        if self._in_poll:
            self._in_poll.disconnect()
            self._in_poll = None

    @property
    def pool(self) -> Any:
        """The pool for all commands but the blocking fetch.

        Celery closes a channel whose connection was lost, and its tasks run on. Later acks of its messages are sent
        over a new connection, because the server accepts a receipt from any.
        """
        if self.connection is not None and self.connection.client is not None:
            self._last_pool = super().pool
        if self._last_pool is None:
            raise ConnectionError("the channel is closed")
        return self._last_pool

    def _room(self) -> int:
        # worker_disable_prefetch replaces this method, and then the channel asks for one message at a time.
        if "can_consume" in vars(self.qos):
            return 1
        room = self.qos.can_consume_max_estimate()
        return MAX_COUNT if room is None else min(room, MAX_COUNT)

    def _brpop_read(self, **options: Any) -> bool:
        """Reads the reply of the blocking fetch and delivers the messages. Returns whether it has come."""
        riding, self._riding = self._riding, []
        if riding:
            self._read(lambda: self._read_acks(riding))
            # The replies to acks come at once, and the reply to the fetch when there is a message. Only a channel that
            # is closed waits for it.
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
        if may_end_soon(self._asked_at, self.lease) and (receipts := [int(one[1]) for one in reply[1] if int(one[1])]):
            # If the server refuses it, the messages are delivered all the same, and the heartbeats try again.
            with suppress(*self.connection_errors, ResponseError):
                self.call("DQ.TOUCH", self.key(queue), self.lease, *receipts)
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

    def _read_acks(self, tags: list[Tag]) -> None:
        for same in by_queue(tags):
            try:
                held = self._in_poll.read_response()
            except ResponseError as error:
                if is_transient(error):
                    raise
                ids = ", ".join(tag.id for tag in same)
                logger.error("%s of queue %s could not be acked: %s", ids, same[0].queue, error)
            except self.connection_errors:
                # Nobody knows whether the server has got them.
                self._riding = tags
                self._ack_again()
                raise
            else:
                self._check_acks(same, held)

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
                try:
                    self.connection._deliver(payload, queue)
                except Exception as error:
                    if not is_misread(payload, error):
                        raise
                    # The worker would end, and so would the next one that gets the message.
                    tag = payload["properties"]["delivery_tag"]
                    self._refuse(tag, f"no task of Celery: {error!r}", error)
                    virtual.QoS.ack(self.qos, tag)
        finally:
            self._is_delivering = False
            # Only where a callback has failed.
            receipts = [int(one[1]) for one in waiting if int(one[1])]
            if receipts:
                self.call("DQ.NACK", self.key(queue), *receipts, "SILENT")

    def _payload(self, queue: str, delivery: Any) -> dict[str, Any] | None:
        """Returns the message of a delivery. One that kombu has not written becomes dead, and the result is None."""
        id, receipt, attempt, body, *meta = delivery
        tag = Tag.of(queue, int(receipt), bytes_to_str(id))
        try:
            if self.secrets is not None:
                body = opened(self.secrets, self.key(queue), tag.id, encode(body), meta[0])
            return delivered(body, tag, int(attempt))
        # The store of a payload that is kept elsewhere cannot be reached.
        except (OSError, RedisError):
            raise
        # Deep JSON has its own error, and so has each type that kombu's JSON knows.
        except Exception as error:
            self._refuse(tag, f"no message of kombu: {error!r}", error)
            return None

    def _refuse(self, tag: Tag, why: str, error: Exception) -> None:
        logger.error("%s of queue %s is %s", tag.id, tag.queue, why)
        if tag.receipt:
            self.call("DQ.NACK", self.key(tag.queue), tag.receipt, *fatal(error), "ERROR", why)
