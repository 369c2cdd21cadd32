"""Faults of the server's process: killed, stopped, saving, reloading."""

import shutil
import time

from tests.checker.history import clock
from tests.harness.server import Server, wait_for
from tests.torture.target import Alone


class Nothing(Alone):
    """No fault: the checker on a quiet run."""

    pause = 0.5

    def do(self) -> None:
        """There is no fault, so all messages have to come in time."""


class Kill9(Alone):
    """The process dies; the kernel keeps its writes."""

    def inject(self) -> None:
        if self.rng.random() < 0.5:
            self.server.kill9()
        else:
            frozen = self.freeze(self.server)
            self.server.kill9()
            self.differ("what the log leads to", frozen, self.replayed(self.server))
        time.sleep(self.rng.random() * 0.4)
        self.server.start()


class Kill9Everysec(Alone):
    """The process dies, but answered commands are not lost: they had been handed to the kernel, synced or not."""

    conf = {"appendonly": "yes", "appendfsync": "everysec"}

    def inject(self) -> None:
        self.server.restart(crash=True)


class Sigstop(Alone):
    """The process stands still for longer than leases last. Clients that were in time must not notice."""

    def inject(self) -> None:
        self.server.pause()
        begin = clock()
        time.sleep(self.rng.choice((0.1, 0.25, 0.4, 1.2)))
        self.standstills.append((begin, clock()))
        self.server.resume()

    def heal(self) -> None:
        self.server.resume()


class Bgsave(Alone):
    """Snapshots under load; the content of a snapshot is the state at its beginning."""

    conf = {"appendonly": "no"}

    def inject(self) -> None:
        client = self.server.client()
        frozen = self.freeze(self.server)
        client.execute_command("BGSAVE")
        self.thaw(self.server)
        wait_for(lambda: not client.info("persistence")["rdb_bgsave_in_progress"], 30, "BGSAVE")
        assert client.info("persistence")["rdb_last_bgsave_status"] == "ok"
        self.differ("the snapshot", frozen, self.loaded())

    def loaded(self) -> bytes:
        """The digest of the snapshot in another server, whose time does not move."""
        twin = Server(replicaof="127.0.0.1 1")
        try:
            shutil.copy(self.server.dir / "dump.rdb", twin.dir / "dump.rdb")
            twin.start()
            return self.digest(twin)
        finally:
            twin.close()


class Rewrite(Alone):
    """The log is written anew under load, then the process dies."""

    def inject(self) -> None:
        client = self.server.client()
        client.execute_command("BGREWRITEAOF")

        def done():
            info = client.info("persistence")
            return not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"]

        wait_for(done, 30, "the rewriting of the log")
        assert client.info("persistence")["aof_last_bgrewrite_status"] == "ok"
        time.sleep(self.rng.random() * 0.3)
        frozen = self.freeze(self.server)
        self.server.kill9()
        self.differ("what the log leads to", frozen, self.replayed(self.server))
        self.server.start()


class RewriteNoPreamble(Rewrite):
    """The log is written anew as commands under load, then the process dies."""

    conf = Alone.conf | {"aof-use-rdb-preamble": "no"}


class Reload(Alone):
    """DEBUG RELOAD and DEBUG LOADAOF with live leases and blocked clients."""

    def inject(self) -> None:
        with self.server.wire(timeout=60) as w:
            how = self.rng.choice(("RELOAD", "LOADAOF"))
            w.ok("MULTI")
            self.mark(w)
            if how == "RELOAD":
                w.ok("DEBUG", "DIGEST-VALUE", *self.keys)
                w.ok("DEBUG", "RELOAD")
                w.ok("DEBUG", "DIGEST-VALUE", *self.keys)
            replies = w.ok("EXEC")
            if how == "RELOAD":
                self.differ("after DEBUG RELOAD", b"".join(replies[-3]), b"".join(replies[-1]))
            else:
                w.ok("DEBUG", "LOADAOF")
