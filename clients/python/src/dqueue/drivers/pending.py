"""The commands that the threads of a process wait for, and the end of these waits when a worker is told to stop."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dqueue.working.lastwords import LastWords


class PendingCalls:
    """The commands of several threads that have no reply yet. If a stopping worker would wait too long for one, it is cut off."""

    def __init__(self, client: Any, last_words: LastWords) -> None:
        self._client = client
        self._last_words = last_words
        self._lock = threading.Lock()
        # When the reply is late, by the thread.
        self._late: dict[int, float] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def on_its_way(self, block: int = 0) -> Iterator[None]:
        """Encloses a command that the server may answer after `block` ms."""
        began, me = time.monotonic(), threading.get_ident()
        self._late[me] = began + block / 1000
        try:
            yield
        except BaseException:
            self._last_words.waited(max(0.0, time.monotonic() - began - block / 1000))
            raise
        else:
            self._last_words.answered()
        finally:
            self._late.pop(me, None)

    def hurry(self) -> None:
        """The worker is told to stop: from now on no command waits for longer than the last words."""
        with self._lock:
            self._last_words.begin()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="dqueue-stop", daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        while self._last_words.is_stopping:
            now = time.monotonic()
            if any(now - late > self._last_words.left for late in [*self._late.values()]):
                cut_off(self._client)
            time.sleep(0.1)
        self._thread = None


def cut_off(client: Any) -> None:
    """Ends the connections of a client that are in use, so that those who wait for a reply get an error."""
    get_nodes: Callable[[], list[Any]] | None = getattr(client, "get_nodes", None)
    clients = [client] if get_nodes is None else [node.redis_connection for node in get_nodes()]
    for one in clients:
        # The method that redis-py calls disconnect takes the buffer away from the thread that reads.
        with suppress(AttributeError, RuntimeError):
            for connection in [*one.connection_pool._in_use_connections]:
                with suppress(AttributeError, OSError):
                    connection._sock.shutdown(socket.SHUT_RDWR)
