"""The load generator (`load/`), as functions."""

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


class Lateness:
    """How late each of many came, in ms, in order."""

    def __init__(self, spans, absences=None):
        """`spans`: the seconds since 1970 at which each was due and came; `absences` do not count."""
        self.spans = spans
        absent = absences.during if absences else lambda *_: 0
        self.ms = sorted((ended - began - absent(began, ended)) * 1000 for began, ended in spans)

    @classmethod
    def read(cls, lines):
        """Those that the generator printed."""
        pairs = (map(int, line.split()) for line in lines.splitlines())
        return cls([(began / 1e6, (began + took) / 1e6) for began, took in pairs])

    def without(self, absences):
        """The same but for the times when some processor was absent."""
        return Lateness(self.spans, absences)

    def percentile(self, percent):
        """What so many percent did not exceed; 100 for the longest, 0 for the shortest."""
        return self.ms[(len(self.ms) - 1) * percent // 100]


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
        read = {name: float(value) for name, value in (line.split("=") for line in self._finish(process).splitlines())}
        return Done(
            commands=int(read["commands"]),
            taken=int(read["taken"]),
            empty=int(read["empty"]),
            seconds=read["seconds"],
            server_us=read["server_us"],
        )

    def lateness(self, server, queue, messages, seconds, consumers):
        """How late messages spread over the seconds arrived at blocked consumers."""
        words = ["lateness", "--port", server.port, "--queue", queue, "--messages", messages]
        words += ["--span-ms", int(seconds * 1000), "--consumers", consumers, "--payload", PAYLOAD]
        return Lateness.read(self._finish(self._start(words)))

    def _start(self, words):
        words = [self.path, *map(str, words)]
        return subprocess.Popen(
            words, preexec_fn=pinned(CLIENT_CORE), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def _finish(self, process):
        out, error = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(process.args)}: {error.strip()}")
        return out
