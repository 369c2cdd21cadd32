"""Faults between the clients and the server."""

import time

from tests.harness.lossy import LossyProxy
from tests.harness.server import now_ms
from tests.torture.stage import Alone


class ClientKill(Alone):
    """Connections are cut, blocked ones too, some the moment they are served."""

    pause = 0.3

    def inject(self) -> None:
        with self.server.wire() as w:
            clients = [line.split() for line in w.ok("CLIENT", "LIST", "TYPE", "normal").decode().splitlines()]
            own = b"%d" % w.ok("CLIENT", "ID")
            for words in clients:
                id = words[0].removeprefix("id=").encode()
                if id != own and self.rng.random() < 0.4:
                    w.ok("CLIENT", "KILL", "ID", id)


class ClientPause(Alone):
    """CLIENT PAUSE with messages falling due and leases running out inside it."""

    def inject(self) -> None:
        ms, mode = self.rng.randrange(50, 900), self.rng.choice(("WRITE", "ALL"))
        with self.server.wire() as w:
            w.ok("CLIENT", "PAUSE", ms, mode)
            begin = now_ms()
            # The server ends the pause by itself at the earliest when it was asked for plus ms.
            time.sleep(ms / 1000)
            self.quiet.append((begin, begin + ms - 50))

    def heal(self) -> None:
        with self.server.wire() as w:
            w.ok("CLIENT", "UNPAUSE")


class LostReplies(Alone):
    """The server does what it is asked, and the connection breaks before the reply."""

    pause = 0.1

    def open(self) -> None:
        super().open()
        self.proxy = LossyProxy(self.server.port)

    @property
    def ports(self) -> list:
        return [self.proxy.port]

    def inject(self) -> None:
        self.proxy.lose(self.rng.choice((b"DQ.SEND", b"DQ.FETCH", b"DQ.ACK", b"DQ.NACK")))

    def close(self) -> None:
        self.proxy.close()
        super().close()
