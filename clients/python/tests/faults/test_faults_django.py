"""Faults at each moment of a worker: django."""

from clients.python.tests.faults.drivers import DJANGO as DRIVER  # noqa: F401
from clients.python.tests.faults.matrix import *  # noqa: F403
