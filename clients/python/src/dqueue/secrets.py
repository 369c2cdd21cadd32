"""Payloads and headers that only the programs with a key can read: AES-256-GCM, alike in all languages (docs/secrets.md).

    from dqueue.secrets import Secrets

    secrets = Secrets({"2026": key})
    tasks = Tasks(queue, middleware=[secrets])

It needs the extra `secrets`.
"""

import base64
import os
import struct
from collections.abc import Collection, Mapping, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dqueue.protocol.options import encode
from dqueue.working.coding import Coding, bytes_of
from dqueue.working.outcomes import Reject

KEY = "dq-key"
"""The header that names the key of a message."""
SEALED = "dq-sealed:"
"""It comes before the names of headers that are encrypted."""
NONCE = 12
"""Bytes of the nonce, which comes before the encrypted text."""


class Secrets(Coding):
    """A middleware for `Tasks`, `Worker` and both of them for asyncio.

    `keys` are 32 bytes each by their ids. The first one encrypts, and all of them decrypt: to rotate, add a new one everywhere,
    then put it first, and take the old one away when no message has it. `headers` names the headers that are encrypted with the
    payload. The queue and the id of a message are authenticated, so it must have been sent to the queue that it comes from;
    `queues` are others that it may have been sent to before (DEADTO). With `plain`, messages without a key are accepted, too.
    """

    def __init__(
        self,
        keys: Mapping[str, bytes],
        *,
        headers: Collection[str] = (),
        queues: Sequence[str] = (),
        plain: bool = False,
    ) -> None:
        if not keys or any(len(key) != 32 for key in keys.values()):
            raise ValueError("Secrets needs at least one key, and each has 32 bytes")
        self._key = next(iter(keys))
        self._keys = {id: AESGCM(key) for id, key in keys.items()}
        self._headers = frozenset(headers)
        self._queues = list(queues)
        self._plain = plain

    def seal(
        self, queue: str, id: str, payload: str | bytes, headers: Mapping[str, str | bytes] | None = None
    ) -> tuple[bytes, dict[str, str | bytes]]:
        """Returns the payload and the headers of a message of this queue and id, encrypted."""
        sealed: dict[str, str | bytes] = {KEY: self._key}
        for name, value in (headers or {}).items():
            if name in self._headers:
                sealed[SEALED + name] = base64.b64encode(self._encrypt(queue, id, f"header:{name}", encode(value))).decode()
            else:
                sealed[name] = value
        return self._encrypt(queue, id, "payload", encode(payload)), sealed

    def open(
        self, queue: str, id: str, payload: bytes, headers: Mapping[str, str | bytes]
    ) -> tuple[bytes, dict[str, bytes]]:
        """Returns the payload and the headers of a message as they were.

        Raises Reject if this is not what was sent with this id to one of the queues, and LookupError for an unknown key.
        """
        given = bytes_of(headers)
        key = given.pop(KEY, None)
        if key is None:
            if self._plain:
                return payload, given
            raise Reject("the message is not encrypted")
        if key.decode(errors="replace") not in self._keys:
            raise LookupError(f"there is no key {key.decode(errors='replace')!r}")
        cipher = self._keys[key.decode()]
        for one in [queue, *self._queues]:
            try:
                opened = _decrypt(cipher, one, id, "payload", payload)
                fields = {
                    name.removeprefix(SEALED): _decrypt(cipher, one, id, f"header:{name.removeprefix(SEALED)}", base64.b64decode(value))
                    for name, value in given.items()
                    if name.startswith(SEALED)
                }
            except (InvalidTag, ValueError):
                continue
            return opened, {name: value for name, value in given.items() if not name.startswith(SEALED)} | fields
        raise Reject("the message is not what was sent with this id to this queue")

    def _encrypt(self, queue: str, id: str, part: str, text: bytes, nonce: bytes | None = None) -> bytes:
        nonce = nonce or os.urandom(NONCE)
        sealed: bytes = self._keys[self._key].encrypt(nonce, text, _associated(queue, id, part))
        return nonce + sealed


def _decrypt(cipher: AESGCM, queue: str, id: str, part: str, sealed: bytes) -> bytes:
    text: bytes = cipher.decrypt(sealed[:NONCE], sealed[NONCE:], _associated(queue, id, part))
    return text


def _associated(queue: str, id: str, part: str) -> bytes:
    """Returns the data that is authenticated with a text: each part after its length."""
    return b"".join(struct.pack(">I", len(encode(one))) + encode(one) for one in ("dq1", queue, id, part))
