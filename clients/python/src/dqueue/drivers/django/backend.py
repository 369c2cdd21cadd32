"""The task backend: enqueues tasks, and reads their results from the records of the queue."""

import json
import sys
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.utils import timezone
from django.utils.module_loading import import_string

from dqueue._sync.queue import Queue
from dqueue.connection import open_client
from dqueue.drivers.django.tasks import (
    DEFAULT_TASK_QUEUE_NAME,
    BaseTaskBackend,
    Task,
    TaskError,
    TaskResult,
    TaskResultStatus,
    exceptions,
    signals,
)
from dqueue.drivers.lasting import Lasting
from dqueue.drivers.outbox import HOUR
from dqueue.protocol.options import LOST_WORKERS, Millis, SendOptions
from dqueue.protocol.records import Record

DAY = 24 * HOUR

STATUS = {
    "running": TaskResultStatus.RUNNING,
    "finished": TaskResultStatus.SUCCESSFUL,
    "dead": TaskResultStatus.FAILED,
    "cancelled": TaskResultStatus.FAILED,
}
"""The status of a task by the state of its message. All other states are READY."""


class DqBackend(BaseTaskBackend):
    """Keeps tasks in queues of dq.

    OPTIONS:
      url: of the server, a cluster or Sentinels, see `dqueue.connection.open_client`. Default redis://127.0.0.1:6379/0.
      prefix: of the keys (`django:`). The key of a queue is the prefix and the name.
      retries: how often a task that raised an exception is run again (0).
      lost_workers: with how many lost workers a task is given up (3). 0: never.
      lease: ms without a heartbeat after which a task of a lost worker goes to another one (30000).
      retain: how long results are kept, in ms or as a timedelta (a day).
      dead_retain: the same for tasks that failed (a week).
      outbox: True or the alias of a database: a task is sent when the transaction there that enqueues it is committed (False).
      outbox_dedup: ms or a timedelta for which queues know the ids of tasks that have ended (an hour).
      secrets: a `dqueue.secrets.Secrets` that encrypts the arguments of tasks, not their results (None).
      modules: the modules outside of INSTALLED_APPS that have tasks, each with those below it.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        options = self.options
        self.client = open_client(options.get("url", "redis://127.0.0.1:6379/0"))
        self.prefix: str = options.get("prefix", "django:")
        self.retries: int = options.get("retries", 0)
        self.lost_workers: int = options.get("lost_workers", LOST_WORKERS)
        self.lease: Millis = options.get("lease", 30_000)
        self.modules: Iterable[str] = options.get("modules", ())
        self._records: dict[str, Millis] = {
            "retain": options.get("retain", DAY),
            "dead_retain": options.get("dead_retain", 7 * DAY),
        }
        self._lasting = Lasting(self.client, self._records, given={*self._records}.intersection(options))
        self.secrets: Any = options.get("secrets")
        self.outbox: Any = None
        """The outbox, if tasks go through one."""
        if options.get("outbox", False):
            # Its app is loaded only where it is used.
            outbox = import_string("dqueue.drivers.django.outbox.rows.DjangoOutbox")
            dedup = options.get("outbox_dedup", HOUR)
            self.outbox = outbox(self.client, options["outbox"], dedup=dedup, options=self._records)

    def queue(self, name: str) -> Queue:
        """Returns the queue, which is created if it is not there."""
        queue = Queue(self.client, f"{self.prefix}{name}")
        self._lasting.begin(queue.key)
        return queue

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        self.validate_task(task)
        id = uuid.uuid4().hex
        if task.queue_name != DEFAULT_TASK_QUEUE_NAME:
            # get_result knows only the id, so the id contains the queue.
            id = f"{id}:{task.queue_name}"
        result = TaskResult(
            task=task,
            id=id,
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        path = task.module_path
        payload: str | bytes = json.dumps({"task": path, "args": result.args, "kwargs": result.kwargs})
        options: SendOptions = {
            "type": path if len(path.encode()) <= 1024 else None,
            # In Django the higher number goes first, here the lower.
            "priority": -task.priority or None,
            "at": task.run_after,
            # The worker counts the exceptions, and the server the lost workers.
            "retries": -1,
            "max_timeouts": self.lost_workers,
            # The retention comes with the message, so it holds also if the queue was lost and is made anew by this
            # command.
            "retain": self._records["retain"],
        }
        key = f"{self.prefix}{task.queue_name}"
        if self.secrets is not None:
            payload, options["headers"] = self.secrets.seal(key, id, payload)
        if self.outbox is None:
            self._lasting.sender(key).send(payload, id=id, **options)
        else:
            self.outbox.send(key, payload, id, options)
        signals.task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        _, _, name = result_id.partition(":")
        name = name or DEFAULT_TASK_QUEUE_NAME
        record = Queue(self.client, f"{self.prefix}{name}").get(result_id) if result_id else None
        if record is None:
            raise exceptions.TaskResultDoesNotExist(result_id)
        return self._result(record, name)

    def _result(self, record: Record, name: str) -> Any:
        status = STATUS.get(record.state, TaskResultStatus.READY)
        payload = record.payload
        if self.secrets is not None:
            payload, _ = self.secrets.open(f"{self.prefix}{name}", record.id, payload, record.headers or {})
        result = self.result(
            payload,
            name,
            id=record.id,
            status=status,
            priority=-record.priority,
            enqueued_at=moment(record.sent_at),
            started_at=moment(record.first_started_at),
            finished_at=moment(record.finished_at) if status in FINISHED else None,
            last_attempted_at=moment(record.started_at),
            errors=errors(record),
            worker_ids=[record.consumer or ""] * record.attempt,
        )
        if status == TaskResultStatus.SUCCESSFUL and record.result is not None:
            object.__setattr__(result, "_return_value", json.loads(record.result))
        return result

    def result(self, payload: bytes, queue_name: str, *, priority: int, **fields: Any) -> Any:
        """Returns the TaskResult of a message. Raises the errors of `task`."""
        content = json.loads(payload)
        task = self.task(content["task"]).using(priority=priority, queue_name=queue_name, backend=self.alias)
        return TaskResult(task=task, args=content["args"], kwargs=content["kwargs"], backend=self.alias, **fields)

    def task(self, path: str) -> Any:
        """Returns the task that a message names.

        A message may come from anybody who can write to the queue, and an import runs code. So a module is imported only if
        it belongs to the project: to an app, to the package with the settings, or to the option `modules`. Raises
        SuspiciousOperation for any other, and for what is not a task, and ImportError if it is not there.
        """
        module = path.rpartition(".")[0]
        if module not in sys.modules and not self._is_of_project(module) and _exists(module):
            raise SuspiciousOperation(
                f"{path} was not imported: its module is in no app of INSTALLED_APPS and not in the option modules"
            )
        found = import_string(path)
        if not isinstance(found, Task):
            raise SuspiciousOperation(f"{path} is not a task")
        return found

    def _is_of_project(self, module: str) -> bool:
        if apps.get_containing_app_config(module) is not None:
            return True
        package, dot, _ = (getattr(settings, "SETTINGS_MODULE", None) or "").partition(".")
        return any(f"{module}.".startswith(f"{root}.") for root in [*self.modules, *([package] if dot else [])])


def _exists(module: str) -> bool:
    """Returns whether there is a module of this name, or at least its root: to look for that runs no code."""
    root = module.partition(".")[0]
    return bool(root) and find_spec(root) is not None


FINISHED = {TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED}


def errors(record: Record) -> list[Any]:
    """Returns the last error of a task, as the worker has written it."""
    if record.state == "finished":
        return []
    try:
        return [TaskError(**json.loads(record.error or ""))]
    except (RecursionError, TypeError, ValueError):
        if record.state not in ("dead", "cancelled"):
            return []
        # The task was cancelled, or rejected by something else than our worker.
        return [TaskError(exception_class_path="builtins.RuntimeError", traceback=record.error or record.reason or record.state)]


def moment(ms: int | None) -> datetime | None:
    """Returns a time of the server as Django wants it: naive local time unless USE_TZ is set."""
    if ms is None:
        return None
    aware = datetime.fromtimestamp(ms / 1000, UTC)
    return aware if settings.USE_TZ else timezone.make_naive(aware)
