import pytest

from tests.drivers.faults.matrix import *  # noqa: F403
from tests.drivers.faults.workers import LARAVEL_PHPREDIS, LARAVEL_PREDIS

DRIVERS = [LARAVEL_PHPREDIS, LARAVEL_PREDIS]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
