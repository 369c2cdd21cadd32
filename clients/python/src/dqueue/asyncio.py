"""The package for asyncio: `connect`, `Queue`, `Family`, `Tasks` and `Worker`, whose handlers are coroutine functions.

    import asyncio
    from dqueue.asyncio import Queue, Worker, connect

    async def main() -> None:
        mails = Queue(connect("redis://localhost"), "mails")
        await mails.send("welcome ann", type="welcome")
        worker = Worker(mails, concurrency=100)

        @worker.handler("welcome")
        async def welcome(message: Message) -> None: ...

        await worker.run()

    asyncio.run(main())
"""

from dqueue._async.family import Family
from dqueue._async.queue import Queue
from dqueue._async.tasks import Job, Task, Tasks
from dqueue._async.worker import Worker
from dqueue.connection import connect_asyncio as connect
from dqueue.connection import connect_cluster_asyncio as connect_cluster

__all__ = ["Family", "Job", "Queue", "Task", "Tasks", "Worker", "connect", "connect_cluster"]
