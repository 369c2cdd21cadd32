"""Clients of the Python package with `durable`, which live on through a fault."""

import asyncio
import itertools
import threading
import time

import redis
from dqueue import Durable, NotConfirmed
from dqueue.asyncio import Queue, connect

from tests.torture.losses.books import Books
from tests.torture.losses.traffic import ACKED

# For how long (ms) a client repeats what is not confirmed: longer than any fault takes.
PATIENCE = 30_000
# An id stays taken for so long (ms), or a send that is repeated when others have acked its message would add it anew.
DEDUP = 3_600_000
# A client that cannot do anything waits so long before it tries something else, in seconds.
PAUSE = 0.05


class Lasting:
    """Tasks that send one message after the other and wait until it is confirmed, and ack some."""

    def __init__(self, port: int, key: str, durable: Durable, tasks: int):
        self._url, self._key, self._durable, self._tasks = f"redis://127.0.0.1:{port}", key, durable, tasks
        self.books = Books()
        self._stopped, self._broken = False, []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> "Lasting":
        self._thread.start()
        return self

    def end(self) -> Books:
        """Lets each finish what it is about, with the server that there is now."""
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
            await asyncio.gather(*(self._send_on(queue, n) for n in range(self._tasks)))
        finally:
            await client.aclose()

    async def _send_on(self, queue: Queue, name: int) -> None:
        for number in itertools.count():
            if self._stopped:
                return
            try:
                id = f"{name}-{number}"
                await queue.send("payload", id=id)
                self.books.sent[id.encode()] = time.monotonic()
                if (name + number) % ACKED == 0:
                    await self._ack_one(queue)
            except (NotConfirmed, redis.RedisError):
                await asyncio.sleep(PAUSE)

    async def _ack_one(self, queue: Queue) -> None:
        for message in await queue.fetch():
            id = message.id.encode()
            self.books.asked.add(id)
            if await queue.ack(message) == 1:
                self.books.acked.add(id)
