"""Faults of replication: resyncs, failover, promotion, Sentinel."""

import time

from tests.checker.history import clock
from tests.harness.server import Server, wait_for
from tests.harness.topology import Pair
from tests.torture.target import Rigged, Target, wait_link


class Replicated(Target):
    """A primary and its replica."""

    conf = {"appendonly": "yes", "appendfsync": "everysec"}

    def open(self) -> None:
        self.servers = [Server(**self.settings).start() for _ in range(2)]
        self.first, self.second = self.servers
        self.second.client().execute_command("REPLICAOF", "127.0.0.1", self.first.port)
        wait_link(self.first, self.second)

    @property
    def ports(self) -> list:
        return [server.port for server in self.servers]

    def primary(self) -> Server:
        return self.first

    def created(self) -> None:
        self.reach_replica()

    def reach_replica(self) -> None:
        """Waits until the replica follows the primary: after a full resync that takes a second more."""
        with self.first.wire() as w:
            self.mark(w)
            if w.ok("WAIT", 1, 10_000) != 1:
                links = [server.info("replication") for server in (self.first, self.second)]
                raise AssertionError(f"the replica does not get anything: {links}")

    def come_back(self) -> None:
        """The dead server starts as a replica of the other: this is set before it starts, because otherwise there
        would be two primaries.
        """
        with open(self.second.dir / "redis.conf", "a") as conf:
            conf.write(f"\nreplicaof 127.0.0.1 {self.first.port}\n")
        self.second.start()

    def compare(self) -> None:
        """At one moment of the traffic the replica has the same state as its primary."""
        frozen = self.freeze(self.first)
        wait_link(self.first, self.second)
        self.differ("primary and replica", frozen, self.digest(self.second))
        self.thaw(self.first)

    def finish(self) -> None:
        wait_link(self.first, self.second)
        self.compare()
        for server in self.servers:
            self.listen(server)

    def close(self) -> None:
        for server in reversed(self.servers):
            server.close()


class PartialResync(Replicated):
    """The link to the replica breaks and continues where it was."""

    def inject(self) -> None:
        with self.first.wire() as w:
            for _ in range(3):
                w.ok("CLIENT", "KILL", "TYPE", "replica")
                time.sleep(self.rng.random() * 0.2)
        wait_for(lambda: self.second.info("replication").get("master_link_status") == "up", 20, "the link")
        self.compare()

    def finish(self) -> None:
        super().finish()
        if int(self.first.info("stats")["sync_partial_ok"]) == 0:
            self.differences.append("no resync was a partial one: the fault was never done")


class FullResync(Replicated):
    """The replica is fully synced again, from memory and through a file, and is sometimes cut off meanwhile."""

    pause = 1.5

    def inject(self) -> None:
        with self.first.wire() as p, self.second.wire() as r:
            r.ok("CONFIG", "SET", "repl-diskless-load", self.rng.choice(("disabled", "swapdb")))
            p.ok("CONFIG", "SET", "repl-diskless-sync", self.rng.choice(("yes", "no")))
            p.ok("DEBUG", "CHANGE-REPL-ID")
            p.ok("CLIENT", "KILL", "TYPE", "replica")
            if self.rng.random() < 0.5:
                time.sleep(self.rng.random() * 0.1)
                p.ok("CLIENT", "KILL", "TYPE", "replica")
        wait_for(lambda: self.second.info("replication").get("master_link_status") == "up", 30, "the full resync")
        self.compare()

    def finish(self) -> None:
        super().finish()
        if int(self.first.info("stats")["sync_full"]) < 2:
            self.differences.append("no resync was a full one: the fault was never done")


class Failover(Replicated):
    """FAILOVER hands the role over at one offset: nothing may be lost at all."""

    pause = 2.0

    def inject(self) -> None:
        wait_link(self.first, self.second)
        self.first.client().execute_command("FAILOVER", "TO", "127.0.0.1", self.second.port, "TIMEOUT", 5000)
        wait_for(lambda: self.first.info("replication")["master_failover_state"] == "no-failover", 15, "the failover")
        if Pair.role(self.first) == "slave":
            self.first, self.second = self.second, self.first
        wait_link(self.first, self.second)
        self.compare()


class Promotion(Replicated):
    """The primary dies; its replica continues with the live leases. Writes that the replica had not got yet are
    lost, as Redis documents.
    """

    pause = 2.0
    # Replication runs milliseconds behind; on a busy machine more.
    reach = 1_000.0

    def inject(self) -> None:
        self.reach_replica()
        time.sleep(self.rng.random() * 0.2)
        begin = clock()
        self.first.kill9()
        self.lose(begin - self.reach, clock())
        self.second.client().execute_command("REPLICAOF", "NO", "ONE")
        self.first, self.second = self.second, self.first
        self.come_back()
        wait_link(self.first, self.second)


# How long a primary must be silent before Sentinel fails over, in ms: longer than a busy machine makes it.
DOWN_AFTER = 2_000


class Sentinel(Rigged):
    """A sentinel that watches one primary."""

    def __init__(self, watched: Server):
        super().__init__(load_module=False)
        self.watched = watched

    def _write_conf(self):
        path = self.dir / "sentinel.conf"
        if not path.exists():
            path.write_text(
                f"port {self.port}\ndir {self.dir}\nlogfile {self.log_path}\n"
                f"sentinel monitor dq 127.0.0.1 {self.watched.port} 1\n"
                f"sentinel down-after-milliseconds dq {DOWN_AFTER}\nsentinel failover-timeout dq 5000\n"
            )
        return path

    def arguments(self) -> list:
        return ["--sentinel"]


class SentinelFailover(Replicated):
    """The primary dies or stands still, and Sentinel makes the replica the new one on its own."""

    pause = 2.0

    def open(self) -> None:
        super().open()
        self.sentinel = Sentinel(self.first).start()

        def knows():
            with self.sentinel.wire(2) as w:
                return len(w.ok("SENTINEL", "REPLICAS", "dq")) == 1

        # Sentinel asks its primary for the names of the replicas every ten seconds.
        wait_for(knows, 30, "Sentinel to know the replica")

    def inject(self) -> None:
        self.reach_replica()
        begin, frozen = clock(), self.rng.random() < 0.3
        if frozen:
            self.first.pause()
        else:
            self.first.kill9()
        wait_for(lambda: _role(self.second) == "master", 40, "Sentinel's failover")
        self.first, self.second = self.second, self.first
        if frozen:
            # The old primary goes on and takes the commands that clients send it until Sentinel reaches it.
            self.second.resume()
            wait_for(lambda: _role(self.second) == "slave", 60, "Sentinel to demote the old primary")
            self.lose(begin - Promotion.reach, clock(), split=True)
        else:
            self.lose(begin - Promotion.reach, clock())
            self.come_back()
        wait_link(self.first, self.second)

    def close(self) -> None:
        self.sentinel.close()
        super().close()


def _role(server):
    """The role, or None if Sentinel has just cut all connections, as it does when it changes one."""
    try:
        return Pair.role(server)
    except OSError:
        return None
