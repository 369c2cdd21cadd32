"""The options of the commands, and how they are written on the wire."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

Word = bytes | str | int | float
"""One argument of a command."""

Millis = int | timedelta
"""A span of time: milliseconds, or a timedelta."""

Instant = int | datetime
"""A point in time: Unix milliseconds, or a datetime, which is local time if it is naive."""

BackoffKind = Literal["FIXED", "LINEAR", "EXP"]
"""The growth of the wait after a failure: none, by the same amount each time, or doubling."""

LOST_WORKERS = 3
"""How many workers a task of a framework may take with it (MAXTIMEOUTS). Then it is dead, reason `timeouts`."""

Pause = tuple[Literal["GROUP", "QUEUE"], Millis]
"""The target of a pause by a nack, and how long it lasts (at least 1 ms)."""

Parking = Millis | Literal[True]
"""How long a message waits for a signal (at least 1 ms). True means without end."""

State = Literal["delayed", "ready", "blocked", "retry", "running", "finished", "dead", "cancelled", "held"]
"""The states of a message."""


class SendOptions(TypedDict, total=False):
    """Options of one message. One that is left out or None has the value of the queue."""

    delay: Millis | None
    """The message is due this long from now. Not together with `at`."""
    at: Instant | None
    """The message is due at this time. A time in the past means now."""
    group: str | None
    """The group. The messages of a group are delivered in order, at most GROUPCONCURRENCY at a time."""
    score: float | None
    """Its position in the group. The default is its due time."""
    priority: int | None
    """From -128 to 127, the lower first. The default is 0."""
    lease: Millis | None
    """How long a consumer may hold it, at least 1 ms."""
    retries: int | None
    """Number of failures after which it is delivered again. -1 means all."""
    max_timeouts: int | None
    """Number of leases that ran out or were lost after which it is dead, whatever `retries` says. 0 means no limit."""
    errors: int | None
    """Number of its last failed attempts that are kept, 0 to 100."""
    backoff: tuple[BackoffKind, Millis] | None
    """The wait after a failure."""
    ttl: Millis | None
    """The message is dead this long after its due time if it is not finished by then. 0 means never."""
    expire_at: Instant | None
    """The message is dead if it is not finished by this time. Not together with `ttl`."""
    retain: Millis | None
    """How long its record is kept. 0 means not at all."""
    rerun: bool
    """Only with `replace`: if the message of that id is running, this one is sent when that run has ended."""
    dedup_id: tuple[str, Millis] | None
    """A deduplication id, and how long it counts from this send: until then a send with the same id adds nothing, and
    returns the id of this message."""
    max_wait: Millis | None
    """Only with `replace`: it is due at the latest this long after the first of the sends that replaced each other."""
    if_group: bool
    """Only with `group`: it is added only if the group has a pending or running message."""
    type: str | None
    """A label, by which workers choose the handler."""
    headers: Mapping[str, str | bytes] | None
    """Fields that are delivered with the payload."""
    batch: str | None
    """The batch that it joins."""
    after: str | None
    """The message is held until all messages of this batch have ended."""
    on_fail: Literal["HOLD", "GO", "DIE"] | None
    """The effect of a dead message of that batch: it holds on, counts as ended, or kills. Only with `after`."""
    children: int | None
    """The message is held until this number of messages that name it as their `parent` have ended."""
    parent: tuple[str, str] | None
    """The key of a queue and the id of a message in it, of which this one is a child."""
    on_dead: Literal["HOLD", "GO", "DIE"] | None
    """The effect of its death on its parent: the parent holds on, counts this one as ended, or dies."""
    park: Parking | None
    """The message is held until a signal comes: for this long at most, or without end (True)."""
    limits: Sequence[str] | None
    """Names of up to 8 limits that it needs room in."""
    cost: int | None
    """The cost that the message has for each of them, and for its group's turn with FAIR COST. The default is 1."""


class ScheduleOptions(SendOptions, total=False):
    """The times at which the server itself sends a message, and the options of each of these messages."""

    cron: str | None
    """The schedule is sent at these times. Not together with `every`."""
    tz: str | None
    """An IANA time zone for `cron`. The default is UTC."""
    every: Millis | None
    """The schedule is sent again and again after this span, at least 1 ms."""
    start: Instant | None
    """The first time of `every`."""
    missed: Literal["SKIP", "ONCE", "ALL"] | None
    """How many of the times at which the server was down are made up for: none, one or all of them."""
    overlap: Literal["QUEUE", "SKIP"] | None
    """Whether it is sent while the message of the last time has not ended."""
    until: Instant | None
    """The schedule is not sent at times after this one."""
    times: int | None
    """The schedule ends after this number of messages."""
    jitter: Millis | None
    """Each message is due up to this much later."""


class Conditions(TypedDict, total=False):
    """Conditions of DQ.FIND. A message is found if all that are given apply. Patterns are those of KEYS."""

    id: str | None
    """A pattern of the id."""
    type: str | None
    """The label."""
    group: str | None
    """The group."""
    batch: str | None
    """The batch."""
    parent: tuple[str, str] | None
    """The parent: the key of its queue, and its id."""
    header: tuple[str, str | bytes] | None
    """A header: its field and its value."""
    error: str | None
    """A pattern of the last error."""
    payload: str | bytes | None
    """A pattern of the payload, which is matched up to its first 64 KiB."""
    since: Instant | None
    """The time that orders the state is this one or later."""
    until: Instant | None
    """The time that orders the state is before this one."""
    rev: bool
    """The last message comes first."""


