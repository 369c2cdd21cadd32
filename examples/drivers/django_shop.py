"""A shop with the tasks of Django 6 on dq: a task for later, and a worker that is killed in the middle of another one.

    pip install './clients/python[django]'      (Python 3.12 or newer)
    DQ_URL=redis://127.0.0.1:6379 python examples/drivers/django_shop.py

The program starts two workers (`manage.py dq_worker` in a project), kills the first one, and checks that everything has
been done and that the second one ends with 0 on SIGTERM. It ends with the exit code 1 if not. It takes some ten seconds.
"""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import django
from django.conf import settings
from django.core.management import execute_from_command_line

URL = os.environ.get("DQ_URL", "redis://127.0.0.1:6379")

if not settings.configured:
    settings.configure(
        INSTALLED_APPS=["dqueue.django"],
        USE_TZ=True,
        # A killed worker's tasks come back after two seconds.
        TASKS={
            "default": {
                "BACKEND": "dqueue.django.DqBackend",
                "OPTIONS": {"url": URL, "prefix": "django_shop:", "lease": 2000},
            }
        },
    )
    django.setup()

from django.tasks import task  # noqa: E402
from django.utils import timezone  # noqa: E402


@task
def remind(customer):
    return f"reminded {customer} at {time.time()}"


@task(takes_context=True)
def pack(context, order):
    """Takes longer than the lease, which the worker renews."""
    time.sleep(3)
    return f"packed {order} at attempt {context.attempt}"


def start_worker():
    return subprocess.Popen([sys.executable, __file__, "dq_worker", "--concurrency", "2"], cwd=Path(__file__).parent)


def wait_until(result, condition):
    deadline = time.monotonic() + 60
    while not condition(result):
        if time.monotonic() > deadline:
            raise SystemExit(f"NOT {result}")
        time.sleep(0.05)
        result.refresh()
    return result


def main():
    due = time.time() + 1
    reminding = remind.using(run_after=timezone.now() + timedelta(seconds=1)).enqueue("ann")
    packing = pack.enqueue(1)
    worker = start_worker()
    try:
        reminded = wait_until(reminding, lambda result: result.is_finished).return_value
        wait_until(packing, lambda result: result.status == "RUNNING")
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        worker = start_worker()
        packed = wait_until(packing, lambda result: result.is_finished).return_value
    finally:
        worker.terminate()
        code = worker.wait()
    checks = {
        "the reminder was not early": float(reminded.split()[-1]) >= due - 0.1,
        "the killed task ran again, once": packed == "packed 1 at attempt 2",
        "the worker ended well": code == 0,
    }
    for check, holds in checks.items():
        print("ok " if holds else "NOT", check)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    # The tasks are those of the module, not of the program.
    import django_shop

    if len(sys.argv) > 1:
        execute_from_command_line(sys.argv)
    else:
        sys.exit(django_shop.main())
