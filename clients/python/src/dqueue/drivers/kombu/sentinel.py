"""A channel that asks Sentinels for the primary."""

from typing import Any

from kombu.transport import redis as kombu_redis

from dqueue.drivers.kombu.channel import Channel
from dqueue.drivers.kombu.connection import Hasty


class HastyConnection(Hasty, kombu_redis.SentinelChannel.connection_class):
    """A connection to the primary."""


class HastySSLConnection(Hasty, kombu_redis.SentinelChannel.connection_class_ssl):
    """A connection like the one above, over TLS."""


class SentinelChannel(Channel, kombu_redis.SentinelChannel):
    """A channel of dq with the connections of kombu's Sentinel transport."""

    connection_class = HastyConnection
    connection_class_ssl = HastySSLConnection

    from_transport_options = tuple(
        dict.fromkeys(Channel.from_transport_options + kombu_redis.SentinelChannel.from_transport_options)
    )

    def _sentinel_managed_pool(self, asynchronous: bool = False) -> Any:
        # The addresses are read from URLs, of which only those of the scheme sentinel:// count.
        client = self.connection.client
        given = client.alt
        client.alt = [url.replace("dq-sentinel://", "sentinel://", 1) for url in given]
        try:
            return super()._sentinel_managed_pool(asynchronous)
        finally:
            client.alt = given
