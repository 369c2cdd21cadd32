"""One run: a queue, its producers and consumers, crashes, the end state, the verdict."""

import multiprocessing
import random
import tempfile
from pathlib import Path

from tests.checker.actors import Consumer, Ways, acks_of, close, produce, watch
from tests.checker.check import check
from tests.checker.history import Breaker, History, clock
from tests.harness.replies import as_maps
from tests.harness.server import Server

RETRIES = 3
FAR = 2**50
BREAKER = Breaker(failures=3, per=1000, open=100)
WAYS = Ways(groups=20, ungrouped=0, nack=0.1, crash=0.01, slow=0.02, pause_queue=0.02, rate=150)


def run(server: Server, seconds=5.0, producers=2, consumers=4, seed=1, lease=300, ways=WAYS, fault=None):
    """Runs the actors against the server; returns (History, violations).

    A consumer that dies is followed by another. `fault(elapsed_s)`, if given, is called every
    50 ms, for a server-side fault of the caller's choice (DEBUG RELOAD, for one).
    """
    key = f"history:{seed}"
    client = server.client()
    client.execute_command(
        "DQ.CREATE", key, "RETRIES", RETRIES, "RETAIN", FAR, "RETAINCOUNT", 0, "BACKOFF", "FIXED", 20,
        "BREAKER", BREAKER.failures, "PER", BREAKER.per, "OPEN", BREAKER.open, "MAX", BREAKER.open * 4,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="dq-history-") as directory:
        crew = Crew(server.port, key, Path(directory), seed, clock() + seconds * 1000, lease, ways)
        paths = crew.work(producers, consumers, fault)
        history = History.read(paths, retries=RETRIES, breaker=BREAKER, **end_state(client, key))
    return history, check(history)


class Crew:
    def __init__(self, port, key, directory, seed, until, lease, ways):
        self.ports, self.key, self.directory, self.until = [port], key, directory, until
        self.lease, self.ways = lease, ways
        self.rng = random.Random(seed)
        self.context = multiprocessing.get_context("fork")
        self.paths, self.processes, self.began = [], [], clock()

    def _start(self, target, journal, *args):
        path = self.directory / f"{journal}.jsonl"
        path.touch()
        self.paths.append(path)
        process = self.context.Process(target=target, args=(self.ports, self.key, path, *args), daemon=True)
        process.start()
        self.processes.append(process)
        return process

    def _consumer(self, n):
        # Long enough for the last lease to run out and the last backoff to end.
        return self._start(_consume, f"c{n}", f"c{n}", self.rng.randrange(2**31), self.lease, self.ways, self.until, self.lease * 5)

    def work(self, producers, consumers, fault):
        """Keeps `consumers` alive until the time is over, then lets them drain the queue."""
        for n in range(producers):
            self._start(produce, f"p{n}", f"p{n}", self.rng.randrange(2**31), self.until, self.ways)
        self._start(watch, "watch", self.until)
        self._start(close, "close", self.until, self.rng.randrange(2**31))
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
                if self.ways.crash and self.rng.random() < 0.02:
                    self.rng.choice(alive).kill()
            assert clock() < self.until + 60_000, "the actors do not come to an end"
        bad = [p.exitcode for p in self.processes if p.exitcode not in (0, 9, -9)]
        assert not bad, f"actors failed: exit codes {bad}"
        return self.paths


def _consume(ports, key, path, name, seed, lease, ways, until, patience):
    Consumer(ports, key, path, name, seed, lease, ways).run(until, patience)


def end_state(client, key) -> dict:
    """The end of a History: ids by state, the attempts of the finished messages, the records of the dead, and the acks that
    have counted themselves.
    """
    final, attempts, dead = {}, {}, {}
    for state in ("delayed", "ready", "blocked", "retry", "running", "held", "finished", "dead", "cancelled"):
        final[state], cursor = [], b"0"
        while True:
            cursor, rows = client.execute_command("DQ.LIST", key, state, "CURSOR", cursor, "COUNT", 1000)
            for row in as_maps(rows):
                id = row["id"].decode()
                final[state].append(id)
                if state == "finished":
                    attempts[id] = row["attempt"]
                elif state == "dead":
                    dead[id] = {name: row[name] for name in ("failures", "attempt")} | {"reason": row["reason"].decode()}
            if cursor == b"0":
                break
    acks, acked = acks_of(key)
    counted = {id.decode(): int(count) for id, count in client.hgetall(acked).items()}
    return {"final": final, "attempts": attempts, "dead": dead, "counted": counted, "acks": int(client.get(acks) or 0)}
