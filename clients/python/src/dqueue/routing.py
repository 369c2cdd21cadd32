"""Finds the queue of a family to which a group belongs. See `dqueue.protocol.routing`."""

from dqueue.protocol.routing import (
    SLOTS,
    Layout,
    check_partitions,
    partition,
    queues,
    route,
    slot,
    tags,
)

__all__ = ["SLOTS", "Layout", "check_partitions", "partition", "queues", "route", "slot", "tags"]
