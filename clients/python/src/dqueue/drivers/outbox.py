"""The outbox: messages are written to a table in the caller's transaction, and sent to the server after its commit.

A row has the words of its DQ.SEND, with an ID, so to send it again adds nothing (DEDUP). No lock is needed for that, and
none for the order of a group: everybody who sends a row of a group has sent the older rows of the group before, in the order
of `seq`. So the first send of each message comes after the first send of those before it, however many send them.
"""

import base64
import hashlib
import json
import logging
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Protocol

from dqueue._sync.confirming import Confirming
from dqueue._sync.queue import Queue
from dqueue.protocol.client import Client
from dqueue.protocol.durable import Durable, durable_of
from dqueue.protocol.options import Millis, Word, encode, millis, words
from dqueue.protocol.retrying import is_transient

HOUR = 3_600_000
BATCH = 100
"""The number of rows that are read, and sent in as few writes as their groups allow."""
BLOCKED = 1000
"""The number of lines that the server may refuse until a pass over the table ends."""
POLL = 0.5
"""Seconds between two looks at the table. Rows are sent at once by the process that commits them, if that lives."""

_log = logging.getLogger("dqueue.outbox")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table. docs/outbox.md has its columns, which are the same in all languages."""

    seq: int | None
    message_id: str
    queue: str
    line: str
    """The hash of what is sent in order: of the group, or of the id if there is none."""
    message: str
    """JSON: the payload as text or in base64, and the other words of DQ.SEND."""

    @classmethod
    def of(cls, queue: str, payload: str | bytes, id: str | None, options: Mapping[str, Any]) -> "Row":
        """Makes the row of a message. `options` are those of `Queue.send`. Times count from now."""
        id = id or str(uuid.uuid4())
        given = {"id": id, **options}
        delay = given.pop("delay", None)
        if delay is not None:
            given["at"] = time.time_ns() // 1_000_000 + millis(delay)
        group = given.get("group")
        line = [encode(queue), b"group", encode(group)] if group is not None else [encode(queue), b"id", encode(id)]
        message = json.dumps({"payload": _written(payload), "words": [_written(word) for word in words(given)]})
        return cls(None, id, queue, hashlib.sha256(b"\0".join(line)).hexdigest()[:32], message)

    def command(self) -> list[Word]:
        """Returns the DQ.SEND."""
        written = json.loads(self.message)
        return ["DQ.SEND", encode(self.queue), *map(_read, [written["payload"], *written["words"]])]


def _written(word: Word) -> str | dict[str, str]:
    """Returns a word for JSON, which has no bytes: text, or an object with the bytes in base64."""
    word = encode(word) if isinstance(word, str | bytes) else str(word).encode()
    try:
        return word.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(word).decode()}


def _read(written: Any) -> bytes:
    return base64.b64decode(written["base64"]) if isinstance(written, dict) else str(written).encode()


class Rows(Protocol):
    """The table, in the database of a framework."""

    def read(self, *, lines: Sequence[str] = (), but: Sequence[str] = ()) -> list[Row]:
        """Returns the oldest BATCH committed rows, only those of some lines, or without those of some."""

    def delete(self, rows: Sequence[Row]) -> None:
        """Deletes rows by seq and id, in a transaction of its own."""

    def close(self) -> None:
        """Gives up a connection that may be broken, so that the next call opens another one."""


class Outbox:
    """Sends the rows of a table.

    `options` are those of queues that are not there yet. `dedup` is how long (ms) the server knows an id after its message has
    ended; a queue that knows ids for a shorter time is changed. It must be longer than a program that sends rows may be stopped.
    With `durable` a row is deleted only when its message is confirmed (`Queue`).
    """

    def __init__(
        self,
        client: Client,
        rows: Rows,
        *,
        dedup: Millis = HOUR,
        durable: bool | Durable = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._client = client
        self._rows = rows
        self._dedup = millis(dedup)
        self._durable = durable_of(durable, client)
        self._nodes = Confirming(client, self._durable or Durable())
        self._create = words({**(options or {}), "dedup": self._dedup})
        self._begun: set[str] = set()
        self._refused: set[str] = set()
        self._rests_until = 0.0

    def committed(self, lines: Iterable[str]) -> None:
        """Sends the committed rows of these lines. It never raises: what cannot be sent now is left to a relay."""
        if time.monotonic() < self._rests_until:
            return
        found = list(dict.fromkeys(lines))
        try:
            for start in range(0, len(found), BATCH):
                self._send(self._rows.read(lines=found[start : start + BATCH]), set())
        except Exception as error:
            # Others who commit in this second do not wait for a server that does not answer.
            self._rests_until = time.monotonic() + 1
            _log.warning("messages of the outbox are left to a relay: %s", error)

    def relay(self) -> int:
        """Sends all rows. Returns how many. Errors of the database, and of the server that may pass, are raised."""
        blocked: set[str] = set()
        sent = 0
        while len(blocked) < BLOCKED:
            # Each read begins with the oldest row. A transaction that was slow may have committed rows older than those sent.
            rows = self._rows.read(but=sorted(blocked))
            sent += self._send(rows, blocked)
            if len(rows) < BATCH:
                break
        return sent

    def run(self, stop: threading.Event) -> None:
        """Sends rows until `stop` is set. Any number of relays may run at once, and lost connections do not end them."""
        failures = 0
        while not stop.wait(min(POLL * 2**failures, 2.0)):
            try:
                self.relay()
                failures = 0
            except Exception as error:
                failures = min(failures + 1, 4)
                _log.warning("the relay of the outbox goes on: %s", error)
                self._rows.close()
        self._rows.close()

    def _send(self, rows: Sequence[Row], blocked: set[str]) -> int:
        """Sends rows and deletes those that the server has. Adds the lines of those that it refuses to `blocked`."""
        read_at, sent = time.monotonic(), list[Row]()
        try:
            for some in _rounds(rows):
                if (time.monotonic() - read_at) * 1000 > self._dedup / 2:
                    # This program was stopped. Others may have sent these rows, so long ago that their ids may be forgotten.
                    break
                for queue, of_queue in _by_queue(row for row in some if row.line not in blocked).items():
                    sent += self._send_to(queue, of_queue, blocked)
        finally:
            if sent:
                self._rows.delete(sent)
        return len(sent)

    def _send_to(self, queue: str, rows: Sequence[Row], blocked: set[str]) -> list[Row]:
        """Sends rows of different lines to a queue, in one write."""
        self._begin(queue)
        # The queue is made anew where the server has lost it.
        commands: list[list[Word]] = [["DQ.CREATE", encode(queue), "NX", *self._create], *(row.command() for row in rows)]
        if self._durable:
            commands.append(self._durable.words)
        replies = self._nodes.pipelined(encode(queue), commands)
        if self._durable:
            self._durable.check(replies[-2], replies[-1])
        sent = []
        for row, reply in zip(rows, replies[1:], strict=False):
            if not isinstance(reply, Exception):
                # None: the server has it already.
                sent.append(row)
                continue
            if is_transient(reply):
                # A row that was sent is sent again, which adds nothing.
                raise reply
            blocked.add(row.line)
            if row.message_id not in self._refused and len(self._refused) < BLOCKED:
                self._refused.add(row.message_id)
                _log.error("%s refuses the message %s of the outbox, which stays there: %s", queue, row.message_id, reply)
        return sent

    def _begin(self, queue: str) -> None:
        """Has a queue remember ids for long enough. It is asked once in this process."""
        if queue in self._begun:
            return
        self._client.execute_command("DQ.CREATE", encode(queue), "NX", *self._create)
        verbs = Queue(self._client, queue)
        if int(str(verbs.info()["dedup"])) < self._dedup:
            verbs.alter(dedup=self._dedup)
        self._begun.add(queue)


def _rounds(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yields rows in lists that have one row of a line, in order."""
    by_line: dict[str, list[Row]] = {}
    for row in rows:
        by_line.setdefault(row.line, []).append(row)
    for some in zip_longest(*by_line.values()):
        yield [row for row in some if row is not None]


def _by_queue(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.queue, []).append(row)
    return found
