"""Clients of the Python package with `durable`, which live on through a fault."""

import asyncio
import itertools
import threading
import time

import redis
from dqueue import Durable, NotConfirmed
from dqueue.asyncio import Queue, connect

from tests.torture.losses.books import Books
from tests.torture.losses.traffic import ACKED, Pace

# A client repeats an unconfirmed command for this long (ms): longer than any fault takes.
PATIENCE = 30_000
# An id stays taken for this long (ms). Otherwise a send that is repeated after the ack of its message would add it
# again.
DEDUP = 3_600_000
# A client that cannot proceed waits for this long before its next try, in seconds.
PAUSE = 0.05


class Lasting:
    """Tasks that send messages, wait until they are confirmed, and ack some.

    Every other task sends one message at a time. The others send a batch with one command, which one confirmation is for.
    """

    def __init__(self, port: int, key: str, durable: Durable, pace: Pace):
        self._url, self._key, self._durable, self._pace = f"redis://127.0.0.1:{port}", key, durable, pace
        self.books = Books()
        self._stopped, self._broken = False, []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> "Lasting":
        self._thread.start()
        return self

    def end(self) -> Books:
        """Lets each client finish its command with the present server."""
        self._stopped = True
        self._thread.join(2 * PATIENCE / 1000)
        assert not self._thread.is_alive(), "a client does not end"
        if self._broken:
            raise self._broken[0]
        return self.books

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self._broken.append(error)

    async def _work(self) -> None:
        client = connect(self._url)
        try:
            queue = Queue(client, self._key, durable=self._durable, patience=PATIENCE)
            await queue.ensure(dedup=DEDUP)
            await asyncio.gather(*(self._send_on(queue, n) for n in range(self._pace.tasks)))
        finally:
            await client.aclose()

    async def _send_on(self, queue: Queue, name: int) -> None:
        batch = self._pace.batch if name % 2 else 1
        for number in itertools.count():
            if self._stopped:
                return
            payloads = [f"{name}-{number}-{n}" for n in range(batch)]
            try:
                if batch == 1:
                    await queue.send(payloads[0], id=payloads[0])
                else:
                    await queue.send_many(payloads)
                self.books.sent |= dict.fromkeys((one.encode() for one in payloads), time.monotonic())
                if (name + number) % ACKED == 0:
                    await self._ack(queue, batch)
            except (NotConfirmed, redis.RedisError):
                await asyncio.sleep(PAUSE)

    async def _ack(self, queue: Queue, count: int) -> None:
        messages = await queue.fetch(count=count)
        payloads = {message.payload for message in messages}
        self.books.asked |= payloads
        if messages and await queue.ack(*messages) == len(messages):
            self.books.acked |= payloads
