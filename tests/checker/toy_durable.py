"""A second toy: an ungrouped queue with a log, crashes, pauses, refusals and waiting consumers, to be given faults.

It keeps every state it was in, and a crash goes back to one of the last: that is what a server does
whose log lost its end. Each fault departs from that in one way.
"""

import random
from dataclasses import dataclass, field, replace

from tests.checker.durable import LAG
from tests.checker.history import Delivery, History, Send, Verdict, Window

LEASE = 300.0
RETRIES = 3
# A crash may undo the last ms up to this number.
REACH = 400.0

# Each fault with the rule that must find it.
DURABLE_FAULTS = {
    "second_holder": "one_holder",
    "lease_cut_short": "one_holder",
    "hole_in_the_log": "no_hole",
    "writes_with_a_stale_receipt": "effects_once",
    "undoes_too_much": "nothing_lost",
    "undoes_an_old_ack": "ack_is_final",
    "receipts_start_again": "one_delivery_a_receipt",
    "refuses_and_adds": "refused_is_nothing",
    "sleeps": "in_time",
    "gives_nothing": "in_time",
    "delivers_in_a_pause": "quiet_in_pause",
    "early_by_its_own_clock": "not_early",
    "replica_differs": "same_state",
}


@dataclass
class Item:
    id: str
    due: float
    attempt: int = 0
    failures: int = 0
    state: str = "pending"
    receipt: int = 0
    lease_end: float = 0.0


@dataclass
class State:
    """The state that a crash can bring back."""

    items: dict = field(default_factory=dict)
    counted: dict = field(default_factory=dict)

    def copy(self) -> "State":
        return State({id: replace(item) for id, item in self.items.items()}, dict(self.counted))


