"""A server that lives and refuses the writes of its clients: too few good replicas, a save that has failed."""

import time

from tests.harness.server import now_ms, wait_for
from tests.harness.wire import Error
from tests.torture.faults.replicas import Replicated
from tests.torture.target import Alone, wait_link

# The interval in which the server checks its own state, in ms: until then it may deliver messages that it should not.
NOTICED = 100


# Number of messages in a separate queue that fall due every APART ms, each awaited by a consumer.
PROBES = 60
APART = 100


class Refusing:
    """The property that both have in common: from when the server refuses a write until it is told to heal, nothing
    is delivered.
    """

    def probe(self, server) -> list:
        """Consumers that wait for messages which fall due before, while and after the server refuses writes."""
        key = self.key + ":probe"
        wires = [server.wire() for _ in range(PROBES)]
        for number, wire in enumerate(wires):
            wire.send("DQ.FETCH", key, "BLOCK", 0, "NOACK")
            with server.wire() as w:
                w.ok("DQ.SEND", key, "x", "DELAY", number * APART)
        return wires

    def refuse(self, server, code: str, seconds: float, wires: list) -> None:
        """Waits until the server refuses with this error, and then for `seconds`."""

        def refuses() -> bool:
            with server.wire() as w:
                reply = w.call("DQ.SEND", self.key, "x", "GROUP", "of nobody", "IFGROUP")
            return isinstance(reply, Error) and reply.startswith(code)

        wait_for(refuses, 20, f"{code} to be the answer to a send")
        begin = now_ms() + NOTICED
        time.sleep(NOTICED / 1000)
        waiting = [wire for wire in wires if wire.silent(0.001)]
        time.sleep(seconds)
        if not refuses():
            self.differences.append(f"a send was accepted {seconds:.1f} s after one was refused with {code}")
        served = sum(not wire.silent(0.001) for wire in waiting)
        if served:
            self.differences.append(f"{served} consumers got a message while writes were refused with {code}")
        if len(waiting) < seconds * 1000 / APART:
            self.differences.append(f"only {len(waiting)} messages were left to fall due: the fault was hardly done")
        self.quiet.append((begin, now_ms() - 1))

    def served(self, wires: list) -> None:
        """All consumers get a message now that writes are accepted again."""
        for wire in wires:
            if not wire.recv():
                self.differences.append("a consumer got nothing")
            wire.close()


class NoReplicas(Refusing, Replicated):
    """The only replica stands still, and the primary refuses writes without a replica that follows closely."""

    pause = 2.0

    def created(self) -> None:
        super().created()
        with self.first.wire() as w:
            w.ok("CONFIG", "SET", "min-replicas-max-lag", 2)
            w.ok("CONFIG", "SET", "min-replicas-to-write", 1)

    def inject(self) -> None:
        wires = self.probe(self.first)
        self.second.pause()
        self.refuse(self.first, "NOREPLICAS", 0.3 + self.rng.random(), wires)
        self.second.resume()
        wait_link(self.first, self.second)
        self.served(wires)

    def heal(self) -> None:
        self.second.resume()
        with self.first.wire() as w:
            w.ok("CONFIG", "SET", "min-replicas-to-write", 0)


class FailedSave(Refusing, Alone):
    """A snapshot cannot be written, and the server refuses writes until one can be."""

    pause = 1.5
    conf = Alone.conf | {"save": "3600 1000000"}

    def inject(self) -> None:
        wires, client = self.probe(self.server), self.server.client()
        # A file cannot replace a folder that is not empty.
        snapshot = self.server.dir / client.config_get("dbfilename")["dbfilename"]
        snapshot.unlink(missing_ok=True)
        snapshot.mkdir()
        (snapshot / "file").touch()
        self.save(client, "err")
        self.refuse(self.server, "MISCONF", 0.3 + self.rng.random(), wires)
        (snapshot / "file").unlink()
        snapshot.rmdir()
        self.save(client, "ok")
        self.served(wires)

    def save(self, client, status: str) -> None:
        client.execute_command("BGSAVE")

        def ended() -> bool:
            info = client.info("persistence")
            return not info["rdb_bgsave_in_progress"] and info["rdb_last_bgsave_status"] == status

        wait_for(ended, 30, f"a save to end with {status}")
