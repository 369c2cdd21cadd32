# Generated from _async/tasks.py by tools/async_to_sync.py. Change that file, and run the script.
"""Functions as tasks: a call is sent as a message, and a worker calls the function."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, Unpack, overload

from dqueue._sync.family import Family
from dqueue._sync.handlers import SyncHandlers
from dqueue._sync.queue import Queue
from dqueue._sync.runtime import TAKES_COROUTINES, call
from dqueue._sync.worker import Worker
from dqueue.protocol.message import Message
from dqueue.protocol.options import Millis, ScheduleOptions, SendOptions, millis
from dqueue.protocol.records import Record
from dqueue.working.definition import JSON, Definition, JobCalls, Serializer, was_open
from dqueue.working.middleware import Context, Middleware
from dqueue.working.outcomes import Outcome
from dqueue.working.worker_options import WorkerOptions

P = ParamSpec("P")
R = TypeVar("R")


class Decorator(Protocol):
    """Makes a function a task."""

    def __call__(self, function: Callable[P, R], /) -> "Task[P, R]": ...


class Tasks(SyncHandlers):
    """The tasks of a queue or a family.

        tasks = Tasks(Queue(connect("redis://localhost"), "mails"), retries=5)

        @tasks.task
        def welcome(name: str) -> str: ...

        welcome("ann")  # calls the function here
        welcome.send("ann")  # a worker calls it

    `options` are those with which all tasks are sent, unless a task or a send says otherwise. `serializer` writes the
    arguments and results: the module json, or another object with `dumps` and `loads`. `middleware` is entered around
    each send and each handler.

    `dq-worker module:tasks` runs them, or `tasks.worker(...).run()`. Handlers of plain messages can be added with
    `handler`. A task may raise what a handler may raise, and return a `Follow`. For asyncio a task is a coroutine function,
    or a plain function, which is called in a thread.
    """

    def __init__(
        self,
        queue: Queue | Family,
        *,
        serializer: Serializer = JSON,
        middleware: Sequence[Middleware] = (),
        **options: Unpack[SendOptions],
    ) -> None:
        super().__init__(middleware)
        self.queue = queue
        self.serializer = serializer
        self.options = options
        self._tasks: dict[str, Task[Any, Any]] = {}

    @overload
    def task(self, function: Callable[P, R], /) -> "Task[P, R]": ...

    @overload
    def task(self, /, *, name: str | None = None, **options: Unpack[ScheduleOptions]) -> Decorator: ...

    def task(self, function: Any = None, /, *, name: str | None = None, **options: Unpack[ScheduleOptions]) -> Any:
        """Makes a function a task. Its name is that of the function, and the TYPE of its messages.

        `cron` or `every` make the server send it without arguments, as soon as a worker of these tasks has begun.
        """
        if function is None:
            return lambda function: self._add(function, name, options)
        return self._add(function, name, options)

    def _add(self, function: Callable[..., Any], name: str | None, options: ScheduleOptions) -> "Task[Any, Any]":
        definition: Definition[Any, Any] = Definition(
            name or function.__name__,
            function,
            {**self.options, **options},
            self.serializer,
            takes_coroutines=TAKES_COROUTINES,
        )
        if definition.name in self._tasks:
            raise ValueError(f"there is a task {definition.name!r} already: give this one another name")
        task = Task[Any, Any](self, definition)
        self._tasks[definition.name] = task

        def handle(message: Message) -> Outcome:
            args, kwargs = definition.arguments(message)
            outcome: Outcome = definition.outcome(call(definition, args, kwargs))
            return outcome

        self.handler(definition.name)(handle)
        return task

    def declare_schedules(self) -> None:
        """Makes or replaces the schedules of the tasks with `cron` or `every`. A worker does so when it begins."""
        for task in self._tasks.values():
            if task.definition.has_times():
                task.schedule(**task.definition.timing)

    def worker(self, **options: Unpack[WorkerOptions]) -> Worker:
        """Returns a worker for these tasks, with the options of `Worker`."""
        worker = Worker(self.queue, **options)
        worker.include(self)
        return worker

    def around_work(self) -> Iterator[Context]:
        yield from super().around_work()
        yield self._declared()

    @contextmanager
    def _declared(self) -> Iterator[None]:
        self.declare_schedules()
        yield


class Task(Generic[P, R]):
    """A function of `Tasks`. Calling it calls the function; `send` has a worker call it."""

    def __init__(self, tasks: Tasks, definition: Definition[P, R], options: Mapping[str, Any] | None = None) -> None:
        self.tasks = tasks
        self.definition = definition
        self.options = dict(options or {})

    def __repr__(self) -> str:
        return f"Task({self.definition.name!r})"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self.definition.function(*args, **kwargs)
        return result

    def with_options(self, **options: Unpack[SendOptions]) -> "Task[P, R]":
        """Returns the task with other options of the message, such as `delay`. Its `send` is typed like the function."""
        return Task(self.tasks, self.definition, {**self.options, **options})

    def send(self, *args: P.args, **kwargs: P.kwargs) -> "Job[R]":
        """Sends a call of the function. It is repeated while the connection is down, as in `Queue.send`."""
        return self.send_with_options(args=args, kwargs=kwargs)

    def send_with_options(
        self,
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        id: str | None = None,
        replace: bool = False,
        **options: Unpack[SendOptions],
    ) -> "Job[R]":
        """Sends a call with options of its message: those of `Queue.send`."""
        queue = self.tasks.queue
        sending = self.definition.sending(queue, args, kwargs, id, {**self.options, **options})
        sent = None
        with ExitStack() as stack:
            for middleware in self.tasks.middleware:
                stack.enter_context(middleware.send(sending))
            given: Any = {**sending.options, "type": sending.type}
            sent = queue.send(sending.payload, id=sending.id, replace=replace, **given)
        group = sending.options.get("group")
        return Job(queue, self.definition, sent or sending.id or "", group, sent is not None)

    def schedule(
        self,
        name: str | None = None,
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> int:
        """DQ.SCHEDULE: has the server send a call at these times. Returns the first of them, in Unix ms.

        The default name is that of the task. A schedule of the same name is replaced. The times of `every` are the same
        however often it is replaced, because `start` is 1970 if it is not given.
        """
        queue = self.tasks.queue
        payload, given = self.definition.scheduled(queue, args, kwargs, {**self.options, **options})
        return queue.schedule(name or self.definition.name, payload, **given)

    def job(self, id: str, *, group: str | None = None) -> "Job[R]":
        """Returns the job of an id that was kept, to read its result. For a family, give the group of the job if it
        has one.
        """
        return Job(self.tasks.queue, self.definition, id, group, False)


class Job(JobCalls[R]):
    """A call that was sent."""

    def result(self, timeout: Millis = 60_000) -> R:
        """DQ.WAIT: waits until the task has ended. Returns what its function has returned.

        Raises TaskFailed if it is dead or cancelled, TimeoutError after that time, and LookupError if there is no
        record of it: without the option `retain` there is one only as long as the task has not ended.
        """
        deadline = time.monotonic() + millis(timeout) / 1000
        while True:
            ended = self.queue.wait(self.id, self._step(deadline), **self._where)
            if ended is not None:
                return self.definition.result(self.id, ended)
            self._check(self.record(), deadline)

    def record(self) -> Record | None:
        """DQ.GET: returns all fields of the message, or None if there is no record of it."""
        record: Record | None = self.queue.get(self.id, **self._where)
        return record

    def cancel(self) -> bool:
        """DQ.CANCEL: cancels the message. Returns False if it had ended before, or is unknown."""
        return was_open(self.queue.cancel(self.id, **self._where))
