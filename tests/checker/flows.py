"""The consequences of a message: its attempts, its waits, its notes, the messages that are handed on, and those that
its batch holds.
"""

from tests.checker.history import DRIFT


def attempts_counted(view):
    """The attempts that the server has counted in the end are the handlers that were begun: no lost reply has cost
    an attempt.
    """
    for id, attempt in view.h.attempts.items():
        acked = {d.attempt for d in view.by_id.get(id, ()) if any(v.kind == "ack" for v in view.verdicts[d.receipt])}
        if acked and attempt not in acked:
            yield f"{id}: finished in attempt {attempt}, handlers acked {sorted(acked)}"
    for id, row in view.h.dead.items():
        begun = max((d.attempt for d in view.by_id.get(id, ())), default=0)
        slack = view.lost_between(view.by_id[id][-1] if id in view.by_id else None)
        if row["reason"] == "retries" and row["attempt"] > begun + slack and not view.h.windows:
            yield f"{id}: dead after {row['attempt']} attempts, handlers began {begun}"


def waits_kept(view):
    """A message that was handed back with a DELAY, snoozed or failed, does not come back before that."""
    for v in view.h.verdicts:
        if v.delay is None or not view.worked(v):
            continue
        d = next((d for d in view.by_id.get(v.id, ()) if d.receipt > v.receipt), None)
        if d is None:
            continue
        early = v.begin + v.delay - DRIFT - view.stepped(v.begin, d.end) - d.end
        if early > 0:
            yield f"{v.id} was to wait {v.delay:.0f} ms and came {early:.0f} ms early"


def notes_kept(view):
    """A delivery has the last note that was left with its message."""
    written = {}
    for note in view.h.notes:
        written.setdefault(note.id, []).append(note)
    for id, notes in written.items():
        notes.sort(key=lambda note: (note.receipt, note.begin))
        for d in view.by_id.get(id, ()):
            possible = {""}
            for note in notes:
                if note.receipt >= d.receipt or note.count == 0:
                    continue
                sure = note.count == 1 and not view.undone(note)
                possible = {note.text} if sure else possible | {note.text}
            if d.note not in possible:
                yield f"{id}: attempt {d.attempt} got the note {d.note!r}, not {sorted(possible)}"


def handed_on(view):
    """ACKSEND is one step: its message is finished if and only if the messages that follow from it exist, once."""
    finished = set(view.h.final.get("finished", ()))
    there = {id for ids in view.h.final.values() for id in ids}
    following = {}
    for v in view.h.verdicts:
        if v.kind == "ack":
            following.setdefault(v.id, []).append(v)
    for id, verdicts in following.items():
        sent = [v for v in verdicts if v.next in there]
        if len(sent) > 1:
            yield f"{id} was handed on {len(sent)} times"
        if sent and id not in finished:
            yield f"{sent[0].next} follows from {id}, which is not finished"
        for v in sent:
            if any(d.receipt > v.receipt and not view.undone(d) for d in view.by_id.get(id, ())):
                yield f"{v.next} follows from {id}, which was delivered again"
        if not sent and id in finished and all(v.next for v in verdicts):
            yield f"{id} is finished, and nothing follows from it"


def held_until_its_batch_ends(view):
    """A message sent AFTER a batch is delivered when all messages of that have ended, and not before."""
    dead = set(view.h.final.get("dead", ()))
    for send in view.h.sends:
        if not send.after or not _surely_sent(view, send):
            continue
        deliveries = [d for d in view.by_id.get(send.id, ()) if not view.undone(d)]
        died = [m.id for m in _members(view, send) if m.id in dead]
        if died and send.onfail != "GO" and deliveries:
            yield f"{send.id} was delivered, though {died[0]} of its batch is dead ({send.onfail})"
        if died and send.onfail == "DIE" and view.h.dead.get(send.id, {}).get("reason") != "batch":
            yield f"{send.id} lives on, though {died[0]} of its batch is dead"
        for m in _members(view, send) if deliveries else ():
            first, acks = deliveries[0], [v for v in _verdicts(view, m.id) if v.kind == "ack"]
            later = [d for d in view.by_id.get(m.id, ()) if d.receipt > first.receipt and not view.undone(d)]
            if later:
                yield f"{send.id} was released before {m.id} of its batch, which was delivered later"
            elif m.id not in dead and (not acks or min(v.begin for v in acks) > first.end):
                yield f"{send.id} was released before {m.id} of its batch had ended"


def stays_held(view, id) -> bool:
    """Whether this message waits for a batch with a dead message, and may not be released (HOLD)."""
    send, dead = view.sends.get(id), view.h.final.get("dead", ())
    return bool(send and send.onfail == "HOLD" and any(m.id in dead for m in view.members[send.after]))


def dies_of_its_batch(view, id) -> bool:
    """Whether this message had to die with another one of the batch that it waits for (DIE)."""
    send, dead = view.sends.get(id), view.h.final.get("dead", ())
    return bool(send and send.onfail == "DIE" and any(m.id in dead for m in view.members[send.after]))


def _surely_sent(view, send) -> bool:
    return send.end is not None and not send.refused and not view.undone(send)


def _members(view, send) -> list:
    """The messages that were surely in the batch before it could end: sent before, or by the end of one of them."""
    sure = [m for m in view.members[send.after] if _surely_sent(view, m)]
    before = {m.id for m in sure if not m.parent and m.end < send.begin}
    # A follow-up is sent in the step in which its parent ends.
    while more := {m.id for m in sure if m.parent in before} - before:
        before |= more
    return [m for m in sure if m.id in before]


def _verdicts(view, id) -> list:
    return [v for d in view.by_id.get(id, ()) for v in view.verdicts[d.receipt]]


RULES = (attempts_counted, waits_kept, notes_kept, handed_on, held_until_its_batch_ends)
