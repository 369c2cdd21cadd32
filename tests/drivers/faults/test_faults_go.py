import pytest

from tests.drivers.faults.matrix import *  # noqa: F403
from tests.drivers.faults.workers import GO

DRIVERS = [GO]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
