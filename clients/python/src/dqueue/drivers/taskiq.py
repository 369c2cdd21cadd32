"""A broker for taskiq. Its source of schedules is in `dqueue.drivers.taskiqschedules`.

    from dqueue.taskiq import DqBroker, DqScheduleSource

    broker = DqBroker("redis://localhost:6379/0")
    source = DqScheduleSource(broker)

Messages that are not acked come back when their lease ends, and the broker renews the leases of what is being worked
on. The label `delay` (seconds) is waited for in the server. The schedules of the source are fired by the server, so
that no scheduler process is needed.
"""

import asyncio
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from logging import getLogger
from typing import Any

import redis
from taskiq import (
    AckableMessage,
    AsyncBroker,
    BrokerMessage,
    SimpleRetryMiddleware,
)

from dqueue.connection import open_client_asyncio
from dqueue.consumer import worker_name
from dqueue.drivers.taskiqeffects import Collecting, effects, running
from dqueue.protocol.effects import Effects
from dqueue.protocol.options import LOST_WORKERS, Word, words
from dqueue.protocol.records import text
from dqueue.protocol.retrying import is_transient, pauses
from dqueue.working.coding import Coding, fatal, opened
from dqueue.working.lastwords import LastWords
from dqueue.working.leases import may_end_soon, pause
from dqueue.working.outcomes import Reject

__all__ = ["DqBroker", "effects"]

logger = getLogger("dqueue.taskiq")

FIRED = "@"
"""Separates the name of the schedule from the time in the ids of scheduled messages."""


