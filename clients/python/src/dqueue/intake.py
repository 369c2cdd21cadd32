"""Takes messages of a family from all nodes, with one waiting connection for each node."""

import logging
import threading
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


class Intake:
    """One thread for each node, and what the callers of `take` share.

    While a caller has room, a node is asked without BLOCK, in rotation, so that a busy node does not come before the
    others. A node that has nothing is waited at. A message that comes while nobody has room is given back as if it had
    not been delivered, and another consumer gets it.
    """

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
        lock = threading.Lock()
        self._room_came = threading.Condition(lock)
        self._messages_came = threading.Condition(lock)
        self._lines: dict[str, int] = {}
        """The node of each line, and its number. A node that comes back gets another number."""
        self._last_line = 0
        self._threads: list[threading.Thread] = []
        self._look = threading.Event()
        self._closed = threading.Event()
        self._error: BaseException | None = None
        self._follow()
        if nodes.is_cluster:
            threading.Thread(target=self._scout, name="dqueue-scout", daemon=True).start()

    def take(self, seconds: float) -> list[Message]:
        """Returns messages of one queue, or none after that time. Raises errors that will not pass."""
        deadline = time.monotonic() + seconds
        left_over: list[Message] = []
        with self._messages_came:
            self._room.free += 1
            self._room_came.notify_all()
            try:
                while not self._room.arrived:
                    now = time.monotonic()
                    if self._error is not None:
                        raise self._error
                    if now >= deadline and self._room.leave(now):
                        return []
                    self._messages_came.wait(deadline - now if now < deadline else SLOW / 4)
                return self._room.arrived.popleft()
            except BaseException:
                left_over = self._room.abandon()
                raise
            finally:
                if left_over:
                    threading.Thread(target=self._give_back, args=(left_over,)).start()

    def close(self) -> None:
        """Ends all lines, and gives back what comes until then. Takes as long as one call waits."""
        self._closed.set()
        self._look.set()
        with self._room_came:
            self._room_came.notify_all()
        for thread in self._threads:
            thread.join(self._block / 1000 + 1)
        while self._room.arrived:
            self._give_back(self._room.arrived.popleft())

    # ---- one line ---------------------------------------------------------------------------------------------------

    def _serve(self, name: str, line: int, node: Any) -> None:
        tries = pauses()
        while self._await_turn(name, line):
            try:
                self._ask(name, line, node)
                tries = pauses()
            except Exception as error:
                self._had_nothing(line)
                if not is_transient(error):
                    self._fail(error)
                    break
                log.warning("fetching from node %s failed, trying again: %s", name or node, error)
                self._look.set()
                self._closed.wait(next(tries))
        if self._nodes.is_cluster:
            node.connection_pool.disconnect(inuse_connections=False)

    def _is_over(self, name: str, line: int) -> bool:
        return self._closed.is_set() or self._lines.get(name) != line

    def _await_turn(self, name: str, line: int) -> bool:
        """Waits until this line may be asked. Returns False if it is to end."""
        with self._room_came:
            self._room.turns.append(line)
            while not self._is_over(name, line):
                if self._room.reserve(line, time.monotonic()):
                    # It may be the turn of the next line, too.
                    self._room_came.notify_all()
                    return True
                self._room_came.wait(SLOW if self._room.is_asking else None)
            self._room.turns.remove(line)
        return False

    def _ask(self, name: str, line: int, node: Any) -> None:
        messages = self._call(node, None)
        if not messages:
            self._had_nothing(line)
        while not messages and self._room.has_callers and not self._is_over(name, line):
            began = time.monotonic()
            messages = self._call(node, self._block)
            if not messages and (time.monotonic() - began) * 1000 < self._block / 2:
                # The slots of the node have changed.
                self._look.set()
        if messages:
            with self._messages_came:
                is_taken = self._room.hand_over(line, messages)
                self._messages_came.notify()
            if not is_taken:
                self._give_back(messages)

    def _call(self, node: Any, block: int | None) -> list[Message]:
        call = self._fetch(block)
        return call.read(node.execute_command(*call.words))

    def _had_nothing(self, line: int) -> None:
        with self._room_came:
            self._room.had_nothing(line)
            self._room_came.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._messages_came:
            self._error = self._error or error
            self._messages_came.notify_all()

    def _give_back(self, messages: list[Message]) -> None:
        for call in given_back(messages):
            try:
                given = call.read(self._client.execute_command(*call.words))
            except Exception as error:
                log.warning("a message was not given back, it comes again after its lease: %s", error)
            else:
                if given < len(messages):
                    log.warning("%d of %d messages came too late to be given back", len(messages) - given, len(messages))

    # ---- all lines --------------------------------------------------------------------------------------------------

    def _scout(self) -> None:
        """Looks at the cluster whenever something there may have changed."""
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
        """Begins to wait at nodes that have come, and ends it at those that have gone."""
        known = self._nodes.known()
        with self._room_came:
            for name in self._lines.keys() - known.keys():
                del self._lines[name]
            for name in known.keys() - self._lines.keys():
                self._last_line += 1
                self._lines[name] = self._last_line
                thread = threading.Thread(
                    target=self._serve,
                    args=(name, self._last_line, known[name]),
                    name=f"dqueue-node-{name}",
                    daemon=True,
                )
                self._threads.append(thread)
                thread.start()
            self._room_came.notify_all()
