"""Records of messages, groups, consumers and schedules, and the functions that read them from replies.

They are the same over RESP2 and RESP3, and whether the client decodes responses or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

Info = dict[str, int | float | str | bool | None]
"""DQ.INFO and DQ.TICK: the names of the command reference, with their values."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A failed attempt of a message: its number, the time of the failure (Unix ms), the consumer, and the error."""

    attempt: int
    at: int
    consumer: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """A message as DQ.GET, DQ.LIST and DQ.PEEK show it. Times are Unix ms. A field that does not apply is None."""

    id: str
    status: str
    state: str
    payload: bytes
    attempt: int
    failures: int
    timeouts: int
    retries_left: int
    group: str | None
    score: float | None
    priority: int
    type: str | None
    headers: dict[str, bytes] | None
    sent_at: int
    due_at: int
    first_started_at: int | None
    started_at: int | None
    lease_until: int | None
    finished_at: int | None
    consumer: str | None
    receipt: int | None
    error: str | None
    result: str | None
    reason: str | None
    note: str | None = None
    """The note that a consumer has left for the next attempt of the message."""
    batch: str | None = None
    """The batch that it is in."""
    after: dict[str, int | str] | None = None
    """The batch that it waits for or waited for, and the messages of it."""
    first_sent_at: int | None = None
    """Of a message with MAXWAIT: when the first of the sends that replaced each other was done."""
    children: dict[str, int | str] | None = None
    """Of a message with children: how many there are, and how many of them have ended in which way."""
    parent: dict[str, str] | None = None
    """Of a child: the key and the id of its parent, and the effect of its death (`ondead`)."""
    signal: str | None = None
    """The text of the last signal."""
    rerun: bool = False
    """Whether another payload waits until its run has ended."""
    limits: list[str] | None = None
    """The limits that it needs room in."""
    cost: int | None = None
    """The cost of the message for each of its limits."""
    errors: list[FailedAttempt] | None = None
    """The last failed attempts that ERRORS keeps, the oldest first. The value is None from a server without ERRORS."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason for the state of a message: the code, a sentence, until when (Unix ms), and what holds it."""

    code: str
    why: str
    until: int | None
    by: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """A group as DQ.GROUPS shows it."""

    group: str
    state: str
    waiting: int
    running: int
    head: str | None
    head_due_at: int | None
    lease_until: int | None
    weight: int
    concurrency: int
    breaker: str
    open_until: int | None


@dataclass(frozen=True, slots=True)
class Batch:
    """An open batch as DQ.BATCHES shows it."""

    batch: str
    pending: int
    running: int
    dead: int
    finished: int
    cancelled: int
    held: int


@dataclass(frozen=True, slots=True)
class Child:
    """A child of a message as DQ.CHILDREN shows it."""

    key: str
    """The key of its queue."""
    id: str
    state: str
    result: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Window:
    """A rate of a limit: how many deliveries may begin in any window of `per` ms, and how many have begun in the
    last one.
    """

    limit: int
    per: int
    used: int


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit as DQ.LIMITS shows it."""

    limit: str
    rule: str | None
    """The name or the pattern that was set for it. The value is None if no rule limits this name."""
    concurrency: int
    """0 means no limit."""
    weight: int
    """1 if `concurrency` and `rates` are about the costs of the messages."""
    rates: list[Window]
    running: int
    running_cost: int
    waiting: int
    """Number of groups that wait for room in it."""
    next_free: int | Literal["never"] | None
    """When a message of cost 1 can begin, in Unix ms. The value is None if only the end of another message makes
    room, and "never" if the first that waits costs more than the limit ever allows.
    """


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer as DQ.CONSUMERS shows it."""

    name: str
    running: int
    last_seen: int
    delivered: int
    acked: int
    nacked: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as DQ.SCHEDULES shows it. Times are Unix ms."""

    name: str
    definition: str
    next_at: int | None
    last_at: int | None
    fired: int
    until: int | None = None
    """The schedule has no fire time after this one."""
    times: int | None = None
    """Number of messages that it still sends."""
    jitter: int = 0
    paused: bool = False
    skipped: int = 0
    """Number of fire times at which it sent nothing."""


Shape = TypeVar("Shape", Record, Explanation, Group, Batch, Child, Limit, Consumer, Schedule)


def text(reply: Any) -> str:
    """Decodes a string of the server. Bytes that are not UTF-8 are restored by `options.encode`."""
    return reply.decode("utf-8", "surrogateescape") if isinstance(reply, bytes) else str(reply)


def raw(reply: Any) -> bytes:
    """Returns a string of the server as bytes, even if the client has decoded it."""
    return reply.encode("utf-8", "surrogateescape") if isinstance(reply, str) else bytes(reply)


def pairs(reply: Any) -> dict[str, Any]:
    """Reads a map, which is a flat array under RESP2."""
    items: Iterable[tuple[Any, Any]]
    items = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {text(name): value for name, value in items}


def headers(reply: Any) -> dict[str, bytes]:
    """Reads the headers of a message."""
    return {name: raw(value) for name, value in pairs(reply).items()}


def counts(reply: Any) -> dict[str, int | str]:
    """Reads the map `after`: the name of a batch, and its messages by state."""
    return {name: int(value) if name != "batch" else text(value) for name, value in pairs(reply).items()}


def failed_attempts(reply: Any) -> list[FailedAttempt]:
    """Reads the list `errors` of a message."""
    return [
        FailedAttempt(int(attempt), int(at), None if consumer is None else text(consumer), text(words))
        for attempt, at, consumer, words in reply
    ]


def number_or_never(reply: Any) -> int | Literal["never"]:
    """Reads `next-free` of a limit."""
    return reply if isinstance(reply, int) else "never"


def windows(reply: Any) -> list[Window]:
    """Reads the list `rates` of a limit."""
    return [Window(*map(int, one)) for one in reply]


_READERS: dict[str, Callable[[Any], Any]] = {
    "str": text,
    "bytes": raw,
    "int": int,
    "int | Literal['never']": number_or_never,
    "float": float,
    "bool": bool,
    "dict[str, bytes]": headers,
    "dict[str, int | str]": counts,
    "dict[str, str]": lambda reply: {name: text(value) for name, value in pairs(reply).items()},
    "list[str]": lambda reply: [text(one) for one in reply],
    "list[FailedAttempt]": failed_attempts,
    "list[Window]": windows,
}


def shaped(shape: type[Shape], reply: Any) -> Shape:
    """Reads a map as one of the classes above. Fields that a newer server adds are left out."""
    given = pairs(reply)
    values: dict[str, Any] = {}
    for field in fields(shape):
        value = given.get(field.name.replace("_", "-"))
        reader = _READERS[str(field.type).removesuffix(" | None")]
        values[field.name] = None if value is None else reader(value)
    return shape(**values)


def info(reply: Any) -> Info:
    """Reads a flat map of numbers, words and booleans."""
    values = {name: text(value) if isinstance(value, bytes) else value for name, value in pairs(reply).items()}
    if "paused" in values:
        values["paused"] = bool(values["paused"])
    return values


def added_up(infos: Iterable[Info]) -> Info:
    """Adds up DQ.NINFO of several nodes. Of ages and latenesses, which cannot be added, it has the highest."""
    total: Info = {}
    for one in infos:
        for name, value in one.items():
            before = total.get(name)
            if before is None or value is None:
                total[name] = value if before is None else before
            elif isinstance(before, int | float) and isinstance(value, int | float):
                is_highest = name.startswith(("oldest-", "lateness-"))
                total[name] = max(before, value) if is_highest else before + value
    return total
