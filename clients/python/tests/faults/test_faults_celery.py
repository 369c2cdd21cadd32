"""Faults at each moment of a worker: celery."""

from clients.python.tests.faults.drivers import CELERY as DRIVER  # noqa: F401
from clients.python.tests.faults.matrix import *  # noqa: F403
