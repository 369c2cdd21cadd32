"""Large payloads that are kept elsewhere, such as in S3, alike in all languages (docs/secrets.md)."""

import contextlib
import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dqueue._sync.queue import Queue
from dqueue.protocol.options import encode
from dqueue.protocol.records import text
from dqueue.working.coding import Coding, Sealed, bytes_of

OFFLOAD = "dq-offload"
"""The header with the key of a payload in the store."""
WEEK = 7 * 24 * 3_600_000
_MOST_OPENED = 100
"""The payloads that are remembered after they were opened."""


class Store(Protocol):
    """Where the payloads are kept."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, payload: bytes) -> None: ...
    def delete(self, key: str) -> None: ...


class Offload(Coding):
    """Keeps payloads of more than `above` bytes in `store`. `client` is a client of redis-py.

    A worker deletes what it has opened when the record is gone. The sorted set `<queue>:offload` lists all, so that `sweep` finds the
    others. `queues` are other queues that
    messages may have gone to (DEADTO).
    """

    def __init__(self, store: Store, client: Any, *, above: int = 64 * 1024, queues: Sequence[str] = ()) -> None:
        self._store, self._client, self._above, self._queues = store, client, above, list(queues)
        self._opened: OrderedDict[str, str] = OrderedDict()

    def seal(
        self, queue: str, id: str, payload: str | bytes, headers: Mapping[str, str | bytes] | None = None
    ) -> Sealed:
        plain = encode(payload)
        if len(plain) <= self._above:
            return payload, dict(headers or {})
        key = f"{queue}/{id}/{uuid.uuid4()}"
        # It is listed before it is there, so that nothing stays that no list has.
        self._client.zadd(f"{queue}:offload", {key: _now()})
        self._store.put(key, plain)
        self._look_back()
        return b"", {**(headers or {}), OFFLOAD: key}

    def open(
        self, queue: str, id: str, payload: bytes, headers: Mapping[str, str | bytes]
    ) -> tuple[bytes, dict[str, bytes]]:
        given = bytes_of(headers)
        key = given.pop(OFFLOAD, None)
        if key is None:
            return payload, given
        kept = self._store.get(key.decode())
        if kept is None:
            raise LookupError(f"the store has no {key.decode()!r}")
        self._look_back()
        # One that was sent to another queue is left to `sweep`.
        if key.startswith(encode(f"{queue}/{id}/")):
            self._opened[key.decode()] = queue
        return kept, given

    def sweep(self, queue: str, *, after: int = WEEK) -> int:
        """Deletes the payloads whose messages and records are gone. Returns how many.

        Only those that were put, or found to be needed, more than `after` ms ago are looked at: a message must have reached
        its queue within that time. Run it now and then, in one program.
        """
        deleted = 0
        listed = f"{queue}:offload"
        for one in self._client.zrangebyscore(listed, 0, _now() - after):
            if self._goes(queue, text(one)):
                deleted += 1
            else:
                self._client.zadd(listed, {one: _now()})
        return deleted

    def _look_back(self) -> None:
        """Deletes up to two payloads that were opened here before, if their messages and records are gone by now."""
        # What fails here is left to `sweep`.
        with contextlib.suppress(Exception):
            for _ in range(min(2, len(self._opened))):
                key, queue = self._opened.popitem(last=False)
                # A dead message may have taken it along.
                if Queue(self._client, queue).info().get("deadto") not in (None, "", b"", *self._queues):
                    continue
                if not self._goes(queue, key) and len(self._opened) < _MOST_OPENED:
                    self._opened[key] = queue

    def _goes(self, queue: str, key: str) -> bool:
        """Deletes a payload, if no message and no record needs it. Returns whether it did."""
        id = key.removeprefix(f"{queue}/").rpartition("/")[0]
        records = (Queue(self._client, name).get(id) for name in [queue, *self._queues])
        if any(record and encode((record.headers or {}).get(OFFLOAD, "")) == encode(key) for record in records):
            return False
        self._store.delete(key)
        self._client.zrem(f"{queue}:offload", key)
        return True


def _now() -> int:
    return time.time_ns() // 1_000_000
