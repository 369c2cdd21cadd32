"""The transport, and how it waits for messages."""

import ssl
from typing import Any

from kombu.log import get_logger
from kombu.transport import redis as kombu_redis

from dqueue.drivers.kombu.channel import Channel
from dqueue.drivers.kombu.connection import Place
from dqueue.drivers.kombu.lost import mark_lost_tasks
from dqueue.drivers.kombu.older import IS_OLDER, forget_lost_connections
from dqueue.drivers.kombu.sentinel import SentinelChannel

logger = get_logger("dqueue.kombu")


class Poller(kombu_redis.MultiChannelPoller):
    """Waits for the connections of all channels, and sends their heartbeats."""

    def get(self, callback: Any, timeout: float | None = None) -> Any:
        self.keep_leases()
        return super().get(callback, timeout)

    def maybe_restore_messages(self) -> None:
        """The server itself makes the messages of a lost worker available again."""

    def keep_leases(self) -> None:
        for channel in [*self._channels]:
            try:
                channel.keep_leases()
                if IS_OLDER:
                    # kombu's own loop does this since 5.7.
                    channel.maybe_refresh_binding_expiry()
            except (*channel.connection_errors, ValueError):
                # ValueError: a worker that stops has closed the connection in another thread.
                logger.debug("no connection for a heartbeat, the next one tries again", exc_info=True)


class Transport(kombu_redis.Transport):
    """`dq://host:port/db`"""

    Channel = Channel
    driver_name = "dq"
    # Mingle, gossip, fan-out of events and worker_disable_prefetch depend on the driver_type "redis", which is
    # inherited.

    in_event_loop = False
    loop: Any = None
    """The event loop, if the program has one."""

    known_options: frozenset[str] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.place = Place()
        self.cycle = Poller()

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        super().register_with_event_loop(connection, loop)
        self.in_event_loop = True
        mark_lost_tasks()
        self.loop = loop
        # The timer of the Redis transport would search for messages to restore. This one sends the heartbeats.
        if IS_OLDER:
            forget_lost_connections(self.cycle, loop)
        else:
            self.cycle._restore_messages_tref.cancel()
        options = connection.client.transport_options
        lease = options.get("visibility_timeout", Channel.visibility_timeout)
        grace = options.get("bind_grace", Channel.bind_grace) or lease
        beat = max(min(lease, grace) / 3, 0.01)
        self.cycle._restore_messages_tref = loop.call_repeatedly(beat, self.cycle.keep_leases)


class SecureTransport(Transport):
    """`dqs://host:port/db`: over TLS. The server's certificate is checked unless the URL or broker_use_ssl say other."""

    def __init__(self, client: Any, **kwargs: Any) -> None:
        client.ssl = client.ssl if isinstance(client.ssl, dict) else {"ssl_cert_reqs": ssl.CERT_REQUIRED}
        super().__init__(client, **kwargs)


class SentinelTransport(Transport):
    """`dq-sentinel://host:26379;dq-sentinel://host2:26379`: at the primary that the Sentinels name.

    The options are those of kombu's transport `sentinel://`, among them `master_name`.
    """

    Channel = SentinelChannel
    default_port = 26379
