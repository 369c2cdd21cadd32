"""A server, a way to it that breaks, and a worker of a driver behind it, as a process of its own."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import redis
from dqueue import Queue
from dqueue.records import Record

from clients.python.tests.faults.drivers import Driver
from tests.harness.faulty import FaultyProxy
from tests.harness.server import ROOT, Server, wait_for

PROGRAMS = Path(__file__).parent / "programs"
LEASE = 4000
"""Milliseconds after which a message belongs to another worker."""

AWAY = 3.0
"""Seconds for which a server is away that comes back before the leases are over."""

LONG = LEASE / 1000 + 1.5
"""Seconds for which a server is away that comes back after that."""

GRACE = 3.0
"""Seconds that a worker gives its handlers when it is stopped."""


class Scene:
    """A driver's worker on a server. `send` and `runs` do not go through the proxy."""

    def __init__(self, driver: Driver, folder: Path) -> None:
        self.driver = driver
        self.server = Server(appendonly="yes", appendfsync="always").start()
        self.proxy = FaultyProxy(self.server.port)
        self.log = folder / "log"
        self.log.touch()
        self.output = (folder / "output").open("a+b")
        self.worker: subprocess.Popen | None = None
        self.client = redis.Redis(port=self.server.port, protocol=3)
        self._sent = 0

    def start(self) -> "Scene":
        """Starts the worker, and returns when it waits for messages."""
        self.launch()
        self.wait_idle()
        return self

    def launch(self) -> None:
        env = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'clients/python/src'}{os.pathsep}{PROGRAMS}",
            "PYTHONUNBUFFERED": "1",
            "FAULTS_URL": f"redis://127.0.0.1:{self.proxy.port}",
            "FAULTS_LEASE": str(LEASE),
            "FAULTS_LOG": str(self.log),
        }
        command = [sys.executable, *self.driver.command]
        self.worker = subprocess.Popen(
            command, cwd=PROGRAMS, env=env, stdout=self.output, stderr=self.output, start_new_session=True
        )

    def replace(self) -> None:
        """Starts the worker again if it has ended, as a service manager does."""
        assert self.worker is not None
        if self.worker.poll() is not None:
            self.launch()

    def close(self) -> None:
        self.server.resume()
        self.client.close()
        if self.worker is not None:
            try:
                os.killpg(self.worker.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.worker.wait()
        self.proxy.close()
        self.output.close()
        self.server.close()

    def wait_idle(self) -> None:
        """Waits until the worker waits for messages, over connections that are alive."""
        try:
            wait_for(self._is_idle, 30, "a worker that waits")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.said()}") from None

    def _is_idle(self) -> bool:
        assert self.worker is not None and self.worker.poll() is None, self.said()
        return int(self.server.info("clients")["blocked_clients"]) > 0

    def send(self, seconds: float = 0.0, how: str = "return") -> str:
        """Sends a message, and returns its id."""
        self._sent += 1
        id = f"m{self._sent}"
        self.driver.send(self.client, id, seconds, how)
        return id

    def runs(self, id: str) -> Counter:
        """Counts what the handler has written down about a message: `begin` and `end`."""
        lines = (line.split() for line in self.log.read_text().splitlines())
        return Counter(line[0] for line in lines if line[1:2] == [id])

    def wait_begun(self, id: str) -> None:
        wait_for(lambda: self.runs(id)["begin"], 20, f"the begin of {id}\n{self.said()}")

    def wait_done(self, id: str, seconds: float = 20) -> None:
        """Waits until the handler has ended and nothing is left of its message."""
        try:
            wait_for(lambda: self.runs(id)["end"], seconds, f"the end of {id}")
            wait_for(lambda: self.left() == 0, seconds, f"an empty queue after {id}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.client.execute_command('DQ.INFO', self.driver.key)}\n{self.said()}") from None
        assert self.worker is not None and self.worker.poll() is None, self.said()

    def wait_until(self, condition: Callable[[], object], seconds: float, what: str) -> None:
        """Waits for something, and replaces the worker meanwhile."""

        def look() -> object:
            self.replace()
            return condition()

        try:
            wait_for(look, seconds, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.client.execute_command('DQ.INFO', self.driver.key)}\n{self.said()}") from None

    def dead(self, id: str) -> Record | None:
        """Returns what is kept of a message that is dead."""
        # Frameworks give the message an id of their own.
        records = Queue(self.client, self.driver.key).list("dead")
        return next((one for one in records if f'"{id}"'.encode() in one.payload), None)

    def left(self) -> int:
        return int(self.client.execute_command("DQ.LEN", self.driver.key))

    def said(self) -> str:
        """Returns the last lines that the worker has written."""
        self.output.flush()
        return Path(self.output.name).read_text(errors="replace")[-3000:]

    def stop(self) -> float:
        """Stops the worker as a service manager does. Returns how many seconds that took."""
        assert self.worker is not None
        began = time.monotonic()
        self.worker.send_signal(signal.SIGTERM)
        try:
            self.worker.wait(60)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker has not ended after 60 s\n{self.said()}") from None
        return time.monotonic() - began

    # ---- faults

    def cut(self) -> None:
        self.proxy.cut()

    def kill(self) -> None:
        for kind in ("normal", "pubsub"):
            self.client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")

    def away(self, seconds: float = AWAY) -> None:
        self.server.kill9()
        time.sleep(seconds)
        self.server.start()

    def long(self) -> None:
        self.away(LONG)

    def fault(self, name: str) -> Callable[[], None]:
        return getattr(self, name)
