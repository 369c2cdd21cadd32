"""The processes of a run: senders, workers that fail and die, and an operator who sends signals and handles dead
messages.
"""

import os
import random
import time

from tests.checker.actors import hash_of
from tests.checker.history import Journal, clock
from tests.checker.jobs.record import PARTS
from tests.checker.link import Link, Refused, Unknown
from tests.harness.replies import as_map

PAGES = 8
# How often a sender or operator repeats a command without an answer.
TRIES = 200


def send(ports, key, path, name, seed, until, ways):
    """Sends jobs of all kinds until the monotonic ms `until`."""
    Sender(ports, key, path, name, seed, ways).run(until)


class Asker:
    """Records its requests, and then the answers."""

    def __init__(self, ports, key, path, name, seed):
        self.rng, self.link, self.journal = random.Random(seed), Link(ports), Journal(path)
        self.key, self.name, self.n = key, name, 0

    def ask(self, what, facts, call, insist=False):
        """Returns the reply, or None. With `insist` it asks again until it knows."""
        self.n += 1
        self.journal.write(what=what, n=self.n, begin=clock(), **facts)
        for _ in range(TRIES if insist else 1):
            try:
                reply = self.link.call(*call)
            except (Refused, Unknown) as error:
                if insist:
                    time.sleep(0.02)
                    self.journal.write(what="again", n=self.n)
                elif isinstance(error, Refused):
                    return self.answered(what, refused=True)
                continue
            return self.answered(what, reply)
        return None

    def answered(self, what, reply=None, refused=False):
        facts = {"n": self.n, "end": clock()}
        if what == "send":
            facts |= {"refused": refused, "taken": reply is None}
        else:
            facts["count"] = 0 if refused else reply
        self.journal.write(what="answered", **facts)
        return reply


class Sender(Asker):
    """Plain jobs with limits, pages that are sent repeatedly, jobs that wait for a signal, and parents with
    children.
    """

    def __init__(self, ports, key, path, name, seed, ways):
        super().__init__(ports, key, path, name, seed)
        self.rate = ways.rate

    def run(self, until):
        while clock() < until:
            kind = self.rng.choices((self.plain, self.page, self.asks, self.parent), (45, 25, 15, 15))[0]
            kind()
            time.sleep(self.rng.expovariate(self.rate))

    def send(self, id, *options, key=None, insist=False, **facts):
        text = f"{id} {self.name} {self.n}"
        call = ("DQ.SEND", key or self.key, text, "ID", id, *options)
        return self.ask("send", {"id": id, "payload": text, **facts}, call, insist)

    def plain(self):
        id = f"plain-{self.name}-{self.n}"
        names, cost = ("all", "cores", f"user-{self.rng.randrange(5)}"), self.rng.randrange(1, 4)
        facts = {"limits": names, "cost": cost}
        if hash_of(id) % 3 == 0:
            facts["booked"] = booked(id)
        group = ("GROUP", f"g{self.rng.randrange(4)}") if self.rng.random() < 0.3 else ()
        self.send(id, "LIMITS", len(names), *names, "COST", cost, *group, **facts)

    def page(self):
        self.send(f"page-{self.rng.randrange(PAGES)}", "REPLACE", "RERUN")

    def asks(self):
        is_parked = self.rng.random() < 0.5
        self.send(f"ask-{self.name}-{self.n}", *["PARK"] * is_parked, parked=is_parked)

    def parent(self):
        """The parent is sent first, so that no child can end before the parent exists."""
        id, count = f"parent-{self.name}-{self.n}", self.rng.randrange(1, 5)
        self.send(id, "CHILDREN", count, insist=True, children=count)
        for number in range(count):
            ondead = self.rng.choices(("HOLD", "GO", "DIE"), (5, 3, 1))[0]
            options = ("PARENT", self.key, id, "ONDEAD", ondead)
            self.send(f"{id}/{number}", *options, key=self.key + PARTS, insist=True, parent=id, ondead=ondead)


def booked(id) -> int | None:
    """The COST of its ack, if it has one."""
    return hash_of(id) % 5 if hash_of(id) % 3 == 0 else None


