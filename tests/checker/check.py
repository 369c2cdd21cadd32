"""The promises of groups and attempts as predicates over a history. Each finding is one line of English.

Receipts grow with every delivery of the queue, so sorting by receipt gives the order in which the
server delivered, whatever order the answers arrived in. All other reasoning takes the moments
between asking and answering to the side of doubt, so that a finding is never a matter of timing.
"""

from collections import defaultdict

from tests.checker import clocks, durable, flows, stops
from tests.checker.history import DRIFT
from tests.checker.view import View


def check(history) -> list:
    """All violations; empty for a good history."""
    view = View(history)
    found = []
    for rule in (
        known, one_delivery_a_receipt, not_early, never_two_at_once, group_order, failed_first,
        attempts_exact, ack_is_final, stale_receipts, nothing_lost, dead_exactly, *durable.RULES, *clocks.RULES, *flows.RULES,
        *stops.RULES,
    ):  # fmt: skip
        found += [f"{rule.__name__}: {text}" for text in rule(view)]
    return found


def known(view):
    """A message that is delivered was sent, to the group and batch it was sent to, as it was sent."""
    for d in view.deliveries:
        send = view.sends.get(d.id)
        if send is None:
            yield f"{d.id} was never sent"
        elif send.group != d.group:
            yield f"{d.id} of {send.group} came as one of {d.group}"
        elif send.batch != d.member_of:
            yield f"{d.id} of the batch {send.batch} came as one of {d.member_of}"
        if not d.intact:
            yield f"{d.id} came with another payload"


def one_delivery_a_receipt(view):
    """No receipt is used twice."""
    for a, b in zip(view.deliveries, view.deliveries[1:]):
        if a.receipt == b.receipt:
            yield f"receipt {a.receipt} for {a.id} and {b.id}"


def not_early(view):
    """No message is delivered before its due time: by the watch of its sender, and by the queue's own clock."""
    for d in view.deliveries:
        send = view.sends.get(d.id)
        if send:
            early = send.begin + send.delay - DRIFT - view.stepped(send.begin, d.end) - d.end
            if early > 0:
                yield f"{d.id} came {early:.0f} ms early"
        if d.at is not None and d.due is not None and d.at < d.due:
            yield f"{d.id} was delivered at {d.at:.0f} and due at {d.due:.0f}"


def never_two_at_once(view):
    """Two batches of one group are never leased at the same moment, unless its concurrency allows it."""
    for group, deliveries in view.groups():
        if view.h.concurrency.get(group, 1) > 1:
            continue
        batches = defaultdict(list)
        for d in deliveries:
            batches[d.batch].append(d)
        spans = []
        for batch, members in batches.items():
            held = [view.surely_held(d) for d in members]
            # Any answer other than an ack may end the rest of the batch, too.
            cut = [v.begin for d in members for v in view.verdicts[d.receipt] if v.kind != "ack"]
            end = min([max(e for _, e in held)] + cut)
            spans.append((held[0][0], end, batch))
        spans.sort()
        latest = None
        for start, end, batch in spans:
            if latest and start < latest[0]:
                yield f"{group}: {batch} began while {latest[1]} held it"
            if latest is None or end > latest[0]:
                latest = (end, batch)


def _has_failed_before(view, d):
    """Whether an earlier delivery of the message may have failed, which makes it the first of its group."""
    before = [p for p in view.by_id.get(d.id, ()) if p.receipt < d.receipt]
    # Only failures count as attempts. The failed delivery may be unknown: its FETCH reply was lost. A message that was
    # given back silently since then is still a failed first message.
    if d.attempt > 1:
        return True
    return any(
        not any(v.kind in ("ack", "silent") and v.count == 1 and not view.undone(v) for v in view.verdicts[p.receipt])
        for p in before
    )


