"""A broker and a source of schedules for taskiq. See `dqueue.drivers.taskiq`."""

from dqueue.drivers.taskiq import DqBroker, effects
from dqueue.drivers.taskiqschedules import DqScheduleSource

__all__ = ["DqBroker", "DqScheduleSource", "effects"]
