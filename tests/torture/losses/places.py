"""The servers of a row, and their faults."""

import random
import time
from pathlib import Path

from tests.harness.server import assert_clean, wait_for
from tests.torture.losses.link import Link
from tests.torture.preload import Power
from tests.torture.target import Rigged, wait_link

# Every other power failure comes during a sync: then the most data is not yet on the disk.
DURING_A_SYNC = 0.5
# The delay of data from the primary to its replica, in seconds: as between two buildings of one city.
AWAY = 0.002
# How long the primary lives on, cut off from its replica, before that is promoted: in seconds.
APART = (1.5, 4.0)


class Member(Rigged):
    """A server that learns at each start of which server it is a replica, and with files that record the synced
    bytes.
    """

    def __init__(self, power: Power, **conf):
        super().__init__(env=power.env, auto_aof_rewrite_percentage=0, aof_load_truncated="yes", **conf)
        self.power, self.primary = power, None

    def arguments(self) -> list:
        return ["--replicaof", "127.0.0.1", str(self.primary)] if self.primary else []

    def start(self, timeout: float = 60) -> "Member":
        # The log of each earlier start of the server is read once.
        if self.log_path.exists():
            assert_clean(self.log())
            self.log_path.unlink()
        return super().start(timeout)

    def lose_power(self, rng: random.Random) -> None:
        """The server is dead, and the data is lost that its disk had not got."""
        if self.alive():
            self.kill9()
        self.power.fail(self.dir, rng)

    def rewrite(self) -> None:
        """Its log is written anew, so that a restart reads little."""

        def done():
            info = self.info("persistence")
            return info["aof_rewrite_in_progress"] == info["aof_rewrite_scheduled"] == "0"

        # A replica rewrites its log on its own after a full resync.
        wait_for(done, 60, "the end of another rewriting of the log")
        with self.wire() as wire:
            wire.ok("BGREWRITEAOF")
        wait_for(done, 60, "the rewriting of the log")


class Place:
    """Some servers, one of them the primary. Subclasses say what befalls them."""

    # How many servers there are.
    servers = 1

    def __init__(self, folder: Path, seed: int, conf: dict):
        self.rng = random.Random(seed)
        powers = [Power(folder / f"table-{n}") for n in range(self.servers)]
        self.members = [Member(power, **conf) for power in powers]
        self.link = Link(AWAY) if self.servers > 1 else None
        self.front = Link()

    @property
    def primary(self) -> Member:
        return self.members[0]

    @property
    def port(self) -> int:
        """The address at which clients that live on through a fault find the primary."""
        return self.front.port if self.link else self.primary.port

    @property
    def replica(self) -> Member:
        return self.members[1]

    def open(self) -> None:
        self.primary.start()
        self.front.aim(self.primary.port)
        if self.link:
            self.follow()

    def strike(self) -> float:
        """The fault. Returns when it came, once nobody is served any more."""
        raise NotImplementedError

    def recover(self) -> None:
        """The remaining server serves clients, with the data that it has."""
        self.primary.start()
        self.front.aim(self.primary.port)

    def repair(self) -> None:
        """Afterwards each server runs, and follows the serving one. Does nothing where that is so already."""

    def follow(self) -> None:
        """The second server becomes a replica of the first, over the link."""
        self.link.aim(self.primary.port)
        self.replica.primary = self.link.port
        self.replica.start()
        wait_link(self.primary, self.replica)
        self.hear()

    def hear(self) -> None:
        """Waits until the primary counts its replica, with and without a sync: after a resync that takes a second
        more.
        """
        if "min-replicas-to-write" in self.primary.conf:
            wait_for(lambda: self.primary.info("replication")["min_slaves_good_slaves"] != "0", 10, "a good replica")
        with self.primary.wire() as wire:
            wire.ok("SET", "heard", self.rng.random())
            assert wire.ok("WAIT", 1, 10_000) == 1, "the replica gets nothing"

    def close(self) -> None:
        self.front.close()
        if self.link:
            self.link.close()
        for member in reversed(self.members):
            member.close(check_log=False)


class Killed(Place):
    """The process dies; the kernel keeps its writes."""

    def strike(self) -> float:
        struck = time.monotonic()
        self.primary.kill9()
        self.front.cut()
        return struck


class PowerGone(Place):
    """The machine dies, and with it all unsynced data."""

    def strike(self) -> float:
        if self.rng.random() < DURING_A_SYNC and self.syncs():
            self.primary.power.approach()
            wait_for(self.primary.power.struck, 30, "a sync for the power to fail in")
        struck = time.monotonic()
        self.primary.kill9()
        self.front.cut()
        self.primary.lose_power(self.rng)
        return struck

    def syncs(self) -> bool:
        return self.primary.conf["appendfsync"] != "no"


class Promoted(Place):
    """The machine of the primary is gone, with the data on its way to the replica, which is promoted."""

    servers = 2

    def strike(self) -> float:
        self.link.hush()
        struck = time.monotonic()
        self.primary.kill9()
        self.link.cut()
        self.front.cut()
        return struck

    def recover(self) -> None:
        self.members.reverse()
        self.primary.client().execute_command("REPLICAOF", "NO", "ONE")
        self.front.aim(self.primary.port)

    def repair(self) -> None:
        self.follow()


class Apart(Promoted):
    """The primary is cut off from its replica, not from its clients. Some seconds later the replica is promoted."""

    def strike(self) -> float:
        self.link.hush()
        time.sleep(self.rng.uniform(*APART))
        return super().strike()


class AllPowerGone(Promoted):
    """The power of both fails at once. Either of the two is the primary afterwards."""

    def strike(self) -> float:
        self.link.hush()
        struck = time.monotonic()
        for member in self.members:
            member.process.kill()
        self.link.cut()
        self.front.cut()
        for member in self.members:
            member.lose_power(self.rng)
        return struck

    def recover(self) -> None:
        self.rng.shuffle(self.members)
        self.primary.primary = None
        Place.recover(self)
