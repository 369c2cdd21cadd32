"""One process of `dq-worker`: finds the tasks of a module and works."""

import argparse
import asyncio
import importlib
import os
import signal
import sys
import threading
from typing import Any

from dqueue._async.tasks import Tasks as AsyncTasks
from dqueue._async.worker import Worker as AsyncWorker
from dqueue._sync.tasks import Tasks
from dqueue._sync.worker import Worker
from dqueue.logs import LogTasks, configure, log

UNUSABLE = 2
"""The exit code if the target or an option cannot be used, so that it is no use to start again."""


class Unusable(Exception):
    """Says why the target or an option cannot be used."""


def run(options: argparse.Namespace) -> int:
    """Works until a signal comes. Returns the exit code."""
    configure(options.log_level, options.log_format)
    if options.is_child:
        _end_with_parent()
    worker = worker_of(options)
    log.info("working on %s as %s, %d at a time", worker.queue, worker.consumer, worker.concurrency)
    try:
        if isinstance(worker, AsyncWorker):
            asyncio.run(worker.run())
        else:
            worker.run()
    except Exception:
        log.exception("the worker has ended with an error")
        return 1
    log.info("ended")
    return 0


def worker_of(options: argparse.Namespace) -> Worker | AsyncWorker:
    """Returns the worker for the target. Raises Unusable."""
    target = load(options.target, options.path)
    names = ("concurrency", "lease", "grace", "time_limit")
    given: dict[str, Any] = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if isinstance(target, Worker | AsyncWorker):
        if given:
            raise Unusable(f"{options.target} is a Worker, which has its own {', '.join(given)}")
        return target
    if isinstance(target, Tasks):
        return target.worker(**{"concurrency": 8, **given}, middleware=[LogTasks()])
    if isinstance(target, AsyncTasks):
        return target.worker(**{"concurrency": 100, **given}, middleware=[LogTasks()])
    raise Unusable(f"{options.target} is no Tasks and no Worker, but {type(target).__name__}")


def load(target: str, path: str) -> Any:
    """Returns the object that `module:name` names. Raises Unusable."""
    module, _, name = target.partition(":")
    if not module or not name:
        raise Unusable(f"the target must be module:name, such as shop.tasks:tasks, not {target!r}")
    sys.path.insert(0, os.path.abspath(path))
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise Unusable(f"there is no module {module} in {os.path.abspath(path)}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise Unusable(f"{module} has no {name}")
        found = getattr(found, part)
    return found


def _end_with_parent() -> None:
    """Stops this process gracefully when the parent, which holds the other end of standard input, is gone."""

    def watch() -> None:
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="dqueue-parent", daemon=True).start()
