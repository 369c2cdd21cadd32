"""The errors that are worth another try, and the time of that try."""

import random
from collections.abc import Iterator

from redis import exceptions

_PERMANENT = tuple(
    getattr(exceptions, name)
    for name in ("AuthenticationError", "AuthorizationError", "MaxConnectionsError")
    if hasattr(exceptions, name)
)
_TRANSIENT = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
    exceptions.ClusterError,
    # While a cluster elects or moves slots: no node answers, a slot has no owner, or the nodes do not agree.
    exceptions.RedisClusterException,
    OSError,
)


def is_transient(error: BaseException) -> bool:
    """Returns whether another try can help: after a lost connection, while a server loads, or during a failover."""
    if isinstance(error, _PERMANENT):
        return False
    # A primary that becomes a replica replies with this word to its blocked clients.
    return isinstance(error, _TRANSIENT) or str(error).startswith("UNBLOCKED")


def pauses(lease: float | None = None) -> Iterator[float]:
    """Yields the seconds to wait before each further try. They double up to 2 s and are partly random.

    For what must be said before a lease (ms) ends they are at most a twentieth of it.
    """
    pause, most = 0.02, 2.0 if lease is None else min(2.0, lease / 20_000)
    while True:
        yield min(pause, most) * random.uniform(0.5, 1)
        pause = min(pause * 2, 2.0)
