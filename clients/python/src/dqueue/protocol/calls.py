"""One function for each command, which returns the words to send and the function that reads the reply."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, Unpack

from dqueue.protocol.effects import Effects
from dqueue.protocol.message import Message, delivered
from dqueue.protocol.options import (
    Instant,
    Millis,
    SendOptions,
    Word,
    encode,
    millis,
    words,
)
from dqueue.protocol.records import (
    Batch,
    Child,
    Consumer,
    Explanation,
    Group,
    Info,
    Limit,
    Record,
    Schedule,
    info,
    shaped,
    text,
)

T = TypeVar("T")

Payload = str | bytes
Receipt = int | Message
"""A receipt, or the message that carries it."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A command, and the function that reads its reply."""

    words: list[Word]
    read: Callable[[Any], T]
    may_be_repeated: bool = False
    """Whether it does nothing more if it is sent again after a lost reply."""
    has_settled: Callable[[Any], bool] = lambda _reply: True
    """Whether the reply means that all receipts were current."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a listing. `cursor` is None at the end."""

    items: list[T]
    cursor: str | None


def nothing(_reply: Any) -> None:
    return None


def maybe_text(reply: Any) -> str | None:
    return None if reply is None else text(reply)


def receipts(given: Sequence[Receipt]) -> list[Word]:
    """Returns the receipts of messages, as words."""
    return [one.receipt if isinstance(one, Message) else one for one in given]


def _page(read: Callable[[Any], T]) -> Callable[[Any], Page[T]]:
    def page(reply: Any) -> Page[T]:
        cursor = text(reply[0])
        return Page([read(one) for one in reply[1]], None if cursor == "0" else cursor)

    return page


def create(key: str, options: Mapping[str, Any]) -> Call[None]:
    return Call(["DQ.CREATE", encode(key), *words(options)], nothing)


def create_if_missing(key: str, options: Mapping[str, Any]) -> Call[bool]:
    """Reads whether the queue was not there."""
    return Call(["DQ.CREATE", encode(key), "NX", *words(options)], bool)


def alter(key: str, options: Mapping[str, Any]) -> Call[None]:
    return Call(["DQ.ALTER", encode(key), *words(options)], nothing)


def send(key: str, payload: Payload, id: str | None, replace: bool, options: Mapping[str, Any]) -> Call[str | None]:
    """Always sends an id, because without one a repetition after a lost reply would add the message twice."""
    own = str(uuid.uuid4())
    given = {"id": id or own, "replace": replace, **options}

    def read(reply: Any) -> str | None:
        # An id that was made just now can only be taken by an earlier try of this call. With IFGROUP, None may also
        # mean that the group had no message.
        is_own = id is None and not options.get("if_group")
        return own if reply is None and is_own else maybe_text(reply)

    return Call(["DQ.SEND", encode(key), encode(payload), *words(given)], read, may_be_repeated=True)


def send_many(key: str, payloads: Sequence[Payload], options: Mapping[str, Any]) -> Call[list[str]]:
    """The list is empty if IFGROUP does not hold."""
    given = [encode(payload) for payload in payloads]
    return Call(
        ["DQ.MSEND", encode(key), len(given), *given, *words(options)],
        lambda reply: [text(id) for id in reply or ()],
    )


def group_push(
    key: str, json: Payload, group_by: Sequence[str], paths: Mapping[str, Any], options: Mapping[str, Any]
) -> Call[tuple[str, str] | None]:
    by = [encode(path) for path in group_by]
    return Call(
        ["DQ.GROUPPUSH", encode(key), encode(json), "GROUPBY", len(by), *by, *words({**paths, **options})],
        lambda reply: None if reply is None else (text(reply[0]), text(reply[1])),
    )


def fetch(
    key: str,
    ack: Sequence[Receipt],
    results: Sequence[Payload],
    options: Mapping[str, Any],
    apply: Effects | None = None,
) -> Call[list[Message]]:
    given = receipts(ack)
    acks: list[Word] = ["ACK", len(given), *given] if given else []
    if results:
        acks += ["RESULTS", len(results), *map(encode, results)]
    if apply:
        acks += apply.words()

    def read(reply: Any) -> list[Message]:
        if apply:
            apply.applied, reply = reply
        return [delivered(key, one) for one in reply or ()]

    return Call(["DQ.FETCH", encode(key), "WITHMETA", *acks, *words(options)], read)


def _of_one_queue(reply: Any) -> list[Message]:
    if not reply:
        return []
    key, messages = reply
    return [delivered(text(key), one) for one in messages]


def fetch_first(keys: Sequence[str], options: Mapping[str, Any]) -> Call[list[Message]]:
    return Call(["DQ.MFETCH", len(keys), *map(encode, keys), "WITHMETA", *words(options)], _of_one_queue)


