"""The parts that the generated modules of `dqueue._sync` have in another form: how to wait, to lock, and to call a
task.
"""

import asyncio
from asyncio import Event, Lock, sleep
from collections.abc import Mapping, Sequence
from typing import Any

from dqueue.working.definition import Definition

__all__ = ["TAKES_COROUTINES", "Event", "Lock", "call", "sleep"]

TAKES_COROUTINES = True
"""Whether a task may be a coroutine function."""


async def call(definition: Definition[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls the function of a task. A plain function is called in a thread."""
    if definition.is_coroutine:
        return await definition.function(*args, **kwargs)
    return await asyncio.to_thread(definition.function, *args, **kwargs)
