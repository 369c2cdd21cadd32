"""The processes of a run: producers that repeat their commands, consumers that are slow, fail, lie and vanish, and
observers.
"""

import os
import random
import time
from dataclasses import dataclass

from tests.checker.history import Journal, clock, wall_clock
from tests.checker.link import Link, Refused, Unknown
from tests.harness.replies import as_map

# A consumer goes on sending the same token for this long, in ms, if no answer comes.
INSISTS = 40_000


@dataclass(frozen=True)
class Ways:
    """The actions of the actors, and how often each is done: shares of all messages."""

    groups: int = 16
    # Shares of the sent messages: those without a group, and those that begin a batch with one that comes after it.
    ungrouped: float = 0.4
    batches: float = 0.04
    # Shares of the handled messages. Half of the returned messages are snoozed (SILENT) or wait (others) for some time.
    nack: float = 0.08
    nack_of_batch: float = 0.25
    silent: float = 0.06
    forget: float = 0.02
    hand_on: float = 0.08
    note: float = 0.08
    crash: float = 0.003
    slow: float = 0.01
    # Shares of those handed back: whether the group, or the queue, is paused with it.
    pause_group: float = 0.2
    pause_queue: float = 0.0
    # Whether consumers fetch several messages of a group at a time, and whether they fetch with a token.
    batch_fetches: bool = True
    tokens: bool = True
    rate: float = 60


def payload(id, group) -> bytes:
    """The payload that the message must carry, so that a mix-up shows."""
    return f"{id} of {group} ".encode() * (1 + hash_of(id) % 5)


def hash_of(text) -> int:
    """The number is the same in all processes, unlike hash()."""
    return sum((i + 1) * b for i, b in enumerate(text.encode()))


def acks_of(key) -> tuple:
    """The keys in which acks count themselves: all of them, and those of each message. They are in the queue's slot."""
    return f"{key}:acks", f"{key}:acked"


def score_of(rng, name, n) -> float:
    """A random score that no other message has, so that the order is unique."""
    return rng.randrange(10**6) + hash_of(name) * 1e-3 + n * 1e-9


def produce(ports, key, path, name, seed, until, ways):
    """Sends to groups and to none, some delayed, until the monotonic ms `until`."""
    Producer(ports, key, path, name, seed, ways).run(until)


class Producer:
    """SEND, alone and into batches."""

    def __init__(self, ports, key, path, name, seed, ways):
        self.rng, self.link, self.journal = random.Random(seed), Link(ports), Journal(path)
        self.key, self.name, self.ways = key, name, ways
        self.n = 0

    def run(self, until):
        while clock() < until:
            if self.rng.random() < self.ways.batches:
                self.send_batch()
            else:
                self.send(delay=self.rng.choice((0, 0, self.rng.randrange(1, 250))))
            time.sleep(self.rng.expovariate(self.ways.rate))

    def send_batch(self):
        """Some messages of one batch, and one that comes after them."""
        batch = f"batch-{self.name}-{self.n}"
        for _ in range(self.rng.randrange(1, 5)):
            # Some messages die of their first failure.
            self.send(batch=batch, retries=self.rng.choice((None, None, 0)))
        self.send(after=batch, onfail=self.rng.choice(("HOLD", "GO", "DIE")))

    def send(self, delay=0, batch="", after="", onfail="HOLD", retries=None):
        """Sends one message. If no answer comes, the command is repeated in half of the cases until one comes."""
        self.n += 1
        id = f"{self.name}-{self.n}"
        group = "" if self.rng.random() < self.ways.ungrouped else f"g{self.rng.randrange(self.ways.groups)}"
        score = score_of(self.rng, self.name, self.n)
        call = ["DQ.SEND", self.key, payload(id, group), "ID", id, "DELAY", delay]
        call += ["GROUP", group, "SCORE", repr(score)] if group else []
        call += ["BATCH", batch] if batch else []
        call += ["AFTER", after, "ONFAIL", onfail] if after else []
        call += [] if retries is None else ["RETRIES", retries]
        event = {"id": id, "group": group, "score": score, "delay": delay, "retries": retries}
        event |= {"batch": batch, "after": after, "onfail": onfail}
        insist = self.rng.random() < 0.5
        for _ in range(100):
            self.journal.write(what="send", begin=clock(), **event)
            try:
                self.link.call(*call)
            except Refused:
                self.journal.write(what="refused", id=id, end=clock())
                return
            except Unknown:
                if insist:
                    continue
                return
            # Its id, or nothing where an earlier try had been done after all.
            self.journal.write(what="sent", id=id, end=clock())
            return


