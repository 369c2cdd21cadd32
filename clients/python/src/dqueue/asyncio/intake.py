"""Takes messages of a family from all nodes, with one waiting connection for each node. The twin of `dqueue.intake`."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from dqueue.nodes import Nodes
from dqueue.protocol.calls import Call
from dqueue.protocol.message import Message
from dqueue.protocol.retrying import is_transient, pauses
from dqueue.working.handlers import given_back
from dqueue.working.room import LOOK_AGAIN, SLOW, Room

log = logging.getLogger("dqueue")


class Bell:
    """Wakes all tasks that wait for it."""

    def __init__(self) -> None:
        self._rung: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ring(self) -> None:
        self._rung.set_result(None)
        self._rung = asyncio.get_running_loop().create_future()

    async def wait(self, seconds: float | None = None) -> None:
        """Returns when it rings next, or after that time."""
        await asyncio.wait([self._rung], timeout=seconds)


class Intake:
    """One task for each node, and what the callers of `take` share. It works like `dqueue.intake.Intake`."""

    def __init__(
        self,
        client: Any,
        nodes: Nodes,
        fetch: Callable[[int | None], Call[list[Message]]],
        block: int,
    ) -> None:
        """`fetch` makes the command for a BLOCK, and `block` (ms) is how long one call waits at a node."""
        self._client = client
        self._nodes = nodes
        self._fetch = fetch
        self._block = block
        self._room = Room()
        self._room_came = Bell()
        self._messages_came = Bell()
        self._lines: dict[str, int] = {}
        """The node of each line, and its number. A node that comes back gets another number."""
        self._last_line = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._look = asyncio.Event()
        self._is_closed = False
        self._error: BaseException | None = None
        self._follow()
        if nodes.is_cluster:
            self._scouting = asyncio.create_task(self._scout())

    async def take(self, seconds: float) -> list[Message]:
        """Returns messages of one queue, or none after that time. Raises errors that will not pass."""
        deadline = time.monotonic() + seconds
        self._room.free += 1
        self._room_came.ring()
        try:
            while not self._room.arrived:
                now = time.monotonic()
                if self._error is not None:
                    raise self._error
                if now >= deadline and self._room.leave(now):
                    return []
                await self._messages_came.wait(deadline - now if now < deadline else SLOW / 4)
            return self._room.arrived.popleft()
        except BaseException:
            if left_over := self._room.abandon():
                self._start(self._give_back(left_over))
            raise

    async def close(self) -> None:
        """Ends all lines, and gives back what comes until then. Takes as long as one call waits."""
        self._is_closed = True
        self._room_came.ring()
        if self._nodes.is_cluster:
            self._scouting.cancel()
        while self._room.arrived:
            await self._give_back(self._room.arrived.popleft())
        # The lines are not cancelled: a cancelled fetch may already have taken a message from the server.
        await asyncio.gather(*self._tasks)

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- one line ---------------------------------------------------------------------------------------------------

    async def _serve(self, name: str, line: int, node: Any) -> None:
        tries = pauses()
        while await self._await_turn(name, line):
            try:
                await self._ask(name, line, node)
                tries = pauses()
            except Exception as error:
                self._had_nothing(line)
                if not is_transient(error):
                    self._error = self._error or error
                    self._messages_came.ring()
                    break
                log.warning("fetching from node %s failed, trying again: %s", name or node, error)
                self._look.set()
                await asyncio.sleep(next(tries))
        if self._nodes.is_cluster:
            await node.connection_pool.disconnect(inuse_connections=False)

    def _is_over(self, name: str, line: int) -> bool:
        return self._is_closed or self._lines.get(name) != line

    async def _await_turn(self, name: str, line: int) -> bool:
        """Waits until this line may be asked. Returns False if it is to end."""
        self._room.turns.append(line)
        while not self._is_over(name, line):
            if self._room.reserve(line, time.monotonic()):
                # It may be the turn of the next line, too.
                self._room_came.ring()
                return True
            await self._room_came.wait(SLOW if self._room.is_asking else None)
        self._room.turns.remove(line)
        return False

    async def _ask(self, name: str, line: int, node: Any) -> None:
        messages = await self._call(node, None)
        if not messages:
            self._had_nothing(line)
        while not messages and self._room.has_callers and not self._is_over(name, line):
            began = time.monotonic()
            messages = await self._call(node, self._block)
            if not messages and (time.monotonic() - began) * 1000 < self._block / 2:
                # The slots of the node have changed.
                self._look.set()
        if messages and not self._room.hand_over(line, messages):
            await self._give_back(messages)
        self._messages_came.ring()

    async def _call(self, node: Any, block: int | None) -> list[Message]:
        call = self._fetch(block)
        return call.read(await node.execute_command(*call.words))

    def _had_nothing(self, line: int) -> None:
        self._room.had_nothing(line)
        self._room_came.ring()

    async def _give_back(self, messages: list[Message]) -> None:
        for call in given_back(messages):
            try:
                given = call.read(await self._client.execute_command(*call.words))
            except Exception as error:
                log.warning("a message was not given back, it comes again after its lease: %s", error)
            else:
                if given < len(messages):
                    log.warning("%d of %d messages came too late to be given back", len(messages) - given, len(messages))

    # ---- all lines --------------------------------------------------------------------------------------------------

    async def _scout(self) -> None:
        """Looks at the cluster whenever something there may have changed."""
        while True:
            await self._look.wait()
            self._look.clear()
            for pause in LOOK_AGAIN:
                await asyncio.sleep(pause)
                try:
                    await self._client.nodes_manager.initialize()
                    self._follow()
                except Exception as error:
                    log.warning("looking at the cluster failed: %s", error)

    def _follow(self) -> None:
        """Begins to wait at nodes that have come, and ends it at those that have gone."""
        known = self._nodes.known()
        for name in self._lines.keys() - known.keys():
            del self._lines[name]
        for name in known.keys() - self._lines.keys():
            self._last_line += 1
            self._lines[name] = self._last_line
            self._start(self._serve(name, self._last_line, known[name]))
        self._room_came.ring()
