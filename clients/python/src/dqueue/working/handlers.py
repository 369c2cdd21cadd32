"""The functions that handle messages, by type, with the middleware around them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Generic, TypeVar, cast

from dqueue.protocol.message import Message
from dqueue.working.middleware import Context, Middleware, handling

H = TypeVar("H", bound=Callable[[Message], Any])


class Handlers(Generic[H]):
    """The functions that handle messages, by type.

    A handler that returns is done, and a text that it returns is kept as the result of the message. With `Follow` it
    also sends messages. A handler that raises has failed: the server counts the failure and decides by RETRIES and
    BACKOFF what comes next. `Retry`, `Reject`, `Snooze` and `Park` say it otherwise.
    """

    def __init__(self, middleware: Sequence[Middleware] = ()) -> None:
        self.middleware = list(middleware)
        self._by_type: dict[str, H] = {}
        self._default: H | None = None
        self._included: list[Handlers[H]] = []

    def handler(self, *types: str) -> Callable[[H], H]:
        """Decorates a function that handles these types. With no type it handles all that no other function handles."""

        def register(function: H) -> H:
            for type in types:
                self._by_type[type] = function
            if not types:
                self._default = function
            return function

        return register

    def include(self, other: "Handlers[H]") -> None:
        """Adds the handlers of another object, also those that it gets later. Its middleware holds only for them."""
        self._included.append(other)

    def find(self, type: str | None) -> H:
        """Returns the handler of a type, inside its middleware.

        Raises LookupError if there is none, and the message fails with that error.
        """
        found = self._found(type)
        if found is None:
            raise LookupError(f"no handler for type {type!r}")
        return found

    def _found(self, type: str | None) -> H | None:
        function = None if type is None else self._by_type.get(type)
        for other in self._included if function is None else ():
            function = function or other._found(type)
        function = function or self._default
        return None if function is None else self._inside(function)

    def _inside(self, function: H) -> H:
        def handle(message: Message) -> Any:
            with ExitStack() as stack:
                stack.enter_context(handling(message))
                for one in self.middleware:
                    stack.enter_context(cast(Any, one.handle(message)))
                return function(message)

        return cast(H, handle)

    def around_work(self) -> Iterator[Context]:
        """Yields the context managers that are entered before a worker begins and left after it has ended."""
        yield from (one.work() for one in self.middleware)
        for other in self._included:
            yield from other.around_work()
