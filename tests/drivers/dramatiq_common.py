"""The names that Dramatiq's own tests import from `tests/common.py`, which its source archive does not have."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from dramatiq import Broker, Worker

skip_in_ci = pytest.mark.skipif("CI" in os.environ, reason="not in a CI")
skip_on_pypy = pytest.mark.skipif(sys.implementation.name == "pypy", reason="not on PyPy")
skip_on_windows = pytest.mark.skipif(sys.platform == "win32", reason="not on Windows")


@contextmanager
def worker(broker: Broker, **options: int) -> Iterator[Worker]:
    """A worker that runs inside the `with`."""
    started = Worker(broker, **options)
    started.start()
    try:
        yield started
    finally:
        started.stop()
