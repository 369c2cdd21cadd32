"""Runs the tasks of one queue."""

import json
from traceback import format_exception
from typing import Any

from django.db import close_old_connections
from django.utils import timezone

from dqueue._sync.worker import Worker
from dqueue.drivers.django.backend import DqBackend, moment
from dqueue.drivers.django.tasks import (
    TaskContext,
    TaskError,
    TaskResultStatus,
    normalize_json,
    signals,
)
from dqueue.protocol.message import Message
from dqueue.working.outcomes import Reject, Retry


class TaskWorker:
    """A worker for the tasks of one queue, with `concurrency` threads. `grace` is in milliseconds."""

    def __init__(self, backend: DqBackend, queue_name: str, *, concurrency: int, grace: int) -> None:
        self.backend = backend
        self.queue_name = queue_name
        queue = backend.queue(queue_name)
        middleware = [] if backend.secrets is None else [backend.secrets]
        self.worker = Worker(queue, concurrency=concurrency, lease=backend.lease, grace=grace, middleware=middleware)
        self.worker.handler()(self.run_task)

    def run_task(self, message: Message) -> str:
        """Runs the task of a message and returns its value as JSON."""
        close_old_connections()
        try:
            return self._run(message)
        finally:
            close_old_connections()

    def _run(self, message: Message) -> str:
        try:
            result = self.backend.result(
                message.payload,
                self.queue_name,
                id=message.id,
                status=TaskResultStatus.RUNNING,
                priority=-message.priority,
                enqueued_at=moment(message.sent_at),
                started_at=timezone.now(),
                finished_at=None,
                last_attempted_at=timezone.now(),
                errors=[],
                worker_ids=[self.worker.consumer] * message.attempt,
            )
        except Exception as error:
            # Without its function the task cannot succeed. A redrive runs it, when the function is there.
            raise Reject(_written(_described(error))) from error
        signals.task_started.send(type(self.backend), task_result=result)
        try:
            context = [TaskContext(task_result=result)] if result.task.takes_context else []
            value = normalize_json(result.task.call(*context, *result.args, **result.kwargs))
            if message.effects:
                # The task has failed if the server refuses them. The worker's own ack is stale then, and does nothing.
                self.worker.queue.ack(message, result=json.dumps(value), apply=message.effects)
        except BaseException as error:
            # SystemExit and the like have failed, too. They are not those of the process, which gets signals.
            described = _described(error)
            if message.attempt <= self.backend.retries:
                raise Retry(_written(described)) from error
            self._finish(result, TaskResultStatus.FAILED, errors=[described])
            raise Reject(_written(described)) from error
        self._finish(result, TaskResultStatus.SUCCESSFUL, _return_value=value)
        return json.dumps(value)

    def _finish(self, result: Any, status: Any, **fields: Any) -> None:
        for name, value in {"status": status, "finished_at": timezone.now(), **fields}.items():
            object.__setattr__(result, name, value)
        signals.task_finished.send(type(self.backend), task_result=result)


def _described(error: BaseException) -> Any:
    kind = type(error)
    return TaskError(
        exception_class_path=f"{kind.__module__}.{kind.__qualname__}", traceback="".join(format_exception(error))
    )


def _written(error: Any) -> str:
    return json.dumps({"exception_class_path": error.exception_class_path, "traceback": error.traceback})
