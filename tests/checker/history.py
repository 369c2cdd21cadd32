"""What an actor writes down: one JSON line an event, on the machine's one monotonic clock."""

import json
import os
import time
from dataclasses import dataclass, field


def clock() -> float:
    """Milliseconds of CLOCK_MONOTONIC, the same for every process of the machine."""
    return time.monotonic_ns() / 1e6


class Journal:
    """An append-only file. Each line is one write, so a killed process loses at most its last."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, **event) -> None:
        os.write(self._file, json.dumps(event).encode() + b"\n")


@dataclass
class Send:
    """One SEND. begin: when it was first asked; end: when it was answered, None if it never was.

    group is empty for an ungrouped message. `tries` above 1: asked again, with the same id, since no
    answer had come. `refused`: the last answer was an error, and no other had been open.
    """

    id: str
    group: str
    score: float
    begin: float
    end: float | None
    delay: float = 0
    tries: int = 1
    refused: bool = False


@dataclass
class Delivery:
    """One message of one FETCH reply. hold_until is when its lease surely still held."""

    id: str
    group: str
    receipt: int
    attempt: int
    begin: float
    end: float
    lease: float
    batch: str
    consumer: str
    intact: bool = True
    # On the queue's own clock, in Unix ms: when it was delivered, and when it was due.
    at: float | None = None
    due: float | None = None


@dataclass
class Verdict:
    """An ACK or NACK of one receipt. kind: ack, nack, silent. count is None if no answer came."""

    kind: str
    id: str
    receipt: int
    begin: float
    end: float | None
    count: int | None


@dataclass
class Window:
    """A crash that may undo what was answered from `begin` until it came at `end`.

    What it takes is the last of that, never a hole; unless there were two primaries for a time (`split`),
    where all is lost that went to the one that lost, or it was one node of several (`part`), and nothing of the
    others is lost.
    """

    begin: float
    end: float
    split: bool = False
    part: bool = False

    def covers(self, begin: float, end: float) -> bool:
        """Whether what was done between asking and answering may be undone."""
        return end > self.begin and begin < self.end


@dataclass
class History:
    sends: list = field(default_factory=list)
    deliveries: list = field(default_factory=list)
    verdicts: list = field(default_factory=list)
    # When those FETCHes were asked of which no answer was read: what they were given nobody knows.
    lost: list = field(default_factory=list)
    # (asked, answered) of the FETCHes of any group that gave nothing.
    empties: list = field(default_factory=list)
    # What the faults allow: losses, steps of the wall clock (when, ms), and times in which nothing is held to be late.
    windows: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    disturbed: list = field(default_factory=list)
    # Times on the queue's clock in which nothing may be delivered.
    quiet: list = field(default_factory=list)
    # Where two servers, or one before and after, were not the same.
    differences: list = field(default_factory=list)
    # At the end: ids by state, and the dead ones' records.
    final: dict = field(default_factory=dict)
    dead: dict = field(default_factory=dict)
    retries: int = 3

    @classmethod
    def read(cls, paths, **facts) -> "History":
        """Joins the actors' journals."""
        history = cls(**facts)
        for path in paths:
            open_sends, open_fetches, open_verdicts = {}, {}, {}
            with open(path, "rb") as file:
                for line in file:
                    if not line.endswith(b"\n"):
                        continue
                    history._event(json.loads(line), open_sends, open_fetches, open_verdicts)
            history.lost += [asked["begin"] for asked in open_fetches.values()]
        return history

    @property
    def lost_fetches(self) -> int:
        """How many FETCHes got no answer."""
        return len(self.lost)

    @property
    def gone(self) -> int:
        """How many answered sends are not there at the end."""
        there = {id for ids in self.final.values() for id in ids}
        return sum(send.end is not None and not send.refused and send.id not in there for send in self.sends)

    @property
    def operations(self) -> int:
        """How many commands were answered."""
        answered = sum(s.end is not None for s in self.sends) + sum(v.end is not None for v in self.verdicts)
        return answered + len({(d.consumer, d.begin) for d in self.deliveries}) + len(self.empties)

    def _event(self, e, sends, fetches, verdicts) -> None:
        kind = e.pop("what")
        if kind == "send" and e["id"] in sends:
            sends[e["id"]].tries += 1
        elif kind == "send":
            sends[e["id"]] = Send(end=None, **e)
            self.sends.append(sends[e["id"]])
        elif kind == "refused":
            sends[e["id"]].refused = sends[e["id"]].tries == 1
        elif kind == "sent":
            sends[e["id"]].end = e["end"]
        elif kind == "fetch":
            fetches[e["n"]] = e
        elif kind == "fetched":
            asked = fetches.pop(e["n"])
            if not e["messages"] and not asked.get("group"):
                self.empties.append((asked["begin"], e["end"]))
            for m in e["messages"]:
                begin = min(asked["begin"], e.get("given", asked["begin"]))
                self.deliveries.append(
                    Delivery(begin=begin, end=e["end"], lease=asked["lease"], consumer=asked["consumer"], **m)
                )
        elif kind == "unfetched":
            fetches.pop(e["n"])
        elif kind == "verdict":
            for id, receipt in zip(e["ids"], e["receipts"]):
                verdict = Verdict(e["kind"], id, receipt, e["begin"], None, None)
                verdicts.setdefault(e["n"], []).append(verdict)
                self.verdicts.append(verdict)
        elif kind == "answered":
            for verdict in verdicts[e["n"]]:
                verdict.end = e["end"]
                # Only a verdict on a single receipt tells what became of that one.
                verdict.count = e["count"] if len(verdicts[e["n"]]) == 1 else None
