"""A server of the benchmark, which runs on one core."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import redis

CORES = sorted(os.sched_getaffinity(0))
# With one core, server and clients share it.
SERVER_CORE = CORES[0]
CLIENT_CORE = CORES[-1]


def pinned(core):
    """Returns a `preexec_fn` that binds the child and all its threads to one core."""
    return lambda: os.sched_setaffinity(0, {core})


class Server:
    """A redis-server with these modules, or with none, in a directory of its own.

    Use it in a `with`, at the end of which the process is killed and the directory removed. `dump` is an RDB file to
    load at the start. `under` are the words of a program that runs the server, such as valgrind.
    """

    def __init__(self, binary, modules, *, aof=False, dump=None, under=()):
        self.dir = Path(tempfile.mkdtemp(prefix="dq-bench-"))
        if dump is not None:
            shutil.copy(dump, self.dir / "dump.rdb")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = self.dir / "log"
        words = [*under, binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.dir)]
        words += ["--logfile", str(self.log), "--save", "", "--maxclients", "10000"]
        words += ["--appendonly", "yes" if aof else "no", "--appendfsync", "everysec"]
        # A rewrite of the log during a row would be part of its figures.
        words += ["--auto-aof-rewrite-percentage", "0"]
        for module in modules:
            words += ["--loadmodule", str(module)]
        self.process = subprocess.Popen(words, preexec_fn=pinned(SERVER_CORE), stdout=subprocess.DEVNULL)
        self.pid = self.process.pid
        self.client = redis.Redis(port=self.port, socket_timeout=600)
        try:
            self._await_ready()
        except BaseException:
            self.__exit__()
            raise

    def _await_ready(self):
        deadline = time.monotonic() + 300
        while True:
            try:
                self.client.ping()
                return
            except redis.exceptions.RedisError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    tail = self.log.read_text() if self.log.exists() else ""
                    raise RuntimeError(f"the server did not start:\n{tail[-2000:]}") from None
                time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def db(self, number):
        """Returns a client of another database."""
        return redis.Redis(port=self.port, db=number, socket_timeout=600)

    def cpu(self):
        """Returns the processor time of the main thread so far, in seconds, without a command to the server."""
        text = Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text()
        return int(text.split()[0]) / 1e9

    def used_memory(self):
        """Returns used_memory in bytes, once the buffers of closed connections are freed."""
        previous = None
        while True:
            used = self.client.info("memory")["used_memory"]
            if previous is not None and abs(used - previous) < 4096:
                return used
            previous = used
            time.sleep(0.2)

    def aof_bytes(self):
        """Returns the size of the append-only file, in bytes."""
        return self.client.info("persistence")["aof_current_size"]

    def loading_seconds(self):
        """Returns how long the server took to load its data, in seconds, by its log."""
        return float(re.findall(r"DB loaded from .*: ([0-9.]+) seconds", self.log.read_text())[-1])

    def empty(self):
        """Deletes everything in database 0, and waits until it is freed."""
        self.client.flushdb(asynchronous=False)

    def version(self):
        """Returns the name and version of the engine."""
        info = self.client.info("server")
        if "valkey_version" in info:
            return f"Valkey {info['valkey_version']}"
        return f"Redis {info['redis_version']}"