class DqBroker(AsyncBroker):
    """A broker whose queue is one of dq.

    Parameters:
      url: of the server, a cluster or Sentinels, see `dqueue.connection.open_client`. On a cluster all queues of a
        broker must lie in one hash slot: name them `{taskiq}`, `{taskiq}:mails` and so on.
      queue_name: the key. The label `queue_name` of a task chooses another one for it.
      additional_queues: queues that `listen` takes messages of, too.
      lease: how long (ms) a message belongs to a worker that does not renew it. The broker renews it three times in
        that time.
      block: how long (ms) one fetch waits in the server. The shutdown of a worker may take that long.
      consumer_name: the name of the worker in DQ.CONSUMERS.
      lost_workers: with how many lost workers a task is given up. 0: never.
      secrets: a `dqueue.secrets.Secrets`, or another coding (docs/secrets.md), that encrypts tasks, but not those of schedules.
      connection_kwargs: options of redis-py's client.
    """

    def __init__(
        self,
        url: str,
        queue_name: str = "taskiq",
        *,
        additional_queues: Iterable[str] = (),
        lease: int = 60_000,
        block: int = 2000,
        consumer_name: str | None = None,
        lost_workers: int = LOST_WORKERS,
        secrets: Coding | None = None,
        **connection_kwargs: Any,
    ) -> None:
        super().__init__()
        self.add_middlewares(Collecting())
        self.client: Any = open_client_asyncio(url, **connection_kwargs)
        self.queue_name = queue_name
        self.queue_names = [*dict.fromkeys([queue_name, *additional_queues])]
        self.lease = lease
        self.block = block
        self.consumer_name = consumer_name or worker_name()
        self.lost_workers = lost_workers
        self.secrets = secrets
        # The names of the listeners. A TOKEN repeats the last delivery of its consumer, so each has one of its own.
        self._listening: set[str] = set()
        self._held: defaultdict[str, set[int]] = defaultdict(set)
        self._heartbeat: asyncio.Task[None] | None = None
        self._last_words = LastWords()
        # This is set when taskiq ends `listen`: the worker is told to stop.
        self._stopping = asyncio.Event()

    async def shutdown(self) -> None:
        """Closes the connections. Messages that are still being handled come back when its lease ends."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None
        await super().shutdown()
        await self.client.aclose()

    async def kick(self, message: BrokerMessage) -> None:
        """Sends a task. While the connection is down it tries again for ten seconds; the task is not sent twice."""
        # A retry has the id of the task, so each sending has an id of its own.
        key, payload, *options = self.sending(message)
        id = uuid.uuid4().hex
        if self.secrets is not None:
            payload, headers = self.secrets.seal(str(key), id, message.message)
            options += words({"headers": headers})
        await self._persist("DQ.SEND", key, payload, *options, "ID", id)

    def sending(self, message: BrokerMessage) -> list[Word]:
        """Returns key, payload and options for DQ.SEND. The labels `delay`, `priority` and `group` are options."""
        labels = message.labels
        # SimpleRetryMiddleware sends the labels of the first try again, and that one has waited. SmartRetryMiddleware sets
        # the label to the wait of the retry.
        is_simple_retry = "_retries" in labels and any(isinstance(one, SimpleRetryMiddleware) for one in self.middlewares)
        delay = None if is_simple_retry else labels.get("delay")
        priority = labels.get("priority")
        options = {
            # The middleware for retries counts the attempts.
            "retries": -1,
            "max_timeouts": self.lost_workers,
            "delay": None if delay is None else max(0, round(float(delay) * 1000)),
            # In taskiq the higher number goes first, here the lower.
            "priority": None if priority is None else max(-128, min(127, -int(priority))),
            "group": labels.get("group"),
            "type": message.task_name if len(message.task_name.encode()) <= 1024 else None,
        }
        return [labels.get("queue_name") or self.queue_name, message.message, *words(options)]

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yields messages, as soon as there are any."""
        if self._heartbeat is None:
            self._heartbeat = asyncio.create_task(self._keep_leases())
        self._stopping.clear()
        self._last_words.end()
        names = (self.consumer_name, *(f"{self.consumer_name}:{number}" for number in range(2, len(self._listening) + 2)))
        consumer = next(name for name in names if name not in self._listening)
        self._listening.add(consumer)
        fetching: asyncio.Task[Any] | None = None
        token, asked_at = uuid.uuid4().hex, time.monotonic()
        pauses_between = pauses()
        try:
            while True:
                fetching = asyncio.create_task(self._fetch(consumer, token, self.block))
                try:
                    # A fetch that was cancelled could lose the message that it has just got.
                    delivery = await asyncio.shield(fetching)
                except (redis.RedisError, OSError) as error:
                    if not is_transient(error):
                        raise
                    logger.warning("cannot fetch, the next try follows: %s", error)
                    await asyncio.sleep(next(pauses_between))
                    continue
                fetching = None
                if delivery is not None:
                    queue, id, receipt, payload = delivery
                    if may_end_soon(asked_at, self.lease):
                        try:
                            await self._persist("DQ.TOUCH", queue, self.lease, receipt)
                        except (redis.RedisError, OSError) as error:
                            logger.warning("the lease of a message of queue %s could not be renewed: %s", queue, error)
                    payload = self._payload(id, payload)
                    why = self._refusal(payload)
                    if why is None:
                        yield AckableMessage(data=payload, ack=self._ack(queue, receipt))
                    else:
                        logger.error("message %s of queue %s is %s", id, queue, why)
                        self._held[queue].discard(receipt)
                        await self._persist("DQ.NACK", queue, receipt, "FATAL", "ERROR", why)
                token, asked_at = uuid.uuid4().hex, time.monotonic()
                pauses_between = pauses()
        finally:
            self._last_words.begin()
            self._stopping.set()
            if fetching is not None:
                await self._give_back(fetching, lambda: self._fetch(consumer, token, block=None))
            self._listening.discard(consumer)

    async def _fetch(self, consumer: str, token: str, block: int | None) -> tuple[str, str, int, bytes] | None:
        # After a lost reply, the same token gets the same message.
        # The key of a message is in its headers.
        meta = self.secrets is not None or None
        options = words({"count": 1, "block": block, "lease": self.lease, "consumer": consumer, "token": token, "withmeta": meta})
        reply = await self.client.execute_command("DQ.MFETCH", len(self.queue_names), *self.queue_names, *options)
        if reply is None:
            return None
        queue, [[id, receipt, _attempt, payload, *meta]] = reply
        if self.secrets is not None:
            try:
                payload = opened(self.secrets, text(queue), text(id), payload, meta[0])
            except (Reject, LookupError) as error:
                logger.error("task %s of queue %s cannot be read: %s", text(id), text(queue), error)
                await self.client.execute_command("DQ.NACK", queue, receipt, *fatal(error), "ERROR", str(error))
                return None
        self._held[text(queue)].add(int(receipt))
        return text(queue), text(id), int(receipt), payload

    def _payload(self, id: str, payload: bytes) -> bytes:
        """Returns the message. The messages of a schedule are all the same, so each gets an id of its own for its
        result.
        """
        if FIRED not in id:
            return payload
        try:
            message = self.formatter.loads(payload)
            message.task_id = uuid.uuid5(uuid.NAMESPACE_OID, id).hex
            fired: bytes = self.formatter.dumps(message).message
        except Exception:
            # The receiver reports what is wrong with any other payload.
            return payload
        return fired

    def _refusal(self, payload: bytes) -> str | None:
        """Returns why no task is in a message. taskiq would ack it, and it would be gone."""
        try:
            message = self.formatter.loads(payload)
            message.parse_labels()
        except Exception as error:
            return f"no message of taskiq: {error!r:.1000}"
        return None if self.find_task(message.task_name) else f"of a task that is not known: {message.task_name!r:.1000}"

    def _ack(self, queue: str, receipt: int) -> Callable[[], Awaitable[None]]:
        async def ack() -> None:
            task = running.get()
            collected = task.effects if task is not None else Effects()
            if task is not None:
                task.is_acked = True
            try:
                acked = await self._persist("DQ.ACK", queue, receipt, *collected.words())
            except redis.ResponseError as error:
                if not collected:
                    raise
                # taskiq has no way back from an ack.
                logger.error("the effects of a task of queue %s were refused: %s", queue, error)
                refused = f"its effects were refused: {error}"
                acked = await self._persist("DQ.NACK", queue, receipt, "FATAL", "ERROR", refused)
            finally:
                # The task has ended. If the ack did not get through, the message comes back when its lease ends.
                self._held[queue].discard(receipt)
            if not acked:
                logger.warning("a task of queue %s was acked after its lease: it may run again", queue)

        return ack

    async def _give_back(self, fetching: Awaitable[Any], fetch_again: Callable[[], Awaitable[Any]]) -> None:
        """Gives back the messages of a fetch that still waits for its reply. If its reply is lost, it is sent once
        more.
        """
        now, waits = asyncio.get_running_loop().time, self.block / 1000
        for again in (False, True):
            began = now()
            try:
                async with asyncio.timeout(waits + self._last_words.left):
                    delivery = await (fetch_again() if again else fetching)
                if delivery is not None:
                    queue, _id, receipt, _payload = delivery
                    self._held[queue].discard(receipt)
                    await self._call("DQ.NACK", queue, receipt, "SILENT")
                return
            except (redis.RedisError, OSError):
                # A timeout is an OSError, too.
                self._last_words.waited(now() - began)
                waits = 0.0
        logger.warning("the last message could not be given back: it comes back when its lease ends")

    async def _persist(self, *command: Word) -> Any:
        """Sends a command that may be repeated, and repeats it for ten seconds while the connection is down."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 10
        for seconds in pauses(self.lease):
            try:
                return await self._call(*command)
            except (redis.RedisError, OSError) as error:
                if not is_transient(error) or self._last_words.is_over or loop.time() + seconds > deadline:
                    raise
            self._last_words.waited(seconds)
            await asyncio.sleep(seconds)

    async def _call(self, *command: Word) -> Any:
        """Sends a command. A worker that is told to stop waits for the reply no longer than its last words take."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        reply = asyncio.create_task(self.client.execute_command(*command))
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({reply, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not reply.done():
                began = loop.time()
                await asyncio.wait({reply}, timeout=self._last_words.left)
            if not reply.done():
                raise redis.TimeoutError(f"no reply to {command[0]!r}")
            answer = reply.result()
        except (redis.RedisError, OSError):
            self._last_words.waited(loop.time() - began)
            raise
        finally:
            reply.cancel()
            stop.cancel()
        self._last_words.answered()
        return answer

    async def _keep_leases(self) -> None:
        was_sent = True
        while True:
            await asyncio.sleep(pause(self.lease, was_sent))
            was_sent = True
            for queue, receipts in [*self._held.items()]:
                if not receipts:
                    continue
                try:
                    await self.client.execute_command("DQ.TOUCH", queue, self.lease, *receipts)
                # A connection that is closed meanwhile raises ValueError or AttributeError. No error may end the heartbeat.
                except Exception as error:
                    was_sent = False
                    logger.warning("the leases of queue %s could not be renewed: %s", queue, error)
