"""How threads wait and lock, and how they call a task. The twin of `dqueue._async.runtime`."""

from collections.abc import Mapping, Sequence
from threading import Event, Lock
from time import sleep
from typing import Any

from dqueue.working.definition import Definition

__all__ = ["TAKES_COROUTINES", "Event", "Lock", "call", "sleep"]

TAKES_COROUTINES = False
"""Whether a task may be a coroutine function."""


def call(definition: Definition[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls the function of a task."""
    return definition.function(*args, **kwargs)