class DurableToy:
    def __init__(self, seed, fault=None):
        self.rng, self.fault = random.Random(seed), fault
        self.now, self.receipt = 0.0, 0
        self.state, self.past = State(), []
        self.pause_end = self.restarted = 0.0
        self.known = []
        self.history = History(retries=RETRIES)

    def faulty(self, name, chance=0.3):
        return self.fault == name and self.rng.random() < chance

    def run(self, steps=600):
        """Traffic with crashes and pauses, then draining; returns the history."""
        for step in range(steps):
            self.pass_time(self.rng.random() * 12)
            self.past.append((self.now, self.state.copy()))
            del self.past[:-150]
            what = self.rng.random()
            if what < 0.3:
                self.send()
            elif what < 0.65:
                self.fetch()
            elif self.known:
                self.verdict(self.known.pop(self.rng.randrange(len(self.known))))
            if step % 100 == 99:
                self.crash()
            elif step % 100 == 50:
                self.pause()
        for _ in range(4 * steps):
            if not any(item.state in ("pending", "running") for item in self.state.items.values()):
                break
            self.pass_time(50)
            self.fetch()
            while self.known:
                self.verdict(self.known.pop(), "ack")
        names = {"pending": "ready", "running": "running", "finished": "finished", "dead": "dead"}
        self.history.final = {name: [] for name in names.values()}
        for item in self.state.items.values():
            self.history.final[names[item.state]].append(item.id)
            if item.state == "dead":
                self.history.dead[item.id] = {"failures": item.failures, "attempt": item.attempt, "reason": "retries"}
        self.history.counted, self.history.acks = self.state.counted, sum(self.state.counted.values())
        if self.fault == "replica_differs":
            self.history.differences.append("the replica's digest is another")
        return self.history

    def pass_time(self, ms):
        self.now += ms
        for item in self.state.items.values():
            if item.state == "running" and item.lease_end <= self.now:
                self.fail(item)

    def fail(self, item):
        item.failures += 1
        item.state = "dead" if item.failures > RETRIES else "pending"

    def paused(self):
        return self.now < self.pause_end

    def send(self):
        n, begin = len(self.history.sends), self.now
        item = Item(f"m{n}", self.now + self.rng.choice((0, 0, 60)))
        send = Send(item.id, "", 0.0, begin, self.now + 1, item.due - begin)
        self.history.sends.append(send)
        if self.rng.random() < 0.1:
            send.refused, send.end = True, None
            if not self.faulty("refuses_and_adds"):
                return
        self.state.items[item.id] = item

    def fetch(self):
        begin = self.now
        if self.paused() and not self.faulty("delivers_in_a_pause"):
            return
        early = 80 if self.faulty("early_by_its_own_clock") else 0
        due = sorted((i.due, i.id) for i in self.state.items.values() if i.state == "pending" and i.due <= self.now + early)
        if self.faulty("second_holder", 0.1):
            due += [(i.due, i.id) for i in self.state.items.values() if i.state == "running"][:1]
        if self.faulty("gives_nothing", 0.5):
            self.pass_time(LAG + 200)
            due = []
        if not due:
            self.history.empties.append((begin, self.now))
            return
        if self.faulty("sleeps", 0.2):
            due = []
            self.send()
            latest = self.state.items.get(f"m{len(self.history.sends) - 1}")
            self.pass_time(LAG + 400)
            if latest is None:
                return
            due = [(latest.due, latest.id)]
        self.deliver(self.state.items[due[0][1]], begin)

    def deliver(self, item, begin):
        self.receipt += 1
        item.attempt += 1
        item.state, item.receipt, item.lease_end = "running", self.receipt, self.now + LEASE
        if self.faulty("lease_cut_short", 0.1):
            item.lease_end -= LEASE / 2
        self.history.deliveries.append(
            Delivery(
                item.id, "", self.receipt, item.attempt, begin, self.now, LEASE, f"b{self.receipt}", "c",
                at=self.now, due=item.due,
            )
        )  # fmt: skip
        self.known.append((item.id, self.receipt))

    def verdict(self, which, kind=None):
        id, receipt = which
        if kind is None and self.rng.random() < 0.15:
            return
        kind = kind or self.rng.choice(("ack", "ack", "ack", "nack"))
        item = self.state.items.get(id)
        holds = item is not None and item.state == "running" and item.receipt == receipt
        self.history.verdicts.append(Verdict(kind, id, receipt, self.now, self.now, int(holds)))
        if kind == "ack" and (holds or self.faulty("writes_with_a_stale_receipt")):
            self.state.counted[id] = self.state.counted.get(id, 0) + 1
        if holds and kind == "ack":
            item.state = "finished"
        elif holds:
            self.fail(item)

    def pause(self):
        self.pause_end = self.now + 100
        self.history.quiet.append((self.now, self.pause_end))

    def crash(self):
        """The state goes back to one of the last REACH ms, and no trace of the lost operations may be left."""
        begin = max(self.now - REACH, self.restarted)
        self.history.windows.append(Window(begin, self.now + 1))
        self.history.disturbed.append((begin, self.now + 100))
        reach = [(when, state) for when, state in self.past if when >= begin] or self.past[-1:]
        if self.fault == "undoes_too_much":
            reach = self.past[:5]
        when, state = self.rng.choice(reach)
        lost_state, self.state = self.state, state.copy()
        if self.fault == "hole_in_the_log":
            self.punch(begin, lost_state)
        if self.fault == "undoes_an_old_ack":
            old = [i for i in self.state.items.values() if i.state == "finished"]
            for item in old[: len(old) // 2]:
                item.state = "pending"
        if self.fault == "receipts_start_again":
            self.receipt = max((i.receipt for i in self.state.items.values()), default=0)
        self.known.clear()
        self.pass_time(20)
        self.restarted = self.now

    def punch(self, begin, lost):
        """The whole end of the log is kept, except for one message in the middle."""
        self.state = lost
        inside = [s.id for s in self.history.sends if s.begin > begin and s.id in lost.items and not s.refused]
        for id in inside[: max(1, len(inside) // 3)]:
            del self.state.items[id]