class FetchOptions(TypedDict, total=False):
    """Options of a fetch. One that is left out or None has the value of the queue or of the server."""

    count: int
    """The most messages that it takes. The default is 1."""
    block: Millis | None
    """How long it waits for a message. It must be shorter than the socket timeout of the client."""
    lease: Millis | None
    """How long the messages are leased, at least 1 ms."""
    consumer: str | None
    """The name of the consumer for DQ.CONSUMERS."""
    per_group: int | None
    """The most messages of one group."""
    max_bytes: int | None
    """The most bytes of payloads. The first message may have more."""
    bind: bool
    """The leases end when the connection does."""
    grace: Millis | None
    """Only with `bind`: they end this long after the connection."""
    token: str | bytes | None
    """Only with `consumer`: if the reply was lost, the same call gives the same messages once more."""
    no_ack: bool
    """The messages are finished at once, and cannot be given back."""


class NackOptions(TypedDict, total=False):
    """The way in which messages have failed, or are given back."""

    delay: Millis | None
    """The messages come again after this time. With `silent` that is no failure: they are snoozed."""
    error: str | None
    """The error text that is kept of the failure."""
    silent: bool
    """The messages are given back as if they had not been delivered."""
    park: Parking | None
    """Only with `silent`: they are held until a signal comes, for this long at most, or without end (True)."""
    fatal: bool
    """The messages are dead at once."""
    note: str | None
    """The note stays with the messages for their next attempt. "" removes it."""
    pause: Pause | None
    """Pauses their group or the queue in the same step, for example `("GROUP", 30_000)`."""


class GroupOptions(TypedDict, total=False):
    """Settings of a group. Concurrency 0 and rate 0 restore those of the queue."""

    weight: int | None
    """Its share of the deliveries."""
    concurrency: int | None
    """The most messages of it that may be leased."""
    rate: tuple[int, Millis] | Literal[0] | None
    """The most deliveries in any window of this length."""


class LimitOptions(TypedDict, total=False):
    """The rule of a limit with a name."""

    concurrency: int | None
    """The most messages that may be leased, or with `weight` the sum of their costs."""
    rates: Sequence[tuple[int, Millis]]
    """Up to four times how much may begin in any window of this length."""
    weight: bool
    """`concurrency` and `rates` are about the costs of the messages."""


class QueueOptions(TypedDict, total=False):
    """Options of DQ.CREATE and DQ.ALTER. The command reference explains them."""

    lease: Millis
    retries: int
    max_timeouts: int
    """Number of leases that ran out or were lost after which a message is dead. 0 means no limit."""
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
    """Maximum number of deliveries in any window of this length. 0 removes the limit."""
    group_concurrency: int
    on_retry: Literal["BLOCK", "SKIP", "ALONE"]
    on_dead: Literal["CONTINUE", "BLOCK"]
    fair: Literal["COUNT", "TIME", "COST"]
    """The measure by which groups take turns: the number of messages, the time that workers held them, or their
    costs.
    """
    breaker: tuple[int, Millis, Millis] | tuple[int, Millis, Millis, Millis] | Literal[0]
    """Failures, window, open time and, if it is longer than that, the longest open time. 0 removes the breaker."""
    errors: int
    """Number of the last failed attempts of a message that are kept, 0 to 100."""
    dead_to: str | bytes | tuple[str | bytes, ...]
    """Key of the queue to which messages go that die, and for which reasons of death. No reason means all, "" none."""
    events: str | bytes
    """Key of the stream to which each transition of a message is added. "" ends it."""
    events_len: int
    """Maximum number of entries of that stream."""
    compress: Literal["ON", "OFF"]
    """Whether payloads of messages that rest are kept packed."""
    sends: Literal["ON", "OFF"]
    """Whether messages can be added. "OFF" refuses them with QUEUECLOSED, so that the queue can be emptied."""


def encode(text: str | bytes) -> bytes:
    """Encodes text for the wire. It is the inverse of `records.text` for all bytes."""
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def millis(span: Millis) -> int:
    """Returns a span in whole milliseconds."""
    return span // timedelta(milliseconds=1) if isinstance(span, timedelta) else span


def words(options: Mapping[str, Any]) -> list[Word]:
    """Returns options as words: the name without underscores, then the value. True gives the name alone."""
    result: list[Word] = []
    for name, value in options.items():
        word = name.replace("_", "").upper()
        if value is None or value is False:
            continue
        if value is True:
            result.append(word)
        elif name == "rate" and value != 0:
            result += [word, value[0], "PER", millis(value[1])]
        elif name == "breaker" and value != 0:
            failures, *spans = value
            result += [word, failures]
            for part, span in zip(("PER", "OPEN", "MAX"), spans, strict=False):
                result += [part, millis(span)]
        elif name == "rates":
            for limit, per in value:
                result += ["RATE", limit, "PER", millis(per)]
        elif name == "park":
            result += [word, "FOR", millis(value)]
        elif name in ("backoff", "pause", "dedup_id"):
            result += [word, encode(value[0]), millis(value[1])]
        elif name == "limits":
            result += [word, len(value), *map(encode, value)] if value else []
        elif name in ("header", "parent") or (name == "dead_to" and isinstance(value, tuple)):
            result += [word, *(encode(part) for part in value)]
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
