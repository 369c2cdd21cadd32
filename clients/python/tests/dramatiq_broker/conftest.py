"""A broker for Dramatiq, its worker, and the queue that they use."""

import pytest
from dqueue.testing import ManualQueue


@pytest.fixture
def broker(dq_url):
    import dramatiq
    from dqueue.dramatiq import DqBroker

    broker = DqBroker(url=dq_url.replace("redis://", "dq://"), middleware=[dramatiq.middleware.Retries()])
    dramatiq.set_broker(broker)
    yield broker
    broker.close()


@pytest.fixture
def q(dq_client):
    """The queue `default` as any client sees it. Its clock moves only where a test says so."""
    return ManualQueue(dq_client, "dramatiq:default")


@pytest.fixture
def worker(broker):
    import dramatiq

    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=2)
    worker.start()
    yield worker
    worker.stop()
