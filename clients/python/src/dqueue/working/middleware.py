"""The code that runs around each send and around each handler, for logging, tracing, database sessions and the like."""

from collections.abc import Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
    nullcontext,
)
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from dqueue.protocol.effects import Effects
from dqueue.protocol.message import Message

Context = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]
"""The return value of a middleware. Handlers in threads need the first kind; those for asyncio accept both."""


@dataclass(slots=True)
class Sending:
    """A task that is about to be sent. A middleware may change all of it."""

    queue: str
    """The name of the queue or of the family."""
    type: str
    payload: str | bytes
    id: str | None
    options: dict[str, Any]
    """The options of `Queue.send`. Options that are None have the value of the queue."""

    def add_headers(self, headers: dict[str, str]) -> None:
        """Adds headers to those of the message."""
        self.options["headers"] = {**(self.options.get("headers") or {}), **headers}


class Middleware:
    """A base class. Each method returns a context manager, so `@contextmanager` is the easiest way to write one.

        class Timing(Middleware):
            @contextmanager
            def handle(self, message: Message) -> Iterator[None]:
                began = time.monotonic()
                yield
                print(message.type, time.monotonic() - began)

    The first middleware is the outermost one. An error in a handler is raised at the `yield`. `Retry`, `Reject`, `Snooze`
    and `Park` are such errors, too. A middleware that swallows an error makes its message done.
    """

    def send(self, sending: Sending) -> AbstractContextManager[Any]:
        """Returns a context manager that is entered before a task is sent and left after that."""
        return nullcontext()

    def handle(self, message: Message) -> Context:
        """Returns a context manager that is entered before a handler is called and left after that."""
        return nullcontext()

    def work(self) -> Context:
        """Returns a context manager that is entered before a worker begins and left after it has ended, once in each
        process.
        """
        return nullcontext()


_current: ContextVar[Message | None] = ContextVar("dqueue_message", default=None)


def current_message() -> Message | None:
    """Returns the message that is being handled here, or None outside of handlers."""
    return _current.get()


def effects() -> Effects:
    """Returns the effects of the message that is being handled, which go with its ack. Raises RuntimeError outside of handlers."""
    message = _current.get()
    if message is None:
        raise RuntimeError("no message of dq is being handled here")
    return message.effects


@contextmanager
def handling(message: Message) -> Iterator[None]:
    """Sets the current message."""
    token = _current.set(message)
    try:
        yield
    finally:
        _current.reset(token)
