"""The records, which programs import from `dqueue`. The name of this module may be in what they have pickled."""

from dqueue.protocol.records import (
    Batch,
    Child,
    Consumer,
    Explanation,
    FailedAttempt,
    Group,
    Info,
    Limit,
    Record,
    Schedule,
    Window,
)

__all__ = [
    "Batch",
    "Child",
    "Consumer",
    "Explanation",
    "FailedAttempt",
    "Group",
    "Info",
    "Limit",
    "Record",
    "Schedule",
    "Window",
]
