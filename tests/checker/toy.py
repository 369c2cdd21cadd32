"""A small obvious queue of groups that can be given faults, to show that the checker sees them.

It runs in one thread on a clock of its own and writes its history directly. Every fault is one
departure from the rules, taken only now and then, as a real one would be.
"""

import random
from dataclasses import dataclass

from tests.checker.history import Delivery, History, Send, Verdict

LEASE = 300.0
RETRIES = 2

# Each fault with the rule of check.py that must find it.
FAULTS = {
    "two_at_once": "never_two_at_once",
    "out_of_order": "group_order",
    "passes_a_failed_head": "failed_first",
    "attempt_counted_twice": "attempts_exact",
    "silent_costs_an_attempt": "attempts_exact",
    "lost_at_lease_end": "nothing_lost",
    "lost_at_nack": "nothing_lost",
    "delivers_after_ack": "ack_is_final",
    "takes_stale_receipts": "stale_receipts",
    "reuses_a_receipt": "one_delivery_a_receipt",
    "delivers_early": "not_early",
    "changes_payload": "known",
    "changes_group": "known",
    "dies_too_soon": "dead_exactly",
    "dies_too_late": "dead_exactly",
    "finishes_by_itself": "nothing_lost",
    "never_delivers": "nothing_lost",
}


@dataclass
class Message:
    id: str
    group: str
    score: float
    due: float
    attempt: int = 0
    failures: int = 0
    failed: bool = False
    state: str = "pending"


@dataclass
class Lease:
    message: Message
    receipt: int
    batch: str
    end: float


class Toy:
    def __init__(self, seed, fault=None):
        self.rng, self.fault = random.Random(seed), fault
        self.now, self.receipt, self.fetches = 0.0, 0, 0
        self.messages, self.leases, self.known = {}, {}, []
        self.history = History(retries=RETRIES)

    def faulty(self, name, chance=0.3):
        return self.fault == name and self.rng.random() < chance

    def run(self, steps=1500):
        """A whole life: traffic, then draining; returns the history."""
        for _ in range(steps):
            self.now += self.rng.random() * 8
            self.expire()
            what = self.rng.random()
            if what < 0.25:
                self.send()
            elif what < 0.65:
                self.fetch()
            elif self.known:
                self.verdict(self.known.pop(self.rng.randrange(len(self.known))))
        for _ in range(4 * steps):
            if not any(m.state in ("pending", "running") for m in self.messages.values()):
                break
            self.now += 50
            self.expire()
            self.fetch()
            while self.known:
                self.verdict(self.known.pop(0), "ack")
        states = {"pending": "ready", "running": "running", "finished": "finished", "dead": "dead"}
        self.history.final = {s: [] for s in states.values()}
        for m in self.messages.values():
            self.history.final[states[m.state]].append(m.id)
            if m.state == "dead":
                self.history.dead[m.id] = {"failures": m.failures, "attempt": m.attempt, "reason": "retries"}
        return self.history

    def send(self):
        n = len(self.history.sends)
        delay = self.rng.choice((0, 0, 60))
        m = Message(f"m{n}", f"g{self.rng.randrange(4)}", self.rng.randrange(10**6) + n / 10**6, self.now + delay)
        self.messages[m.id] = m
        self.history.sends.append(Send(m.id, m.group, m.score, self.now, self.now, delay))
        if self.faulty("finishes_by_itself", 0.05):
            m.state = "finished"

    def can_give(self, group):
        """The group's next messages in order; empty where it is busy, held or has none due."""
        mine = [m for m in self.messages.values() if m.group == group and m.state == "pending"]
        busy = any(lease.message.group == group for lease in self.leases.values())
        if busy and not self.faulty("two_at_once"):
            return []
        skip_hold = self.faulty("passes_a_failed_head")
        if any(m.failed and m.due > self.now for m in mine) and not skip_hold:
            return []
        early = 1000 if self.faulty("delivers_early", 0.1) else 0
        due = [m for m in mine if m.due <= self.now + early and not (skip_hold and m.failed)]
        due.sort(key=lambda m: (not m.failed, m.score), reverse=self.faulty("out_of_order"))
        return due

    def fetch(self):
        groups = sorted({m.group for m in self.messages.values()})
        self.rng.shuffle(groups)
        for group in groups:
            due = self.can_give(group)
            if not due:
                continue
            self.fetches += 1
            for m in due[: self.rng.choice((1, 1, 3))]:
                self.deliver(m, f"batch{self.fetches}")
            return

    def deliver(self, m, batch):
        if self.fault == "never_delivers" and m.id.endswith("7"):
            return
        if not self.faulty("reuses_a_receipt", 0.05):
            self.receipt += 1
        m.attempt += 2 if self.faulty("attempt_counted_twice", 0.05) else 1
        m.state, m.failed = "running", False
        self.leases[self.receipt] = Lease(m, self.receipt, batch, self.now + LEASE)
        group = "elsewhere" if self.faulty("changes_group", 0.05) else m.group
        self.history.deliveries.append(
            Delivery(
                m.id, group, self.receipt, m.attempt, self.now, self.now, LEASE, batch, "c",
                not self.faulty("changes_payload", 0.05),
            )
        )  # fmt: skip
        self.known.append((m.id, self.receipt))

    def bring_back(self, lease):
        """The messages that follow in the batch come back without their attempts."""
        for other in [x for x in self.leases.values() if x.batch == lease.batch and x.receipt > lease.receipt]:
            del self.leases[other.receipt]
            other.message.state = "pending"
            other.message.attempt -= 1

    def fail(self, lease, wait):
        m = lease.message
        m.failures += 1
        m.state, m.failed, m.due = "pending", True, self.now + wait
        limit = RETRIES + (-1 if self.faulty("dies_too_soon") else 1 if self.fault == "dies_too_late" else 0)
        if m.failures > limit:
            m.state = "dead"

    def expire(self):
        for lease in sorted(self.leases.values(), key=lambda x: x.receipt):
            if lease.end <= self.now and self.leases.pop(lease.receipt, None):
                self.fail(lease, 0)
                self.bring_back(lease)
                if self.faulty("lost_at_lease_end"):
                    self.messages.pop(lease.message.id, None)

    def verdict(self, which, kind=None):
        id, receipt = which
        if kind is None and self.rng.random() < 0.1:
            return
        kind = kind or self.rng.choice(("ack", "ack", "ack", "ack", "nack", "silent"))
        lease = self.leases.pop(receipt, None)
        count = 1 if lease or self.faulty("takes_stale_receipts") else 0
        self.history.verdicts.append(Verdict(kind, id, receipt, self.now, self.now, count))
        if not lease:
            return
        m = lease.message
        if kind == "ack":
            m.state = "pending" if self.faulty("delivers_after_ack", 0.1) else "finished"
            return
        self.bring_back(lease)
        if kind == "silent":
            m.state = "pending"
            m.attempt -= 0 if self.faulty("silent_costs_an_attempt") else 1
        else:
            self.fail(lease, self.rng.randrange(60))
            if self.faulty("lost_at_nack"):
                self.messages.pop(m.id, None)
