"""One run: a queue, its producers and consumers, crashes, the end state, the verdict."""

import multiprocessing
import random
import tempfile
from pathlib import Path

from tests.checker.actors import connect, consume, produce
from tests.checker.check import check
from tests.checker.history import History, clock

RETRIES = 3
GROUPS = 20


def run(port, seconds=5.0, producers=2, consumers=4, seed=1, lease=300, crash=0.01, fault=None):
    """Runs the actors against the server on `port`; returns (History, violations).

    A consumer that dies is followed by another. `fault(elapsed_s)`, if given, is called every
    50 ms, for a server-side fault of the caller's choice (DEBUG RELOAD, for one).
    """
    key = f"history:{seed}"
    client = connect(port)
    client.execute_command(
        "DQ.CREATE", key, "RETRIES", RETRIES, "RETAIN", 2**50, "RETAINCOUNT", 0, "BACKOFF", "FIXED", 20
    )
    with tempfile.TemporaryDirectory(prefix="dq-history-") as directory:
        crew = Crew(port, key, Path(directory), seed, clock() + seconds * 1000, lease, crash)
        paths = crew.work(producers, consumers, fault)
        final, dead = end_state(client, key)
        history = History.read(paths, final=final, dead=dead, retries=RETRIES)
    return history, check(history)


class Crew:
    def __init__(self, port, key, directory, seed, until, lease, crash):
        self.port, self.key, self.directory, self.until = port, key, directory, until
        self.lease, self.crash = lease, crash
        self.rng = random.Random(seed)
        self.context = multiprocessing.get_context("fork")
        self.paths, self.processes, self.began = [], [], clock()

    def _start(self, target, name, *args):
        path = self.directory / f"{name}.jsonl"
        path.touch()
        self.paths.append(path)
        process = self.context.Process(
            target=target,
            args=(self.port, self.key, path, name, self.rng.randrange(2**31), self.until, *args),
            daemon=True,
        )
        process.start()
        self.processes.append(process)
        return process

    def _consumer(self, n):
        # Long enough for the last lease to run out and the last backoff to end.
        return self._start(consume, f"c{n}", self.lease, self.crash, self.lease * 5)

    def work(self, producers, consumers, fault):
        """Keeps `consumers` alive until the time is up, then lets them drain the queue."""
        for n in range(producers):
            self._start(produce, f"p{n}", GROUPS, 150)
        alive = [self._consumer(n) for n in range(consumers)]
        made = consumers
        while any(p.is_alive() for p in self.processes):
            for i, process in enumerate(alive):
                process.join(0.05 / consumers)
                if not process.is_alive() and process.exitcode != 0:
                    alive[i] = self._consumer(made)
                    made += 1
            if clock() < self.until:
                if fault:
                    fault((clock() - self.began) / 1000)
                if self.crash and self.rng.random() < 0.02:
                    self.rng.choice(alive).kill()
            assert clock() < self.until + 60_000, "the actors do not come to an end"
        bad = [p.exitcode for p in self.processes if p.exitcode not in (0, 9, -9)]
        assert not bad, f"actors failed: exit codes {bad}"
        return self.paths


def end_state(client, key):
    """Ids by state, and what is said of the dead ones."""
    final, dead = {}, {}
    for state in ("delayed", "ready", "blocked", "retry", "running", "finished", "dead", "cancelled"):
        final[state], cursor = [], b"0"
        while True:
            cursor, rows = client.execute_command("DQ.LIST", key, state, "CURSOR", cursor, "COUNT", 1000, "IDS")
            final[state] += [row.decode() for row in rows]
            if cursor == b"0":
                break
    for id in final["dead"]:
        row = client.execute_command("DQ.GET", key, id)
        dead[id] = {"failures": row[b"failures"], "reason": row[b"reason"].decode()}
    return final, dead