def family_fetch(family: str, options: Mapping[str, Any]) -> Call[list[Message]]:
    return Call(["DQ.NFETCH", encode(family), "WITHMETA", *words(options)], _of_one_queue)


def family_info(family: str) -> Call[Info]:
    return Call(["DQ.NINFO", encode(family)], info)


def ack(
    key: str, given: Sequence[Receipt], result: Payload | None, cost: int | None = None, apply: Effects | None = None
) -> Call[int]:
    command = ["DQ.ACK", encode(key), *receipts(given), *words({"result": result, "cost": cost})]
    if not apply:
        return Call(command, int, has_settled=lambda reply: int(reply) == len(given))

    def read(reply: Any) -> int:
        apply.applied = reply
        return int(reply is not None)

    return Call([*command, *apply.words()], read, has_settled=lambda reply: reply is not None)


class Next:
    """A message that follows from another one: an argument of `Queue.ack_send`.

    `to` is the name of another queue; without it the message goes to the same queue.
    """

    def __init__(
        self,
        payload: Payload,
        *,
        to: str | None = None,
        id: str | None = None,
        replace: bool = False,
        **options: Unpack[SendOptions],
    ) -> None:
        self.payload = payload
        self.to = to
        self.options: dict[str, Any] = {"id": id, "replace": replace, **options}

    def words(self, key: str) -> list[Word]:
        """Returns it as words of DQ.ACKSEND."""
        return ["NEXT", encode(key if self.to is None else self.to), encode(self.payload), *words(self.options)]


class Signal:
    """A signal to a message that waits for it: an argument of `Queue.ack_send`.

    `to` is the name of its queue; without it the message is in the same queue.
    """

    def __init__(self, id: str, data: Payload = "", *, to: str | None = None) -> None:
        self.id = id
        self.data = data
        self.to = to

    def words(self, key: str) -> list[Word]:
        """Returns it as words of DQ.ACKSEND."""
        return ["SIGNAL", encode(key if self.to is None else self.to), encode(self.id), encode(self.data)]


def ack_send(
    key: str,
    receipt: Receipt,
    following: Sequence[Next | Signal],
    result: Payload | None,
    apply: Effects | None = None,
) -> Call[list[str | bool | None] | None]:
    command: list[Word] = ["DQ.ACKSEND", encode(key), *receipts([receipt]), *words({"result": result})]
    if apply:
        command += apply.words()
    for one in following:
        command += one.words(key)

    def read(reply: Any) -> list[str | bool | None] | None:
        if apply:
            apply.applied, reply = reply or (None, None)
        return None if reply is None else [bool(one) if isinstance(one, int) else maybe_text(one) for one in reply]

    return Call(command, read, has_settled=lambda reply: reply is not None)


def nack(key: str, given: Sequence[Receipt], options: Mapping[str, Any]) -> Call[int]:
    command = ["DQ.NACK", encode(key), *receipts(given), *words(options)]
    return Call(command, int, has_settled=lambda reply: int(reply) == len(given))


def touch(key: str, lease: Millis, given: Sequence[Receipt], note: str | None = None) -> Call[int]:
    return Call(["DQ.TOUCH", encode(key), millis(lease), *receipts(given), *words({"note": note})], int)


def get(key: str, id: str) -> Call[Record | None]:
    return Call(["DQ.GET", encode(key), encode(id)], lambda reply: None if reply is None else shaped(Record, reply))


def listing(key: str, state: str, options: Mapping[str, Any]) -> Call[Page[Record]]:
    return Call(["DQ.LIST", encode(key), state, *words(options)], _page(lambda one: shaped(Record, one)))


def find(key: str, state: str, options: Mapping[str, Any]) -> Call[Page[Record]]:
    return Call(["DQ.FIND", encode(key), state, *words(options)], _page(lambda one: shaped(Record, one)))


def find_do(key: str, state: str, act: str, options: Mapping[str, Any]) -> Call[tuple[str | None, int]]:
    """One step of DQ.FIND with DO. Replies with the next cursor, None at the end, and how many were changed."""

    def step(reply: Any) -> tuple[str | None, int]:
        cursor = text(reply[0])
        return (None if cursor == "0" else cursor), int(reply[1])

    return Call(["DQ.FIND", encode(key), state, *words(options), "DO", act], step)


def peek(key: str, count: int) -> Call[list[Record]]:
    return Call(["DQ.PEEK", encode(key), "COUNT", count], lambda reply: [shaped(Record, one) for one in reply])


def length(key: str, state: str | None) -> Call[int]:
    return Call(["DQ.LEN", encode(key), *([state] if state else [])], int)


