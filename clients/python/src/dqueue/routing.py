"""Which queue of a family a group belongs to. See `dqueue.protocol.routing`."""

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
