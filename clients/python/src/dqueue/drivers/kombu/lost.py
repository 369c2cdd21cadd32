"""Finds out which tasks of Celery have killed the process of the pool that ran them.

With `task_reject_on_worker_lost` Celery gives such a task back, for ever, and says nothing but "requeue" to its transport,
as for a task that asks for it by Reject.
"""

import sys
from functools import wraps
from typing import Any

from dqueue.drivers.kombu.messages import Tag

ENDS = {"WorkerLostError", "SystemExit", "KeyboardInterrupt"}
"""The name that Celery gives to the failure of a task whose process has ended."""


def mark_lost_tasks() -> None:
    """Makes Celery's requests mark the delivery tags of such tasks. Without Celery, or if it was done before, it does nothing."""
    module = sys.modules.get("celery.worker.request")
    request = getattr(module, "Request", None)
    on_failure = getattr(request, "on_failure", None)
    if on_failure is None or hasattr(on_failure, "marks_lost_tasks"):
        return

    @wraps(on_failure)
    def marking(self: Any, exc_info: Any, *args: Any, **kwargs: Any) -> Any:
        error = getattr(exc_info, "exception", None)
        # Celery wraps an error that has a traceback.
        error = getattr(error, "exc", error)
        tag = getattr(getattr(self, "_message", None), "delivery_tag", None)
        if isinstance(tag, Tag) and type(error).__name__ in ENDS:
            tag.is_lost = True
        return on_failure(self, exc_info, *args, **kwargs)

    marking.marks_lost_tasks = True  # type: ignore[attr-defined]
    request.on_failure = marking  # type: ignore[union-attr]
