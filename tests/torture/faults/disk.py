"""Faults of the disk and of memory: power failures, a full disk, a full memory."""

import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.checker.history import clock
from tests.harness.server import wait_for
from tests.harness.wire import Error
from tests.torture.preload import Power
from tests.torture.target import Alone, Rigged


class PowerLoss(Alone):
    """The machine dies: writes that were not synced are gone, wholly or from some byte on."""

    # The time that a failure may reach back, in ms.
    reach = 0.0

    def make(self) -> Rigged:
        self.folder = tempfile.TemporaryDirectory(prefix="dq-power-")
        self.power = Power(Path(self.folder.name) / "table")
        return Rigged(env=self.power.env, auto_aof_rewrite_percentage=0, **self.settings)

    def created(self) -> None:
        """The queues themselves are to outlive the first failure."""
        with self.server.wire() as w:
            w.ok("CONFIG", "SET", "appendfsync", "always")
            self.mark(w)
            w.ok("CONFIG", "SET", "appendfsync", self.conf["appendfsync"])

    def inject(self) -> None:
        begin = clock()
        self.server.kill9()
        if self.reach:
            self.lose(begin - self.reach, clock())
        self.power.fail(self.server.dir, self.rng)
        self.server.start()

    def close(self) -> None:
        super().close()
        self.folder.cleanup()


class PowerAlways(PowerLoss):
    """appendfsync always: no answered command is lost."""


class PowerEverysec(PowerLoss):
    """appendfsync everysec: the last second or, where the disk is slow, 2.2 s."""

    pause = 3.0
    conf = {"appendonly": "yes", "appendfsync": "everysec"}
    reach = 2_200.0


class PowerNo(PowerLoss):
    """appendfsync no: any end of the log may be lost, but nothing before it."""

    pause = 2.5
    conf = {"appendonly": "yes", "appendfsync": "no"}
    reach = float("inf")


class DiskFull(Alone):
    """The log's disk is full: changes are refused, and all work continues when there is room again."""

    pause = 1.5
    conf = {"appendonly": "yes", "appendfsync": "everysec"}

    def make(self) -> Rigged:
        server = Rigged(auto_aof_rewrite_percentage=0, before=_ignore_file_limit, **self.settings)
        self.mounted = os.geteuid() == 0 and _mount(server.dir)
        return server

    def inject(self) -> None:
        filler = self.server.dir / "filler"
        if self.mounted:
            _fill(filler)
        else:
            _limit(self.server.pid, (self.server.dir / "appendonlydir").stat().st_size)
        wait_for(lambda: self.server.info("persistence")["aof_last_write_status"] == "err", 10, "the full disk")
        with self.server.wire() as w:
            reply = w.call("DQ.SEND", self.key, "x", "ID", "on-a-full-disk")
            if not (isinstance(reply, Error) and reply.startswith("MISCONF")):
                self.differences.append(f"a SEND on a full disk gave {reply!r}")
        time.sleep(self.rng.random() * 0.6)
        if self.mounted:
            filler.unlink()
        else:
            _limit(self.server.pid, resource.RLIM_INFINITY)
        wait_for(lambda: self.server.info("persistence")["aof_last_write_status"] == "ok", 10, "room again")

    def finish(self) -> None:
        time.sleep(1.2)
        frozen = self.freeze(self.server)
        # A write may wait for a sync that is on its way.
        time.sleep(2.2)
        self.differ("what the log leads to", frozen, self.replayed(self.server))
        self.thaw(self.server)
        super().finish()

    def close(self) -> None:
        self.server.stop()
        if self.mounted:
            log = self.server.log()
            subprocess.run(["umount", self.server.dir], check=True)
            self.server.log_path.write_text(log)
        super().close()


def _ignore_file_limit() -> None:
    # Over the limit a write is to fail with an error, not with a signal.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _mount(folder: Path) -> bool:
    """A separate small disk, where this process may mount one."""
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _fill(filler: Path) -> None:
    with open(filler, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                pass


def _limit(pid: int, size: int) -> None:
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


class MaxMemory(Alone):
    """Memory is full under noeviction: commands that add are refused, and those that drain continue."""

    def inject(self) -> None:
        with self.server.wire() as w:
            used = int(self.server.info("memory")["used_memory"])
            w.ok("CONFIG", "SET", "maxmemory", max(1, used - 100_000))
            deadline = time.monotonic() + 1.5
            refused = False
            while time.monotonic() < deadline and not refused:
                reply = w.call("DQ.SEND", self.key, "x" * 1000, "ID", "in-a-full-memory")
                refused = isinstance(reply, Error) and reply.startswith("OOM")
            for call in (("DQ.FETCH", self.key, "GROUP", "of nobody"), ("DQ.ACK", self.key, 1), ("DQ.TICK", self.key)):
                reply = w.call(*call)
                if isinstance(reply, Error):
                    self.differences.append(f"{call[0]} in a full memory: {reply}")
            if not refused:
                self.differences.append(f"a SEND beyond maxmemory gave {reply!r}")
            time.sleep(0.3)
            w.ok("CONFIG", "SET", "maxmemory", 0)

    def heal(self) -> None:
        with self.server.wire() as w:
            w.ok("CONFIG", "SET", "maxmemory", 0)