class Consumer:
    """FETCH in all its forms, then ack, send on, give back, wait, let the lease run out, come too late, or die."""

    def __init__(self, ports, key, path, name, seed, lease, ways):
        self.rng, self.link, self.journal = random.Random(seed), Link(ports), Journal(path)
        self.key, self.name, self.lease, self.ways = key, name, lease, ways
        self.n, self.old = 0, []

    def run(self, until, patience, healed=lambda: True):
        """Works until `until`, then longer until all connections work and no message has come for `patience` ms."""
        idle_since = clock()
        while (chaos := clock() < until) or clock() - idle_since < patience:
            messages = self.fetch(chaos)
            if messages or messages is None or not healed():
                idle_since = clock()
            for m in messages or ():
                self.handle(m, chaos)

    def fetch(self, chaos):
        """The messages of the reply; None where the server did not answer.

        A lost reply costs nothing: the same token gives the same messages again.
        """
        self.n += 1
        options, group = ["COUNT", 10], ""
        if chaos:
            kind = self.rng.randrange(4 if self.ways.batch_fetches else 2)
            if kind == 3:
                group = f"g{self.rng.randrange(self.ways.groups)}"
            options = [["COUNT", 1], ["COUNT", 4], ["COUNT", 6, "PERGROUP", 3], ["GROUP", group, "COUNT", 3]][kind]
        block = self.rng.choice((50, 200, 400))
        call = ["DQ.FETCH", self.key, *options, "LEASE", self.lease, "BLOCK", block, "WITHMETA", "CONSUMER", self.name]
        call += ["TOKEN", self.n] if self.ways.tokens else []
        begin, tries = clock(), 0
        self.journal.write(what="fetch", n=self.n, begin=begin, lease=self.lease, consumer=self.name, group=group)
        while clock() < begin + INSISTS:
            try:
                reply = self.link.call(*call)
            except Refused:
                if not tries:
                    self.journal.write(what="unfetched", n=self.n)
                    return None
                time.sleep(0.01)
            except Unknown:
                tries += 1
            else:
                messages = [self.message(*one) for one in reply]
                self.journal.write(what="fetched", n=self.n, end=clock(), tries=tries + 1, messages=messages)
                return messages
        return None

    def message(self, id, receipt, attempt, body, meta):
        meta = as_map(meta)
        id, group = id.decode(), (meta["group"] or b"").decode()
        return {
            "id": id, "group": group, "receipt": receipt, "attempt": attempt,
            "batch": f"{self.name}/{self.n}/{group}", "intact": body == payload(id, group),
            # On the queue's own clock: this machine's may drift away from it.
            "at": meta["lease-until"] - self.lease, "due": meta["due-at"],
            "note": (meta["note"] or b"").decode(), "member_of": (meta["batch"] or b"").decode(),
        }  # fmt: skip

    def handle(self, m, chaos):
        ways = self.ways
        if not chaos:
            self.verdict("ack", m)
            return
        fate, kind = self.rng.random(), self.rng.random()
        if fate < ways.crash:
            self.link.drop()
            os._exit(9)
        if fate < ways.crash + ways.slow:
            # The handler is too slow: the lease, and those of the following messages, run out meanwhile.
            time.sleep(self.lease * 1.3 / 1000)
        elif fate < ways.crash + ways.slow + 0.1:
            time.sleep(self.rng.random() * 0.02)
        if self.rng.random() < ways.note:
            self.leave_note(m)
        if kind < (nack := ways.nack_of_batch if m["member_of"] else ways.nack):
            self.hand_back("nack", m)
        elif (kind := kind - nack) < ways.silent:
            self.hand_back("silent", m)
        elif (kind := kind - ways.silent) < ways.forget:
            # A later ack of the message must change nothing, unless its lease still runs.
            self.old.append(m)
        elif kind - ways.forget < ways.hand_on and m["id"].count(">") < 2:
            self.hand_on(m)
        else:
            self.verdict("ack", m)
        if self.old and self.rng.random() < 0.05:
            self.verdict("ack", self.old.pop(0))

    def leave_note(self, m):
        """Prolongs the lease, too."""
        text = self.rng.choice((f"{self.name}: {self.n}", f"{self.name}: {self.n}", ""))
        self.n += 1
        self.journal.write(what="note", n=self.n, id=m["id"], receipt=m["receipt"], text=text, begin=clock())
        self.ask("DQ.TOUCH", self.key, self.lease, m["receipt"], "NOTE", text)

    def hand_back(self, kind, m):
        options, facts = ["ERROR", "chaos"], {}
        if kind == "silent":
            options += ["SILENT"]
        if self.rng.random() < 0.5:
            facts["delay"] = self.rng.randrange(0, 60)
            options += ["DELAY", facts["delay"]]
        stop = self.rng.random()
        if m["group"] and stop < self.ways.pause_group:
            facts["pause"] = ["GROUP", self.rng.randrange(60, 200)]
        elif stop > 1 - self.ways.pause_queue:
            facts["pause"] = ["QUEUE", self.rng.randrange(60, 200)]
        options += ["PAUSE", *facts["pause"]] if "pause" in facts else []
        if self.rng.random() < self.ways.note:
            text = f"{self.name}: {self.n}"
            options += ["NOTE", text]
            self.journal.write(what="note", n=self.n + 1, id=m["id"], receipt=m["receipt"], text=text, begin=clock())
        self.verdict(kind, m, *options, **facts)

    def hand_on(self, m):
        """Finishes the message and sends one that follows from it, in some cases in the same batch."""
        id, group = f"{m['id']}>{m['receipt']}", m["group"]
        score, batch = score_of(self.rng, self.name, self.n), self.rng.choice((m["member_of"], ""))
        options = ["ID", id]
        options += ["GROUP", group, "SCORE", repr(score)] if group else []
        options += ["BATCH", batch] if batch else []
        following = {"id": id, "group": group, "score": score, "batch": batch}
        self.verdict("ack", m, "NEXT", self.key, payload(id, group), *options, next=following)

    def verdict(self, kind, m, *options, **facts):
        self.n += 1
        verb = "DQ.NACK" if kind != "ack" else "DQ.ACKSEND" if "next" in facts else "DQ.ACK"
        if kind == "ack":
            # All of that is one step with the ack, or nothing of it where the receipt is stale.
            counters = acks_of(self.key)
            options = ("APPLY", 2, "INCRBY", counters[0], 1, "HINCRBY", counters[1], m["id"], 1, *options)
        facts |= {"n": self.n, "kind": kind, "ids": [m["id"]], "receipts": [m["receipt"]]}
        self.journal.write(what="verdict", begin=clock(), asked_at=wall_clock(), **facts)
        self.ask(verb, self.key, m["receipt"], *options)

    def ask(self, *call):
        """Writes down how many messages it has changed; where it is refused, none: the lease runs out."""
        try:
            reply = self.link.call(*call)
        except Refused:
            reply = 0
        except Unknown:
            return
        # An ack gives the replies of its effects, or nothing for a stale receipt.
        count = reply if isinstance(reply, int) else int(isinstance(reply, list))
        self.journal.write(what="answered", n=self.n, end=clock(), count=count, answered_at=wall_clock())


