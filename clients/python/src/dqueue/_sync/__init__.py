"""Queues, families, tasks and workers for threads. `dqueue` is their public name. See `dqueue._async`."""
