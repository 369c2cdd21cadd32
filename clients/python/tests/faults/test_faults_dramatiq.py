"""Faults at each moment of a worker: dramatiq."""

from clients.python.tests.faults.drivers import DRAMATIQ as DRIVER  # noqa: F401
from clients.python.tests.faults.matrix import *  # noqa: F403
