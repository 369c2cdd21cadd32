"""Faults at each moment of a worker: taskiq."""

from clients.python.tests.faults.drivers import TASKIQ as DRIVER  # noqa: F401
from clients.python.tests.faults.matrix import *  # noqa: F403
