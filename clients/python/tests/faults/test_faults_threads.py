"""Faults at each moment of a worker: threads."""

from clients.python.tests.faults.drivers import THREADS as DRIVER  # noqa: F401
from clients.python.tests.faults.matrix import *  # noqa: F403
