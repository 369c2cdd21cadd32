"""A third toy: tokens, snoozes, notes, pauses by nack, breakers, closed queues, messages that follow from others, batches.

It loses replies, of which the token gets the same delivery again. Each fault departs from the rules in one way.
"""

import random
from dataclasses import dataclass, field

from tests.checker.history import (
    Breaker,
    Closure,
    Delivery,
    History,
    Note,
    Send,
    Sight,
    Verdict,
)

LEASE = 300.0
RETRIES = 3
GROUPS = {"narrow": 1, "wide": 3, "other": 1}
BREAKER = Breaker(failures=3, per=400.0, open=150.0)
LONGEST = 600.0

# Each fault with the rule that must find it.
FLOW_FAULTS = {
    "forgets_tokens": "attempts_exact",
    "counts_each_repeat": "attempts_counted",
    "snooze_costs_an_attempt": "attempts_exact",
    "snooze_is_short": "waits_kept",
    "wait_is_short": "waits_kept",
    "changes_the_batch": "known",
    "loses_notes": "notes_kept",
    "keeps_the_first_note": "notes_kept",
    "pause_leaks": "quiet_after_nack",
    "pause_is_short": "quiet_after_nack",
    "breaker_leaks": "quiet_while_open",
    "open_is_short": "quiet_while_open",
    "never_opens": "opens_in_time",
    "opens_late": "opens_in_time",
    "two_probes": "one_probe",
    "snoozed_probe_closes": "one_probe",
    "acks_and_sends_nothing": "handed_on",
    "sends_and_acks_nothing": "handed_on",
    "sends_for_a_stale_receipt": "refused_is_nothing",
    "releases_before_the_last": "held_until_its_batch_ends",
    "ends_before_a_follow_up": "held_until_its_batch_ends",
    "releases_over_the_dead": "held_until_its_batch_ends",
    "does_not_die_with_its_batch": "held_until_its_batch_ends",
    "never_releases": "nothing_lost",
    "releases_twice": "ack_is_final",
    "takes_though_closed": "closed_takes_nothing",
}


@dataclass
class Work:
    """A message."""

    id: str
    number: int
    group: str
    due: float
    batch: str = ""
    after: str = ""
    onfail: str = "HOLD"
    attempt: int = 0
    failures: int = 0
    failed: bool = False
    was_failed: bool = False
    note: str = ""
    state: str = "pending"
    receipt: int = 0
    lease_end: float = 0.0


@dataclass
class Circuit:
    """The breaker of a group."""

    failures: list = field(default_factory=list)
    until: float = 0.0
    state: str = "closed"
    stays: float = BREAKER.open
    probe: int = 0


