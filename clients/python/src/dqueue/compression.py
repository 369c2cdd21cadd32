"""Payloads that are compressed by zstd, alike in all languages (docs/secrets.md). It needs the extra `zstd` before Python 3.14."""

import sys
from collections.abc import Mapping

from dqueue.protocol.options import encode
from dqueue.working.coding import Coding, Sealed, bytes_of
from dqueue.working.outcomes import Reject

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ENCODING = "dq-encoding"
"""The header that says how a payload is compressed."""


class Compression(Coding):
    """Compresses payloads of at least `above` bytes, if that makes them smaller.

    A payload that would have more than `most` bytes is rejected: a small message could fill the memory of a worker.
    """

    def __init__(self, *, above: int = 1024, most: int = 64 * 2**20, level: int = 3) -> None:
        self._above, self._most, self._level = above, most, level

    def seal(
        self, queue: str, id: str, payload: str | bytes, headers: Mapping[str, str | bytes] | None = None
    ) -> Sealed:
        plain = encode(payload)
        packed = zstd.compress(plain, self._level) if len(plain) >= self._above else plain
        if len(packed) >= len(plain):
            return payload, dict(headers or {})
        return packed, {**(headers or {}), ENCODING: "zstd"}

    def open(
        self, queue: str, id: str, payload: bytes, headers: Mapping[str, str | bytes]
    ) -> tuple[bytes, dict[str, bytes]]:
        given = bytes_of(headers)
        encoding = given.pop(ENCODING, None)
        if encoding is None:
            return payload, given
        if encoding != b"zstd":
            raise LookupError(f"the encoding {encoding!r} is not known")
        unpacking = zstd.ZstdDecompressor()
        try:
            plain = unpacking.decompress(payload, max_length=self._most + 1)
        except zstd.ZstdError as error:
            raise Reject(f"the payload is not what zstd has compressed: {error}") from error
        if len(plain) > self._most or not unpacking.eof:
            raise Reject(f"the payload is cut off or has more than {self._most} bytes")
        return plain, given
