"""The changes that a task of taskiq makes in the same step as its ack."""

from contextvars import ContextVar
from typing import Any

from taskiq import TaskiqMiddleware
from taskiq.message import TaskiqMessage

from dqueue.protocol.effects import Effects


class _Task:
    """A task that runs."""

    def __init__(self) -> None:
        self.effects = Effects()
        self.is_acked = False


running: ContextVar[_Task | None] = ContextVar("dqueue_taskiq_task", default=None)
"""taskiq runs a task, and acks it, in one context. A thread in which a function runs has a copy of that."""


class Collecting(TaskiqMiddleware):
    """Begins and drops the effects of tasks."""

    async def pre_execute(self, message: TaskiqMessage) -> TaskiqMessage:
        running.set(_Task())
        return message

    async def on_error(self, message: TaskiqMessage, result: Any, exception: BaseException) -> None:
        if (task := running.get()) is not None:
            task.effects = Effects()


def effects() -> Effects:
    """Returns the effects of the task that runs: changes of Redis keys that are done together with its ack.

    All are done or none is: nothing if the task fails, or if its lease is over. If the server refuses them, the message is
    dead in its queue, because its task has ended.

    Raises RuntimeError outside of a task of a DqBroker, in a pool of processes, and in a task that is acked before it runs.
    """
    task = running.get()
    if task is None:
        raise RuntimeError("no task of a DqBroker runs here (the processes of a pool do not know theirs)")
    if task.is_acked:
        raise RuntimeError("the task was acked before it ran: effects need the ack type when_executed or when_saved")
    return task.effects
