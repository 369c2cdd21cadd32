"""A raw RESP connection.

It keeps what a client library hides: the exact reply type, sending without reading, many
blocked connections in one thread, and a socket that is closed at a chosen moment.
"""

import socket


class Error(str):
    """An error reply, as a value."""


class Status(bytes):
    """A simple string reply; equal to the same bytes."""


class NullArray:
    """RESP2's `*-1`, which libraries turn into the same None as `$-1`."""

    def __repr__(self):
        return "NULL_ARRAY"

    def __bool__(self):
        return False


NULL_ARRAY = NullArray()


def encode(args) -> bytes:
    """One command as RESP; str is taken as UTF-8, numbers as their decimal text."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = arg if isinstance(arg, (bytes, bytearray)) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Wire:
    """One connection. `call` sends and reads; `send` and `recv` do one half each."""

    def __init__(self, port: int, protocol: int = 3, timeout: float = 20):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout = timeout
        # The bytes that were received; read up to _at.
        self._buffer, self._at = b"", 0
        self.closed = False
        if protocol != 2:
            self.call("HELLO", protocol)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.closed = True
        self.sock.close()

    def send(self, *args) -> None:
        """Sends one command without waiting for its reply."""
        self.sock.sendall(encode(args))

    def send_many(self, commands) -> None:
        """Sends several commands in one write."""
        self.sock.sendall(b"".join(encode(c) for c in commands))

    def recv(self, timeout: float | None = None):
        """The next reply; TimeoutError after `timeout` seconds, ConnectionError if closed."""
        self.sock.settimeout(self.timeout if timeout is None else timeout)
        return self._reply()

    def silent(self, seconds: float) -> bool:
        """True if no byte arrives for this time."""
        if self._at < len(self._buffer):
            return False
        self.sock.settimeout(seconds)
        try:
            data = self.sock.recv(65536)
        except TimeoutError:
            return True
        self._buffer += data
        return False

    def call(self, *args):
        """Sends one command and returns its reply; an error reply is returned as an Error."""
        self.send(*args)
        return self.recv()

    def ok(self, *args):
        """Sends a command like `call`, but an error reply fails."""
        reply = self.call(*args)
        assert not isinstance(reply, Error), f"{args}: {reply}"
        return reply

    def _fill(self) -> None:
        data = self.sock.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection")
        self._buffer, self._at = self._buffer[self._at :] + data, 0

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n", self._at)) < 0:
            self._fill()
        line, self._at = self._buffer[self._at : end], end + 2
        return line

    def _bytes(self, n: int) -> bytes:
        if len(self._buffer) - self._at < n + 2:
            chunks = [self._buffer[self._at :]]
            have = len(chunks[0])
            while have < n + 2:
                data = self.sock.recv(1 << 20)
                if not data:
                    raise ConnectionError("the server closed the connection")
                chunks.append(data)
                have += len(data)
            self._buffer, self._at = b"".join(chunks), 0
        end = self._at + n
        data, self._at = self._buffer[self._at : end], end + 2
        return data

    def _reply(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return Status(rest)
        if kind == b"-":
            return Error(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._bytes(int(rest))
        if kind == b"*":
            return NULL_ARRAY if rest == b"-1" else [self._reply() for _ in range(int(rest))]
        if kind == b"_":
            return None
        if kind == b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        if kind == b"%":
            return {self._reply(): self._reply() for _ in range(int(rest))}
        if kind in b"~>":
            return [self._reply() for _ in range(int(rest))]
        if kind == b"=":
            return self._bytes(int(rest))[4:]
        if kind == b"(":
            return int(rest)
        raise ValueError(f"not RESP: {line!r}")
