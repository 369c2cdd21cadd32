"""The nodes at which the consumers of a family wait, each with a client of its own.

The client of a cluster closes the connections of a node when it learns of changes. A waiting call must not be cut off by
that, because the messages that it is about to get would be lost until their leases are over.
"""

from collections.abc import Callable
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.retry
import redis.backoff
import redis.retry


class Nodes:
    """The primaries that a client knows, by name. The client of a single server has one node, which is itself."""

    def __init__(self, client: Any, twin: Callable[[Any], Any]) -> None:
        self._client = client
        self._twin = twin
        self._clients: dict[str, Any] = {}
        self.is_cluster = hasattr(client, "nodes_manager")

    def known(self) -> dict[str, Any]:
        """Returns a client for each primary."""
        if not self.is_cluster:
            return {"": self._client}
        primaries = {node.name: node for node in self._client.get_primaries()}
        clients = self._clients
        self._clients = {
            name: clients[name] if name in clients else self._twin(node) for name, node in primaries.items()
        }
        return self._clients


def nodes_of(client: Any) -> Nodes:
    """Returns the nodes of a client."""
    return Nodes(client, _twin)


def nodes_of_asyncio(client: Any) -> Nodes:
    """Returns the nodes of an asyncio client."""
    return Nodes(client, _twin_asyncio)


def _twin(node: Any) -> Any:
    pool = node.redis_connection.connection_pool
    settings = {**pool.connection_kwargs, "retry": redis.retry.Retry(redis.backoff.NoBackoff(), 0)}
    return redis.Redis(connection_pool=redis.ConnectionPool(pool.connection_class, **settings))


def _twin_asyncio(node: Any) -> Any:
    retry = redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 0)
    settings = {**node.connection_kwargs, "retry": retry}
    pool = redis.asyncio.ConnectionPool(node.connection_class, **settings)
    return redis.asyncio.Redis(connection_pool=pool)
