"""The decisions of a worker, whether its handlers run in threads or in tasks of asyncio. Nothing here does I/O."""
