"""A broker and a source of schedules for taskiq. See `dqueue.drivers.taskiq`."""

from dqueue.drivers.taskiq import DqBroker, DqScheduleSource, effects

__all__ = ["DqBroker", "DqScheduleSource", "effects"]
