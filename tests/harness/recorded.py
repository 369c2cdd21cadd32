"""A primary of an earlier version, as far as its replica can tell: it sends the recorded bytes of one."""

import contextlib
import socket
import threading

# The id of its replication history, which no server has.
HISTORY = "0" * 39 + "1"


class RecordedPrimary:
    """Listens on `port`. Each replica that connects gets a snapshot, and then a stream of commands."""

    def __init__(self, snapshot: bytes, stream: bytes):
        self.offset = len(stream)
        self._snapshot = snapshot
        self._stream = stream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                replica, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(replica,), daemon=True).start()

    def _serve(self, replica: socket.socket) -> None:
        with replica, replica.makefile("rb") as words:
            while verb := self._verb(words):
                match verb:
                    case b"PING":
                        replica.sendall(b"+PONG\r\n")
                    case b"PSYNC":
                        replica.sendall(b"+FULLRESYNC %s 0\r\n$%d\r\n" % (HISTORY.encode(), len(self._snapshot)))
                        replica.sendall(self._snapshot + self._stream)
                        # From here on the replica only reports its progress. It may end with a reset.
                        with contextlib.suppress(ConnectionError):
                            while replica.recv(65536):
                                pass
                        return
                    case _:
                        replica.sendall(b"+OK\r\n")

    @staticmethod
    def _verb(words) -> bytes:
        """The first word of the next command; empty at the end."""
        count = words.readline()
        if not count:
            return b""
        parts = [words.read(int(words.readline()[1:]) + 2)[:-2] for _ in range(int(count[1:]))]
        return parts[0].upper()
