"""The log's end is torn off at every byte of its last records."""

import os
import shutil
import time

from tests.checker.history import clock
from tests.harness.aof import commands, increments
from tests.harness.replies import Queue, digest
from tests.harness.server import Server
from tests.harness.traffic import Traffic
from tests.torture.target import Alone

# After this many cuts the server continues and dies once more: the writes after the first restart must exist.
AGAIN = 8


class TornTail(Alone):
    """A crash in the middle of a write. Exactly the torn record is missing, and nothing that comes later.

    The logs that are cut at every byte are those of a queue with its own time, whose state is known after
    every record. Between the cuts the actors' own server dies, and some bytes of its log with it.
    """

    pause = 1.0
    # Number of operations in the log that is cut, and the keys that they change.
    length = 120
    cut_keys: tuple = ("q",)

    def open(self) -> None:
        super().open()
        self.prepare()
        # From the end on, every byte position in every record, and the state up to it.
        self.cuts = ((size, held) for begin, end, held in self.records[::-1] for size in range(end - 1, begin - 1, -1))

    def prepare(self) -> None:
        """A log, and the state up to each of its records."""
        source = Server(**self.conf).start()
        try:
            client = source.client()
            traffic = self.traffic(client, self.rng.randrange(10**6))
            [log] = increments(source)
            self.records = []
            for _ in range(self.length):
                begin, count, held = log.stat().st_size, len(commands(source)), self.held(client)
                traffic.run(1)
                # If a step wrote several records, nobody knows the state between them.
                if len(commands(source)) == count + 1:
                    self.records.append((begin, log.stat().st_size, held))
            self.folder = self.server.dir / "torn"
            shutil.copytree(source.dir / "appendonlydir", self.folder)
            self.log = log.name
        finally:
            source.close()

    def traffic(self, client, seed) -> Traffic:
        """The commands that write the log."""
        options = ("CLOCK", "MANUAL", "BREAKER", 2, "PER", 500, "OPEN", 100, "MAX", 300)
        return Traffic(client, "q", seed, *options, linked=True)

    def held(self, client) -> bytes:
        """The state that the log holds."""
        return b"".join(digest(client, key) for key in self.cut_keys)

    def inject(self) -> None:
        """Makes as many cuts as fit into the time between two faults, then a tear under load."""
        deadline = time.monotonic() + self.pause * 2
        twin = Server(**self.conf)
        try:
            while time.monotonic() < deadline and (cut := next(self.cuts, None)) is not None:
                self.cut(twin, *cut)
        finally:
            twin.close()
        self.server.kill9()
        [log] = increments(self.server)
        os.truncate(log, max(0, log.stat().st_size - self.rng.randrange(1, 300)))
        # Only the records in these bytes are lost, but they can be old if no record came after them.
        self.lose(float("-inf"), clock())
        self.server.start()

    def cut(self, twin, size, held) -> None:
        self.injected += 1
        target = twin.dir / "appendonlydir"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.folder, target)
        os.truncate(target / self.log, size)
        twin.start()
        self.differ(f"a log cut at byte {size}", held, self.held(twin.client()))
        if self.injected % AGAIN == 0:
            Queue(twin.client(), self.cut_keys[0]).do("SEND", "after", "ID", "after the tear")
            after = self.held(twin.client())
            twin.restart(crash=True)
            self.differ(f"what came after a cut at byte {size}", after, self.held(twin.client()))
        twin.kill9()
        self.extra_operations += 1
