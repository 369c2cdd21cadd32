"""Queues, families, tasks and workers for asyncio. `dqueue.asyncio` is their public name.

tools/async_to_sync.py makes those modules of `dqueue._sync` that say so in their first line. The others differ from the modules
here in how they wait, and are written by hand in both folders.
"""
