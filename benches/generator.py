"""Runs the load generator (`load/`) and reads what it prints."""

import subprocess
from dataclasses import dataclass

from server import CLIENT_CORE, pinned

CONNECTIONS = 50
PAYLOAD = 100


@dataclass
class Step:
    """One command of a batch.

    `take` is what the next commands use of its reply: "receipts", "entries", "bulk", or nothing.
    """

    template: str
    take: str = ""

    def words(self):
        return [f"--take-{self.take}" if self.take else "--do", self.template]


@dataclass
class Done:
    """The measurements of one run of the generator."""

    commands: int
    taken: int
    empty: int
    seconds: float
    server_us: float


class Lateness:
    """The delays of many messages, in ms, sorted."""

    def __init__(self, spans, absences=None):
        """`spans` are pairs of the due time and the delivery time of each message, in Unix seconds. `absences` are
        subtracted.
        """
        self.spans = spans
        absent = absences.during if absences else lambda *_: 0
        self.ms = sorted((ended - began - absent(began, ended)) * 1000 for began, ended in spans)

    @classmethod
    def read(cls, lines):
        """Reads the lines that the generator printed."""
        pairs = (map(int, line.split()) for line in lines.splitlines())
        return cls([(began / 1e6, (began + took) / 1e6) for began, took in pairs])

    def without(self, absences):
        """Returns the lateness without the times when a processor was absent."""
        return Lateness(self.spans, absences)

    def percentile(self, percent):
        """Returns the ms that `percent` of the messages did not exceed. 100 gives the longest, 0 the shortest."""
        return self.ms[(len(self.ms) - 1) * percent // 100]


class Generator:
    """Runs the generator at `path` against servers."""

    def __init__(self, path):
        self.path = str(path)

    def run(self, server, steps, commands, *, pipeline=64, db=0, connections=CONNECTIONS):
        """Does the steps `commands` times, and waits for the end. Returns what was measured."""
        return self.finish(self.start(server, steps, commands, pipeline=pipeline, db=db, connections=connections))

    def start(self, server, steps, commands, *, pipeline=64, db=0, connections=CONNECTIONS):
        """Starts to do the steps `commands` times, in the background. `finish` waits for the end."""
        words = ["run", "--port", server.port, "--pid", server.pid, "--db", db, "--commands", commands]
        words += ["--pipeline", pipeline, "--connections", connections, "--payload", PAYLOAD]
        for step in steps:
            words += step.words()
        return self._start(words)

    def finish(self, process):
        """Waits for a run that was started. Returns what it measured."""
        read = {name: float(value) for name, value in (line.split("=") for line in self._finish(process).splitlines())}
        return Done(
            commands=int(read["commands"]),
            taken=int(read["taken"]),
            empty=int(read["empty"]),
            seconds=read["seconds"],
            server_us=read["server_us"],
        )

    def lateness(self, server, queue, messages, seconds, consumers, *, queues=1):
        """Returns how late messages that fall due over these seconds reach blocked consumers.

        With several queues, `queue` is what their keys begin with. Each consumer waits for its share of them.
        """
        words = ["lateness", "--port", server.port, "--queue", queue, "--queues", queues, "--messages", messages]
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
