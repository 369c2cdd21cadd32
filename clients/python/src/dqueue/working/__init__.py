"""What a worker decides, whether its handlers run in threads or in tasks of asyncio. Nothing here does I/O."""
