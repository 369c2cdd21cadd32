"""Messages of kombu as messages of dq: options of DQ.SEND, and the changes at a delivery."""

from collections.abc import Iterable
from datetime import UTC, datetime
from math import ceil
from time import time
from traceback import walk_tb
from typing import Any

from kombu.log import get_logger
from kombu.transport import virtual
from kombu.utils.json import dumps, loads

from dqueue.protocol.options import Word

logger = get_logger("dqueue.kombu")

MAX_TYPE = 1024
"""The most bytes of a message's type. A longer name of a task is left out."""


MISREAD = (TypeError, ValueError, LookupError, AttributeError)
POOLS = ("celery.concurrency", "billiard", "concurrent", "gevent", "eventlet")


class Tag(str):
    """The delivery tag of one delivery. It knows what the server needs to settle the message."""

    queue: str
    receipt: int
    id: str
    is_lost = False
    """Whether the task has taken its process with it."""

    @classmethod
    def of(cls, queue: str, receipt: int, id: str) -> "Tag":
        # The receipt makes it unique even where one process has two deliveries of a message.
        tag = cls(f"{id}:{receipt}")
        tag.queue, tag.receipt, tag.id = queue, receipt, id
        return tag


def by_queue(tags: Iterable[Tag]) -> list[list[Tag]]:
    """Returns the tags of each queue."""
    found: dict[str, list[Tag]] = {}
    for tag in tags:
        found.setdefault(tag.queue, []).append(tag)
    return [*found.values()]


class DueHeaders(dict[str, Any]):
    """The headers of a task whose eta the server has waited for.

    A Celery worker that reads the eta would put the task on a timer and raise its prefetch count meanwhile, so `get`
    hides it. It stays in the dictionary, so the task can still read `request.eta`.
    """

    def get(self, key: str, default: Any = None) -> Any:
        return default if key == "eta" else super().get(key, default)

    def copy(self) -> "DueHeaders":
        return DueHeaders(self)


def sending(
    key: str, message: dict[str, Any], priority: int, knows_expireat: bool, lost_workers: int
) -> list[Word]:
    """Returns DQ.SEND with its arguments."""
    properties = message["properties"]
    # The tag is new for each publication. A task's id is not, because a retry has it again.
    words: list[Word] = ["DQ.SEND", key, dumps(message), "ID", properties["delivery_tag"]]
    # Frameworks count attempts themselves.
    words += ["RETRIES", -1]
    if lost_workers:
        words += ["MAXTIMEOUTS", lost_workers]
    if priority:
        words += ["PRIORITY", priority]
    headers = message.get("headers") or {}
    at = _eta(headers)
    if at is not None:
        words += ["AT", at]
    words += _expiry(properties, at, knows_expireat)
    name = headers.get("task")
    if isinstance(name, str) and 0 < len(name.encode()) <= MAX_TYPE:
        words += ["TYPE", name]
    return words


def delivered(body: bytes | str, tag: Tag, attempt: int) -> dict[str, Any]:
    """Returns the message of a delivery. Raises any error where kombu has not written it."""
    payload: dict[str, Any] = loads(body.decode() if isinstance(body, bytes) else body)
    properties = payload["properties"]
    properties["delivery_tag"] = tag
    # A part of another type would end a worker of Celery, which takes it for granted.
    for part in (payload.get("headers"), properties.get("delivery_info")):
        if not isinstance(part, dict | None):
            raise TypeError(f"{part!r:.100} is no map")
    for name in ("body", "content-type", "content-encoding"):
        if not isinstance(payload.get(name), str | None):
            raise TypeError(f"{name} is no text")
    # Celery reads these when a process is free, where nothing knows any more that the message is the cause.
    match payload.get("headers") or {}:
        case {"timelimit": limits} if not is_pair_of_times(limits):
            raise TypeError(f"{limits!r:.100} are no time limits")
        case {"stamped_headers": names} if not isinstance(names, list | None):
            raise TypeError(f"{names!r:.100} are no names of headers")
        case {"stamps": stamps} if not isinstance(stamps, dict | None):
            raise TypeError(f"{stamps!r:.100} are no stamps")
    if attempt > 1:
        _mark_redelivered(payload)
    if _eta(payload.get("headers") or {}) is not None:
        payload["headers"] = DueHeaders(payload["headers"])
    return payload


def is_pair_of_times(limits: Any) -> bool:
    match limits:
        case None | [int() | float() | None, int() | float() | None]:
            return True
    return False


def is_misread(payload: dict[str, Any], error: Exception) -> bool:
    """Returns whether Celery has failed to read a task: it takes the types of its parts for granted.

    An error of the pool, such as one that closes, says nothing about the message.
    """
    if "task" not in (payload.get("headers") or {}) or not isinstance(error, MISREAD):
        return False
    *_, (raised, _) = walk_tb(error.__traceback__)
    return not raised.f_globals.get("__name__", "").startswith(POOLS)


class Message(virtual.Message):
    """A message of kombu. One whose body cannot be read is rejected where Celery acks it: it would be gone."""

    is_read = True

    def _decode(self) -> Any:
        try:
            return super()._decode()
        except Exception:
            self.is_read = False
            raise

    def ack(self, multiple: bool = False) -> None:
        if self.is_read and not self.errors:
            super().ack(multiple=multiple)
        else:
            self.reject()


def _eta(headers: dict[str, Any]) -> int | None:
    """Returns the time (Unix ms) of Celery's header eta. Like Celery it takes one without a zone for UTC."""
    eta = dict.get(headers, "eta")
    if not isinstance(eta, str):
        return None
    try:
        moment = datetime.fromisoformat(eta)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0, ceil(aware.timestamp() * 1000))
    except (OverflowError, ValueError):
        # The worker reports the error, when it gets the task.
        return None


def _expiry(properties: dict[str, Any], at: int | None, knows_expireat: bool) -> list[Word]:
    """Returns the option for a message with an expiration (ms), which counts from the send."""
    try:
        expiration = max(1, int(properties["expiration"]))
    except (KeyError, TypeError, ValueError):
        return []
    # A TTL counts from the due time. For a message that is due now it needs no clock but the server's.
    if at is None:
        return ["TTL", expiration]
    now = int(time() * 1000)
    return ["EXPIREAT", now + expiration] if knows_expireat else ["TTL", max(1, now + expiration - max(at, now))]


def _mark_redelivered(payload: dict[str, Any]) -> None:
    for marked in (payload.get("headers"), payload["properties"].get("delivery_info")):
        if isinstance(marked, dict):
            marked["redelivered"] = True


def redelivered(message: Any, tag: Tag) -> str | None:
    """Returns the payload with the mark, or None if there is nothing to mark. The message stays as it is."""
    raw = getattr(message, "_raw", None)
    if raw is None:
        return None
    try:
        properties = {**raw["properties"], "delivery_tag": tag.id}
        copy = {**raw, "properties": properties}
        for place, name in ((copy, "headers"), (properties, "delivery_info")):
            if isinstance(place.get(name), dict):
                place[name] = {**place[name]}
        _mark_redelivered(copy)
        payload: str = dumps(copy)
    except Exception:
        # The message is given back unchanged, even if a callback has changed it.
        logger.warning("%s of queue %s cannot be marked as redelivered", tag.id, tag.queue, exc_info=True)
        return None
    return payload
