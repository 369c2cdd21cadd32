"""The connections over which a family waits at its nodes, in tasks of asyncio."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from dqueue.nodes import KnownNodes
from dqueue.protocol.calls import Call
from dqueue.protocol.message import Message
from dqueue.protocol.retrying import is_transient, pauses
from dqueue.working.outcomes import given_back
from dqueue.working.room import LOOK_AGAIN, SLOW, Room

log = logging.getLogger("dqueue")


class Wakeup:
    """Wakes all tasks that wait for it."""

    def __init__(self) -> None:
        self._waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake_all(self) -> None:
        self._waking.set_result(None)
        self._waking = asyncio.get_running_loop().create_future()

    async def wait(self, seconds: float | None = None) -> None:
        """Returns at the next `wake_all`, or after that time."""
        await asyncio.wait([self._waking], timeout=seconds)


class NodeConnections:
    """A connection and a task for each node, and the state that the callers of `take` share. They work like those of
    `dqueue._sync`.
    """

    def __init__(
        self,
        client: Any,
        nodes: KnownNodes,
        fetch: Callable[[int | None], Call[list[Message]]],
        block: int,
    ) -> None:
        """`fetch` makes the command for a BLOCK, and `block` (ms) is how long one call waits at a node."""
        self._client = client
        self._nodes = nodes
        self._fetch = fetch
        self._block = block
        self._room = Room()
        self._room_changed = Wakeup()
        self._messages_arrived = Wakeup()
        self._numbers: dict[str, int] = {}
        """The number of the connection to each node. A node that comes back gets a new one."""
        self._last_number = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._look = asyncio.Event()
        self._is_closed = False
        self._error: BaseException | None = None
        self._follow()
        if nodes.is_cluster:
            self._watching = asyncio.create_task(self._watch_cluster())

    async def take(self, seconds: float) -> list[Message]:
        """Returns messages of one queue, or none after that time. Raises errors that will not pass."""
        deadline = time.monotonic() + seconds
        self._room.free += 1
        self._room_changed.wake_all()
        try:
            while not self._room.arrived:
                now = time.monotonic()
                if self._error is not None:
                    raise self._error
                if now >= deadline and self._room.leave(now):
                    return []
                await self._messages_arrived.wait(deadline - now if now < deadline else SLOW / 4)
            return self._room.arrived.popleft()
        except BaseException:
            if left_over := self._room.abandon():
                self._start(self._give_back(left_over))
            raise

    async def close(self) -> None:
        """Closes the connections to all nodes, and gives back messages that arrive before that.

        It takes as long as one call waits.
        """
        self._is_closed = True
        self._room_changed.wake_all()
        if self._nodes.is_cluster:
            self._watching.cancel()
        while self._room.arrived:
            await self._give_back(self._room.arrived.popleft())
        # The fetches are not cancelled: one may already have taken a message from the server.
        await asyncio.gather(*self._tasks)

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- one connection ----------------------------------------------------------------------------------------------

    async def _serve(self, name: str, number: int, node: Any) -> None:
        tries = pauses()
        while await self._await_turn(name, number):
            try:
                await self._ask(name, number, node)
                tries = pauses()
            except Exception as error:
                self._had_nothing(number)
                if not is_transient(error):
                    self._error = self._error or error
                    self._messages_arrived.wake_all()
                    break
                log.warning("fetching from node %s failed, trying again: %s", name or node, error)
                self._look.set()
                await asyncio.sleep(next(tries))
        if self._nodes.is_cluster:
            await node.connection_pool.disconnect(inuse_connections=False)

    def _is_over(self, name: str, number: int) -> bool:
        return self._is_closed or self._numbers.get(name) != number

    async def _await_turn(self, name: str, number: int) -> bool:
        """Waits until the node of this connection may be asked. Returns False if the connection is to end."""
        self._room.turns.append(number)
        while not self._is_over(name, number):
            if self._room.reserve(number, time.monotonic()):
                # Now it may be the turn of the next connection, too.
                self._room_changed.wake_all()
                return True
            await self._room_changed.wait(SLOW if self._room.is_asking else None)
        self._room.turns.remove(number)
        return False

    async def _ask(self, name: str, number: int, node: Any) -> None:
        messages = await self._call(node, None)
        if not messages:
            self._had_nothing(number)
        while not messages and self._room.has_callers and not self._is_over(name, number):
            began = time.monotonic()
            messages = await self._call(node, self._block)
            if not messages and (time.monotonic() - began) * 1000 < self._block / 2:
                # The slots of the node have changed.
                self._look.set()
        if messages and not self._room.hand_over(number, messages):
            await self._give_back(messages)
        self._messages_arrived.wake_all()

    async def _call(self, node: Any, block: int | None) -> list[Message]:
        call = self._fetch(block)
        return call.read(await node.execute_command(*call.words))

    def _had_nothing(self, number: int) -> None:
        self._room.had_nothing(number)
        self._room_changed.wake_all()

    async def _give_back(self, messages: list[Message]) -> None:
        for call in given_back(messages):
            try:
                given = call.read(await self._client.execute_command(*call.words))
            except Exception as error:
                log.warning("a message was not given back, it comes again after its lease: %s", error)
            else:
                if given < len(messages):
                    log.warning("%d of %d messages came too late to be given back", len(messages) - given, len(messages))

    # ---- all connections ---------------------------------------------------------------------------------------------

    async def _watch_cluster(self) -> None:
        """Asks the cluster for its nodes when they may have changed."""
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
        """Begins to wait at new nodes, and ends the connections to nodes that are gone."""
        known = self._nodes.known()
        for name in self._numbers.keys() - known.keys():
            del self._numbers[name]
        for name in known.keys() - self._numbers.keys():
            self._last_number += 1
            self._numbers[name] = self._last_number
            self._start(self._serve(name, self._last_number, known[name]))
        self._room_changed.wake_all()
