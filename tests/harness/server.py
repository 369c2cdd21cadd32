"""One real redis-server process with the module loaded.

Environment: DQ_MODULE names the .so (default target/release/libdq.so), REDIS_SERVER the engine's
executable (default redis-server), so that the same tests run on other engines.
"""

import fcntl
import functools
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.harness.wire import Wire

ROOT = Path(__file__).resolve().parents[2]

# Any of these in a server's log fails the test run, even if all replies were right.
CRASH = re.compile(
    r"BUG REPORT|ASSERTION FAILED|crashed by signal|Guru Meditation|panicked at|== CRITICAL ==|"
    r"internal error in the dq module|Redis Allocator isn't available|stack overflow"
)

DEFAULTS = {
    "bind": "127.0.0.1",
    "save": '""',
    "appendonly": "no",
    # A server that is killed has written the commands that it has replied to, and the system keeps them. With everysec it
    # may put off a write while the disk is busy.
    "appendfsync": "no",
    "enable-debug-command": "yes",
    "enable-module-command": "yes",
    "repl-diskless-sync-delay": "0",
    "repl-ping-replica-period": "1",
    "repl-backlog-size": "8mb",
    "latency-monitor-threshold": "0",
    "maxclients": "4000",
    "loglevel": "notice",
    "crash-memcheck-enabled": "no",
}


def module_path() -> Path:
    """The module under test; it need not exist yet."""
    return Path(os.environ.get("DQ_MODULE", ROOT / "target/release/libdq.so")).resolve()


def engine() -> str:
    """The server executable under test."""
    return os.environ.get("REDIS_SERVER", "redis-server")


# With their bus ports these ports are below those that the kernel gives to outgoing connections: one of them, from
# anywhere on this machine, could have a port of that range by the time the server starts, or starts again.
PORTS = range(11_000, 22_000)
_given = set()


def free_port() -> int:
    """A free port whose cluster bus port (+10000) is free too.

    While this process runs, neither it nor another run of the tests is given the port again. A node of a cluster goes
    on asking the ports of its dead peers, and would meet a node of another cluster there.
    """
    while True:
        port = random.choice(PORTS)
        if port in _given or not _locks(port):
            continue
        _given.add(port)
        try:
            for one in (port, port + 10_000):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", one))
        except OSError:
            continue
        return port


@functools.cache
def _port_locks() -> int:
    """A file of the machine. The process that has locked the byte at the offset of a port owns the port."""
    return os.open(Path(tempfile.gettempdir()) / "dq-ports.lock", os.O_RDWR | os.O_CREAT, 0o666)


