"""The load generator (`load/`), as functions."""

import os
import subprocess
from dataclasses import dataclass

from server import CLIENT_CORE, pinned

CONNECTIONS = 50
PAYLOAD = 100


@dataclass
class Step:
    """One command of a batch. `take`: what of its reply the next ones use: receipts, entries, bulk, or nothing."""

    template: str
    take: str = ""

    def words(self):
        return [f"--take-{self.take}" if self.take else "--do", self.template]


@dataclass
class Done:
    """What a run of the generator measured."""

    commands: int
    taken: int
    empty: int
    seconds: float
    server_us: float


class Generator:
    """Runs the generator at `path` against servers."""

    def __init__(self, path):
        self.path = str(path)

    def run(self, server, steps, commands, *, pipeline=64, db=0, connections=CONNECTIONS):
        """Fills so many slots of batches, and waits for the end."""
        return self.finish(self.start(server, steps, commands, pipeline=pipeline, db=db, connections=connections))

    def start(self, server, steps, commands, *, pipeline=64, db=0, connections=CONNECTIONS):
        """The same in the background; `finish` waits for it."""
        words = ["run", "--port", server.port, "--pid", server.pid, "--db", db, "--commands", commands]
        words += ["--pipeline", pipeline, "--connections", connections, "--payload", PAYLOAD]
        for step in steps:
            words += step.words()
        return self._start(words)

    def finish(self, process):
        """What a started run measured."""
        read = self._finish(process)
        return Done(
            commands=int(read["commands"]),
            taken=int(read["taken"]),
            empty=int(read["empty"]),
            seconds=read["seconds"],
            server_us=read["server_us"],
        )

    def start_probe(self, server, seconds):
        """A PING every millisecond in the background; `finish_probe` waits for it."""
        words = ["probe", "--port", server.port, "--millis", int(seconds * 1000)]
        return self._start(words, urgent=True)

    def finish_probe(self, process):
        """A dict of count, min_us, p50_us, p99_us, p999_us, max_us."""
        return self._finish(process)

    def lateness(self, server, queue, messages, seconds, consumers):
        """How late messages spread over the seconds arrive at blocked consumers: a dict as of a probe."""
        words = ["lateness", "--port", server.port, "--queue", queue, "--messages", messages]
        words += ["--span-ms", int(seconds * 1000), "--consumers", consumers, "--payload", PAYLOAD]
        return self._finish(self._start(words))

    def _start(self, words, urgent=False):
        def prepare():
            pinned(CLIENT_CORE)()
            if urgent:
                # The other clients share its core: without a priority it would measure how long those keep it away.
                try:
                    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
                except PermissionError:
                    pass

        words = [self.path, *map(str, words)]
        return subprocess.Popen(words, preexec_fn=prepare, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _finish(self, process):
        out, error = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(process.args)}: {error.strip()}")
        return {name: float(value) for name, value in (line.split("=") for line in out.splitlines())}
