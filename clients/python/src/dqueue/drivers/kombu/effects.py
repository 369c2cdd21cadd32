"""The changes that a task of Celery makes in the same step as its ack.

The process that runs the task acks it, when it has succeeded. That may be a child of the process that holds the message,
which must not ack it as well.
"""

import mmap
import os
from contextlib import suppress
from hashlib import blake2b
from time import monotonic, sleep
from typing import Any

from kombu import pools
from kombu.log import get_logger
from redis.exceptions import RedisError

from dqueue._sync.queue import Queue
from dqueue.drivers.kombu.messages import Tag
from dqueue.protocol.effects import Effects
from dqueue.protocol.retrying import is_transient, pauses

logger = get_logger("dqueue.kombu")

_NAME = "_dqueue_effects"
_SIZE = 16


class Taken:
    """The deliveries that are settled by the processes of the pool, each told to the process that holds them.

    It is made before they are forked, so that they share it.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        # Where processes cannot be forked there are none that share it.
        self._can_fork = hasattr(os, "fork")
        if self._can_fork:
            self._reading, self._writing = os.pipe()
            os.set_blocking(self._reading, False)
        # Looking at shared memory is cheap. Most programs have no effects.
        self._is_used = mmap.mmap(-1, 1)
        self._known: set[bytes] = set()

    @staticmethod
    def _mark(tag: Tag) -> bytes:
        return blake2b(f"{tag.queue}\0{tag}".encode(), digest_size=_SIZE).digest()

    def add(self, tag: Tag) -> None:
        if os.getpid() == self._pid:
            self._known.add(self._mark(tag))
        else:
            os.write(self._writing, self._mark(tag))
        self._is_used[0] = 1

    def take(self, tag: Tag) -> bool:
        """Returns whether another process settles the delivery, and forgets it."""
        if not self._is_used[0]:
            return False
        with suppress(BlockingIOError):
            while self._can_fork and (marks := os.read(self._reading, 4096)):
                self._known |= {marks[at : at + _SIZE] for at in range(0, len(marks), _SIZE)}
        mark = self._mark(tag)
        is_taken = mark in self._known
        self._known.discard(mark)
        return is_taken


taken = Taken()


def effects() -> Effects:
    """Returns the effects of the task of Celery that runs: changes of Redis keys that are done together with its ack.

    All are done or none is: nothing if the task fails, is retried, or has lost its lease. If the server refuses them, the
    message is dead in its queue, because its task has ended.

    Raises RuntimeError outside of a task whose message came by dq, and in a task that is acked before it runs.
    """
    from celery import current_task
    from celery.signals import task_success

    request = current_task.request if current_task else None
    tag = (getattr(request, "properties", None) or {}).get("delivery_tag")
    if request is None or not isinstance(tag, Tag) or not tag.receipt:
        raise RuntimeError("no task runs here whose message came by dq")
    if not current_task.acks_late:
        raise RuntimeError(f"{current_task.name} was acked before it ran: effects need acks_late=True")
    if _NAME not in vars(request):
        setattr(request, _NAME, Effects())
        task_success.connect(_settle, weak=False, dispatch_uid="dqueue.effects")
    collected: Effects = vars(request)[_NAME]
    return collected


def _settle(sender: Any, **_: Any) -> None:
    """Acks the message of a task that has succeeded, if it has effects."""
    request = sender.request
    collected = vars(request).get(_NAME)
    if not collected:
        return
    tag = request.properties["delivery_tag"]
    # From here on a plain ack of the other process would lose the effects.
    taken.add(tag)
    with pools.connections[sender.app.connection_for_read()].acquire(block=True) as connection:
        ack_with(connection.default_channel, tag, collected)


def ack_with(channel: Any, tag: Tag, collected: Effects) -> None:
    """Acks a message with its effects, and repeats that until its lease is over."""
    end, was_lost = monotonic() + channel.lease / 1000, False
    for pause in pauses():
        try:
            with channel.conn_or_acquire() as client:
                queue = Queue(client, channel.key(tag.queue))
                # After a lost reply it may have been done by the first try.
                if not queue.ack(tag.receipt, apply=collected) and not was_lost:
                    logger.warning("the lease of %s of queue %s was over: its effects are not done", tag.id, tag.queue)
            return
        except (RedisError, OSError) as error:
            if not is_transient(error):
                logger.error("the effects of %s of queue %s were refused: %s", tag.id, tag.queue, error)
                with channel.conn_or_acquire() as client:
                    refused = f"its effects were refused: {error}"
                    Queue(client, channel.key(tag.queue)).nack(tag.receipt, fatal=True, error=refused)
                return
            if monotonic() + pause > end:
                logger.error("%s of queue %s could not be acked, and may run again: %s", tag.id, tag.queue, error)
                return
            was_lost = True
        sleep(pause)
