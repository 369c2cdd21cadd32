"""Whether redis-py is new enough: an old one would fail later, and with a riddle."""

import redis

REDIS_PY = 5
"""The oldest major version of redis-py that will do: the first one with RESP3."""


def check(version: str) -> None:
    """Raises ImportError with what to do where this version of redis-py is too old."""
    if int(version.split(".")[0]) < REDIS_PY:
        raise ImportError(
            f"dqueue needs redis-py {REDIS_PY} or newer, and {version} is installed: pip install 'redis>={REDIS_PY}'"
        )


check(redis.__version__)
