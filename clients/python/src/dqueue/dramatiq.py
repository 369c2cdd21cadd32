"""A broker for Dramatiq. See `dqueue.drivers.dramatiq`."""

from dqueue.drivers.dramatiq import DqBroker, DqConsumer, DqMessage, effects

__all__ = ["DqBroker", "DqConsumer", "DqMessage", "effects"]
