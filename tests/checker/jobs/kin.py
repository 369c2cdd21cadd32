"""Parents and children: the events about them."""

from dataclasses import dataclass, field


@dataclass
class Parent:
    """A parent that waits. due: the event that has to follow now, and the position of its cause."""

    needs: int
    ended: set = field(default_factory=set)
    cancelled: set = field(default_factory=set)
    due: tuple | None = None


def is_job(view, id) -> bool:
    """Whether it is in the queue of the jobs: children are in another one."""
    return not any(send.parent for send in view.sends.get(id, ()))


class Families:
    """The statements of the events about all parents.

    `waiting`: those that wait still. `let_go`: what each of the others had counted then. `faults`: what was wrong, in words.
    """

    def __init__(self, view):
        self.parents = {send.id: send for send in view.r.sends if send.children}
        self.children = {send.id: send for send in view.r.sends if send.parent}
        self.waiting, self.let_go, self.faults = {}, {}, []
        for event in view.r.events:
            if event.id in self.children:
                self.count(self.children[event.id], event)
            else:
                self.follow(event)
        self.faults += [f"{id} was never {parent.due[0]}" for id, parent in self.waiting.items() if parent.due]

    def count(self, child, event) -> None:
        """Something happened to a child."""
        parent = self.waiting.get(child.parent)
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

    def follow(self, event) -> None:
        """The event is about a job that is no child."""
        id, is_parent = event.id, event.id in self.parents
        # The end of a child and what follows for its parent are one operation: no other event of the jobs is in
        # between.
        if not is_parent or event.kind not in ("released", "ready", "dead"):
            self.miss()
        if is_parent and event.kind == "sent":
            self.waiting[id] = Parent(self.parents[id].children)
        elif id in self.waiting and event.kind in ("released", "dead", "ready", "delivered"):
            parent = self.let_go[id] = self.waiting.pop(id)
            if parent.due is None or parent.due[0] != event.kind:
                self.faults.append(f"{id} was {event.kind}, and {len(parent.ended)} of {parent.needs} children had ended")
        elif is_parent and event.kind == "released":
            self.faults.append(f"{id} was released twice")

    def miss(self) -> None:
        """A report that was due for parents has not happened."""
        for id, parent in self.waiting.items():
            if parent.due:
                self.faults.append(f"{id} was not {parent.due[0]} when {parent.due[1]} had ended")
                parent.due = None


def children_counted(view):
    """A parent is let go exactly when the last of its children has ended, each of which counts once."""
    families = Families(view)
    yield from families.faults
    for id, counts in view.r.counts.items():
        parent = families.let_go.get(id)
        if parent is None or len(parent.ended) < parent.needs:
            continue
        cancelled = len(parent.cancelled)
        if counts["cancelled"] != cancelled or counts["finished"] + counts["dead"] != len(parent.ended) - cancelled:
            yield f"{id} has counted {counts}, of which {len(parent.ended)} have ended and {cancelled} were cancelled"


RULES = (children_counted,)
