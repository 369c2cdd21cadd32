"""A way to a server on which connections are cut at any byte, are refused, or fall silent."""

import re
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Trap:
    """Waits for a command that one of these patterns matches, lets bytes of it or of its reply through, and triggers once."""

    patterns: tuple[bytes, ...]
    is_reply: bool
    """Whether the reply is cut, or the command."""
    bytes: int
    """How many bytes are passed on before the cut."""
    strike: Callable[[], None] | None
    """Further faults besides the cut of this connection."""
    sprung: threading.Event


class FaultyProxy:
    """Listens on `port` and passes on all data, unless it is set to fail."""

    def __init__(self, server_port: int):
        self._server_port = server_port
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._traps: list[Trap] = []
        self._is_open = threading.Event()
        self._is_open.set()
        self._refuses = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def lead_to(self, server_port: int) -> None:
        """Cuts all connections, and directs later ones to another server."""
        self._server_port = server_port
        self.cut()

    def cut(self) -> None:
        """Cuts all present connections."""
        with self._lock:
            pairs = [*self._pairs]
        for pair in pairs:
            _shut(*pair)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block during which nothing goes through new connections."""
        self._is_open.clear()
        try:
            yield
        finally:
            self._is_open.set()

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """A block during which new connections are cut at once."""
        self._refuses = True
        try:
            yield
        finally:
            self._refuses = False

    def trap(self, *patterns: bytes, reply: bool = False, bytes: int = 0, strike: Callable[[], None] | None = None) -> Trap:
        """The next command that one of these patterns matches, or the reply to it, is cut after `bytes`."""
        trap = Trap(patterns, reply, bytes, strike, threading.Event())
        with self._lock:
            self._traps.append(trap)
        return trap

    def drop(self, trap: Trap) -> None:
        """Removes a trap that has not been triggered."""
        with self._lock:
            if trap in self._traps:
                self._traps.remove(trap)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._is_open.wait()
            if self._refuses:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        pair = (client, server)
        with self._lock:
            self._pairs.add(pair)
        set_on: Trap | None = None
        """The trap for the reply to the last command."""
        # Not select.select, which refuses descriptors from 1,024 on, and a test process may have more than that.
        ends = selectors.DefaultSelector()
        for end in pair:
            ends.register(end, selectors.EVENT_READ)
        try:
            while True:
                for end in (key.fileobj for key, _ in ends.select()):
                    data = end.recv(65536)
                    if not data:
                        return
                    if end is client:
                        set_on = self._caught(data)
                        if set_on is not None and not set_on.is_reply:
                            server.sendall(data[: set_on.bytes])
                            self._spring(set_on, pair)
                            return
                        server.sendall(data)
                    elif set_on is not None:
                        client.sendall(data[: set_on.bytes])
                        self._spring(set_on, pair)
                        return
                    else:
                        client.sendall(data)
        except OSError:
            pass
        finally:
            with self._lock:
                self._pairs.discard(pair)
            _shut(*pair)
            ends.close()
            client.close()
            server.close()

    def _caught(self, data: bytes) -> Trap | None:
        with self._lock:
            for trap in self._traps:
                if any(re.search(pattern, data, re.IGNORECASE) for pattern in trap.patterns):
                    self._traps.remove(trap)
                    return trap
        return None

    def _spring(self, trap: Trap, pair: tuple[socket.socket, socket.socket]) -> None:
        _shut(*pair)
        if trap.strike is not None:
            trap.strike()
        trap.sprung.set()


def _shut(*ends: socket.socket) -> None:
    for end in ends:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
