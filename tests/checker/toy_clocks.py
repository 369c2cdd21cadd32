"""A fourth toy: an ungrouped queue whose server has its clock stepped and stands still, to be given faults.

The queue's clock is never behind the server's. It goes at half speed where it is ahead, and what it is ahead by more than
MOST is cut: delays and leases keep what is left of them.
"""

import random
from dataclasses import dataclass

from tests.checker.history import ClockStep, Delivery, History, Send, Verdict

LEASE = 300.0
RETRIES = 10
# The largest lead that is kept and shrinks.
MOST = 60_000.0
STEPS = (2_000, 30_000, 600_000, 86_400_000)

# Each fault with the rule that must find it.
CLOCK_FAULTS = {
    "stands_still": "clock_goes_on",
    "is_moved_by_another_queue": "clock_goes_on",
    "delays_are_lost_with_the_lead": "not_early",
    "leases_are_lost_with_the_lead": "one_holder",
    "receipts_go_back_with_the_clock": "one_delivery_a_receipt",
    "ends_leases_in_a_standstill": "in_time_in_a_standstill",
}


@dataclass
class Item:
    id: str
    due: float
    attempt: int = 0
    state: str = "pending"
    receipt: int = 0
    lease_end: float = 0.0


class ClockToy:
    def __init__(self, seed, fault=None):
        self.rng, self.fault = random.Random(seed), fault
        # The machine's monotonic clock, the wall clock of the server, and that of the queue.
        self.now, self.wall, self.clock = 0.0, 1e9, 1e9
        self.receipt, self.items, self.known = 0, {}, []
        self.history = History(retries=RETRIES)

    def run(self, steps=1200):
        """Traffic with steps of the clock and standstills, then draining; returns the history."""
        for step in range(steps):
            self.pass_time(self.rng.random() * 12)
            self.act()
            if step % 240 == 200:
                self.step()
            elif step % 120 == 60:
                self.stand_still()
            elif step % 240 == 20 and self.fault == "is_moved_by_another_queue":
                self.clock += 5_000
        while any(item.state != "finished" for item in self.items.values()):
            self.pass_time(50)
            self.fetch()
            while self.known:
                self.verdict(*self.known.pop(), "ack")
        self.history.final = {"finished": list(self.items)}
        return self.history

    def act(self):
        what = self.rng.random()
        if what < 0.3:
            self.send()
        elif what < 0.65:
            self.fetch()
        elif self.known:
            self.verdict(*self.known.pop(self.rng.randrange(len(self.known))))

    # ---- time ----------------------------------------------------------------------------------------------------

    def pass_time(self, ms, sparing=False):
        self.now += ms
        self.wall += ms
        stands = self.fault == "stands_still" and self.clock > self.wall
        self.clock = max(self.wall, self.clock + (0 if stands else ms / 2))
        for item in self.items.values():
            if item.state == "running" and item.lease_end <= self.clock and not sparing:
                item.state = "pending"

    def step(self):
        ms = self.rng.choice(STEPS) * self.rng.choice((1, -1, -1))
        self.history.steps.append(ClockStep(ms, self.now, self.now))
        self.wall += ms
        lead = self.clock - self.wall
        if lead > MOST:
            self.cut(lead)
        if self.fault == "receipts_go_back_with_the_clock" and ms < 0:
            self.receipt = max(0, self.receipt - 5)
        self.history.disturbed.append((self.now, self.now + 2_000))

    def cut(self, lead):
        self.clock -= lead
        for item in self.items.values():
            item.due -= lead + (300 if self.fault == "delays_are_lost_with_the_lead" else 0)
            item.lease_end -= lead + (250 if self.fault == "leases_are_lost_with_the_lead" else 0)

    def stand_still(self):
        """Commands that arrive meanwhile are done when the server goes on, before leases end."""
        begin, arrived = self.now, []
        for _ in range(4):
            self.pass_time(100, sparing=True)
            if self.known:
                arrived.append((self.now, *self.known.pop()))
        self.pass_time(100, sparing=True)
        self.history.standstills.append((begin, self.now))
        self.history.disturbed.append((begin, self.now + 2_000))
        if self.fault == "ends_leases_in_a_standstill":
            self.pass_time(0)
        for asked, id, receipt in arrived:
            self.verdict(id, receipt, "ack", asked)
        self.pass_time(0)

    # ---- the queue -----------------------------------------------------------------------------------------------

    def send(self):
        delay = self.rng.choice((0, 0, 400))
        item = Item(f"m{len(self.items)}", self.clock + delay)
        self.items[item.id] = item
        self.history.sends.append(Send(item.id, "", 0.0, self.now, self.now, delay))

    def fetch(self):
        due = [item for item in self.items.values() if item.state == "pending" and item.due <= self.clock]
        if not due:
            return
        item = min(due, key=lambda item: item.due)
        self.receipt += 1
        item.attempt += 1
        item.state, item.receipt, item.lease_end = "running", self.receipt, self.clock + LEASE
        self.history.deliveries.append(
            Delivery(
                item.id, "", self.receipt, item.attempt, self.now, self.now, LEASE, f"b{self.receipt}", "c",
                at=self.clock, due=item.due,
            )
        )  # fmt: skip
        self.known.append((item.id, self.receipt))

    def verdict(self, id, receipt, kind=None, asked=None):
        if kind is None and self.rng.random() < 0.15:
            return
        item = self.items[id]
        holds = item.state == "running" and item.receipt == receipt
        begin = self.now if asked is None else asked
        self.history.verdicts.append(Verdict("ack", id, receipt, begin, self.now, int(holds)))
        if holds:
            item.state = "finished"