def group_order(view):
    """A message goes out only when none before it in its group is waiting, unless it is a failed head."""
    waiting = defaultdict(list)
    for send in view.h.sends:
        # A message that is held is not delivered before its batch has ended.
        if send.end is not None and not send.refused and not send.after:
            waiting[send.group].append(send)
    for group, deliveries in view.groups():
        sends = sorted(waiting[group], key=lambda s: s.score)
        for d in deliveries:
            mine = view.sends.get(d.id)
            if mine is None or _has_failed_before(view, d) or view.split(d):
                continue
            for other in sends:
                if other.score >= mine.score:
                    break
                # Sent and due before this FETCH was asked, and delivered only later: it stood there.
                first = view.by_id[other.id][0] if other.id in view.by_id else None
                if first is None or first.receipt < d.receipt or view.split(other):
                    continue
                # If several messages of a group run at a time, it may have been running for a consumer whose reply was
                # lost.
                if first.attempt > 1 and view.h.concurrency.get(group, 1) > 1:
                    continue
                # If a clock is set back, a span keeps its rest, which no watch here can measure.
                if view.set_back(other.begin, first.end):
                    continue
                if d.at is None or first.due is None:
                    stood = other.end + other.delay + DRIFT < d.begin
                else:
                    stood = other.end < d.begin and first.due < d.at
                if stood:
                    yield f"{group}: {d.id} ({mine.score}) went before {other.id} ({other.score})"


def failed_first(view):
    """While a failed message waits for its next try, no other message of its group is delivered (ONRETRY BLOCK)."""
    for group, deliveries in view.groups():
        for at, d in enumerate(deliveries):
            failed = view.failed_at(d)
            if failed is None or view.last(d.id) <= d.receipt:
                continue
            for later in deliveries[at + 1 :]:
                if later.id == d.id or view.split(later):
                    break
                if later.begin > failed and not _has_failed_before(view, later):
                    yield f"{group}: {later.id} went out while {d.id} waited for its next try"


def attempts_exact(view):
    """The number of attempts grows by one with every failure, and only then."""
    for id, deliveries in view.by_id.items():
        # The values that the next attempt may have as of each moment: a crash goes back to one of them.
        states, last = [(float("-inf"), {1})], None
        for d in deliveries:
            expected = set(states[-1][1])
            for window in view.h.windows:
                if last is None or (window.end > last.begin and window.begin < d.end):
                    expected |= view.rolled_back(states, window)
            slack = view.lost_between(last, d)
            if not any(e <= d.attempt <= e + slack for e in expected):
                yield f"{id}: attempt {d.attempt}, expected {sorted(expected)}"
            states.append((d.begin, view.next_attempts(d)))
            last = d
        highest = max(d.attempt for d in deliveries)
        if highest > view.retries(id) + 1:
            yield f"{id}: {highest} attempts of {view.retries(id) + 1}"


def ack_is_final(view):
    """A message that was acked is never delivered again."""
    for v in view.h.verdicts:
        if v.kind == "ack" and v.count == 1 and view.last(v.id) > v.receipt and not view.undone(v):
            yield f"{v.id} was delivered again after its ack"


def stale_receipts(view):
    """A receipt works no more once its message was delivered again."""
    for v in view.h.verdicts:
        if v.count != 1:
            continue
        for d in view.by_id.get(v.id, ()):
            if d.receipt > v.receipt and d.end < v.begin and not view.undone(d):
                yield f"{v.kind} of the stale receipt {v.receipt} of {v.id} worked"


def nothing_lost(view):
    """At the end all sent messages have ended: acked, or dead."""
    finished = set(view.h.final.get("finished", ()))
    dead = set(view.h.final.get("dead", ()))
    acked = {v.id for v in view.h.verdicts if v.kind == "ack" and v.count == 1 and not view.undone(v)}
    asked = {v.id for v in view.h.verdicts if v.kind == "ack"}
    for id in acked - finished:
        yield f"{id} was acked but is not among the finished"
    for id in finished - asked:
        yield f"{id} is finished though nobody acked it"
    for send in view.h.sends:
        sure = send.end is not None and not send.refused and not view.undone(send)
        if sure and send.id not in finished and send.id not in dead and not flows.stays_held(view, send.id):
            yield f"{send.id} is gone"
    for state, ids in view.h.final.items():
        left = [id for id in ids if state != "held" or not flows.stays_held(view, id)]
        if state not in ("finished", "dead") and left:
            yield f"{len(left)} messages are still {state}"


def dead_exactly(view):
    """A message is dead exactly when its failures have passed RETRIES, or when a message of its batch has died."""
    for id, row in view.h.dead.items():
        if row["reason"] == "batch" and row["failures"] == 0 and flows.dies_of_its_batch(view, id):
            continue
        if row["failures"] != view.retries(id) + 1 or row["reason"] != "retries":
            yield f"{id} died after {row['failures']} failures, reason {row['reason']}"
