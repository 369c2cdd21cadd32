"""The processes of a run: producers, and consumers that are slow, fail, and crash."""

import os
import random
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.checker.history import Journal, clock


class Client(redis.Redis):
    """Asks again where the server is loading: it has done nothing then."""

    def execute_command(self, *args, **options):
        while True:
            try:
                return super().execute_command(*args, **options)
            except redis.BusyLoadingError:
                time.sleep(0.005)


def connect(port):
    return Client(port=port, protocol=3, retry=Retry(NoBackoff(), 0), socket_timeout=30)


def payload(id, group) -> bytes:
    """What the message must carry, so that a mix-up shows."""
    return f"{id} of {group} ".encode() * (1 + hash_of(id) % 5)


def hash_of(text) -> int:
    """The same in every process, unlike hash()."""
    return sum((i + 1) * b for i, b in enumerate(text.encode()))


def produce(port, key, path, name, seed, until, groups, rate):
    """Sends to random groups, with scores in no order, some delayed, until the monotonic ms `until`."""
    rng, client, journal = random.Random(seed), connect(port), Journal(path)
    n = 0
    while clock() < until:
        n += 1
        id, group = f"{name}-{n}", f"g{rng.randrange(groups)}"
        # Scores are unique over all producers, so that the order is one.
        score = rng.randrange(10**6) + hash_of(name) * 1e-3 + n * 1e-9
        delay = rng.choice((0, 0, 0, rng.randrange(1, 200)))
        journal.write(what="send", id=id, group=group, score=score, begin=clock(), delay=delay)
        reply = client.execute_command(
            "DQ.SEND", key, payload(id, group), "ID", id, "GROUP", group, "SCORE", repr(score), "DELAY", delay
        )
        assert reply == id.encode()
        journal.write(what="sent", id=id, end=clock())
        time.sleep(rng.expovariate(rate))


class Consumer:
    """One consumer process: FETCH in all its forms, then ack, nack, dawdle or die."""

    def __init__(self, port, key, path, name, seed, lease, crash):
        self.rng, self.client, self.journal = random.Random(seed), connect(port), Journal(path)
        self.key, self.name, self.lease, self.crash = key, name, lease, crash
        self.n = 0

    def run(self, until, patience):
        """Works until `until`, then on until nothing has come for `patience` ms."""
        idle_since = clock()
        while clock() < until or clock() - idle_since < patience:
            chaos = clock() < until
            messages = self.fetch(chaos)
            if messages:
                idle_since = clock()
                self.handle(messages, chaos)

    def fetch(self, chaos):
        self.n += 1
        options = self.rng.choice(
            (
                ["COUNT", 1],
                ["COUNT", 4],
                ["COUNT", 6, "PERGROUP", 3],
                ["GROUP", f"g{self.rng.randrange(20)}", "COUNT", 3],
            )
            if chaos
            else (["COUNT", 10],)
        )
        self.journal.write(what="fetch", n=self.n, begin=clock(), lease=self.lease, consumer=self.name)
        reply = self.client.execute_command(
            "DQ.FETCH", self.key, *options, "LEASE", self.lease, "BLOCK", 50, "CONSUMER", self.name, "WITHMETA"
        )
        end, messages = clock(), []
        for id, receipt, attempt, body, meta in reply:
            id, group = id.decode(), meta[b"group"].decode()
            messages.append(
                {
                    "id": id, "group": group, "receipt": receipt, "attempt": attempt,
                    "batch": f"{self.name}/{self.n}/{group}", "intact": body == payload(id, group),
                    # On the queue's own clock: this machine's may drift away from it.
                    "at": meta[b"lease-until"] - self.lease, "due": meta[b"due-at"],
                }
            )  # fmt: skip
        self.journal.write(what="fetched", n=self.n, end=end, messages=messages)
        return messages

    def handle(self, messages, chaos):
        for m in messages:
            fate = self.rng.random() if chaos else 1.0
            if fate < self.crash:
                os._exit(9)
            if fate < self.crash + 0.02:
                # Too slow: the lease of what follows runs out meanwhile.
                time.sleep(self.lease * 1.3 / 1000)
            elif fate < self.crash + 0.2:
                time.sleep(self.rng.random() * 0.02)
            kind = self.rng.random() if chaos else 1.0
            if kind < 0.10:
                self.verdict("nack", m, "DELAY", self.rng.randrange(0, 60), "ERROR", "chaos")
            elif kind < 0.15:
                self.verdict("silent", m, "SILENT")
            else:
                self.verdict("ack", m)

    def verdict(self, kind, m, *options):
        self.n += 1
        self.journal.write(what="verdict", n=self.n, kind=kind, ids=[m["id"]], receipts=[m["receipt"]], begin=clock())
        verb = "DQ.ACK" if kind == "ack" else "DQ.NACK"
        count = self.client.execute_command(verb, self.key, m["receipt"], *options)
        self.journal.write(what="answered", n=self.n, end=clock(), count=count)


def consume(port, key, path, name, seed, until, lease, crash, patience):
    Consumer(port, key, path, name, seed, lease, crash).run(until, patience)