def queue_info(key: str) -> Call[Info]:
    return Call(["DQ.INFO", encode(key)], info)


def groups(key: str, options: Mapping[str, Any]) -> Call[Page[Group]]:
    return Call(["DQ.GROUPS", encode(key), *words(options)], _page(lambda one: shaped(Group, one)))


def batches(key: str, options: Mapping[str, Any]) -> Call[Page[Batch]]:
    return Call(["DQ.BATCHES", encode(key), *words(options)], _page(lambda one: shaped(Batch, one)))


def children(key: str, id: str, options: Mapping[str, Any]) -> Call[Page[Child]]:
    return Call(["DQ.CHILDREN", encode(key), encode(id), *words(options)], _page(lambda one: shaped(Child, one)))


def limit(key: str, name: str, options: Mapping[str, Any]) -> Call[None]:
    return Call(["DQ.LIMIT", encode(key), encode(name), *words(options)], nothing)


def limits(key: str, options: Mapping[str, Any]) -> Call[Page[Limit]]:
    return Call(["DQ.LIMITS", encode(key), *words(options)], _page(lambda one: shaped(Limit, one)))


def consumers(key: str) -> Call[list[Consumer]]:
    return Call(["DQ.CONSUMERS", encode(key)], lambda reply: [shaped(Consumer, one) for one in reply])


def explain(key: str, id: str) -> Call[Explanation | None]:
    return Call(
        ["DQ.EXPLAIN", encode(key), encode(id)],
        lambda reply: None if reply is None else shaped(Explanation, reply),
    )


def wait(key: str, id: str, timeout: int) -> Call[tuple[str, str | None] | None]:
    return Call(
        ["DQ.WAIT", encode(key), encode(id), timeout],
        lambda reply: None if reply is None else (text(reply[0]), maybe_text(reply[1])),
    )


def cancel(key: str, ids: Sequence[str]) -> Call[list[str | None]]:
    return Call(
        ["DQ.CANCEL", encode(key), *(encode(id) for id in ids)],
        lambda reply: [maybe_text(state) for state in reply],
    )


def reschedule(key: str, id: str, delay: Millis | None, at: Instant | None) -> Call[bool]:
    return Call(["DQ.RESCHEDULE", encode(key), encode(id), *words({"delay": delay, "at": at})], bool)


def update(key: str, id: str, payload: Payload) -> Call[bool]:
    return Call(["DQ.UPDATE", encode(key), encode(id), encode(payload)], bool)


def signal(key: str, id: str, data: Payload | None) -> Call[bool]:
    return Call(["DQ.SIGNAL", encode(key), encode(id), *words({"data": data})], bool)


def redrive(key: str, ids: Sequence[str], count: int | None) -> Call[int]:
    chosen: list[Word]
    chosen = ["IDS", len(ids), *(encode(id) for id in ids)] if ids else ["ALL", *words({"count": count})]
    return Call(["DQ.REDRIVE", encode(key), *chosen], int)


def purge(key: str, options: Mapping[str, Any]) -> Call[int]:
    return Call(["DQ.PURGE", encode(key), *words(options)], int)


def pause(key: str, options: Mapping[str, Any]) -> Call[None]:
    return Call(["DQ.PAUSE", encode(key), *words(options)], nothing)


def resume(key: str, group: str | None) -> Call[None]:
    return Call(["DQ.RESUME", encode(key), *words({"group": group})], nothing)


def set_group(key: str, group: str, options: Mapping[str, Any]) -> Call[None]:
    return Call(["DQ.GROUPSET", encode(key), encode(group), *words(options)], nothing)


def schedule(key: str, name: str, payload: Payload, options: Mapping[str, Any]) -> Call[int]:
    # The times come first, in this order, and each is left out if it is None.
    times = dict.fromkeys(("cron", "tz", "every", "start"))
    given = words({**times, "payload": payload, **options})
    return Call(["DQ.SCHEDULE", encode(key), encode(name), *given], int)


def unschedule(key: str, name: str) -> Call[bool]:
    return Call(["DQ.UNSCHEDULE", encode(key), encode(name)], bool)


def pause_schedule(key: str, name: str, word: Literal["PAUSE", "RESUME"]) -> Call[bool]:
    return Call(["DQ.SCHEDULES", encode(key), word, encode(name)], bool)


def schedules(key: str) -> Call[list[Schedule]]:
    return Call(["DQ.SCHEDULES", encode(key)], lambda reply: [shaped(Schedule, one) for one in reply])


def tick(key: str, move: Mapping[str, Any]) -> Call[Info]:
    return Call(["DQ.TICK", encode(key), *words(move)], info)
