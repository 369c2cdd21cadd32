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
    """One acknowledged or attempted SEND. begin and end are when it was asked and answered."""

    id: str
    group: str
    score: float
    begin: float
    end: float | None
    delay: float = 0


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
class History:
    sends: list = field(default_factory=list)
    deliveries: list = field(default_factory=list)
    verdicts: list = field(default_factory=list)
    # FETCHes of which no answer was read: what they were given nobody knows.
    lost_fetches: int = 0
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
            history.lost_fetches += len(open_fetches)
        return history

    def _event(self, e, sends, fetches, verdicts) -> None:
        kind = e.pop("what")
        if kind == "send":
            sends[e["id"]] = Send(end=None, **e)
            self.sends.append(sends[e["id"]])
        elif kind == "sent":
            sends[e["id"]].end = e["end"]
        elif kind == "fetch":
            fetches[e["n"]] = e
        elif kind == "fetched":
            asked = fetches.pop(e["n"])
            for m in e["messages"]:
                self.deliveries.append(
                    Delivery(begin=asked["begin"], end=e["end"], lease=asked["lease"], consumer=asked["consumer"], **m)
                )
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
