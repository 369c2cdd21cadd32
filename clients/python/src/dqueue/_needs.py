"""Checks that Python and redis-py are new enough. Old ones would fail later, with an error that is hard to read."""

import sys

if sys.version_info < (3, 11):
    raise ImportError(f"dqueue needs Python 3.11 or newer, and this is {sys.version.split()[0]}")

import redis  # noqa: E402

REDIS_PY = 5
"""The oldest major version of redis-py that works: the first one with RESP3."""


def check(version: str) -> None:
    """Raises ImportError, which names the remedy, if this version of redis-py is too old."""
    if int(version.split(".")[0]) < REDIS_PY:
        raise ImportError(
            f"dqueue needs redis-py {REDIS_PY} or newer, and {version} is installed: pip install 'redis>={REDIS_PY}'"
        )


check(redis.__version__)
