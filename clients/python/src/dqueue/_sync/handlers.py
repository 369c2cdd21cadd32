"""Handlers that are plain functions. The twin of `dqueue._async.handlers`."""

from collections.abc import Callable

from dqueue.protocol.message import Message
from dqueue.working.handlers import Handlers
from dqueue.working.outcomes import Outcome

SyncHandlers = Handlers[Callable[[Message], Outcome]]