def close(ports, key, path, until, seed):
    """Closes the queue for some ms repeatedly, and leaves it open."""
    rng, link, journal = random.Random(seed), Link(ports), Journal(path)
    while clock() < until:
        try:
            link.call("DQ.ALTER", key, "SENDS", "OFF")
        except (Refused, Unknown):
            pass
        else:
            begin = clock()
            time.sleep(rng.random() * 0.06)
            journal.write(what="closed", begin=begin, end=clock())
        _open(link, key)
        time.sleep(rng.random() * 0.6)


def _open(link, key):
    for _ in range(1000):
        try:
            link.call("DQ.ALTER", key, "SENDS", "ON")
            return
        except (Refused, Unknown):
            time.sleep(0.01)


def watch(ports, key, path, until):
    """Checks the breakers of the groups repeatedly, and records which are open and for how long."""
    link, journal = Link(ports), Journal(path)
    while clock() < until:
        begin = clock()
        try:
            _, rows = link.call("DQ.GROUPS", key, "COUNT", 100)
        except (Refused, Unknown):
            continue
        seen = {"begin": begin, "end": clock(), "at": wall_clock()}
        for row in map(as_map, rows):
            if row["breaker"] == b"open":
                journal.write(what="sight", group=row["group"].decode(), until=row["open-until"], **seen)
        time.sleep(0.01)
