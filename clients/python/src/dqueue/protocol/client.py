"""The methods of a client of redis-py that a queue needs, and the longest time of a blocking call over it."""

import inspect
from typing import Any, Protocol


class Client(Protocol):
    """The methods of a client that a Queue needs: `redis.Redis`, `redis.RedisCluster` or a Sentinel's
    `master_for()`.
    """

    def execute_command(self, *args: Any) -> Any: ...


class AsyncClient(Protocol):
    """The methods of a client that a Queue for asyncio needs. Their replies are awaited."""

    def execute_command(self, *args: Any) -> Any: ...


def socket_timeout(client: Any) -> float | None:
    """Returns the seconds after which the client gives up on a reply. None means never, or unknown."""
    settings: dict[str, Any] = getattr(client, "get_connection_kwargs", dict)()
    if "socket_timeout" in settings:
        given: float | None = settings["socket_timeout"]
        return given
    # A pool that was made without a timeout has the default of the connection, which differs between releases.
    pool = getattr(client, "connection_pool", None)
    known = inspect.signature(pool.connection_class).parameters.get("socket_timeout") if pool else None
    default: float | None = None if known is None or known.default is known.empty else known.default
    return default


def check_block(client: Any, block: int | None) -> None:
    """Refuses a BLOCK longer than the socket timeout. A late reply would be lost, with the messages that it leases."""
    limit = socket_timeout(client)
    if block is not None and limit is not None and (block == 0 or block >= limit * 1000):
        raise ValueError(f"block={block} ms does not fit into the client's socket_timeout of {limit} s")
