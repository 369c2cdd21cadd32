"""The connections over which a family waits at its nodes, in threads."""

import logging
import threading
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


class NodeConnections:
    """A connection and a thread for each node, and what the callers of `take` share.

    While a caller has room, one node after the other is asked without BLOCK, so that a busy node does not come before the
    others. At a node that has no messages the connection waits (BLOCK). A message that arrives while nobody has room is
    given back as if it had not been delivered, and another consumer gets it.
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
        lock = threading.Lock()
        self._room_changed = threading.Condition(lock)
        self._messages_arrived = threading.Condition(lock)
        self._numbers: dict[str, int] = {}
        """The number of the connection to each node. A node that comes back gets a new one."""
        self._last_number = 0
        self._threads: list[threading.Thread] = []
        self._look = threading.Event()
        self._closed = threading.Event()
        self._error: BaseException | None = None
        self._follow()
        if nodes.is_cluster:
            threading.Thread(target=self._watch_cluster, name="dqueue-cluster", daemon=True).start()

    def take(self, seconds: float) -> list[Message]:
        """Returns messages of one queue, or none after that time. Raises errors that will not pass."""
        deadline = time.monotonic() + seconds
        left_over: list[Message] = []
        with self._messages_arrived:
            self._room.free += 1
            self._room_changed.notify_all()
            try:
                while not self._room.arrived:
                    now = time.monotonic()
                    if self._error is not None:
                        raise self._error
                    if now >= deadline and self._room.leave(now):
                        return []
                    self._messages_arrived.wait(deadline - now if now < deadline else SLOW / 4)
                return self._room.arrived.popleft()
            except BaseException:
                left_over = self._room.abandon()
                raise
            finally:
                if left_over:
                    threading.Thread(target=self._give_back, args=(left_over,)).start()

    def close(self) -> None:
        """Closes the connections to all nodes, and gives back messages that arrive before that.

        It takes as long as one call waits.
        """
        self._closed.set()
        self._look.set()
        with self._room_changed:
            self._room_changed.notify_all()
        for thread in self._threads:
            thread.join(self._block / 1000 + 1)
        while self._room.arrived:
            self._give_back(self._room.arrived.popleft())

    # ---- one connection ----------------------------------------------------------------------------------------------

    def _serve(self, name: str, number: int, node: Any) -> None:
        tries = pauses()
        while self._await_turn(name, number):
            try:
                self._ask(name, number, node)
                tries = pauses()
            except Exception as error:
                self._had_nothing(number)
                if not is_transient(error):
                    self._fail(error)
                    break
                log.warning("fetching from node %s failed, trying again: %s", name or node, error)
                self._look.set()
                self._closed.wait(next(tries))
        if self._nodes.is_cluster:
            node.connection_pool.disconnect(inuse_connections=False)

    def _is_over(self, name: str, number: int) -> bool:
        return self._closed.is_set() or self._numbers.get(name) != number

    def _await_turn(self, name: str, number: int) -> bool:
        """Waits until the node of this connection may be asked. Returns False if the connection is to end."""
        with self._room_changed:
            self._room.turns.append(number)
            while not self._is_over(name, number):
                if self._room.reserve(number, time.monotonic()):
                    # It may be the turn of the next connection, too.
                    self._room_changed.notify_all()
                    return True
                self._room_changed.wait(SLOW if self._room.is_asking else None)
            self._room.turns.remove(number)
        return False

    def _ask(self, name: str, number: int, node: Any) -> None:
        messages = self._call(node, None)
        if not messages:
            self._had_nothing(number)
        while not messages and self._room.has_callers and not self._is_over(name, number):
            began = time.monotonic()
            messages = self._call(node, self._block)
            if not messages and (time.monotonic() - began) * 1000 < self._block / 2:
                # The slots of the node have changed.
                self._look.set()
        if messages:
            with self._messages_arrived:
                is_taken = self._room.hand_over(number, messages)
                self._messages_arrived.notify()
            if not is_taken:
                self._give_back(messages)

    def _call(self, node: Any, block: int | None) -> list[Message]:
        call = self._fetch(block)
        return call.read(node.execute_command(*call.words))

    def _had_nothing(self, number: int) -> None:
        with self._room_changed:
            self._room.had_nothing(number)
            self._room_changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._messages_arrived:
            self._error = self._error or error
            self._messages_arrived.notify_all()

    def _give_back(self, messages: list[Message]) -> None:
        for call in given_back(messages):
            try:
                given = call.read(self._client.execute_command(*call.words))
            except Exception as error:
                log.warning("a message was not given back, it comes again after its lease: %s", error)
            else:
                if given < len(messages):
                    log.warning("%d of %d messages came too late to be given back", len(messages) - given, len(messages))

    # ---- all connections ---------------------------------------------------------------------------------------------

    def _watch_cluster(self) -> None:
        """Looks at the cluster when something there may have changed."""
        while not self._closed.is_set():
            self._look.wait()
            self._look.clear()
            for pause in LOOK_AGAIN:
                if self._closed.wait(pause):
                    return
                try:
                    self._client.nodes_manager.initialize()
                    self._follow()
                except Exception as error:
                    log.warning("looking at the cluster failed: %s", error)

    def _follow(self) -> None:
        """Begins to wait at new nodes, and ends the connections to nodes that are gone."""
        known = self._nodes.known()
        with self._room_changed:
            for name in self._numbers.keys() - known.keys():
                del self._numbers[name]
            for name in known.keys() - self._numbers.keys():
                self._last_number += 1
                self._numbers[name] = self._last_number
                thread = threading.Thread(
                    target=self._serve,
                    args=(name, self._last_number, known[name]),
                    name=f"dqueue-node-{name}",
                    daemon=True,
                )
                self._threads.append(thread)
                thread.start()
            self._room_changed.notify_all()
