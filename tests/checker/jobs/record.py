"""The notes of the actors, the event stream, and the messages that are left in the queues at the end."""

import json
from dataclasses import dataclass, field

from tests.checker import stream
from tests.checker.limits import Limit
from tests.harness.replies import Queue, as_map, msgs

# The queues beside that of the jobs, and its event stream, by the suffix of its key.
PARTS, DEAD, EVENTS = ":parts", ":dead", ":events"


@dataclass
class Sent:
    """One SEND. end: when it was answered, None if never. Its payload is that of no other send, but where it was asked again."""

    id: str
    payload: str
    begin: float
    end: float | None = None
    refused: bool = False
    # Whether the send was answered with nil: the id was taken.
    taken: bool = False
    tries: int = 1
    limits: tuple = ()
    cost: int = 1
    # The cost that its ack books instead, if any.
    booked: int | None = None
    parent: str = ""
    ondead: str = ""
    # For a parent: the number of children that it waits for.
    children: int = 0
    # Whether the job waits for a signal from the beginning.
    parked: bool = False

    @property
    def is_sure(self) -> bool:
        """Whether it was answered, and the message was there."""
        return self.end is not None and not self.refused


@dataclass
class Got:
    """A delivery that a worker has seen."""

    id: str
    receipt: int
    attempt: int
    payload: str
    signal: str | None
    consumer: str
    begin: float
    end: float


@dataclass
class Answer:
    """The answer of a worker to a delivery. kind: ack, nack, fatal, or park. count is None if no answer came.

    waits: a park with FOR, which may end without a signal.
    """

    kind: str
    id: str
    receipt: int
    begin: float
    end: float | None = None
    count: int | None = None
    waits: bool = False


@dataclass
class Signal:
    """A signal with a unique text."""

    id: str
    text: str
    begin: float
    end: float | None = None
    count: int | None = None


@dataclass(frozen=True)
class Letter:
    """A message in the queue of DEADTO: the id with which it died, and its headers."""

    id: str
    payload: str
    reason: str
    attempts: int


@dataclass
class Record:
    """The whole record of a run."""

    sends: list = field(default_factory=list)
    got: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    signals: list = field(default_factory=list)
    events: list = field(default_factory=list)
    letters: list = field(default_factory=list)
    # At the end: the state of each existing message, in the words of stream.py, and the counts of parents.
    final: dict = field(default_factory=dict)
    counts: dict = field(default_factory=dict)
    rules: dict = field(default_factory=dict)
    # Crashes that may undo answered commands (history.Window).
    windows: list = field(default_factory=list)

    def undone(self, event) -> bool:
        """Whether a crash may have undone it."""
        end = float("inf") if event.end is None else event.end
        return any(window.covers(event.begin, end) for window in self.windows)

    def worked(self, event) -> bool:
        """Whether this answer or signal surely had its effect, for good."""
        return event.count == 1 and not self.undone(event)

    @property
    def gone(self) -> int:
        """How many answered sends are in no event."""
        told = {event.id for event in self.events}
        return sum(send.is_sure and not send.taken and send.id not in told for send in self.sends)

    @property
    def operations(self) -> int:
        """How many commands were answered."""
        answered = sum(one.end is not None for one in (*self.sends, *self.answers, *self.signals))
        return answered + len({(got.consumer, got.begin) for got in self.got})

    def read_journals(self, paths) -> None:
        """Joins the requests of the actors with the answers."""
        for path in paths:
            asked = {}
            with open(path, "rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        self._read(json.loads(line), asked)

    def _read(self, event, asked) -> None:
        what = event.pop("what")
        if what == "got":
            self.got.append(Got(**event))
        elif what == "answered":
            one = asked[event.pop("n")]
            for name, value in event.items():
                setattr(one, name, value)
        elif what == "again":
            asked[event["n"]].tries += 1
        else:
            kind, all_of_them = {
                "send": (Sent, self.sends),
                "answer": (Answer, self.answers),
                "signal": (Signal, self.signals),
            }[what]
            n = event.pop("n")
            asked[n] = kind(**event)
            all_of_them.append(asked[n])

    def read_queues(self, client, key) -> None:
        """The event stream, the letters, and the rest of the messages."""
        self.events = stream.read(client, key + EVENTS)
        self.final = stream.there(client, key) | stream.there(client, key + PARTS)
        jobs = Queue(client, key)
        for send in self.sends:
            if send.children and (one := jobs.get(send.id)):
                self.counts[send.id] = as_map(one["children"])
        letters = Queue(client, key + DEAD)
        while got := msgs(letters.do("FETCH", "COUNT", 1000, "NOACK", "WITHMETA")):
            self.letters += [letter_of(m.payload, as_map(m.meta["headers"])) for m in got]


def letter_of(payload, headers) -> Letter:
    """The payload begins with the id with which the message was sent."""
    text = payload.decode()
    return Letter(text.split()[0], text, headers["dead-reason"].decode(), int(headers["dead-attempts"]))


RULES = {
    "user-*": Limit(concurrency=2),
    "all": Limit(rates=((60, 1_000), (15, 100)), weight=True),
    "cores": Limit(concurrency=6, weight=True),
}
