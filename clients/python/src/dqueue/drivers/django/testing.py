"""Runs tasks in a test, without a worker beside it."""

from dqueue.drivers.django.backend import DqBackend
from dqueue.drivers.django.tasks import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_QUEUE_NAME,
    task_backends,
)
from dqueue.drivers.django.worker import TaskWorker
from dqueue.manual_queue import work


def run_tasks(queue_name: str = DEFAULT_TASK_QUEUE_NAME, *, backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> int:
    """Runs the tasks of a queue that can be run now, and those that they enqueue, like `manage.py dq_worker`.

    They run in this thread. Returns how many there were. Raises AssertionError if there is no end of them.
    """
    used = task_backends[backend]
    assert isinstance(used, DqBackend), f"TASKS[{backend!r}] is not a dqueue.django.DqBackend"
    worker = TaskWorker(used, queue_name, concurrency=1, grace=0).worker
    return len(work(used.queue(queue_name), worker))
