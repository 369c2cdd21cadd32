"""A server, a connection to it that breaks, and a worker of a driver behind it, as a separate process."""

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.harness.faulty import FaultyProxy
from tests.harness.server import Server, wait_for
from tests.harness.topology import Pair

LEASE = 6000
"""Milliseconds after which a message belongs to another worker."""
AWAY = 3.0
"""Seconds for which a server is away, so that it comes back before the leases are over."""
LONG = LEASE / 1000 + 1.5
"""Seconds for which it is away until they are over."""


class FaultyWorker(ABC):
    """A worker and its faults. `send` and `runs` do not go through the proxy."""

    def __init__(self, key: str, folder: Path, database: int = 0) -> None:
        self.key = key
        self.database = database
        self.server = _server()
        self.proxy = FaultyProxy(self.server.port)
        self.log = folder / "log"
        self.log.touch()
        self.output = (folder / "output").open("a+b")
        self.worker: subprocess.Popen | None = None
        self.client = self._client()
        self.sent = 0

    def _client(self) -> redis.Redis:
        return redis.Redis(port=self.server.port, db=self.database, protocol=3)

    @abstractmethod
    def popen(self, environment: dict[str, str]) -> subprocess.Popen:
        """Starts the worker, in a separate session."""

    def launch(self) -> None:
        self.worker = self.popen(
            {
                **os.environ,
                "FAULTS_URL": f"redis://127.0.0.1:{self.proxy.port}",
                "FAULTS_LEASE": str(LEASE),
                "FAULTS_LOG": str(self.log),
            }
        )

    def start(self):
        """Starts the worker, and returns when it waits for messages."""
        self.launch()
        self.wait_idle()
        return self

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
        return self.waiting() > 0

    def cut_and_wait(self) -> None:
        """Cuts the connections of the worker, and returns when the server knows that they have ended."""
        self.cut()
        wait_for(lambda: self.waiting() == 0, 30, "the end of the fetches that wait")

    def waiting(self) -> int:
        """Returns how many connections wait for messages."""
        return int(self.server.info("clients")["blocked_clients"])

    def new_id(self) -> str:
        self.sent += 1
        return f"m{self.sent}"

    def runs(self, id: str) -> Counter:
        """Counts the lines of the handler about a message: `begin` and `end`."""
        lines = (line.split() for line in self.log.read_text().splitlines())
        return Counter(line[0] for line in lines if line[1:2] == [id])

    def wait_begun(self, id: str) -> None:
        wait_for(lambda: self.runs(id)["begin"], 20, f"the begin of {id}\n{self.said()}")

    def wait_running(self, count: int) -> None:
        """Waits until the worker holds so many messages."""
        with self.explained():
            wait_for(lambda: self.client.execute_command("DQ.LEN", self.key, "running") == count, 20, f"{count} messages at the worker")

    def wait_ended(self, id: str, seconds: float) -> None:
        """Waits until the handler has ended."""
        with self.explained():
            wait_for(lambda: self.runs(id)["end"], seconds, f"the end of {id}")

    def wait_done(self, id: str, seconds: float = 20) -> None:
        """Waits until the handler has ended and nothing is left of its message."""
        self.wait_ended(id, seconds)
        with self.explained():
            wait_for(lambda: self.left() == 0, seconds, f"an empty queue after {id}")
        assert self.worker is not None and self.worker.poll() is None, self.said()

    @contextmanager
    def explained(self):
        """A block whose failed assertion also shows the state of the queue, and the output of the worker."""
        try:
            yield
        except AssertionError as error:
            info = self.client.execute_command("DQ.INFO", self.key)
            raise AssertionError(f"{error}\n{info}\n{self.said()}") from None

    def left(self) -> int:
        return int(self.client.execute_command("DQ.LEN", self.key))

    def lease_until(self) -> int:
        """Returns when the lease of the message ends that is running."""
        _, [message] = self.client.execute_command("DQ.LIST", self.key, "running")
        return int(message[b"lease-until"])

    def said(self) -> str:
        """Returns the last lines that the worker and its handler have written."""
        self.output.flush()
        return Path(self.output.name).read_text(errors="replace")[-3000:] + self.log.read_text()[-2000:]

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

    def strike(self, fault: str) -> None:
        getattr(self, fault)()

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

    def hide(self, seconds: float, now: int) -> None:
        """The server goes on, but cannot be reached for some time. The manual clock of the queue is `now` afterwards."""
        with self.proxy.refusing():
            time.sleep(seconds)
            self.client.execute_command("DQ.TICK", self.key, "TO", now)

    def failover(self) -> None:
        """A replica replaces a primary that is lost, at the same address, as with Sentinel behind a proxy."""
        pair = Pair.of(self.server, _server())
        pair.wait_sync()
        self.server.kill9()
        pair.promote()
        self.server.close()
        self.server = pair.replica
        self.client = self._client()
        self.proxy.lead_to(self.server.port)

    def emptied(self) -> None:
        self.client.execute_command("FLUSHALL")

    def deleted(self) -> None:
        self.client.execute_command("DEL", self.key)


def _server() -> Server:
    return Server(appendonly="yes").start()
