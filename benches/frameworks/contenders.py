"""A framework on one transport: how its workers start and are killed, and how tasks are sent."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from tests.harness.server import ROOT, Server, wait_for

# The applications import the Python package.
sys.path.insert(0, str(ROOT / "clients/python/src"))

HERE = Path(__file__).parent
PHP_PACKAGES = ["Queue", "Redis", "Events", "Bus"]

LEASE = 10
"""Seconds after which a task of a lost worker goes to another one, for every contender. This differs from the defaults
of the frameworks, which are an hour (Celery), a minute (Dramatiq) and 90 s (Laravel)."""

GRACE = 2
"""Seconds after the loss of a worker's connection, where the driver uses BIND GRACE (Celery)."""

UNLIMITED = {"lost_workers": 0}
"""Settings of ours: no task is given up for the workers that it has lost, because they are killed on purpose."""


class Contender:
    """One side of a comparison. `server` holds the queues and `task_log` what tasks write down."""

    name: str
    settings: str
    is_ours: bool
    kills: int
    has_eta_memory = True
    """Whether tasks with an eta may wait in the memory of a worker."""
    has_threads = True
    """Whether a worker may do several tasks at a time."""

    def __init__(self, server: Server, task_log: Server) -> None:
        self.server = server
        self.task_log = task_log
        self._workers: list[Worker] = []

    def close(self) -> None:
        """Ends the processes that it has started, also workers that a failed measure has left."""
        for worker in self._workers:
            if worker.is_alive():
                worker.kill()

    def send(self, kind: str, *args: object, due: float | None = None) -> None:
        """Sends a task: `work id seconds`, `late id due`, `nothing`."""
        raise NotImplementedError

    def start(self, threads: int) -> "Worker":
        """Starts a worker that runs this many tasks at a time."""
        raise NotImplementedError

    def _next_name(self) -> str:
        return f"w{len(self._workers) + 1}"

    def _started(self, worker: "Worker") -> "Worker":
        self._workers.append(worker)
        return worker


