"""A history, sorted and indexed once for all rules."""

from collections import defaultdict

from tests.checker.history import DRIFT

# A FETCH without an answer may have been done this many ms after it was asked: it stood in a paused server.
LINGER = 15_000.0

# A step of the clock may reach the queue this many ms after it was made.
TOLD = 500.0


class View:
    """The indexes in which the rules look things up."""

    def __init__(self, history):
        self.h = history
        self.deliveries = sorted(history.deliveries, key=lambda d: d.receipt)
        self.sends = {s.id: s for s in history.sends}
        self.by_id, self.by_group, self.by_batch = defaultdict(list), defaultdict(list), defaultdict(list)
        for d in self.deliveries:
            self.by_id[d.id].append(d)
            self.by_group[d.group].append(d)
            self.by_batch[d.batch].append(d)
        # The deliveries of each group, and under None those of all groups, in the order of the queue's own clock.
        self.timed = defaultdict(list)
        for d in sorted((d for d in self.deliveries if d.at is not None), key=lambda d: d.at):
            self.timed[d.group].append(d)
            self.timed[None].append(d)
        # The messages that were sent into each batch.
        self.members = defaultdict(list)
        for send in history.sends:
            if send.batch:
                self.members[send.batch].append(send)
        self.verdicts = defaultdict(list)
        for v in history.verdicts:
            self.verdicts[v.receipt].append(v)
        # From here on a lookup of a missing key does not create it.
        self.by_id, self.by_batch = dict(self.by_id), dict(self.by_batch)

    def groups(self):
        """Each group with its deliveries; the ungrouped messages are no group."""
        return [(group, deliveries) for group, deliveries in self.by_group.items() if group]

    def last(self, id):
        """The receipt of the id's last delivery, or -1."""
        return self.by_id[id][-1].receipt if id in self.by_id else -1

    def retries(self, id) -> int:
        """RETRIES of this message, or of the queue."""
        own = self.sends[id].retries if id in self.sends else None
        return self.h.retries if own is None else own

    def worked(self, verdict) -> bool:
        """Whether this verdict surely had its effect, for good."""
        return verdict.count == 1 and not self.undone(verdict)

    def undone(self, event) -> bool:
        """Whether a crash may have undone this send, delivery or verdict."""
        end = float("inf") if event.end is None else event.end
        return any(window.covers(event.begin, end) for window in self.h.windows)

    def split(self, event) -> bool:
        """Whether it happened while there may have been two primaries, each with its own order."""
        end = float("inf") if event.end is None else event.end
        return any(window.split and window.covers(event.begin, end) for window in self.h.windows)

    def surely_held(self, d):
        """The time in which the message was surely leased: from the answer to the first verdict asked or the lease's
        earliest end.
        """
        ends = [d.begin + d.lease - DRIFT] + [v.begin for v in self.verdicts[d.receipt]]
        # A crash may have taken the delivery back (of two primaries, the other one never knew of it), and a wall clock
        # set forward ends leases.
        ends += [w.begin if w.split else w.end for w in self.h.windows if w.covers(d.begin, d.end)]
        ends += [step.begin for step in self.h.steps if step.ms > 0 and step.end > d.begin - DRIFT]
        return d.end, min(ends)

    def cuts(self, d) -> list:
        """When a command was sent that brings the batch of this delivery back: any but an ack on a grouped one."""
        members = self.by_batch[d.batch] if d.group else []
        return [v.begin for m in members for v in self.verdicts[m.receipt] if v.kind != "ack"]

    def stepped(self, begin, end) -> float:
        """By how many ms the wall clock was set forward in between."""
        return sum(step.ms for step in self.h.steps if step.ms > 0 and step.begin <= end and begin <= step.end)

    def set_back(self, begin, end) -> bool:
        """Whether the queue's clock may have been set back in between, by one step or by the sum of several."""
        return any(step.ms < 0 and step.begin <= end and begin - TOLD <= step.end for step in self.h.steps)

    def failed_at(self, d):
        """The time from which on this delivery has surely failed (nack answered with 1, for good), or None."""
        nacks = [v for v in self.verdicts[d.receipt] if v.kind == "nack" and v.count == 1]
        return min((v.end for v in nacks if not self.undone(v)), default=None)

    def next_attempts(self, d) -> set:
        """The values that the attempt after this delivery may have."""
        kinds = {v.kind for v in self.verdicts[d.receipt] if v.count == 1 and not self.undone(v)}
        if "silent" in kinds:
            return {d.attempt}
        if "nack" in kinds:
            return {d.attempt + 1}
        # The lease ran out (a failure), or the message came back with its batch (no failure), or a crash undid its
        # verdict.
        return {d.attempt, d.attempt + 1}

    @staticmethod
    def rolled_back(states, window) -> set:
        """The values that the next attempt may have after a crash: any state from the last before the window on."""
        before = [attempts for when, attempts in states if when <= window.begin]
        since = [attempts for when, attempts in states if when > window.begin]
        return set().union(*before[-1:], *since)

    def lost_between(self, last, d=None) -> int:
        """How many lost FETCHes may have had the message between its last delivery and this one, or since its last."""
        begin = float("-inf") if last is None else last.begin - LINGER
        end = float("inf") if d is None else d.end
        return sum(begin < latest and earliest < end for earliest, latest in self.h.lost)

    def disturbed(self, begin, end) -> bool:
        """Whether a fault was on in that time."""
        return any(b <= end and begin <= e for b, e in self.h.disturbed)
