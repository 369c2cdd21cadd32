"""Measures one worker process: how many jobs it does, what they cost, and how late they begin."""

import os
import random
import selectors
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from contenders import ROOT
from server import CLIENT_CORE, pinned

TICK = os.sysconf("SC_CLK_TCK")
PATIENCE = 120
"""Seconds after which a worker or a producer that says nothing is given up."""
INTERVAL = 0.01
"""Seconds between the jobs that are sent to an idle worker: long enough for all but RQ to keep up."""


class Program:
    """A worker or a producer, on the core of the clients. Use it in a `with`, at the end of which it is killed."""

    def __init__(self, words, port, **settings):
        env = {f"BENCH_{name.upper()}": str(value) for name, value in {"port": port, **settings}.items()}
        env |= {
            "PYTHONPATH": str(ROOT / "clients/python/src"),
            "PYTHONWARNINGS": "ignore",
            "NODE_NO_WARNINGS": "1",
        }
        self._errors = tempfile.TemporaryFile("w+")
        self._words = [str(word) for word in words]
        self._process = subprocess.Popen(
            self._words,
            env=os.environ | env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            preexec_fn=pinned(CLIENT_CORE),
        )
        self._said = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()

    def write(self, text):
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()

    def end_of_input(self):
        self._process.stdin.close()

    def hear(self, word):
        """Waits for a line that begins with `word`. Returns the words after it."""
        deadline = time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            while True:
                line, found, rest = self._said.partition(b"\n")
                if found:
                    self._said = rest
                    if line.decode(errors="replace").split(" ")[0] == word:
                        return line.decode().split(" ")[1:]
                    continue
                if not ready.select(max(0, deadline - time.monotonic())):
                    raise self._failure(f"says nothing for {PATIENCE} s")
                read = os.read(self._process.stdout.fileno(), 65536)
                if not read:
                    raise self._failure("has ended")
                self._said += read

    def cpu(self):
        """Returns the processor time of the program and all that it has started, in seconds."""
        ticks = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            # Session, then the times of the process itself and of its ended children.
            if int(fields[3]) == self._process.pid:
                ticks += sum(map(int, fields[11:15]))
        return ticks / TICK

    def _failure(self, what):
        self._errors.seek(0)
        return RuntimeError(f"{' '.join(self._words)} {what}:\n{self._errors.read()[-3000:]}")


@dataclass
class Speed:
    """Jobs a second, and microseconds of processor time a job. Bytes are those of the server for a job that waits."""

    rate: float
    send_us: float
    work_us: float
    worker_us: float
    bytes: float

    @property
    def server_us(self):
        return self.send_us + self.work_us


@dataclass
class Late:
    """Percentiles in ms."""

    p50: float
    p99: float
    earliest: float

    @classmethod
    def of(cls, microseconds):
        values = sorted(float(one) / 1000 for one in microseconds)
        parts = quantiles(values, n=100, method="inclusive")
        return cls(parts[49], parts[98], values[0])


def speed(server, contender, concurrency, jobs, *, sleep_ms=0, size=16):
    """Sends jobs, then measures how a worker does them, after the first fifth of them."""
    server.empty()
    memory = server.used_memory()
    before = server.cpu()
    with Program(contender.send, server.port) as producer:
        producer.write(f"0 {'x' * size}\n" * jobs)
        producer.end_of_input()
        producer.hear("sent")
    send_us = (server.cpu() - before) / jobs * 1e6
    memory = server.used_memory() - memory

    first = 0 if contender.begins_itself else jobs // 5 + 1
    settings = {
        "concurrency": concurrency,
        "sleep_ms": sleep_ms,
        "first": first,
        "last": jobs,
    }
    with Program(contender.work, server.port, **settings) as worker:
        worker.hear("first")
        start, served, worked = time.monotonic(), server.cpu(), worker.cpu()
        worker.hear("last")
        seconds, served, worked = (
            time.monotonic() - start,
            server.cpu() - served,
            worker.cpu() - worked,
        )
    done = jobs - first
    return Speed(done / seconds, send_us, served / done * 1e6, worked / done * 1e6, memory / jobs)


def latency(server, contender, concurrency, jobs, starting):
    """Sends jobs one by one to an idle worker. Returns the times from the send to the handler.

    `starting` are the seconds that worker and producer have to start, before anything is sent.
    """
    server.empty()
    with (
        Program(contender.work, server.port, concurrency=concurrency, last=jobs, stamped=1) as worker,
        Program(contender.send, server.port) as producer,
    ):
        time.sleep(starting)
        for _ in range(jobs):
            producer.write("0 @\n")
            time.sleep(INTERVAL)
        return Late.of(worker.hear("last"))


def lateness(server, contender, concurrency, jobs, seconds, starting):
    """Sends delayed jobs to an idle worker. Returns the times from when they were due to the handler."""
    server.empty()
    chance = random.Random(1)
    with (
        Program(contender.work, server.port, concurrency=concurrency, last=jobs, stamped=1) as worker,
        Program(contender.send, server.port) as producer,
    ):
        time.sleep(starting)
        for _ in range(jobs):
            producer.write(f"{2000 + chance.randrange(int(seconds * 1000))} @\n")
        return Late.of(worker.hear("last"))
