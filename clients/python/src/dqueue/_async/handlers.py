"""Handlers that are coroutine functions, with the middleware around them."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack
from typing import Any

from dqueue.protocol.message import Message
from dqueue.working.handlers import Handlers
from dqueue.working.middleware import Context, handling
from dqueue.working.outcomes import Outcome

Handler = Callable[[Message], Awaitable[Outcome]]


class AsyncHandlers(Handlers[Handler]):
    """`Handlers` for asyncio. The context managers of its middleware may be those of either kind."""

    def _inside(self, function: Handler) -> Handler:
        async def handle(message: Message) -> Outcome:
            with handling(message):
                if not self.middleware:
                    return await function(message)
                async with AsyncExitStack() as stack:
                    for one in self.middleware:
                        await enter(stack, one.handle(message))
                    return await function(message)
                # A middleware has swallowed the error.
                return None

        return handle


async def enter(stack: AsyncExitStack, context: Context) -> Any:
    """Enters a context manager of either kind."""
    if isinstance(context, AbstractContextManager):
        return stack.enter_context(context)
    return await stack.enter_async_context(context)
