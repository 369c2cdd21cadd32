"""Large payloads that are kept elsewhere, such as in S3, alike in all languages (docs/secrets.md)."""

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dqueue._sync.queue import Queue
from dqueue.protocol.options import encode
from dqueue.protocol.records import text
from dqueue.working.coding import Coding, Sealed, bytes_of

OFFLOAD = "dq-offload"
"""The header with the key of a payload in the store."""
WEEK = 7 * 24 * 3_600_000


class Store(Protocol):
    """Where the payloads are kept."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, payload: bytes) -> None: ...
    def delete(self, key: str) -> None: ...


class Offload(Coding):
    """Keeps payloads of more than `above` bytes in `store`. `client` is a client of redis-py.

    The sorted set `<queue>:offload` lists them, so that `sweep` finds those whose record is gone. `queues` are other queues that
    messages may have gone to (DEADTO).
    """

    def __init__(self, store: Store, client: Any, *, above: int = 64 * 1024, queues: Sequence[str] = ()) -> None:
        self._store, self._client, self._above, self._queues = store, client, above, list(queues)

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
        return kept, given

    def sweep(self, queue: str, *, after: int = WEEK) -> int:
        """Deletes the payloads whose messages and records are gone. Returns how many.

        Only those that were put, or found to be needed, more than `after` ms ago are looked at: a message must have reached
        its queue within that time. Run it now and then, in one program.
        """
        deleted = 0
        listed = f"{queue}:offload"
        for one in self._client.zrangebyscore(listed, 0, _now() - after):
            key = text(one)
            id = key.removeprefix(f"{queue}/").rpartition("/")[0]
            records = (Queue(self._client, name).get(id) for name in [queue, *self._queues])
            if any(record and encode((record.headers or {}).get(OFFLOAD, "")) == encode(key) for record in records):
                self._client.zadd(listed, {key: _now()})
                continue
            self._store.delete(key)
            self._client.zrem(listed, key)
            deleted += 1
        return deleted


def _now() -> int:
    return time.time_ns() // 1_000_000
