"""Queues, families, tasks and workers for asyncio. `dqueue.asyncio` is their public name.

tools/async_to_sync.py makes caller, queue, family, settling and tasks of `dqueue._sync` from the modules of these names here.
The other modules differ in how they wait, and are written by hand in both folders.
"""
