"""Faults at each moment of a worker: tasks."""

from clients.python.tests.faults.drivers import TASKS as DRIVER  # noqa: F401
from clients.python.tests.faults.matrix import *  # noqa: F403
