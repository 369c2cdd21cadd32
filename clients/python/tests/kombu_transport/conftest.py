"""A connection of kombu, and the queue that it uses."""

import pytest
from dqueue.testing import ManualQueue


@pytest.fixture
def url(dq_url):
    import dqueue.kombu  # noqa: F401  makes dq:// known

    return dq_url.replace("redis://", "dq://")


@pytest.fixture
def connection(url):
    from kombu import Connection

    with Connection(url) as connection:
        yield connection


@pytest.fixture
def q(dq_client):
    """The queue `jobs` as any client sees it. Its clock moves only where a test says so."""
    return ManualQueue(dq_client, "jobs")
