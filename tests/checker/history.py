"""The history that an actor writes: one JSON line an event, on the machine's one monotonic clock."""

import json
import os
import time
from dataclasses import dataclass, field

# The queue's clock and the machine's monotonic clock may drift apart by this many ms in a run.
DRIFT = 20.0


def wall_clock() -> float:
    """Unix ms, which the queues' own clocks follow."""
    return time.time_ns() / 1e6


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
    """One SEND, or one NEXT of an ACKSEND. begin: when it was first asked; end: when it was answered, None if never.

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
    # The batch that it is in, the batch that it comes after, and the effect of a dead message of that one.
    batch: str = ""
    after: str = ""
    onfail: str = "HOLD"
    # The message from which it follows by ACKSEND.
    parent: str = ""
    # Its own RETRIES, if it has one.
    retries: int | None = None


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
    # The note and the batch that came with it.
    note: str = ""
    member_of: str = ""
    # How often its FETCH was sent. The lease of one that was repeated may have been spared since, and `at` is then
    # late.
    tries: int = 1


@dataclass
class Verdict:
    """An ACK, ACKSEND or NACK of one receipt. kind: ack, nack, silent. count is None if no answer came."""

    kind: str
    id: str
    receipt: int
    begin: float
    end: float | None
    count: int | None
    # For a nack: the wait of the message, and "GROUP" or "QUEUE" with the time of the pause.
    delay: float | None = None
    pause: tuple | None = None
    # An ACKSEND: the id of the message that it sends.
    next: str = ""
    # When the command was sent and answered, in Unix ms.
    asked_at: float | None = None
    answered_at: float | None = None


@dataclass
class Note:
    """A NOTE of a TOUCH or NACK. count is None if no answer came."""

    id: str
    receipt: int
    text: str
    begin: float
    end: float | None = None
    count: int | None = None


@dataclass
class Sight:
    """An observer saw that the breaker of a group was open until this moment of the queue's clock; at: Unix ms."""

    group: str
    until: float
    begin: float
    end: float
    at: float


@dataclass
class Closure:
    """A time in which the queue was closed: from the answer to SENDS OFF until SENDS ON was asked."""

    begin: float
    end: float


@dataclass
class Breaker:
    """The queue's BREAKER."""

    failures: int
    per: float
    open: float


@dataclass
class Window:
    """A crash that may undo commands that were answered from `begin` until the crash at `end`.

    It undoes the last of them, without gaps. There are two exceptions: with two primaries for a time (`split`), all
    commands to the losing one are lost; and if it was one node of several (`part`), no commands of the other nodes are
    lost.
    """

    begin: float
    end: float
    split: bool = False
    part: bool = False

    def covers(self, begin: float, end: float) -> bool:
        """Whether a command between its request and its answer may be undone."""
        return end > self.begin and begin < self.end


@dataclass
class ClockStep:
    """The clock that the queue follows was set forward, or back where `ms` is negative, at some time from `begin` to `end`."""

    ms: float
    begin: float
    end: float