class Worker(Asker):
    """Fetches from both queues, then acks, fails, parks, waits too long, or dies."""

    def __init__(self, ports, key, path, name, seed, lease, ways):
        super().__init__(ports, key, path, name, seed)
        self.lease, self.ways = lease, ways

    def run(self, until, patience, healed):
        """Works until `until`, then longer until all connections work and no message has come for `patience` ms."""
        idle_since = clock()
        while (chaos := clock() < until) or clock() - idle_since < patience:
            got = self.fetch()
            if got or got is None or not healed():
                idle_since = clock()
            for key, m in got or ():
                self.handle(key, m, chaos)

    def fetch(self):
        """The messages, each with its queue. None if no answer came."""
        keys = [self.key, self.key + PARTS]
        self.rng.shuffle(keys)
        call = ("DQ.MFETCH", 2, *keys, "COUNT", self.rng.choice((1, 3)), "LEASE", self.lease, "BLOCK", 100)
        begin = clock()
        try:
            reply = self.link.call(*call, "WITHMETA", "CONSUMER", self.name)
        except Refused:
            time.sleep(0.01)
            return None
        except Unknown:
            return None
        end, (key, messages) = clock(), reply or ("", ())
        got = []
        for id, receipt, attempt, payload, meta in messages:
            signal = as_map(meta)["signal"]
            m = {
                "id": id.decode(), "receipt": receipt, "attempt": attempt, "payload": payload.decode(),
                "signal": None if signal is None else signal.decode(),
            }  # fmt: skip
            self.journal.write(what="got", begin=begin, end=end, consumer=self.name, **m)
            got.append((key.decode(), m))
        return got

    def handle(self, key, m, chaos):
        kind, fate, wish = m["id"].split("-")[0], self.rng.random(), self.rng.random()
        if kind == "ask" and m["signal"] is None:
            return self.park(key, m)
        if not chaos:
            return self.answer("ack", key, m)
        if fate < self.ways.crash:
            self.link.drop()
            os._exit(9)
        if fate < self.ways.crash + self.ways.slow:
            time.sleep(self.lease * 1.3 / 1000)
        elif kind == "page":
            time.sleep(self.rng.random() * 0.05)
        if wish < self.ways.forget:
            return None
        if (wish := wish - self.ways.forget) < self.ways.nack:
            return self.answer("nack", key, m)
        if (wish := wish - self.ways.nack) < 0.1:
            return self.answer("fatal", key, m, "FATAL")
        if kind == "ask" and wish < 0.3:
            return self.park(key, m)
        return self.answer("ack", key, m)

    def park(self, key, m):
        waits = self.rng.random() < 0.2
        return self.answer("park", key, m, "SILENT", "PARK", *["FOR", self.rng.randrange(100, 600)] * waits, waits=waits)

    def answer(self, kind, key, m, *options, **facts):
        if kind == "ack" and (cost := booked(m["id"])) is not None and m["id"].startswith("plain"):
            options = ("COST", cost)
        call = ("DQ.ACK" if kind == "ack" else "DQ.NACK", key, m["receipt"], *options)
        return self.ask("answer", {"kind": kind, "id": m["id"], "receipt": m["receipt"], **facts}, call)


class Operator(Asker):
    """Signals the waiting jobs, some of them before they wait, and redrives or cancels the dead children."""

    def run(self, until, patience, healed):
        idle_since = clock()
        while clock() < until or clock() - idle_since < patience:
            if self.look() or not healed():
                idle_since = clock()
            time.sleep(0.03)

    def look(self) -> int:
        """Returns how much there was to do."""
        try:
            waiting = [id for id in self.listed(self.key, "held") if id.startswith("ask")]
            early = [id for id in self.listed(self.key, "running") if id.startswith("ask") and self.rng.random() < 0.3]
            dead = self.listed(self.key + PARTS, "dead")
        except (Refused, Unknown):
            return 1
        for id in waiting + early:
            text = f"{self.name} {self.n}"
            self.ask("signal", {"id": id, "text": text}, ("DQ.SIGNAL", self.key, id, "DATA", text))
        for id in dead:
            verb = ("DQ.REDRIVE", self.key + PARTS, "IDS", 1) if self.rng.random() < 0.7 else ("DQ.CANCEL", self.key + PARTS)
            try:
                self.link.call(*verb, id)
            except (Refused, Unknown):
                pass
        return len(waiting) + len(dead)

    def listed(self, key, state) -> list:
        _, ids = self.link.call("DQ.LIST", key, state, "COUNT", 1000, "IDS")
        return [id.decode() for id in ids]
