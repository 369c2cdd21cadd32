"""The promises that faults test, as predicates over a history, like those of check.py."""

from bisect import bisect_right

from tests.checker.history import DRIFT

# An idle consumer gets due messages within this many ms, on a machine that is busy with the tests themselves.
LAG = 1_000.0


def one_holder(view):
    """A message has never two live leases: by the watches of the consumers and by the queue's own clock."""
    for id, deliveries in view.by_id.items():
        for a, b in zip(deliveries, deliveries[1:]):
            begin, end = view.surely_held(a)
            cuts = view.cuts(a)
            end = min([end, *cuts])
            if begin < end and b.end < end:
                yield f"{id}: receipt {b.receipt} was given out while {a.receipt} was held"
            ended = view.verdicts[a.receipt] or cuts or view.undone(a)
            # A clock that was set back shows an earlier time for the same lease.
            if ended or a.at is None or b.at is None or view.set_back(a.begin, b.end):
                continue
            if b.at < a.at + a.lease:
                yield f"{id}: delivered again {a.at + a.lease - b.at:.0f} ms before its lease was over"


def no_hole(view):
    """The operations that a crash takes are the last that were done, never some before those that stayed."""
    finished = set(view.h.final.get("finished", ()))
    there = {id for ids in view.h.final.values() for id in ids}
    windows = sorted(view.h.windows, key=lambda window: window.end)
    for number, window in enumerate(windows):
        if window.split or window.part:
            continue

        def may_be_undone(event, window=window, earlier=windows[:number]):
            # Operations that an earlier crash may have undone already do not count: its answer can be read after the
            # server is dead.
            return window.covers(event.begin, event.end) and not any(w.covers(event.begin, event.end) for w in earlier)

        events = []
        for send in view.h.sends:
            if send.end is None or send.tries > 1 or send.refused or not may_be_undone(send):
                continue
            again = any(d.begin >= window.end for d in view.by_id.get(send.id, ()))
            events.append((send, send.id in there or again))
        for v in view.h.verdicts:
            if v.kind != "ack" or v.count != 1 or not may_be_undone(v):
                continue
            again = [d for d in view.by_id.get(v.id, ()) if d.receipt > v.receipt]
            if not again and v.id in finished:
                events.append((v, True))
            elif again and again[0].begin >= window.end:
                events.append((v, False))
        lost = [event for event, stayed in events if not stayed]
        first = min(lost, key=lambda event: event.end, default=None)
        for event, stayed in events:
            if stayed and first is not None and first.end < event.begin:
                later = event.begin - first.end
                yield f"{_name(first)} was undone, and {_name(event)}, {later:.1f} ms later, was not"


def _name(event) -> str:
    return f"the {type(event).__name__.lower()} of {event.id} at {event.begin:.0f}"


def effects_once(view):
    """Each finished message was counted once by the effects of its ack, and no other message was."""
    counted = view.h.counted
    if counted is None:
        return
    finished = set(view.h.final.get("finished", ()))
    for id in finished | set(counted):
        if counted.get(id, 0) != (id in finished):
            yield f"{id} was counted {counted.get(id, 0)} times and is{'' if id in finished else ' not'} finished"
    if view.h.acks != len(finished):
        yield f"{view.h.acks} acks are counted, and {len(finished)} messages finished"


def refused_is_nothing(view):
    """A command that was refused with an error has changed nothing."""
    ended = {id for ids in view.h.final.values() for id in ids}
    for send in view.h.sends:
        if send.refused and (send.id in ended or send.id in view.by_id):
            yield f"{send.id} was refused, and is there"


def in_time(view):
    """A consumer that waits gets due messages: no wait ends without one, or late, while a message is available."""
    empties = sorted(view.h.empties, key=lambda empty: empty[1])
    ends = [end for _, end in empties]
    for id, deliveries in view.by_id.items():
        send, first = view.sends.get(id), deliveries[0]
        if send is None or send.group or send.after or send.end is None or first.attempt != 1 or view.undone(first):
            continue
        there = send.end + send.delay + DRIFT
        if view.disturbed(there, first.end):
            continue
        # Answered empty, though the message had been there for long and stayed until a later FETCH was asked.
        at = bisect_right(ends, first.begin) - 1
        if at >= 0 and ends[at] > there + LAG:
            yield f"{id} had been due for {ends[at] - there:.0f} ms when a FETCH gave nothing"
        if first.begin < there and first.end > there + LAG:
            yield f"{id} came {first.end - there:.0f} ms late to a consumer that waited"


def quiet_in_pause(view):
    """No message is delivered while the server must not change any queue."""
    for begin, end in view.h.quiet:
        for d in view.deliveries:
            if d.at is not None and begin < d.at < end:
                yield f"{d.id} was delivered {d.at - begin:.0f} ms into a pause of {end - begin:.0f} ms"


def same_state(view):
    """Restarted servers and replicas have the same queues as before, and as their primary."""
    yield from view.h.differences


RULES = (one_holder, no_hole, effects_once, refused_is_nothing, in_time, quiet_in_pause, same_state)
