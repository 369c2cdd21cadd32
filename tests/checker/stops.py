"""The rules that stop a group or a queue: pauses by NACK and breakers stop its deliveries, and SENDS OFF its sends.

Deliveries have a time of the queue's own clock, which is compared with the wall clock of who asked. If that clock was
stepped, times are not compared.
"""

from bisect import bisect_left, bisect_right

from tests.checker.history import DRIFT


def quiet_after_nack(view):
    """While a NACK has paused a group or a queue, nothing of it is delivered."""
    for v in view.h.verdicts:
        if v.pause is None or not view.worked(v) or v.answered_at is None or view.h.steps:
            continue
        scope, ms = v.pause
        group = _group(view, v) if scope == "GROUP" else None
        for d in _between(view, group, v.answered_at, v.asked_at + ms):
            yield f"{d.id} was delivered {d.at - v.answered_at:.0f} ms into a pause by NACK of {ms} ms"


def quiet_while_open(view):
    """Nothing of a group is delivered while its breaker is open."""
    for sight in view.h.sights:
        # The end is on the queue's own clock, to the millisecond.
        for d in () if view.h.steps or view.undone(sight) else _between(view, sight.group, sight.at, sight.until, 1):
            yield f"{d.id} of {sight.group} was delivered {sight.until - d.at:.0f} ms before its breaker was to try again"


def opens_in_time(view):
    """A breaker opens at the number of failures that the queue allows its group in the time for them."""
    if view.h.breaker is None or view.h.steps:
        return
    need, per, stays = view.h.breaker.failures, view.h.breaker.per, view.h.breaker.open
    for group, deliveries in view.groups():
        # If more than one message runs at a time, a failure may be of one that had been running when the breaker
        # opened.
        if view.h.concurrency.get(group, 1) > 1:
            continue
        verdicts = [v for d in deliveries for v in view.verdicts[d.receipt]]
        acks = [(v.begin, float("inf") if v.end is None else v.end) for v in verdicts if v.kind == "ack"]
        failures = sorted((v for v in verdicts if v.kind == "nack" and view.worked(v)), key=lambda v: v.end)
        for first, last in zip(failures, failures[need - 1 :]):
            # The ack of a probe would have closed it in between.
            closed = any(begin < last.end and end > first.begin for begin, end in acks)
            if closed or last.end - first.begin >= per - DRIFT or last.answered_at is None:
                continue
            for d in _between(view, group, last.answered_at, last.asked_at + stays):
                yield f"{d.id} of {group} was delivered right after {need} failures"


def one_probe(view):
    """A half-open breaker lets out one message, and no other until that one has ended."""
    if view.h.steps:
        return
    probed = set()
    for sight in view.h.sights:
        known = view.timed.get(sight.group, [])
        # The first delivery after the open time is a probe; so is the next one, if the first decides nothing.
        at = bisect_left(known, sight.until, key=lambda d: d.at)
        while at < len(known) and not view.undone(sight) and not view.undone(known[at]):
            probe = known[at]
            if probe.receipt in probed:
                break
            probed.add(probe.receipt)
            verdicts = view.verdicts[probe.receipt]
            ends = [v.asked_at for v in verdicts if v.asked_at is not None] + [probe.at + probe.lease]
            for other in known[at + 1 :]:
                if other.at >= min(ends) - DRIFT:
                    break
                yield f"{other.id} of {sight.group} was let out while the probe {probe.id} ran"
            if not any(v.kind == "silent" and view.worked(v) for v in verdicts):
                break
            at += 1


def closed_takes_nothing(view):
    """A message that is sent to a closed queue is refused."""
    closures = [closure for closure in view.h.closures if not view.undone(closure)]
    for send in view.h.sends:
        # A repeated send may have been done before the queue was closed.
        if send.end is None or send.refused or send.tries > 1:
            continue
        for closure in closures:
            if closure.begin < send.begin and send.end < closure.end:
                yield f"{send.id} was taken by a closed queue"


def _group(view, verdict) -> str:
    return next((d.group for d in view.by_id.get(verdict.id, ()) if d.receipt == verdict.receipt), "")


def _between(view, group, begin, end, margin=DRIFT) -> list:
    """The deliveries of a group, or of all, surely between these moments of the queue's clock."""
    known = view.timed.get(group, [])
    inside = known[bisect_right(known, begin + DRIFT, key=lambda d: d.at) :]
    inside = inside[: bisect_right(inside, end - margin, key=lambda d: d.at)]
    return [d for d in inside if not view.split(d)]


RULES = (quiet_after_nack, quiet_while_open, opens_in_time, one_probe, closed_takes_nothing)
