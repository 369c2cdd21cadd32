"""A queue under virtual time, for pytest.

The fixture `manual_queue` creates queues of `CLOCK MANUAL`. Their time moves only when the test says so, so hours of
delays, backoffs and schedules pass at once, and exactly. The handlers under test are those of the real worker.

    def test_reminder_comes_after_an_hour(manual_queue):
        mails = manual_queue()
        mails.send("remind ann", type="remind", delay=3_600_000)
        assert mails.work(worker) == []
        mails.advance(3_600_000)
        assert [message.text for message in mails.work(worker)] == ["remind ann"]

The fixture `dq_queue` is one such queue with the options of a new one. The fixtures are in dqueue_pytest.

The server is a new one of the program dq (`Server`), or the one that DQ_TEST_URL names (it needs the module). Override
the fixture `dq_url` to choose another way. Each queue has a key of its own, which is deleted after the test.
"""

import asyncio
import importlib
import inspect
import os
import shutil
import subprocess
from typing import Any, Unpack

from dqueue_pytest import dq_client, dq_queue, dq_server, dq_url, manual_queue

from dqueue._sync.queue import Queue
from dqueue.protocol import calls
from dqueue.protocol.client import Client
from dqueue.protocol.message import Message
from dqueue.protocol.options import Instant, Millis, QueueOptions, encode, millis, words
from dqueue.protocol.records import Info
from dqueue.working.handlers import Handlers
from dqueue.working.outcomes import Done, acked, failure, success

# The fixtures are in a module of their own, because pytest imports it in every run.
__all__ = ["ManualQueue", "Server", "dq_client", "dq_queue", "dq_server", "dq_url", "manual_queue"]

_LIMIT = 100_000


class ManualQueue(Queue):
    """A queue whose clock stands still until it is moved. It is created with its options, at `start` (Unix ms)."""

    def __init__(self, client: Client, key: str, start: Instant = 0, **options: Unpack[QueueOptions]) -> None:
        super().__init__(client, key)
        # words() knows how to write a datetime. Its first word is the name of the option.
        begin = words({"start": start})[1]
        client.execute_command("DQ.CREATE", encode(key), "CLOCK", "MANUAL", begin, *words(options))

    @property
    def now(self) -> int:
        """Returns the time of the queue, in Unix ms."""
        now = self.info()["now"]
        assert isinstance(now, int)
        return now

    def advance(self, span: Millis) -> Info:
        """Moves the clock forward and processes what falls due, in order. Returns how much of each kind (DQ.TICK)."""
        return self._do(calls.tick(self.key, {"advance": millis(span)}))

    def advance_to(self, at: Instant) -> Info:
        """Moves the clock forward to a time."""
        return self._do(calls.tick(self.key, {"to": at}))

    def work(self, handlers: Handlers[Any], *, limit: int = _LIMIT) -> list[Message]:
        """Handles the messages that can be delivered now, as a worker would. Returns them in that order.

        `handlers` is a Worker of either kind, or a Handlers. Raises AssertionError after `limit` messages: a handler
        keeps failing without a backoff, or sends the messages that it handles.
        """
        handled: list[Message] = []
        while batch := self.fetch():
            for message in batch:
                assert len(handled) < limit, f"still messages after {limit}"
                self._handle(handlers, message)
                handled.append(message)
        return handled

    def run(self, handlers: Handlers[Any], span: Millis, *, limit: int = _LIMIT) -> list[Message]:
        """Works through a span of time: calls `work`, moves to the next time at which something can happen, and so on.

        The cost depends on the number of messages, not on the span.
        """
        end = self.now + millis(span)
        handled = self.work(handlers, limit=limit)
        while (moment := self._next_moment()) is not None and moment <= end:
            self.advance_to(moment)
            handled += self.work(handlers, limit=limit - len(handled))
        self.advance_to(end)
        return handled

    def _handle(self, handlers: Handlers[Any], message: Message) -> None:
        try:
            result = handlers.find(message.type)(message)
            if inspect.isawaitable(result):
                result = asyncio.run(_awaited(result))
        except Exception as error:
            self._do(failure(message, error))
        else:
            verdict = success(message, result)
            for call in acked([verdict]) if isinstance(verdict, Done) else [verdict]:
                self._do(call)

    def _next_moment(self) -> int | None:
        """Returns the next time at which something falls due, a lease, pause or limit ends, or a schedule fires."""
        info = self.info()
        now = info["now"]
        moments: list[object] = [info["next-due-at"], *(schedule.next_at for schedule in self.schedules())]
        for state in ("ready", "blocked", "running"):
            for record in self._do(calls.listing(self.key, state, {"count": 1})).items:
                why = self.explain(record.id)
                moments += [record.lease_until, why and why.until]
        return min((at for at in moments if isinstance(at, int) and isinstance(now, int) and at > now), default=None)


async def _awaited(result: Any) -> Any:
    return await result


class Server:
    """A server with dq for tests: in memory, on a free port. It ends with this process, even if that is killed.

    It is the program `dq` that DQ_CLI names, that of the package dq-server, or the one on PATH. `options` are more
    options of `dq server`.
    """

    def __init__(self, *options: str) -> None:
        command = [_program(), "server", "--ephemeral", *options]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        """Where the server is: redis://127.0.0.1:PORT."""
        if not self.url:
            _, said = self._process.communicate()
            raise RuntimeError(f"{command[0]} starts no server: {said.strip()}")

    def stop(self) -> None:
        """Ends the server."""
        self._process.terminate()
        self._process.communicate()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _program() -> str:
    named = os.environ.get("DQ_CLI")
    if named:
        return named
    try:
        return str(importlib.import_module("dq_server").program())
    except ModuleNotFoundError:
        found = shutil.which("dq")
    if found is None:
        raise RuntimeError(
            "tests with dq need a server: pip install dq-server, or have the program dq on PATH, or let DQ_TEST_URL "
            "name a server with dq"
        )
    return found
