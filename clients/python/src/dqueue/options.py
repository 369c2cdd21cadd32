"""The options of the commands, and how they are written on the wire."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

Word = bytes | str | int | float
"""One argument of a command."""

Millis = int | timedelta
"""A span of time: milliseconds, or a timedelta."""

Instant = int | datetime
"""A point in time: Unix milliseconds, or a datetime (a naive one is local time)."""

BackoffKind = Literal["FIXED", "LINEAR", "EXP"]
"""How the wait after a failure grows: not, with the failures, or doubling."""

State = Literal["delayed", "ready", "blocked", "retry", "running", "finished", "dead", "cancelled"]
"""The states of a message."""


class SendOptions(TypedDict, total=False):
    """Options of one message; what is left out (or None) is the queue's own."""

    delay: Millis | None
    """Due so long from now; not together with `at`."""
    at: Instant | None
    """Due at this time; a past one means now."""
    group: str | None
    """Its messages are delivered in order, at most GROUPCONCURRENCY at a time."""
    score: float | None
    """Its place in its group; by default its due time."""
    priority: int | None
    """-128 to 127, lower goes first; by default 0."""
    lease: Millis | None
    """How long a consumer has, at least 1 ms."""
    retries: int | None
    """Failures that are forgiven; -1: all."""
    backoff: tuple[BackoffKind, Millis] | None
    """The wait after a failure."""
    ttl: Millis | None
    """Dead this long after its due time if not finished; 0: never."""
    type: str | None
    """A free label; workers choose the handler by it."""
    headers: Mapping[str, str | bytes] | None
    """Fields that travel beside the payload."""


class QueueOptions(TypedDict, total=False):
    """Options of DQ.CREATE and DQ.ALTER; the command reference explains them."""

    lease: Millis
    retries: int
    backoff: tuple[BackoffKind, Millis]
    max_backoff: Millis
    jitter: int
    ttl: Millis
    retain: Millis
    retain_count: int
    dead_retain: Millis
    dead_count: int
    dedup: Millis
    max_len: int
    max_bytes: int
    max_running: int
    rate: tuple[int, Millis] | Literal[0]
    """At most n deliveries in any window of that length; 0 removes the limit."""
    group_concurrency: int
    on_retry: Literal["BLOCK", "SKIP"]
    on_dead: Literal["CONTINUE", "BLOCK"]


def encode(text: str | bytes) -> bytes:
    """Text as it goes over the wire; the inverse of `records.text`, whatever bytes that met."""
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def millis(span: Millis) -> int:
    """A span in whole milliseconds."""
    return span // timedelta(milliseconds=1) if isinstance(span, timedelta) else span


def words(options: Mapping[str, Any]) -> list[Word]:
    """Options as command words: the name without underscores, then the value; True is the bare name."""
    result: list[Word] = []
    for name, value in options.items():
        word = name.replace("_", "").upper()
        if value is None or value is False:
            continue
        if value is True:
            result.append(word)
        elif name == "rate" and value != 0:
            result += [word, value[0], "PER", millis(value[1])]
        elif name == "backoff":
            result += [word, value[0], millis(value[1])]
        elif name == "headers":
            result += [word, len(value)]
            for field, content in value.items():
                result += [encode(field), encode(content)]
        elif isinstance(value, datetime):
            result += [word, round(value.timestamp() * 1000)]
        elif isinstance(value, timedelta):
            result += [word, millis(value)]
        else:
            result += [word, encode(value) if isinstance(value, str | bytes) else value]
    return result
