"""Middleware that writes payloads and headers in another form, alike in all languages (docs/secrets.md)."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dqueue.protocol.message import Message
from dqueue.protocol.options import encode
from dqueue.protocol.records import headers as read_headers
from dqueue.protocol.records import pairs
from dqueue.working.middleware import Middleware, Sending

Sealed = tuple[str | bytes, dict[str, str | bytes]]


class Coding(Middleware):
    """A middleware for `Tasks`, `Worker` and both of them for asyncio: encrypted, compressed, kept elsewhere."""

    def seal(
        self, queue: str, id: str, payload: str | bytes, headers: Mapping[str, str | bytes] | None = None
    ) -> Sealed:
        """Returns the payload and the headers of a message of this queue and id as they are sent."""
        raise NotImplementedError

    def open(
        self, queue: str, id: str, payload: bytes, headers: Mapping[str, str | bytes]
    ) -> tuple[bytes, dict[str, bytes]]:
        """Returns the payload and the headers as they were. Raises Reject for a message that can never be read."""
        raise NotImplementedError

    @contextmanager
    def send(self, sending: Sending) -> Iterator[None]:
        sending.id = sending.id or str(uuid.uuid4())
        headers = sending.options.get("headers")
        sending.payload, sending.options["headers"] = self.seal(sending.queue, sending.id, sending.payload, headers)
        yield

    @contextmanager
    def handle(self, message: Message) -> Iterator[None]:
        message.payload, message.headers = self.open(message.queue, message.id, message.payload, message.headers)
        yield


class Layers(Coding):
    """Several codings: what is sent goes through the first one first, and what comes through the last one first.

    Layers(Compression(), Secrets(keys), Offload(store, client))
    """

    def __init__(self, *codings: Coding) -> None:
        self._codings = codings

    def seal(
        self, queue: str, id: str, payload: str | bytes, headers: Mapping[str, str | bytes] | None = None
    ) -> Sealed:
        sealed: Sealed = payload, dict(headers or {})
        for one in self._codings:
            sealed = one.seal(queue, id, *sealed)
        return sealed

    def open(
        self, queue: str, id: str, payload: bytes, headers: Mapping[str, str | bytes]
    ) -> tuple[bytes, dict[str, bytes]]:
        opened = payload, bytes_of(headers)
        for one in reversed(self._codings):
            opened = one.open(queue, id, *opened)
        return opened


def bytes_of(headers: Mapping[str, str | bytes]) -> dict[str, bytes]:
    """Returns headers as a worker has them."""
    return {name: encode(value) for name, value in headers.items()}


def opened(coding: Coding, queue: str, id: str, payload: bytes, meta: Any) -> bytes:
    """Returns the payload of an element of the reply of FETCH ... WITHMETA as it was."""
    given = pairs(meta)["headers"]
    plain, _ = coding.open(queue, id, payload, {} if given is None else read_headers(given))
    return plain


def fatal(error: Exception) -> list[str]:
    """Returns the option of NACK for a message that cannot be opened: a key that is not known here may be known later."""
    return [] if type(error) is LookupError else ["FATAL"]
