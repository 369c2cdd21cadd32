"""A delivered message."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dqueue.protocol.effects import Effects
from dqueue.protocol.records import counts, headers, pairs, raw, text


@dataclass(slots=True, eq=False)
class Message:
    """One delivery of a message.

    `receipt` grows with every delivery of the queue, so it is a fencing token. Let the store that you write to refuse
    a write whose receipt is lower than one that it has seen (`UPDATE ... WHERE fence < :receipt`). Then a worker that
    was frozen for longer than its lease cannot overwrite what the next one did.
    """

    id: str
    receipt: int
    attempt: int
    """Counts from 1."""
    payload: bytes
    group: str | None
    score: float | None
    priority: int
    type: str | None
    headers: dict[str, bytes]
    sent_at: int
    due_at: int
    lease_until: int
    """Unix ms by the server's clock, as of the delivery. Heartbeats extend it on the server."""
    retries_left: int
    """-1 means without limit."""
    note: str | None = None
    """The note that an earlier attempt has left with the message."""
    signal: str | None = None
    """The text of the last signal to it. None if none has come, or if its wait for one has ended without a signal."""
    batch: str | None = None
    """The batch that it is in."""
    after: dict[str, int | str] | None = None
    """The batch that it waited for, and how many messages of it ended in which way."""
    children: dict[str, int | str] | None = None
    """Its children that it waited for, and how many of them ended in which way."""
    queue: str = ""
    """The name of the queue that delivered it."""
    lost: bool = False
    """Set by the heartbeat of the worker when the lease is over. Another consumer may have the message now."""
    cost: int | None = None
    """Set by a handler: the real cost of the message for its limits. The worker acks it with that."""
    _effects: Effects | None = field(default=None, repr=False)

    @property
    def effects(self) -> Effects:
        """Changes of Redis keys that the worker does together with its ack of this message. A handler adds to them."""
        if self._effects is None:
            self._effects = Effects()
        return self._effects

    @property
    def text(self) -> str:
        """Returns the payload as UTF-8 text."""
        return self.payload.decode()

    def json(self) -> Any:
        """Parses the payload as JSON."""
        return json.loads(self.payload)


def about(message: Message) -> dict[str, str | int | None]:
    """Returns the fields of a log line about a message, for the argument `extra` of the methods of a logger."""
    return {
        "queue": message.queue,
        "message_id": message.id,
        "message_type": message.type,
        "group": message.group,
        "attempt": message.attempt,
    }


def delivered(queue: str, reply: Any) -> Message:
    """One element of the reply of a FETCH ... WITHMETA from this queue."""
    id, receipt, attempt, payload, meta = reply
    given = pairs(meta)
    score = given["score"]
    return Message(
        id=text(id),
        receipt=int(receipt),
        attempt=int(attempt),
        payload=raw(payload),
        group=None if given["group"] is None else text(given["group"]),
        score=None if score is None else float(score),
        priority=int(given["priority"]),
        type=None if given["type"] is None else text(given["type"]),
        headers={} if given["headers"] is None else headers(given["headers"]),
        sent_at=int(given["sent-at"]),
        due_at=int(given["due-at"]),
        lease_until=int(given["lease-until"] or 0),
        retries_left=int(given["retries-left"]),
        note=None if given.get("note") is None else text(given["note"]),
        signal=None if given.get("signal") is None else text(given["signal"]),
        batch=None if given.get("batch") is None else text(given["batch"]),
        after=None if given.get("after") is None else counts(given["after"]),
        children=None if given.get("children") is None else counts(given["children"]),
        queue=queue,
    )


def by_queue(messages: Sequence[Message]) -> dict[str, list[Message]]:
    """Returns the messages by the name of their queue."""
    found: dict[str, list[Message]] = {}
    for message in messages:
        found.setdefault(message.queue, []).append(message)
    return found
