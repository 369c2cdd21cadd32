"""Reserved tasks of a worker of Celery that acks each when it begins, as Celery does by default."""

from clients.python.tests.faults.drivers import CELERY_EARLY as DRIVER  # noqa: F401
from tests.harness.driver_faults import test_reserved  # noqa: F401
