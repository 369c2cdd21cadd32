"""Handlers by type, and what their outcome means to the queue."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from dqueue import calls
from dqueue.calls import Call
from dqueue.message import Message
from dqueue.options import Millis

H = TypeVar("H", bound=Callable[[Message], Any])

_ERROR_LENGTH = 1000


class Retry(Exception):
    """Raised by a handler: failed, try again after `delay` (ms; None: the queue's own backoff)."""

    def __init__(self, error: str = "", *, delay: Millis | None = None) -> None:
        super().__init__(error)
        self.delay = delay


class Reject(Exception):
    """Raised by a handler: this message can never succeed; it is dead at once, reason `rejected`."""


class Handlers(Generic[H]):
    """Which function handles messages of which type.

    A handler that returns is done; a text it returns is kept as the message's result. One that raises has failed: the
    server counts it and decides, by RETRIES and BACKOFF, what comes next.
    """

    def __init__(self) -> None:
        self._by_type: dict[str, H] = {}
        self._default: H | None = None

    def handler(self, *types: str) -> Callable[[H], H]:
        """Decorator: the function handles these types; with none named, all that no other function handles."""

        def register(function: H) -> H:
            for type in types:
                self._by_type[type] = function
            if not types:
                self._default = function
            return function

        return register

    def find(self, type: str | None) -> H:
        """The handler of a type. LookupError where there is none: then the message fails, which is seen and kept."""
        found = self._default if type is None else self._by_type.get(type, self._default)
        if found is None:
            raise LookupError(f"no handler for type {type!r}")
        return found


def failure(key: str, message: Message, error: BaseException) -> Call[int]:
    """What the server is told when a handler raised `error`."""
    if isinstance(error, Retry):
        return calls.nack(key, [message], {"delay": error.delay, "error": str(error) or None})
    text = str(error) if isinstance(error, Reject) else f"{type(error).__name__}: {error}"
    return calls.nack(key, [message], {"error": text[:_ERROR_LENGTH] or None, "fatal": isinstance(error, Reject)})


def given_back(key: str, messages: list[Message]) -> Call[int]:
    """What the server is told about messages that a stopping worker does not finish."""
    return calls.nack(key, messages, {"silent": True})
