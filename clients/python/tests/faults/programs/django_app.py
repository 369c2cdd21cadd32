"""A project of Django in one file: python django_app.py dq_worker --concurrency 2"""

import os
import sys

import django
from django.conf import settings

TASKS = {
    "default": {
        "BACKEND": "dqueue.django.DqBackend",
        "QUEUES": ["work"],
        "OPTIONS": {"url": os.environ["FAULTS_URL"], "prefix": "", "lease": int(os.environ["FAULTS_LEASE"])},
    }
}

settings.configure(INSTALLED_APPS=["dqueue.django"], TASKS=TASKS, USE_TZ=True, DATABASES={})
django.setup()

from dqueue.drivers.django.tasks import task  # noqa: E402
from work import work  # noqa: E402

work = task(queue_name="work")(work)

if __name__ == "__main__":
    sys.modules["django_app"] = sys.modules["__main__"]
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
