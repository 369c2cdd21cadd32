"""The rules for the clock of a queue, and for a server that stands still, as predicates over a history, like those
of check.py.
"""

from tests.checker.history import DRIFT

# The clock is measured over at least this many ms.
SPAN = 1_000.0
# An ack that was sent this many ms before the end of a standstill had surely arrived.
ARRIVED = 100.0


def clock_goes_on(view):
    """The queue's clock never stands still and never jumps: it goes at half to full speed, and follows the steps of the wall's."""
    timed = [d for d in view.deliveries if d.at is not None and d.tries == 1 and not view.undone(d)]
    timed.sort(key=lambda d: d.begin)
    first = 0
    for d in timed:
        # The last delivery that had ended this long before.
        while first + 1 < len(timed) and timed[first + 1].end < d.begin - SPAN:
            first += 1
        before = timed[first]
        if before.end >= d.begin - SPAN or view.set_back(before.begin, d.end) or view.split(before) or view.split(d):
            continue
        went = d.at - before.at
        least = (d.begin - before.end) / 2 - DRIFT
        most = d.end - before.begin + view.stepped(before.begin, d.end) + DRIFT
        if not least <= went <= most:
            yield f"the queue's clock went on by {went:.0f} ms in {d.begin - before.end:.0f} ms, until the delivery of {d.id}"


def in_time_in_a_standstill(view):
    """A command of a consumer from before its lease was over counts, though the server stood still until after that."""
    for begin, end in view.h.standstills:
        for v in view.h.verdicts:
            if v.count != 0 or not begin <= v.begin < end - ARRIVED:
                continue
            for d in view.by_id.get(v.id, ()):
                if d.receipt != v.receipt or v.begin >= d.begin + d.lease - DRIFT:
                    continue
                # Another answer, to this message or to one that was fetched with it, may have ended the lease before.
                others = [other for other in view.verdicts[d.receipt] if other is not v and other.begin <= v.begin]
                cuts = [cut for cut in view.cuts(d) if cut <= v.begin and cut != v.begin]
                if not others and not cuts and not view.undone(d) and not view.undone(v):
                    late = d.begin + d.lease - v.begin
                    yield f"{v.kind} of {v.id}, {late:.0f} ms before its lease was over, did not count after a standstill"


RULES = (clock_goes_on, in_time_in_a_standstill)
