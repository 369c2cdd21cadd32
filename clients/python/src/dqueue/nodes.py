"""The nodes at which the consumers of a family wait, each with a client of its own.

The client of a cluster closes the connections of a node when it learns of changes. A waiting call must not be cut off by
that, because the messages that it is about to get would be lost until their leases are over.
"""

from abc import ABC, abstractmethod
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.retry
import redis.backoff
import redis.retry


class KnownNodes(ABC):
    """The primaries of a client, by name. The client of a single server has one node, which is itself."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._clients: dict[str, Any] = {}
        self.is_cluster = hasattr(client, "nodes_manager")

    def known(self) -> dict[str, Any]:
        """Returns a client for each primary."""
        if not self.is_cluster:
            return {"": self._client}
        primaries = {node.name: node for node in self._client.get_primaries()}
        clients = self._clients
        self._clients = {
            name: clients[name] if name in clients else self._client_of(node) for name, node in primaries.items()
        }
        return self._clients

    @abstractmethod
    def _client_of(self, node: Any) -> Any:
        """Returns a new client for a node, which itself repeats nothing."""


class Nodes(KnownNodes):
    """The nodes of a client."""

    def connect(self) -> None:
        """Does nothing, because the client of a cluster knows its nodes from the start."""

    def _client_of(self, node: Any) -> Any:
        pool = node.redis_connection.connection_pool
        settings = {**pool.connection_kwargs, "retry": redis.retry.Retry(redis.backoff.NoBackoff(), 0)}
        return redis.Redis(connection_pool=redis.ConnectionPool(pool.connection_class, **settings))


class AsyncNodes(KnownNodes):
    """The nodes of an asyncio client."""

    async def connect(self) -> None:
        """Connects the client of a cluster, which does not know any node before that."""
        if self.is_cluster:
            await self._client.initialize()

    def _client_of(self, node: Any) -> Any:
        retry = redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 0)
        settings = {**node.connection_kwargs, "retry": retry}
        pool = redis.asyncio.ConnectionPool(node.connection_class, **settings)
        return redis.asyncio.Redis(connection_pool=pool)
