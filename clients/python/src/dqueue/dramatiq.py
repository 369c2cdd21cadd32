"""A broker for Dramatiq. See `dqueue.drivers.dramatiq`."""

from dqueue.drivers.dramatiq import DqBroker, effects
from dqueue.drivers.dramatiqconsumer import DqConsumer, DqMessage

__all__ = ["DqBroker", "DqConsumer", "DqMessage", "effects"]
