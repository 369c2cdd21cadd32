"""A connection that loses replies: the server has done what was asked, and the client does not know."""

import socket
import threading


class LossyProxy:
    """Listens on `port` and passes everything on to a server, except the replies that `lose` names."""

    def __init__(self, server_port: int):
        self._server_port = server_port
        self._lock = threading.Lock()
        self._to_lose: list[bytes] = []
        self.lost = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, word: bytes, times: int = 1) -> None:
        """The next `times` commands with this word are done, but the connection breaks before their replies."""
        with self._lock:
            self._to_lose += [word.upper()] * times

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                return
            losing = threading.Event()
            threading.Thread(target=self._ask, args=(client, server, losing), daemon=True).start()
            threading.Thread(target=self._answer, args=(server, client, losing), daemon=True).start()

    def _ask(self, client, server, losing) -> None:
        try:
            while data := client.recv(65536):
                with self._lock:
                    word = next((word for word in self._to_lose if word in data.upper()), None)
                    if word is not None:
                        self._to_lose.remove(word)
                        self.lost += 1
                        losing.set()
                server.sendall(data)
        except OSError:
            pass
        finally:
            _shut(server)

    @staticmethod
    def _answer(server, client, losing) -> None:
        try:
            while data := server.recv(65536):
                if losing.is_set():
                    break
                client.sendall(data)
        except OSError:
            pass
        finally:
            _shut(client)
            _shut(server)


def _shut(end: socket.socket) -> None:
    # Not close(): the other thread may be about to read, and the number may belong to a new connection by then.
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
