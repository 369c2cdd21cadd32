"""A small obvious queue of jobs with an event stream that can be given faults, to show that the rules see them.

It runs in one thread on a clock of its own, and writes the record directly. Each fault departs from the rules in one way,
now and then.
"""

import random
from dataclasses import dataclass, field

from tests.checker.jobs.record import Answer, Got, Letter, Record, Sent, Signal
from tests.checker.limits import Limit, Limits
from tests.checker.stream import Event

LEASE = 300.0
RETRIES = 1
RULES = {"user-*": Limit(concurrency=1), "all": Limit(rates=((6, 200), (3, 50)), weight=True), "cores": Limit(concurrency=4, weight=True)}

# Each fault with the rule that must find it.
JOB_FAULTS = {
    "loses_an_event": "events_tell_the_state",
    "doubles_an_event": "events_tell_the_state",
    "loses_the_events_of_a_message": "events_tell_the_state",
    "tells_of_a_refused_send": "what_was_answered_is_told",
    "loses_all_of_a_send": "what_was_answered_is_told",
    "acks_twice": "what_was_answered_is_told",
    "tells_too_late": "told_in_order",
    "loses_a_letter": "letters_exact",
    "doubles_a_letter": "letters_exact",
    "letter_and_record": "letters_exact",
    "sends_an_old_payload": "letters_exact",
    "counts_a_child_twice": "children_counted",
    "forgets_a_child": "children_counted",
    "releases_late": "children_counted",
    "counts_the_dead": "children_counted",
    "does_not_die": "children_counted",
    "counts_wrong": "children_counted",
    "counts_a_redriven_child": "children_counted",
    "loses_a_signal": "signals_kept",
    "doubles_a_signal": "signals_kept",
    "signals_another": "signals_kept",
    "wakes_by_itself": "signals_kept",
    "forgets_an_early_signal": "signals_kept",
    "never_wakes": "nothing_left",
    "loses_a_rerun": "reruns_kept",
    "doubles_a_rerun": "reruns_kept",
    "runs_an_older_one": "reruns_kept",
    "one_too_many": "within_limits",
    "ignores_a_window": "within_limits",
    "ignores_costs": "within_limits",
    "ignores_weights": "within_limits",
    "books_too_little": "within_limits",
}


@dataclass
class Job:
    """A message. state: waits, ready, running, finished, dead."""

    id: str
    payload: str
    state: str = "ready"
    attempt: int = 0
    receipt: int = 0
    lease_end: float = 0.0
    rerun: str | None = None
    parent: str = ""
    ondead: str = ""
    needs: int = 0
    ended: dict = field(default_factory=dict)
    signal: str | None = None
    seen: str | None = None
    names: tuple = ()
    cost: int = 1
    booked: int | None = None


