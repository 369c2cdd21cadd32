"""A shop with Celery on dq: delayed and failing tasks, and a worker that is killed in the middle of one.

    pip install './clients/python[celery]'      (Python 3.11 or newer)
    DQ_URL=redis://127.0.0.1:6379 python examples/drivers/celery_shop.py

The program starts two workers of itself, kills one of them, and checks that every task has run. It ends with the exit
code 1 if one has not. It takes some ten seconds.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dqueue.kombu  # noqa: F401  makes dq:// known
from celery import Celery

URL = os.environ.get("DQ_URL", "redis://127.0.0.1:6379")

app = Celery("celery_shop", broker=URL.replace("redis", "dq", 1), backend=URL)
app.conf.update(
    task_default_queue="celery_shop",
    # A killed worker's tasks come back after two seconds, those of a lost machine after three.
    broker_transport_options={"bind_grace": 2, "visibility_timeout": 3},
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    result_expires=600,
)


@app.task
def remind(customer):
    return f"reminded {customer} at {time.time()}"


@app.task(bind=True, max_retries=3)
def charge(self, order):
    if self.request.retries < 2:
        raise self.retry(countdown=0.2)
    return f"charged {order} at attempt {self.request.retries + 1}"


@app.task(bind=True)
def pack(self, order, started):
    """Takes longer than the lease, which the worker renews."""
    with open(started, "a") as file:
        file.write(f"{os.getppid()}\n")
    time.sleep(4)
    return f"packed {order}, redelivered: {bool(self.request.delivery_info.get('redelivered'))}"


def start_worker():
    command = [sys.executable, "-m", "celery", "-A", "celery_shop", "worker", "-c", "2", "-l", "warning"]
    # A process group of its own, because a kill has to take the pool with it.
    return subprocess.Popen(command, cwd=Path(__file__).parent, start_new_session=True)


def main():
    started = Path.cwd() / f"started-{os.getpid()}"
    worker = start_worker()
    try:
        packing = pack.delay(1, str(started))
        reminding = remind.apply_async(["ann"], countdown=1)
        charging = charge.delay(2)
        due = time.time() + 1
        print(reminded := reminding.get(timeout=60))
        print(charged := charging.get(timeout=60))
        while not started.exists():
            time.sleep(0.05)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        worker = start_worker()
        print(packed := packing.get(timeout=60))
        runs = len(started.read_text().split())
        checks = {
            "the reminder was not early": float(reminded.split()[-1]) >= due - 0.1,
            "the third attempt charged": charged == "charged 2 at attempt 3",
            "the killed task ran again, once": packed == "packed 1, redelivered: True" and runs == 2,
        }
    finally:
        worker.terminate()
        worker.wait()
        started.unlink(missing_ok=True)
    for check, holds in checks.items():
        print("ok " if holds else "NOT", check)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
