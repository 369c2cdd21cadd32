"""A transport for kombu and Celery: `broker_url = "dq://host:port/db"`, `dqs://` for TLS, `dq-sentinel://` for Sentinels.

Importing this module makes the URL schemes known. Exchanges, bindings, fan-out (events, remote control, mingle,
gossip) and the connections are those of kombu's Redis transport. The queues are dq's: priorities, due times, leases,
redelivery and expiry are the server's work, and no worker polls or sweeps.

    import dqueue.kombu  # noqa: F401
    app = Celery("shop", broker="dq://localhost:6379/0", backend="redis://localhost:6379/1")
"""

from kombu.transport import TRANSPORT_ALIASES

from dqueue.drivers.kombu.channel import Channel
from dqueue.drivers.kombu.effects import effects
from dqueue.drivers.kombu.messages import Tag
from dqueue.drivers.kombu.qos import QoS
from dqueue.drivers.kombu.transport import SecureTransport, SentinelTransport, Transport

__all__ = ["Channel", "QoS", "SecureTransport", "SentinelTransport", "Tag", "Transport", "effects"]

TRANSPORT_ALIASES["dq"] = "dqueue.kombu:Transport"
TRANSPORT_ALIASES["dqs"] = "dqueue.kombu:SecureTransport"
TRANSPORT_ALIASES["dq-sentinel"] = "dqueue.kombu:SentinelTransport"