def _locks(port: int) -> bool:
    """Locks the port until this process ends. Returns False if another process has it."""
    try:
        fcntl.lockf(_port_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


# Failed messages are tried again at once.
NO_BACKOFF = {"dq.backoff": '"FIXED 0"'}


class Server:
    """A server in its own directory.

    Keyword names of `conf` are those of redis.conf with `_` for `-`; a list gives several lines;
    names with a dot (`{"dq.lease": 7000}`) pass through. `module_args` follow the .so on the
    loadmodule line. Queues that say nothing of BACKOFF have none, unlike those of other servers: most
    tests are about other things than waits. `{"dq.backoff": None}` leaves the module's default.
    """

    def __init__(self, module_args=(), load_module=True, **conf):
        self.dir = Path(tempfile.mkdtemp(prefix="dq-test-"))
        self.port = free_port()
        self.module_args = [str(a) for a in module_args]
        self.load_module = load_module
        self.conf = dict(DEFAULTS)
        if load_module and "dq.backoff" not in self.module_args:
            self.conf |= NO_BACKOFF
        for name, value in conf.items():
            self.conf[name if "." in name else name.replace("_", "-")] = value
        self.process = None
        self._clients = []

    @property
    def log_path(self) -> Path:
        return self.dir / "server.log"

    @property
    def pid(self) -> int:
        return self.process.pid

    def log(self) -> str:
        """All lines that this server has logged, over all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _write_conf(self) -> Path:
        lines = [f"port {self.port}", f"dir {self.dir}", f"logfile {self.log_path}"]
        if self.load_module:
            lines.append(" ".join(["loadmodule", str(module_path()), *self.module_args]))
        for name, value in self.conf.items():
            if value is None:
                continue
            for one in value if isinstance(value, (list, tuple)) else [value]:
                lines.append(f"{name} {one}")
        path = self.dir / "redis.conf"
        # CONFIG REWRITE's work must survive a restart, so an existing file is kept.
        if not path.exists():
            path.write_text("\n".join(lines) + "\n")
        return path

    def launch(self) -> int:
        """Starts the process without waiting for it to serve; returns its pid."""
        self.process = subprocess.Popen(
            [engine(), str(self._write_conf())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return self.process.pid

    def start(self, timeout: float = 20) -> "Server":
        """Starts the server and returns once it answers PING with its data loaded."""
        self.launch()
        deadline = time.monotonic() + timeout
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"server exited with {self.process.returncode}:\n{self.log()[-4000:]}")
            try:
                with Wire(self.port, timeout=2) as wire:
                    if wire.call("PING") == b"PONG":
                        return self
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise RuntimeError(f"server does not answer:\n{self.log()[-4000:]}")
            time.sleep(0.01)

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Ends the process (SIGTERM, then SIGKILL); its directory stays for a later start()."""
        self.drop_clients()
        if self.alive():
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def kill9(self) -> None:
        """A crash of the process: no data is flushed and no client is warned."""
        self.drop_clients()
        self.process.kill()
        self.process.wait()

    def restart(self, crash: bool = False) -> "Server":
        """Stops (or crashes) and starts again on the same port and data."""
        self.kill9() if crash else self.stop()
        return self.start()

    def pause(self) -> None:
        """SIGSTOP, as if the machine were frozen. Returns when the server has stopped."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self, check_log: bool = True) -> None:
        """Ends the server and removes its directory; fails if its log shows a crash."""
        self.stop()
        log = self.log()
        shutil.rmtree(self.dir, ignore_errors=True)
        if check_log:
            assert_clean(log)

    def client(self, protocol: int = 3, **kwargs) -> redis.Redis:
        """A redis-py client on one connection of its own, raw bytes, without retries."""
        kwargs.setdefault("socket_timeout", 20)
        client = redis.Redis(
            host="127.0.0.1",
            port=self.port,
            protocol=protocol,
            retry=Retry(NoBackoff(), 0),
            decode_responses=False,
            single_connection_client=True,
            **kwargs,
        )
        self._clients.append(client)
        return client

    def wire(self, protocol: int = 3, timeout: float = 20) -> Wire:
        """A raw connection: exact reply types, sending without reading."""
        wire = Wire(self.port, protocol=protocol, timeout=timeout)
        self._clients.append(wire)
        return wire

    def info(self, section: str = "everything") -> dict:
        """INFO as a dict of strings."""
        with Wire(self.port) as wire:
            text = wire.call("INFO", section)
        pairs = (line.split(":", 1) for line in text.decode().splitlines() if ":" in line)
        return {k: v for k, v in pairs}

    def cpu_seconds(self) -> float:
        """The processor time that the server has used so far."""
        # Linux' number for the clock of a process: clock_getcpuclockid(3).
        return time.clock_gettime((~self.pid << 3) | 2)

    def wait_blocked(self, n: int, timeout: float = 10) -> None:
        """Returns when exactly n clients are blocked on this server."""
        wait_for(lambda: int(self.info("clients")["blocked_clients"]) == n, timeout, f"{n} blocked clients")

    def drop_clients(self) -> None:
        for client in self._clients:
            try:
                client.close()
            except (OSError, redis.RedisError):
                pass
        self._clients.clear()


def assert_clean(log: str) -> None:
    """Fails if a log shows a crash, an assertion or a panic of the module."""
    found = CRASH.search(log)
    assert not found, f"the server's log shows {found.group(0)!r}:\n{log[max(0, found.start() - 500) :][:6000]}"


def wait_for(condition, timeout: float = 10, what: str = "the condition"):
    """Waits until condition() is true and returns its value; fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (met := condition()):
        assert time.monotonic() < deadline, f"{what} did not come about in {timeout} s"
        time.sleep(0.005)
    return met


def now_ms() -> int:
    """The wall clock in Unix ms, as the server on this machine sees it."""
    return time.time_ns() // 1_000_000
