"""The definition of a task: the part of `Task` without a connection."""

import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

from dqueue.protocol.client import socket_timeout
from dqueue.protocol.message import Message
from dqueue.protocol.options import ScheduleOptions, SendOptions, encode
from dqueue.protocol.records import Record
from dqueue.working.middleware import Sending
from dqueue.working.outcomes import Follow, Reject

P = ParamSpec("P")
R = TypeVar("R")


class Serializer(Protocol):
    """An object that writes arguments and results, and reads them, with `dumps` and `loads`, like the module json."""

    def dumps(self, value: Any, /) -> str | bytes: ...

    def loads(self, written: bytes, /) -> Any: ...


JSON = cast(Serializer, json)

_TIMES = ScheduleOptions.__annotations__.keys() - SendOptions.__annotations__.keys()
"""The options of a schedule that are not those of its messages."""


class TaskFailed(Exception):
    """The task has ended without a result. `state` is `dead` or `cancelled`, and `error` is its last error."""

    def __init__(self, id: str, state: str, error: str | None) -> None:
        super().__init__(f"{id} is {state}" + (f": {error}" if error else ""))
        self.id = id
        self.state = state
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is pickled by its text, of which it cannot be made again.
        return TaskFailed, (self.id, self.state, self.error)


class Definition(Generic[P, R]):
    """The name of a task, its function, the options of its messages, and how arguments and results are written."""

    def __init__(
        self,
        name: str,
        function: Callable[P, Any],
        options: Mapping[str, Any],
        serializer: Serializer,
        *,
        takes_coroutines: bool,
    ) -> None:
        self.is_coroutine = inspect.iscoroutinefunction(function)
        if self.is_coroutine and not takes_coroutines:
            raise TypeError(f"{name} is a coroutine function: use dqueue.asyncio.Tasks for it")
        self.name = name
        self.function = function
        self.options, self.timing = _parted(options)
        self.serializer = serializer
        self._signature = inspect.signature(function)

    def has_times(self) -> bool:
        """Returns whether the server itself is to send the task."""
        return self.timing.get("cron") is not None or self.timing.get("every") is not None

    def sending(
        self,
        queue: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
        id: str | None,
        options: Mapping[str, Any],
    ) -> Sending:
        """Returns the message for a call. Raises TypeError, as the call would, for wrong arguments."""
        kwargs = kwargs or {}
        self._signature.bind(*args, **kwargs)
        payload = self.serializer.dumps({"args": list(args), "kwargs": dict(kwargs)})
        name: str = queue.layout.family if hasattr(queue, "layout") else queue.key
        return Sending(name, self.name, payload, id, {**self.options, **options})

    def scheduled(
        self, queue: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> tuple[str | bytes, dict[str, Any]]:
        """Returns payload and options for `Queue.schedule`."""
        given, timing = _parted(options)
        if timing.get("every") is not None:
            # Times that do not depend on when this is called.
            timing = {"start": 0, **timing}
        sending = self.sending(queue, args, kwargs, None, given)
        return sending.payload, {**sending.options, **timing, "type": self.name}

    def arguments(self, message: Message) -> tuple[list[Any], dict[str, Any]]:
        """Reads the arguments. A message that has none for this function can never succeed."""
        try:
            written = self.serializer.loads(message.payload)
            args, kwargs = written["args"], written["kwargs"]
            self._signature.bind(*args, **kwargs)
        except Exception as error:
            raise Reject(f"{self.name} cannot be called with the payload: {error!r}") from error
        return args, kwargs

    def outcome(self, result: Any) -> Any:
        """Returns the outcome of a handler for the return value of the function."""
        return result if result is None or isinstance(result, Follow) else self.serializer.dumps(result)

    def result(self, id: str, ended: tuple[str, str | None]) -> R:
        """Reads the reply of DQ.WAIT. Raises TaskFailed if the task has not finished."""
        state, text = ended
        if state != "finished":
            raise TaskFailed(id, state, text)
        return cast(R, None if text is None else self.serializer.loads(encode(text)))


def _parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the options of a message and those of a schedule."""
    given = {option: value for option, value in options.items() if option not in _TIMES}
    return given, {option: value for option, value in options.items() if option in _TIMES}


class JobCalls(Generic[R]):
    """The members that the jobs of both kinds share."""

    def __init__(self, queue: Any, definition: Definition[Any, R], id: str, group: str | None, added: bool) -> None:
        self.queue = queue
        self.definition = definition
        self.id = id
        """The id of its message."""
        self.added = added
        """False if the id was taken, so that nothing was sent."""
        # The verbs of a family find a message by its group.
        self._where: dict[str, Any] = {"group": group} if hasattr(queue, "layout") else {}

    def __repr__(self) -> str:
        return f"Job({self.definition.name!r}, {self.id!r})"

    def _step(self, deadline: float) -> int:
        """Returns for how many ms one DQ.WAIT may take: until the deadline, or half a socket timeout."""
        left = int((deadline - time.monotonic()) * 1000)
        limit = socket_timeout(self.queue.client)
        return max(1, left if limit is None else min(left, int(limit * 500)))

    def _check(self, record: Record | None, deadline: float) -> None:
        """Raises an error if it is no use to wait for longer."""
        if record is None:
            raise LookupError(f"there is no record of {self.id}: results are kept for the time of the option retain")
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{self.id} has not ended, it is {record.state}")


def was_open(cancelled: Any) -> bool:
    """Reads the return value of `cancel` of a queue or a family: the states of several messages, or the state of
    one.
    """
    state = cancelled[0] if isinstance(cancelled, list) else cancelled
    return state is not None and state not in ("finished", "dead", "cancelled")
