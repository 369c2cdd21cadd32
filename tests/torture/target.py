"""The target of a fault: one server or several, and the statements that hold for the time it took."""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

from tests.checker.history import Window, clock
from tests.checker.run import end_state
from tests.harness.server import Server, engine, wait_for
from tests.harness.wire import Error
from tests.torture.actors import GRACE
from tests.torture.workload import ORDERS, PARTNERS

# How long after a fault messages may be late, in ms.
HEALING = 1_500.0


class Rigged(Server):
    """A server with variables of its own in its environment, and, if asked for, a directory the test has made."""

    def __init__(self, env=None, before=None, **conf):
        super().__init__(**conf)
        self.env, self.before = env or {}, before

    def launch(self) -> int:
        self.process = subprocess.Popen(
            [engine(), str(self._write_conf()), *self.arguments()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **self.env},
            preexec_fn=self.before,
        )
        return self.process.pid

    def arguments(self) -> list:
        """Further arguments for the command line."""
        return []


class Target:
    """One fault, done again and again while the actors work. Subclasses say how.

    `inject` does it once and returns when the servers answer again; `heal` makes everything well for
    the actors to drain the queue; `finish` looks at what is left when they have.
    """

    # Seconds from one injection to the next.
    pause = 1.0
    conf: dict = {}
    # The workloads of the queues.
    workloads: tuple = (ORDERS, PARTNERS)
    # The leases that the consumers ask for, in ms, and further differences of the actors from the default (Ways).
    lease = 300
    ways: dict = {}
    # The folder into which the actors write.
    journals: Path

    def __init__(self, seed: int):
        self.rng, self.key = random.Random(seed), f"{{torture:{seed}}}"
        self.injected = 0
        self.windows, self.steps, self.disturbed, self.quiet, self.differences = [], [], [], [], []
        self.standstills = []
        self.extra_operations = 0

    @property
    def settings(self) -> dict:
        """The settings that all of its servers are started with."""
        return {"dq.start-grace": GRACE, **self.conf}

    @property
    def ports(self) -> list:
        """The address at which the actors find the queue."""
        raise NotImplementedError

    def primary(self) -> Server:
        """The server that has the queue now."""
        raise NotImplementedError

    def open(self) -> None:
        """Starts the servers."""
        raise NotImplementedError

    @property
    def queues(self) -> list:
        """All queues. They are in one slot."""
        return [queue for workload in self.workloads for queue in workload.queues(self.key)]

    @property
    def keys(self) -> list:
        """All queues and their other keys, in the same slot."""
        return [key for workload in self.workloads for key in workload.keys(self.key)]

    def create(self) -> None:
        """Makes the queues."""
        client = self.primary().client()
        for workload in self.workloads:
            workload.create(client, self.key + workload.suffix)

    def end_state(self, workload) -> dict:
        """The end of this queue, as a History has it."""
        return end_state(self.primary().client(), self.key + workload.suffix)

    def created(self) -> None:
        """Called after the queue was made. Most faults need no work here."""

    def inject(self) -> None:
        raise NotImplementedError

    def heal(self) -> None:
        """Most faults need no work here."""

    def finish(self) -> None:
        """Most faults need no work here."""

    def close(self) -> None:
        raise NotImplementedError

    def do(self) -> None:
        """One injection, and the note that no message counts as late meanwhile."""
        begin = clock()
        self.inject()
        self.injected += 1
        self.disturbed.append((begin, clock() + HEALING))

    def lose(self, begin: float, end: float, split: bool = False, part: bool = False) -> None:
        """Commands that were answered in that time may be undone, but nothing from before the last loss (see
        Window).
        """
        last = max((window.end for window in self.windows), default=float("-inf"))
        self.windows.append(Window(max(begin, last), end, split, part))

    def differ(self, what: str, one, other) -> None:
        if one != other:
            self.differences.append(f"{what}: {one.hex()[:12]} and {other.hex()[:12]}")

    def freeze(self, server: Server, ms: int = 8_000) -> bytes:
        """One last entry for each queue, the digests right after that, and no change for this time afterwards."""
        with server.wire() as w:
            w.ok("MULTI")
            self.mark(w)
            w.ok("DEBUG", "DIGEST-VALUE", *self.keys)
            w.ok("CLIENT", "PAUSE", ms, "WRITE")
            replies = w.ok("EXEC")
        errors = [reply for reply in replies if isinstance(reply, Error)]
        assert not errors, errors
        return b"".join(replies[len(self.queues)])

    def mark(self, wire) -> None:
        """A harmless command for the log of each queue."""
        for key in self.queues:
            wire.ok("DQ.GROUPSET", key, "frozen", "WEIGHT", self.rng.randrange(1, 100))

    def digest(self, server: Server) -> bytes:
        """The digests of all queues."""
        return b"".join(server.client().execute_command("DEBUG", "DIGEST-VALUE", *self.keys))

    def listen(self, server: Server) -> None:
        """A log entry with another result than on the primary is only reported in the server's log."""
        told = [line for line in server.log().splitlines() if "could not be applied" in line]
        self.differences += told[:5]

    def thaw(self, server: Server) -> None:
        with server.wire() as w:
            w.ok("CLIENT", "UNPAUSE")

    def replayed(self, server: Server) -> bytes:
        """The digest of the server's log, in a replica without a primary, whose time does not move."""
        twin = Server(appendonly="yes", replicaof="127.0.0.1 1", **self.twin_conf(server))
        try:
            shutil.copytree(server.dir / "appendonlydir", Path(twin.dir) / "appendonlydir")
            twin.start()
            self.listen(twin)
            return self.digest(twin)
        finally:
            twin.close()

    def twin_conf(self, server: Server) -> dict:
        return {"aof_load_truncated": "yes"}


class Alone(Target):
    """One server with a log."""

    conf = {"appendonly": "yes", "appendfsync": "always"}

    def make(self) -> Server:
        return Server(auto_aof_rewrite_percentage=0, **self.settings)

    def open(self) -> None:
        self.server = self.make().start()

    @property
    def ports(self) -> list:
        return [self.server.port]

    def primary(self) -> Server:
        return self.server

    def finish(self) -> None:
        """All messages have ended: a crash and the log change nothing of that."""
        self.listen(self.server)
        # Under everysec a write may wait up to two seconds for a sync that is on its way.
        if self.conf.get("appendonly") == "yes":
            if self.conf.get("appendfsync") != "always":
                time.sleep(2.2)
            before = self.digest(self.server)
            self.server.restart(crash=True)
            self.differ("after the last restart", before, self.digest(self.server))

    def close(self) -> None:
        self.server.close()


def wait_link(primary: Server, replica: Server, timeout: float = 20) -> None:
    """Waits until the replica has all writes of the primary."""

    def same():
        p, r = primary.info("replication"), replica.info("replication")
        return (
            r.get("master_link_status") == "up"
            and r.get("master_sync_in_progress") == "0"
            and p["master_repl_offset"] == r["slave_repl_offset"]
        )

    wait_for(same, timeout, "the replica to have everything")
