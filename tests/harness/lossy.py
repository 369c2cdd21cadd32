"""Connections that lose replies: the server has done the command, and the client does not know."""

import socket
import threading


class Proxy:
    """Listens on `port` and passes all data on to a server, as far as `asked` and `answered` allow."""

    def __init__(self, server_port: int):
        self._server_port = server_port
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def asked(self, connection: dict, data: bytes) -> None:
        """A client has sent this. Values in `connection` are available when the answer comes."""

    def answered(self, connection: dict, data: bytes) -> bytes | None:
        """The part of the data that the client gets; None: nothing, and the connection breaks."""
        return data

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                return
            connection: dict = {}
            threading.Thread(target=self._ask, args=(client, server, connection), daemon=True).start()
            threading.Thread(target=self._answer, args=(server, client, connection), daemon=True).start()

    def _ask(self, client, server, connection) -> None:
        try:
            while data := client.recv(65536):
                with self._lock:
                    self.asked(connection, data)
                server.sendall(data)
        except OSError:
            pass
        finally:
            _shut(server)

    def _answer(self, server, client, connection) -> None:
        try:
            while data := server.recv(65536):
                with self._lock:
                    passed = self.answered(connection, data)
                if passed is not None:
                    client.sendall(passed)
                if passed != data:
                    break
        except OSError:
            pass
        finally:
            _shut(client)
            _shut(server)


class LossyProxy(Proxy):
    """Passes all data on, except the replies that `lose` names."""

    def __init__(self, server_port: int):
        self._to_lose: list[bytes] = []
        self.lost = 0
        super().__init__(server_port)

    def lose(self, word: bytes, times: int = 1) -> None:
        """The next `times` commands with this word are done, but the connection breaks before their replies."""
        with self._lock:
            self._to_lose += [word.upper()] * times

    def asked(self, connection, data):
        word = next((word for word in self._to_lose if word in data.upper()), None)
        if word is not None:
            self._to_lose.remove(word)
            self.lost += 1
            connection["losing"] = True

    def answered(self, connection, data):
        return None if connection.get("losing") else data


class CuttingProxy(Proxy):
    """Breaks the connection inside of replies, at each byte in turn.

    The reply to a command with this word is cut before its first byte. If the client sends the same bytes again, its
    reply is cut after the first byte, then after the second, until one comes completely. This is done to `at_a_time`
    commands at a time, and the others pass. An empty array is passed on: nothing is lost with it.
    """

    def __init__(self, server_port: int, word: bytes, at_a_time: int = 1):
        self._word, self._at_a_time = word, at_a_time
        # The places at which the next reply to a command is to be cut.
        self._places: dict[bytes, int] = {}
        # How often a reply was cut, and the number of replies that have come completely in the end.
        self.cuts = self.whole = 0
        super().__init__(server_port)

    def stop(self) -> None:
        """From now on no reply is cut."""
        with self._lock:
            self._at_a_time = 0
            self._places.clear()

    def asked(self, connection, data):
        # A client that sends a further command has got all of the last reply.
        if connection.pop("left", None) is not None and self._places.pop(connection["asked"], None):
            self.whole += 1
        if self._word not in data.upper():
            return
        if data not in self._places and len(self._places) < self._at_a_time:
            self._places[data] = 0
        if data in self._places:
            connection["left"], connection["asked"] = self._places[data], data

    def answered(self, connection, data):
        left = connection.get("left")
        if left is None or connection["asked"] not in self._places:
            return data
        if data == b"*0\r\n":
            del self._places[connection["asked"]]
            return data
        if len(data) <= left:
            connection["left"] = left - len(data)
            return data
        self.cuts += 1
        self._places[connection["asked"]] += 1
        return data[:left]


def _shut(end: socket.socket) -> None:
    # This is not close(), because the other thread may be about to read, and the number may belong to a new connection
    # by then.
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
