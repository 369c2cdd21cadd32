import pytest

from tests.drivers.faults.matrix import *  # noqa: F403
from tests.drivers.faults.workers import IOREDIS, NODE_REDIS

DRIVERS = [IOREDIS, NODE_REDIS]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