class Worker:
    """A worker in a process group of its own. `name` is what it writes into the task_log."""

    def __init__(self, name: str, pid: int, process: subprocess.Popen | None = None) -> None:
        self.name = name
        self.pid = pid
        self._process = process

    def is_alive(self) -> bool:
        return Path(f"/proc/{self.pid}").exists() and (self._process is None or self._process.poll() is None)

    def kill(self) -> None:
        """Kills the worker with all of its processes."""
        os.killpg(self.pid, signal.SIGKILL)
        self._gone()

    def stop(self) -> None:
        """Ends the worker gracefully, or kills it if it does not end in 20 s."""
        os.kill(self.pid, signal.SIGTERM)
        try:
            self._gone()
        except AssertionError:
            self.kill()

    def _gone(self) -> None:
        if self._process is not None:
            self._process.wait(20)
        else:
            wait_for(lambda: not self.is_alive(), timeout=20, what="the end of a worker")

    def memory(self) -> int:
        """Returns the resident bytes of its main process."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


class PythonContender(Contender):
    """A framework whose application is loaded once by a process that forks the workers (fork_server.py)."""

    application: str

    def __init__(self, server: Server, task_log: Server) -> None:
        super().__init__(server, task_log)
        os.environ["TASK_LOG"] = str(task_log.port)
        self._module: ModuleType = importlib.import_module(f"benches.frameworks.{self.application}")
        scheme = "dq" if self.is_ours else "redis"
        self._url = f"{scheme}://127.0.0.1:{server.port}/0"
        self._module.configure(self._url, self.options())
        self._fork_server: subprocess.Popen | None = None

    def options(self) -> dict:
        raise NotImplementedError

    def send(self, kind: str, *args: object, due: float | None = None) -> None:
        self._module.send(kind, *args, due=due)

    def start(self, threads: int) -> Worker:
        if self._fork_server is None:
            words = [sys.executable, "-m", f"benches.frameworks.{self.application}"]
            words += [self._url, str(self.task_log.port), json.dumps(self.options())]
            env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "clients/python/src")])}
            self._fork_server = subprocess.Popen(
                words, cwd=ROOT, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        name = self._next_name()
        self._fork_server.stdin.write(f"{name} {threads}\n")
        self._fork_server.stdin.flush()
        return self._started(Worker(name, int(self._fork_server.stdout.readline())))

    def close(self) -> None:
        super().close()
        if self._fork_server is not None:
            self._fork_server.stdin.close()
            self._fork_server.wait(20)


class Celery(PythonContender):
    application = "celery_app"
    kills = 300

    @property
    def name(self) -> str:
        return f"Celery {version('celery')}, {'dq' if self.is_ours else 'redis'}://"

    def options(self) -> dict:
        ours = {"bind_grace": GRACE, **UNLIMITED} if self.is_ours else {}
        return {"visibility_timeout": LEASE, **ours}

    @property
    def settings(self) -> str:
        times = ", ".join(f"{name} {value} s" for name, value in self.options().items() if name not in UNLIMITED)
        return f"{times}, acks_late" + (", lost_workers 0" if self.is_ours else "")


class CeleryDq(Celery):
    is_ours = True


class CeleryRedis(Celery):
    is_ours = False


class Dramatiq(PythonContender):
    application = "dramatiq_app"
    kills = 100

    @property
    def name(self) -> str:
        return f"Dramatiq {version('dramatiq')}, {'DqBroker' if self.is_ours else 'RedisBroker'}"

    def options(self) -> dict:
        return {"heartbeat_timeout": LEASE * 1000, **(UNLIMITED if self.is_ours else {})}

    @property
    def settings(self) -> str:
        return f"heartbeat_timeout {LEASE} s" + (", lost_workers 0" if self.is_ours else "")


class DramatiqDq(Dramatiq):
    is_ours = True


class DramatiqRedis(Dramatiq):
    is_ours = False
    kills = 10
    """Each takes a minute: the driver looks for the messages of a killed worker by chance, with one command in a
    thousand.
    """


class Laravel(Contender):
    """`queue:work --queue=high,low --sleep=0`, as far as Laravel can be installed from Debian's packages."""

    kills = 200
    has_eta_memory = False
    has_threads = False

    def __init__(self, server: Server, task_log: Server) -> None:
        super().__init__(server, task_log)
        self._sender = subprocess.Popen(
            [*self._command(), "send"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    @staticmethod
    def is_there() -> bool:
        """Whether PHP and the packages are installed."""
        return shutil.which("php") is not None and all(
            Path(f"/usr/share/php/Illuminate/{package}/autoload.php").exists() for package in PHP_PACKAGES
        )

    @property
    def name(self) -> str:
        return f"Laravel, driver {'dq' if self.is_ours else 'redis'}"

    @property
    def settings(self) -> str:
        return f"retry_after {LEASE} s, block_for 5 s, --sleep=0"

    def _command(self) -> list[str]:
        driver = "dq" if self.is_ours else "redis"
        return ["php", str(HERE / "laravel.php"), driver, str(self.server.port), str(self.task_log.port), str(LEASE)]

    def send(self, kind: str, *args: object, due: float | None = None, queue: str = "high") -> None:
        # While `high` is empty, Laravel's own driver looks at `low` only every block_for seconds.
        self._sender.stdin.write(json.dumps([kind, args, due, queue]) + "\n")
        self._sender.stdin.flush()
        self._sender.stdout.readline()

    def start(self, threads: int) -> Worker:
        """Starts a worker. One of Laravel runs one job at a time, whatever `threads` is."""
        name = self._next_name()
        process = subprocess.Popen([*self._command(), "work", name], start_new_session=True)
        return self._started(Worker(name, process.pid, process))

    def close(self) -> None:
        super().close()
        self._sender.stdin.close()
        self._sender.wait(20)


class LaravelDq(Laravel):
    is_ours = True


class LaravelRedis(Laravel):
    is_ours = False


PAIRS: dict[str, tuple[type[Contender], type[Contender]]] = {
    "celery": (CeleryDq, CeleryRedis),
    "dramatiq": (DramatiqDq, DramatiqRedis),
    "laravel": (LaravelDq, LaravelRedis),
}
