"""The fixtures of dqueue for pytest, which finds them wherever the package is installed.

pytest imports this module in every run, so it imports nothing of dqueue before a fixture is used.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import redis
    from dqueue.ephemeral_server import Server
    from dqueue.manual_queue import ManualQueue


@pytest.fixture(scope="session")
def dq_server() -> Iterator[Server]:
    """A server with dq for this run of the tests: in memory, on a free port. Its `url` says where it is.

    With pytest-xdist each worker has a server of its own.
    """
    from dqueue.ephemeral_server import Server

    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def dq_url(request: pytest.FixtureRequest) -> str:
    """The URL of the server for tests: DQ_TEST_URL, or that of `dq_server`."""
    named = os.environ.get("DQ_TEST_URL")
    if named:
        return named
    url: str = request.getfixturevalue("dq_server").url
    return url


@pytest.fixture
def dq_client(dq_url: str) -> Iterator[redis.Redis]:
    """A client of that server."""
    from dqueue.connection import connect

    client = connect(dq_url)
    yield client
    client.close()


@pytest.fixture
def manual_queue(dq_client: redis.Redis) -> Iterator[Callable[..., ManualQueue]]:
    """Creates queues under virtual time: manual_queue(retries=1, backoff=("EXP", 1000))."""
    from dqueue.manual_queue import ManualQueue

    made: list[str] = []

    def make(start: Any = 0, **options: Any) -> ManualQueue:
        key = f"dqueue-test:{uuid.uuid4()}"
        made.append(key)
        return ManualQueue(dq_client, key, start, **options)

    yield make
    if made:
        dq_client.unlink(*made)


@pytest.fixture
def dq_queue(manual_queue: Callable[..., ManualQueue]) -> ManualQueue:
    """A queue under virtual time, with the options of a new queue."""
    return manual_queue()
