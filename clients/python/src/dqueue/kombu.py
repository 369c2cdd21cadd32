"""A transport for kombu and Celery. Importing this module makes dq:// known. See `dqueue.drivers.kombu`."""

from dqueue.drivers.kombu import (
    Channel,
    QoS,
    SecureTransport,
    SentinelTransport,
    Tag,
    Transport,
    effects,
)

__all__ = ["Channel", "QoS", "SecureTransport", "SentinelTransport", "Tag", "Transport", "effects"]