class JobToy:
    """Each operation takes some time, and its events come after those of the previous operation and before those of
    the next one.
    """

    def __init__(self, seed, fault=None):
        self.rng, self.fault = random.Random(seed), fault
        self.now, self.receipt, self.number = 1000.0, 0, 0
        self.jobs, self.held_back = {}, []
        self.limits = Limits(RULES)
        self.record = Record(rules=RULES)

    def faulty(self, name, chance=0.3):
        return self.fault == name and self.rng.random() < chance

    def run(self, steps=700):
        """Traffic, then draining. Returns the record."""
        for _ in range(steps):
            self.pass_time(self.rng.random() * 12)
            self.rng.choice((self.send, self.fetch, self.fetch, self.fetch, self.operate))()
        for _ in range(40 * steps):
            if not any(job.state in ("waits", "ready", "running") for job in self.jobs.values()):
                break
            self.pass_time(20)
            self.operate(every=True)
            self.fetch(drains=True)
        record, gone = self.record, self.fault == "letter_and_record"
        record.events += self.held_back
        record.final = {job.id: job.state for job in self.jobs.values() if job.state != "dead" or job.parent or gone}
        for job in self.jobs.values():
            if job.needs and job.state == "finished":
                cancelled = list(job.ended.values()).count("cancelled")
                finished = len(job.ended) - cancelled + self.faulty("counts_wrong")
                record.counts[job.id] = {"finished": finished, "dead": 0, "cancelled": cancelled}
        return record

    def pass_time(self, ms):
        self.now += ms
        for job in list(self.jobs.values()):
            if job.state == "running" and job.lease_end <= self.now:
                self.tell("timeout", job)
                self.fail(job)

    def tell(self, kind, job, **facts):
        """Adds an event."""
        if self.fault == "loses_the_events_of_a_message" and job.id.endswith("7"):
            return
        if self.faulty("loses_an_event", 0.02):
            return
        consumer = "c" if kind in ("delivered", "acked", "nacked", "timeout") else ""
        event = Event(kind, job.id, int(self.now), job.attempt, consumer, **facts)
        if kind == "sent" and self.faulty("tells_too_late", 0.05):
            # The event is in the stream only when later ones are.
            self.held_back.append(event)
            return
        self.record.events += [event] * (2 if self.faulty("doubles_an_event", 0.02) else 1)

    # ---- sending -------------------------------------------------------------------------------------------------

    def send(self):
        kind = self.rng.choice((self.plain, self.plain, self.page, self.ask, self.family))
        kind()

    def add(self, id, refused=False, **facts):
        self.number += 1
        job = Job(id, f"{id} {self.number}", **{name: facts[name] for name in facts if name not in ("children", "parked")})
        sent = Sent(id, job.payload, self.now, self.now + 0.5, refused=refused, limits=job.names, cost=job.cost, booked=job.booked)
        sent.parent, sent.ondead, sent.children = job.parent, job.ondead, job.needs
        sent.parked = facts.get("parked", False)
        self.record.sends.append(sent)
        self.now += 1
        return job

    def enter(self, job, state="ready"):
        if self.faulty("loses_all_of_a_send", 0.02) and not job.parent:
            return
        self.jobs[job.id] = job
        job.state = state
        self.tell("sent", job)
        if state == "ready":
            self.tell("ready", job)

    def plain(self):
        names = ("all", "cores", f"user-{self.rng.randrange(3)}")
        job = self.add(
            f"plain-{self.number}", names=names, cost=self.rng.randrange(1, 3), refused=self.rng.random() < 0.1,
            booked=self.rng.choice((None, 0, 4)),
        )  # fmt: skip
        if not self.record.sends[-1].refused or self.faulty("tells_of_a_refused_send"):
            self.enter(job)

    def page(self, id=None):
        id = id or f"page-{self.rng.randrange(3)}"
        new, old = self.add(id), self.jobs.get(id)
        if old is None or old.state in ("finished", "dead"):
            self.enter(new)
        elif old.state == "running":
            old.rerun = old.rerun if old.rerun and self.faulty("runs_an_older_one") else new.payload
        else:
            self.tell("replaced", old)
            self.enter(new)

    def ask(self):
        is_parked = self.rng.random() < 0.5
        self.enter(self.add(f"ask-{self.number}", parked=is_parked), "waits" if is_parked else "ready")

    def family(self):
        parent = self.add(f"parent-{self.number}", needs=self.rng.randrange(1, 4))
        self.enter(parent, "waits")
        for number in range(parent.needs):
            ondead = self.rng.choice(("HOLD", "HOLD", "GO", "DIE"))
            self.enter(self.add(f"{parent.id}/{number}", parent=parent.id, ondead=ondead))

    # ---- delivering ----------------------------------------------------------------------------------------------

    def has_room(self, job):
        """Whether all of its limits have room for it."""
        if not job.names or self.faulty("one_too_many", 0.1):
            return True
        windows = [] if self.faulty("ignores_a_window", 0.1) else ["all"]
        cost = 0 if self.faulty("ignores_costs", 0.1) else job.cost
        weight = 0 if self.faulty("ignores_weights", 0.2) else job.cost
        frees = [self.limits.free_at(name, int(self.now), cost) for name in windows]
        used = [self.limits.used("cores") + weight <= 4, self.limits.used(job.names[2]) < 1]
        return all(used) and all(at is not None and at <= int(self.now) for at in frees)

    def fetch(self, drains=False):
        self.pass_time(1)
        ready = [job for job in self.jobs.values() if job.state == "ready" and self.has_room(job)]
        if not ready:
            return
        job, begin = self.rng.choice(ready), self.now
        self.receipt += 1
        job.attempt += 1
        job.state, job.receipt, job.lease_end, job.seen = "running", self.receipt, self.now + LEASE, job.signal
        if job.names:
            self.limits.begins(int(self.now), job.id, job.names, job.cost)
        self.tell("delivered", job)
        signal = "operator 0" if job.signal and self.faulty("signals_another") else job.signal
        self.record.got.append(Got(job.id, job.receipt, job.attempt, job.payload, signal, "c", begin, self.now + 0.5))
        self.now += 1
        self.pass_time(self.rng.choice((0, 0, 5, 40)))
        # These two events happen while the job runs: a newer payload, an early signal.
        for _ in range(self.rng.randrange(3) if job.id.startswith("page") and not drains else 0):
            self.page(job.id)
        if job.id.startswith("ask") and self.rng.random() < 0.3 and not drains:
            self.signal(job)
        self.answer(job, drains)

    def answer(self, job, drains):
        kind = self.rng.choice(("ack", "ack", "ack", "nack", "fatal", None))
        if job.id.startswith("ask") and (job.seen is None or (kind == "nack" and not drains)):
            kind = "park"
        elif drains:
            kind = "ack"
        if kind is None or job.state != "running":
            return
        answer = Answer(kind, job.id, job.receipt, self.now, self.now + 0.5, 1)
        self.record.answers.append(answer)
        if kind == "ack":
            self.ack(job)
        elif kind == "park":
            self.park(job)
        else:
            self.tell("nacked", job)
            self.fail(job, is_final=kind == "fatal")
        self.now += 1

    def release(self, job):
        """The lease of the job is over."""
        self.limits.ends(job.id, job.names)

    def ack(self, job):
        if job.booked is not None:
            self.limits.books(job.id, 0 if self.faulty("books_too_little") else job.booked)
        self.release(job)
        self.tell("acked", job)
        if self.faulty("acks_twice", 0.05):
            self.tell("ready", job)
            self.tell("delivered", job)
            self.tell("acked", job)
        job.state = "finished"
        self.ended(job, "finished")
        self.run_again(job)

    def run_again(self, job):
        if self.faulty("doubles_a_rerun", 0.2) and job.id.startswith("page"):
            job.rerun = job.payload
        if job.rerun and not self.faulty("loses_a_rerun"):
            self.enter(Job(job.id, job.rerun))

    def fail(self, job, is_final=False):
        self.release(job)
        retries = 0 if job.parent else RETRIES
        if is_final or job.attempt > retries:
            self.die(job, "rejected" if is_final else "retries")
            return
        job.state = "ready"
        self.tell("ready", job)
        if job.rerun:
            job.payload, job.rerun = job.rerun, None

    def die(self, job, reason):
        self.tell("dead", job, reason=reason)
        job.state = "dead"
        if job.parent:
            self.ended(job, "dead")
            return
        payload = f"{job.id} 0" if self.faulty("sends_an_old_payload") else job.payload
        count = 0 if self.faulty("loses_a_letter") else 2 if self.faulty("doubles_a_letter") else 1
        self.record.letters += [Letter(job.id, payload, reason, job.attempt)] * count
        self.run_again(job)

    # ---- parents -------------------------------------------------------------------------------------------------

    def ended(self, child, how):
        """Counts the end of a child at its parent."""
        parent = self.jobs.get(child.parent)
        if parent is None or parent.state != "waits":
            return
        if how == "dead" and child.ondead == "DIE":
            if self.fault != "does_not_die":
                self.die(parent, "children")
            return
        if how == "dead" and child.ondead == "HOLD" and not self.faulty("counts_the_dead"):
            return
        if self.faulty("forgets_a_child", 0.1):
            return
        parent.ended[child.id] = how
        if len(parent.ended) + self.faulty("counts_a_child_twice") >= parent.needs:
            if self.faulty("releases_late"):
                self.plain()
            self.let_go(parent)

    def let_go(self, job):
        job.state = "ready"
        self.tell("released", job)
        self.tell("ready", job)

    # ---- the operator --------------------------------------------------------------------------------------------

    def operate(self, every=False):
        """Signals parked jobs, and redrives or cancels dead children."""
        for job in list(self.jobs.values()):
            if job.id.startswith("ask") and job.state == "waits" and (every or self.rng.random() < 0.3):
                self.signal(job)
            if job.state == "dead" and job.parent and (every or self.rng.random() < 0.3):
                self.mend(job)
        if self.fault == "wakes_by_itself":
            for job in self.jobs.values():
                if job.id.startswith("ask") and job.state == "waits" and self.rng.random() < 0.2:
                    self.let_go(job)

    def mend(self, job):
        if self.rng.random() < 0.5:
            self.tell("cancelled", job)
            job.state = "cancelled"
            self.ended(job, "cancelled")
            return
        parent = self.jobs.get(job.parent)
        if parent and parent.state == "waits" and self.fault != "counts_a_redriven_child":
            parent.ended.pop(job.id, None)
        job.state, job.attempt = "ready", 0
        self.tell("redriven", job)
        self.tell("ready", job)

    def park(self, job):
        self.tell("nacked", job)
        if job.signal != job.seen and not self.faulty("forgets_an_early_signal", 0.5):
            # A signal has come that the job has not got yet.
            job.state = "ready"
            self.tell("ready", job)
            return
        job.signal = job.seen if self.faulty("doubles_a_signal") else None
        job.state = "waits"
        if job.signal:
            self.let_go(job)

    def signal(self, job):
        self.number += 1
        signal = Signal(job.id, f"operator {self.number}", self.now, self.now + 0.5, 1)
        self.record.signals.append(signal)
        self.now += 1
        job.signal = signal.text
        if job.state == "waits" and not (self.fault == "never_wakes" and job.id.endswith("7")):
            if self.faulty("loses_a_signal"):
                job.signal = None
            self.let_go(job)