@dataclass
class History:
    sends: list = field(default_factory=list)
    deliveries: list = field(default_factory=list)
    verdicts: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    sights: list = field(default_factory=list)
    closures: list = field(default_factory=list)
    # The FETCHes that may have taken an attempt from a message without a handler: no answer was read, or the lease of a
    # lost delivery was over before the same token was sent again. For each, when it was asked at the earliest and at
    # the latest.
    lost: list = field(default_factory=list)
    # (asked, answered) of the FETCHes of any group that gave nothing.
    empties: list = field(default_factory=list)
    # The exceptions that the faults allow: losses, steps of the clock that the queue follows, and times in which
    # nothing is held to be late. A queue that goes to a server with another clock makes a step, too.
    windows: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    # When the server surely stood still: (begin, end).
    standstills: list = field(default_factory=list)
    disturbed: list = field(default_factory=list)
    # Times on the queue's clock in which nothing may be delivered.
    quiet: list = field(default_factory=list)
    # The moments in which two servers, or one before and after, were not the same.
    differences: list = field(default_factory=list)
    # At the end: ids by state, the attempts of the finished ones, and the dead ones' records.
    final: dict = field(default_factory=dict)
    attempts: dict = field(default_factory=dict)
    dead: dict = field(default_factory=dict)
    # The acks that have counted themselves by their effects: of each message, and all. None: nobody counted.
    counted: dict | None = None
    acks: int = 0
    # The queue's options, and the groups that have another concurrency than 1.
    retries: int = 3
    breaker: Breaker | None = None
    concurrency: dict = field(default_factory=dict)

    @classmethod
    def read(cls, paths, **facts) -> "History":
        """Joins the actors' journals."""
        history = cls(**facts)
        for path in paths:
            reader = _Reader(history)
            with open(path, "rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        reader.read(json.loads(line))
            history.lost += [(asked["begin"], asked.get("noted", asked["begin"])) for asked in reader.fetches.values()]
        return history

    @property
    def lost_fetches(self) -> int:
        """How many FETCHes got no answer."""
        return len(self.lost)

    @property
    def gone(self) -> int:
        """The number of answered sends that are missing at the end."""
        there = {id for ids in self.final.values() for id in ids}
        return sum(send.end is not None and not send.refused and send.id not in there for send in self.sends)

    @property
    def operations(self) -> int:
        """How many commands were answered."""
        answered = sum(s.end is not None for s in self.sends) + sum(v.end is not None for v in self.verdicts)
        return answered + len({(d.consumer, d.begin) for d in self.deliveries}) + len(self.empties)


class _Reader:
    """Joins the requests of one actor with the answers."""

    def __init__(self, history):
        self.history = history
        self.sends, self.fetches, self.verdicts, self.notes = {}, {}, {}, {}

    def read(self, e) -> None:
        """Reads one line."""
        getattr(self, e.pop("what"))(e)

    def send(self, e):
        if e["id"] in self.sends:
            self.sends[e["id"]].tries += 1
            return
        self.sends[e["id"]] = Send(end=None, **e)
        self.history.sends.append(self.sends[e["id"]])

    def refused(self, e):
        self.sends[e["id"]].refused = self.sends[e["id"]].tries == 1

    def sent(self, e):
        self.sends[e["id"]].end = e["end"]

    def fetch(self, e):
        self.fetches[e["n"]] = e

    def fetched(self, e):
        asked = self.fetches.pop(e["n"])
        if not e["messages"] and not asked.get("group"):
            self.history.empties.append((asked["begin"], e["end"]))
        # This many leases can have ended in this time before the token was sent again.
        over = int((e["end"] - asked["begin"]) / max(1.0, asked["lease"] - DRIFT))
        self.history.lost += [(asked["begin"], asked["begin"])] * min(e.get("tries", 1) - 1, over)
        begin = min(asked["begin"], e.get("given", asked["begin"]))
        for m in e["messages"]:
            self.history.deliveries.append(
                Delivery(
                    begin=begin, end=e["end"], lease=asked["lease"], consumer=asked["consumer"], tries=e.get("tries", 1), **m
                )  # fmt: skip
            )

    def unfetched(self, e):
        self.fetches.pop(e["n"])

    def verdict(self, e):
        extra = {name: e[name] for name in ("delay", "asked_at") if name in e}
        pause, following = e.get("pause"), e.get("next")
        for id, receipt in zip(e["ids"], e["receipts"]):
            verdict = Verdict(e["kind"], id, receipt, e["begin"], None, None, pause=pause and tuple(pause), **extra)
            self.verdicts.setdefault(e["n"], []).append(verdict)
            self.history.verdicts.append(verdict)
            if following:
                verdict.next = following["id"]
                self.send({"begin": e["begin"], "parent": id, **following})

    def note(self, e):
        n = e.pop("n")
        self.notes[n] = Note(**e)
        self.history.notes.append(self.notes[n])

    def answered(self, e):
        asked = self.verdicts.get(e["n"], [])
        for verdict in asked:
            verdict.end, verdict.answered_at = e["end"], e.get("answered_at")
            # Only a verdict on a single receipt tells the outcome of that receipt.
            verdict.count = e["count"] if len(asked) == 1 else None
            if verdict.next and e["count"]:
                self.sends[verdict.next].end = e["end"]
            elif verdict.next:
                self.sends[verdict.next].refused = True
        if e["n"] in self.notes:
            self.notes[e["n"]].end, self.notes[e["n"]].count = e["end"], e["count"]

    def sight(self, e):
        self.history.sights.append(Sight(**e))

    def closed(self, e):
        self.history.closures.append(Closure(**e))
