"""The processes of a run: producers that ask again, consumers that are slow, fail, lie and vanish."""

import os
import random
import time
import traceback

from tests.checker.actors import hash_of, payload
from tests.checker.history import Journal, clock
from tests.harness.replies import as_map
from tests.torture.link import Link, Refused, Unknown

GROUPS = 16
# How long the server has been silent, in ms, before a consumer believes that nothing more will come.
PATIENCE = 2_000


def produce(ports, key, path, name, seed, until, rate):
    """Sends to groups and to none, some delayed, until the monotonic ms `until`."""
    rng, link, journal = random.Random(seed), Link(ports), Journal(path)
    n = 0
    while clock() < until:
        n += 1
        id = f"{name}-{n}"
        group = f"g{rng.randrange(GROUPS)}" if rng.random() < 0.6 else ""
        score = rng.randrange(10**6) + hash_of(name) * 1e-3 + n * 1e-9
        delay = rng.choice((0, 0, rng.randrange(1, 250)))
        options = ["GROUP", group, "SCORE", repr(score)] if group else []
        event = dict(what="send", id=id, group=group, score=score, delay=delay)
        send(link, journal, rng, event, ("DQ.SEND", key, payload(id, group), "ID", id, "DELAY", delay, *options))
        time.sleep(rng.expovariate(rate))


def send(link, journal, rng, event, call):
    """One message; where no answer comes, half of the time asked again until one does."""
    insist = rng.random() < 0.5
    for _ in range(100):
        journal.write(begin=clock(), **event)
        try:
            link.call(*call)
        except Refused:
            journal.write(what="refused", id=event["id"], end=clock())
            return
        except Unknown:
            if insist:
                continue
            return
        # Its id, or nothing where an earlier try had been done after all.
        journal.write(what="sent", id=event["id"], end=clock())
        return


def consume(ports, key, directory, name, seed, until, lease, crash):
    """Keeps one consumer alive: each that crashes is followed by another, with a journal of its own.

    All is well again when there is a file `healed` in the directory.
    """
    os.setpgid(0, 0)
    for life in range(10_000):
        child = os.fork()
        if child == 0:
            try:
                path = f"{directory}/{name}.{life}.jsonl"
                Consumer(ports, key, path, f"{name}.{life}", seed + life, lease, crash).run(until, f"{directory}/healed")
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != 9:
            os._exit(code & 0xFF)


class Consumer:
    """FETCH in all its forms, then ack, nack, dawdle, let the lease run out, come too late, or die."""

    def __init__(self, ports, key, path, name, seed, lease, crash):
        self.rng, self.link, self.journal = random.Random(seed), Link(ports), Journal(path)
        self.key, self.name, self.lease, self.crash = key, name, lease, crash
        self.n, self.old = 0, []

    def run(self, until, healed):
        """Works until `until`, then on until all is well and nothing has come for PATIENCE."""
        idle_since = clock()
        while (chaos := clock() < until) or clock() - idle_since < PATIENCE:
            messages = self.fetch(chaos)
            if messages or messages is None or not os.path.exists(healed):
                idle_since = clock()
            for m in messages or ():
                self.handle(m, chaos)

    def fetch(self, chaos):
        """What came; None where the server did not answer."""
        self.n += 1
        options, group = ["COUNT", 10], ""
        if chaos:
            kind = self.rng.randrange(4)
            if kind == 3:
                group = f"g{self.rng.randrange(GROUPS)}"
            options = [["COUNT", 1], ["COUNT", 4], ["COUNT", 6, "PERGROUP", 3], ["GROUP", group, "COUNT", 3]][kind]
        block = self.rng.choice((50, 200, 400))
        asked = dict(n=self.n, lease=self.lease, consumer=self.name, group=group)
        self.journal.write(what="fetch", begin=clock(), **asked)
        try:
            reply = self.link.call(
                "DQ.FETCH", self.key, *options, "LEASE", self.lease, "BLOCK", block, "CONSUMER", self.name, "WITHMETA"
            )
        except Refused:
            self.journal.write(what="unfetched", n=self.n)
            return None
        except Unknown:
            return None
        messages = [self.message(*one) for one in reply]
        self.journal.write(what="fetched", n=self.n, end=clock(), messages=messages)
        return messages

    def message(self, id, receipt, attempt, body, meta):
        meta = as_map(meta)
        id, group = id.decode(), (meta["group"] or b"").decode()
        return {
            "id": id, "group": group, "receipt": receipt, "attempt": attempt,
            "batch": f"{self.name}/{self.n}/{group}", "intact": body == payload(id, group),
            "at": meta["lease-until"] - self.lease, "due": meta["due-at"],
        }  # fmt: skip

    def handle(self, m, chaos):
        fate, kind = (self.rng.random(), self.rng.random()) if chaos else (1.0, 1.0)
        if fate < self.crash:
            self.link.drop()
            os._exit(9)
        if fate < self.crash + 0.01:
            time.sleep(self.lease * 1.3 / 1000)
        elif fate < self.crash + 0.1:
            time.sleep(self.rng.random() * 0.02)
        if kind < 0.08:
            self.verdict("nack", m, "DELAY", self.rng.randrange(0, 60), "ERROR", "chaos")
        elif kind < 0.12:
            self.verdict("silent", m, "SILENT")
        elif kind < 0.14:
            # Forgotten; a later ack of it must change nothing, unless its lease is still on.
            self.old.append(m)
        else:
            self.verdict("ack", m)
        if chaos and self.old and self.rng.random() < 0.05:
            self.verdict("ack", self.old.pop(0))

    def verdict(self, kind, m, *options):
        self.n += 1
        self.journal.write(what="verdict", n=self.n, kind=kind, ids=[m["id"]], receipts=[m["receipt"]], begin=clock())
        try:
            count = self.link.call("DQ.ACK" if kind == "ack" else "DQ.NACK", self.key, m["receipt"], *options)
        except Refused:
            # It has changed nothing; the lease runs out.
            count = 0
        except Unknown:
            return
        self.journal.write(what="answered", n=self.n, end=clock(), count=count)
