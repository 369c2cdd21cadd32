"""The messages that were confirmed in one round, and those of them that are not there afterwards."""

import threading
from dataclasses import dataclass, field

from tests.harness.wire import Error, Wire

# The number of messages that one command gives out.
ALL = 10_000


@dataclass
class Outcome:
    """The outcome of one row."""

    name: str
    faults: int = 0
    sends: int = 0
    """The confirmed sends."""
    lost: int = 0
    """Confirmed sends whose messages were not there after the fault."""
    rounds: int = 0
    """Faults that have lost messages."""
    longest: float = 0.0
    """How long before the fault the oldest of the lost ones had been confirmed, in seconds."""
    acks: int = 0
    """The confirmed acks."""
    undone: int = 0
    """Confirmed acks whose messages were there again."""
    seconds: float = 0.0

    def add(self, other: "Outcome") -> None:
        """Adds the outcome of the same row on other servers at the same time."""
        for name in ("faults", "sends", "lost", "rounds", "acks", "undone"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.longest = max(self.longest, other.longest)
        self.seconds = max(self.seconds, other.seconds)


@dataclass
class Books:
    """The facts that clients know about one round. Times are those of time.monotonic().

    A message is known by its payload (bytes), which no other one has. An id that the server has made may be made once more
    by the server that takes over.
    """

    sent: dict = field(default_factory=dict)
    """The time at which each send was confirmed."""
    acked: set = field(default_factory=set)
    """Messages whose ack was confirmed."""
    asked: set = field(default_factory=set)
    """Messages whose ack was sent, with any outcome."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def audit(self, wire: Wire, key: str, struck: float, outcome: Outcome) -> None:
        """Removes all messages from the queue, and compares. `struck` is when the fault came."""
        there = inventory(wire, key)
        lost = [one for one in self.sent if one not in there and one not in self.asked]
        outcome.sends += len(self.sent)
        outcome.acks += len(self.acked)
        outcome.lost += len(lost)
        outcome.undone += len(self.acked & there)
        if lost:
            outcome.rounds += 1
            outcome.longest = max(outcome.longest, struck - min(self.sent[one] for one in lost))


def inventory(wire: Wire, key: str) -> set:
    """The payloads of all messages that are pending or running. Pending messages are removed."""
    cursor, running = wire.ok("DQ.LIST", key, "running", "COUNT", ALL) if wire.ok("EXISTS", key) else (b"0", [])
    assert cursor == b"0", "more messages than one step lists"
    there = {row[row.index(b"payload") + 1] for row in running}
    while some := wire.ok("DQ.FETCH", key, "COUNT", ALL, "NOACK"):
        there |= {message[3] for message in some}
    wire.ok("UNLINK", key)
    return there


def failed(reply) -> bool:
    return isinstance(reply, Error)
