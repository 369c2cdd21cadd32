"""Faults between the clients and the server."""

import time

from tests.checker.history import clock
from tests.harness.lossy import CuttingProxy, LossyProxy
from tests.harness.server import now_ms
from tests.torture.target import HEALING, Alone


class ClientKill(Alone):
    """Connections are cut, blocked ones too, some of them when they are served."""

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
            asked = now_ms()
            w.ok("CLIENT", "PAUSE", ms, mode)
            # Surely on from the answer until as long after the call: both may take their time on a busy machine.
            self.quiet.append((now_ms(), asked + ms))
            time.sleep(ms / 1000)

    def heal(self) -> None:
        with self.server.wire() as w:
            w.ok("CLIENT", "UNPAUSE")


class CutReplies(Alone):
    """Replies to FETCH are cut after every one of their bytes, while the worker sends the same token again and again.

    No attempt may be lost by that: leases are long, so that none is over before the reply has come whole.
    """

    pause = 0.5
    lease = 60_000
    # These ways hold a message until its lease is over, so they would take too long. Few replies come, so more is done
    # with each.
    ways = {"crash": 0.0, "slow": 0.0, "forget": 0.0, "nack": 0.15, "silent": 0.15, "hand_on": 0.3, "note": 0.2}

    def open(self) -> None:
        super().open()
        self.proxy = CuttingProxy(self.server.port, b"DQ.FETCH", at_a_time=2)
        self.began = clock()

    @property
    def ports(self) -> list:
        return [self.proxy.port]

    def do(self) -> None:
        """The proxy cuts replies all the time."""

    def heal(self) -> None:
        self.proxy.stop()
        self.injected = self.proxy.cuts
        self.disturbed.append((self.began, clock() + HEALING))

    def close(self) -> None:
        self.proxy.close()
        super().close()


class LostReplies(Alone):
    """The server does the command, and the connection breaks before the reply."""

    pause = 0.1

    def open(self) -> None:
        super().open()
        self.proxy = LossyProxy(self.server.port)

    @property
    def ports(self) -> list:
        return [self.proxy.port]

    def inject(self) -> None:
        self.proxy.lose(self.rng.choice((b"DQ.SEND", b"DQ.FETCH", b"DQ.ACK", b"DQ.ACKSEND", b"DQ.NACK")))

    def close(self) -> None:
        self.proxy.close()
        super().close()
