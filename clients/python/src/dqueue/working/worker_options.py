"""The options of a worker."""

from collections.abc import Sequence
from typing import TypedDict

from dqueue.protocol.options import Millis
from dqueue.working.middleware import Middleware


class WorkerOptions(TypedDict, total=False):
    """Options of `Worker`, which explains them."""

    concurrency: int
    consumer: str | None
    lease: Millis
    block: Millis
    grace: Millis
    time_limit: Millis | None
    lost_workers: int
    middleware: Sequence[Middleware]
