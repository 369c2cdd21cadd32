"""Parents and children: what the events say of them."""

from dataclasses import dataclass, field


@dataclass
class Parent:
    """A parent that waits. due: the event that has to follow now, and the place of what has made it so."""

    needs: int
    ended: set = field(default_factory=set)
    cancelled: set = field(default_factory=set)
    due: tuple | None = None


def is_job(view, id) -> bool:
    """Whether it is in the queue of the jobs: children are in another one."""
    return not any(send.parent for send in view.sends.get(id, ()))


def counted(view) -> tuple:
    """What each parent had counted when it was let go, what was wrong in words, and the parents that wait still."""
    parents = {send.id: send for send in view.r.sends if send.children}
    children = {send.id: send for send in view.r.sends if send.parent}
    waiting, let_go, faults = {}, {}, []
    for event in view.r.events:
        if event.id in children:
            _count(waiting.get(children[event.id].parent), children[event.id], event)
            continue
        # The end of a child and what follows for its parent are one operation: nothing else of the jobs is in between.
        follows = event.kind in ("released", "ready", "dead") and event.id in parents
        for id, parent in waiting.items() if not follows else ():
            if parent.due:
                faults.append(f"{id} was not {parent.due[0]} when {parent.due[1]} had ended")
                parent.due = None
        if event.id not in parents:
            continue
        if event.kind == "sent":
            waiting[event.id] = Parent(parents[event.id].children)
        elif event.id in waiting and event.kind in ("released", "dead", "ready", "delivered"):
            parent = waiting.pop(event.id)
            if parent.due is None or parent.due[0] != event.kind:
                faults.append(f"{event.id} was {event.kind}, and {len(parent.ended)} of {parent.needs} children had ended")
            let_go[event.id] = parent
        elif event.kind == "released":
            faults.append(f"{event.id} was released twice")
    faults += [f"{id} was never {parent.due[0]}" for id, parent in waiting.items() if parent.due]
    return let_go, faults, waiting


def _count(parent, child, event) -> None:
    if parent is None:
        return
    if event.kind in ("acked", "cancelled") or (event.kind == "dead" and child.ondead == "GO"):
        parent.ended.add(child.id)
        (parent.cancelled.add if event.kind == "cancelled" else parent.cancelled.discard)(child.id)
    elif event.kind == "redriven":
        parent.ended.discard(child.id)
    if event.kind == "dead" and child.ondead == "DIE":
        parent.due = ("dead", child.id)
    elif len(parent.ended) == parent.needs and not parent.due:
        parent.due = ("released", child.id)


def children_counted(view):
    """A parent is let go exactly when the last of its children has ended, each of which counts once."""
    let_go, faults, _ = counted(view)
    yield from faults
    for id, counts in view.r.counts.items():
        parent = let_go.get(id)
        if parent is None or len(parent.ended) < parent.needs:
            continue
        cancelled = len(parent.cancelled)
        if counts["cancelled"] != cancelled or counts["finished"] + counts["dead"] != len(parent.ended) - cancelled:
            yield f"{id} has counted {counts}, of which {len(parent.ended)} have ended and {cancelled} were cancelled"


RULES = (children_counted,)
