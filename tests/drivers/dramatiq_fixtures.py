"""The fixtures of Dramatiq's own tests, which its source archive does not have (`tests/conftest.py`).

Every broker is the one of TEST_BROKER, also where a test asks for the one in memory.
"""

import os

import dramatiq
import pytest
import redis
from dqueue.dramatiq import DqBroker
from dramatiq.brokers.redis import RedisBroker
from dramatiq.rate_limits import backends as rate_limits
from dramatiq.results.backends import RedisBackend, StubBackend

from .common import worker

URL = os.environ["TEST_BROKER"]
BACKEND = os.environ["TEST_BACKEND"]


@pytest.fixture
def redis_broker():
    kind = DqBroker if URL.startswith("dq://") else RedisBroker
    broker = kind(url=URL)
    broker.client.flushall()
    broker.emit_after("process_boot")
    dramatiq.set_broker(broker)
    yield broker
    broker.client.flushall()
    broker.close()


@pytest.fixture
def redis_worker(redis_broker):
    with worker(redis_broker, worker_timeout=100, worker_threads=8) as started:
        yield started


@pytest.fixture
def stub_broker(redis_broker):
    return redis_broker


@pytest.fixture
def stub_worker(redis_worker):
    return redis_worker


@pytest.fixture
def rate_limiter_backend():
    return rate_limits.RedisBackend(client=redis.Redis.from_url(BACKEND))


@pytest.fixture
def redis_result_backend():
    client = redis.Redis.from_url(BACKEND)
    client.flushdb()
    return RedisBackend(client=client)


@pytest.fixture
def stub_result_backend():
    return StubBackend()


@pytest.fixture(params=["redis_result_backend", "stub_result_backend"])
def result_backend(request):
    return request.getfixturevalue(request.param)