class FlowToy:
    def __init__(self, seed, fault=None):
        self.rng, self.fault = random.Random(seed), fault
        self.now, self.receipt, self.batches = 0.0, 0, 0
        self.works, self.known = {}, []
        self.closed_at = None
        self.circuits = {group: Circuit() for group in GROUPS}
        self.paused = dict.fromkeys([*GROUPS, None], 0.0)
        self.history = History(retries=RETRIES, breaker=BREAKER, concurrency=GROUPS)

    def faulty(self, name, chance=0.3):
        return self.fault == name and self.rng.random() < chance

    def run(self, steps=1200):
        """A whole life: traffic, then draining; returns the history."""
        for _ in range(steps):
            self.pass_time(self.rng.random() * 10)
            what = self.rng.random()
            if what < 0.2:
                self.send(self.rng.choice([*GROUPS, ""]))
            elif what < 0.24:
                self.send_batch()
            elif what < 0.6:
                self.fetch()
            elif self.known:
                self.verdict(*self.known.pop(self.rng.randrange(len(self.known))))
        for _ in range(6 * steps):
            if not any(work.state in ("pending", "running") for work in self.works.values()):
                break
            self.pass_time(40)
            self.fetch()
            while self.known:
                self.verdict(*self.known.pop(0), kind="ack")
        states = ("pending", "running", "held", "finished", "dead")
        self.history.final = {s: [w.id for w in self.works.values() if w.state == s] for s in states}
        self.history.attempts = {w.id: w.attempt for w in self.works.values() if w.state == "finished"}
        for w in self.works.values():
            if w.state == "dead":
                reason = "batch" if w.after and not w.failures else "retries"
                self.history.dead[w.id] = {"failures": w.failures, "attempt": w.attempt, "reason": reason}
        return self.history

    def pass_time(self, ms):
        self.now += ms
        for work in sorted(self.works.values(), key=lambda w: w.receipt):
            if work.state == "running" and work.lease_end <= self.now:
                self.fail(work, 0)
        for group, circuit in self.circuits.items():
            if circuit.state == "open" and self.rng.random() < 0.5:
                self.history.sights.append(Sight(group, circuit.until, self.now, self.now, self.now))
            short = BREAKER.open / 2 if self.fault == "open_is_short" else 0
            if circuit.state == "open" and circuit.until - short <= self.now:
                circuit.state, circuit.probe = "half-open", 0
        if self.now % 600 > 560:
            self.closed_at = self.now if self.closed_at is None else self.closed_at
        elif self.closed_at is not None:
            self.history.closures.append(Closure(self.closed_at, self.now))
            self.closed_at = None

    # ---- sending, and batches ------------------------------------------------------------------------------------

    def send(self, group, id=None, **batch):
        n = len(self.history.sends)
        work = Work(id or f"m{n}", n, group, self.now, **batch)
        self.now += 0.01
        refused = self.closed_at is not None and not self.faulty("takes_though_closed")
        end = None if refused else self.now
        self.history.sends.append(Send(work.id, group, float(n), self.now, end, refused=refused, **batch))
        if not refused:
            self.add(work)
        self.now += 0.01

    def add(self, work):
        self.works[work.id] = work
        if work.after:
            work.state = "held"
            self.settle(work.after)

    def send_batch(self):
        self.batches += 1
        batch = f"b{self.batches}"
        for _ in range(self.rng.randrange(1, 4)):
            self.send("", batch=batch)
        self.send("", after=batch, onfail=self.rng.choice(("HOLD", "GO", "DIE")))

    def settle(self, batch):
        """Releases or ends the messages that a batch holds, if the batch has ended."""
        members = [w for w in self.works.values() if w.batch == batch]
        left = sum(w.state in ("pending", "running") for w in members)
        dead = any(w.state == "dead" for w in members)
        for held in [w for w in self.works.values() if w.after == batch and w.state == "held"]:
            if dead and held.onfail == "DIE" and self.fault != "does_not_die_with_its_batch":
                held.state = "dead"
            elif left > (1 if self.faulty("releases_before_the_last") else 0):
                continue
            elif dead and held.onfail == "HOLD" and self.fault != "releases_over_the_dead":
                continue
            elif not self.faulty("never_releases"):
                held.state, held.due = "pending", self.now

    # ---- delivering ----------------------------------------------------------------------------------------------

    def can_give(self, group):
        """The messages that the group may give, in order."""
        mine = [w for w in self.works.values() if w.group == group]
        due = sorted((w for w in mine if w.state == "pending" and w.due <= self.now), key=lambda w: (not w.failed, w.number))
        leak = self.faulty("pause_leaks")
        if max(self.paused[None], self.paused.get(group, 0)) > self.now and not leak:
            return []
        if not group:
            return due
        circuit, running = self.circuits[group], sum(w.state == "running" for w in mine)
        if circuit.state == "open" and not self.faulty("breaker_leaks"):
            return []
        if circuit.state == "half-open" and self.running(circuit.probe) and not self.faulty("two_probes"):
            return []
        held = any(w.state == "pending" and w.failed and w.due > self.now for w in mine)
        return [] if held or running >= GROUPS[group] else due

    def running(self, receipt):
        return any(w.state == "running" and w.receipt == receipt for w in self.works.values())

    def fetch(self):
        """With a token; now and then the reply is lost, and the token sent again."""
        begin = self.now
        ready = [due[0] for group in [*GROUPS, ""] if (due := self.can_give(group))]
        if not ready:
            return
        work = self.rng.choice(ready)
        self.lease(work)
        if self.rng.random() < 0.3:
            self.now += 2
            if self.faulty("forgets_tokens"):
                return
            if self.fault == "counts_each_repeat":
                work.attempt += 1
        shown = work.attempt - 1 if self.fault == "counts_each_repeat" and self.now > begin else work.attempt
        note = "" if self.faulty("loses_notes") else work.note
        batch = "another" if self.faulty("changes_the_batch", 0.05) else work.batch
        self.history.deliveries.append(
            Delivery(
                work.id, work.group, work.receipt, shown, begin, self.now, LEASE, f"b{work.receipt}", "c",
                at=begin, due=work.due, note=note, member_of=batch,
            )
        )  # fmt: skip
        self.known.append((work.id, work.receipt))

    def lease(self, work):
        self.receipt += 1
        work.attempt += 1
        work.state, work.receipt, work.lease_end = "running", self.receipt, self.now + LEASE
        work.was_failed, work.failed = work.failed, False
        circuit = self.circuits.get(work.group)
        if circuit and circuit.state == "half-open" and not self.running(circuit.probe):
            circuit.probe = work.receipt

    # ---- settling ------------------------------------------------------------------------------------------------

    def fail(self, work, wait):
        work.failures += 1
        work.state, work.failed, work.due = "pending", True, self.now + wait
        if work.failures > RETRIES:
            work.state = "dead"
            self.settle(work.batch)
        circuit = self.circuits.get(work.group)
        if circuit is None or self.fault == "never_opens":
            return
        if circuit.state == "half-open" and circuit.probe == work.receipt:
            self.open(circuit, min(circuit.stays * 2, LONGEST))
        elif circuit.state == "closed":
            circuit.failures = [at for at in circuit.failures if at > self.now - BREAKER.per] + [self.now]
            if len(circuit.failures) >= BREAKER.failures + (self.fault == "opens_late"):
                self.open(circuit, BREAKER.open)

    def open(self, circuit, ms):
        circuit.state, circuit.stays, circuit.until, circuit.failures = "open", ms, self.now + ms, []

    def verdict(self, id, receipt, kind=None):
        if kind is None and self.rng.random() < 0.08:
            return
        drained = kind is not None
        kind = kind or self.rng.choice(("ack", "ack", "ack", "nack", "nack", "silent"))
        work = self.works[id]
        holds = work.state == "running" and work.receipt == receipt
        answered = self.rng.random() < 0.9
        verdict = Verdict(kind, id, receipt, self.now, None, None, asked_at=self.now)
        self.history.verdicts.append(verdict)
        if answered:
            verdict.end, verdict.count, verdict.answered_at = self.now, int(holds), self.now
        if kind == "ack":
            following = None if drained or self.closed_at or self.rng.random() < 0.6 else self.following(work, receipt, verdict)
            self.ack(work, following, holds, answered)
        else:
            self.hand_back(work, verdict, holds)

    def following(self, work, receipt, verdict):
        """The messages that are to be sent with the ack."""
        n, batch = len(self.history.sends), work.batch
        verdict.next = f"{work.id}>{receipt}"
        end = verdict.end if verdict.count else None
        send = Send(verdict.next, "", float(n), self.now, end, batch=batch, parent=work.id, refused=verdict.count == 0)
        self.history.sends.append(send)
        return Work(send.id, n, "", self.now, batch=batch)

    def ack(self, work, following, holds, answered):
        if not holds:
            if following and answered and self.faulty("sends_for_a_stale_receipt"):
                self.add(following)
            return
        if following and not answered and self.faulty("sends_and_acks_nothing"):
            self.add(following)
            return
        work.state = "finished"
        if self.fault == "ends_before_a_follow_up":
            self.settle(work.batch)
        if following and not (not answered and self.faulty("acks_and_sends_nothing")):
            self.add(following)
        self.settle(work.batch)
        if work.after and self.faulty("releases_twice"):
            work.state = "pending"
        self.close(work, "ack")

    def close(self, work, how):
        circuit = self.circuits.get(work.group)
        if circuit and circuit.state == "half-open" and circuit.probe == work.receipt:
            if how == "ack" or self.fault == "snoozed_probe_closes":
                self.circuits[work.group] = Circuit()

    def hand_back(self, work, verdict, holds):
        rng = self.rng
        verdict.delay = rng.choice((None, 30.0, 90.0))
        if rng.random() < 0.3:
            text = f"note {verdict.receipt}"
            note = Note(work.id, verdict.receipt, text, self.now, verdict.end, verdict.count)
            self.history.notes.append(note)
            if holds and not (work.note and self.fault == "keeps_the_first_note"):
                work.note = text
        if work.group and rng.random() < 0.3:
            verdict.pause = (rng.choice(("GROUP", "GROUP", "QUEUE")), 120)
        if not holds:
            return
        if verdict.pause:
            scope = work.group if verdict.pause[0] == "GROUP" else None
            ms = 40 if self.fault == "pause_is_short" else 120
            self.paused[scope] = max(self.paused[scope], self.now + ms)
        wait = verdict.delay or 0
        if verdict.kind == "nack":
            self.fail(work, wait / 3 if self.fault == "wait_is_short" else wait)
            return
        work.state, work.failed = "pending", work.was_failed and verdict.delay is None
        work.attempt -= 0 if self.faulty("snooze_costs_an_attempt") else 1
        if verdict.delay is not None:
            work.due = self.now + (wait / 3 if self.fault == "snooze_is_short" else wait)
        self.close(work, "silent")
