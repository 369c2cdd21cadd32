"""A broker for Dramatiq. See `dqueue.drivers.dramatiq`."""

from dqueue.drivers.dramatiq import DqBroker, DqConsumer, DqMessage

__all__ = ["DqBroker", "DqConsumer", "DqMessage"]
