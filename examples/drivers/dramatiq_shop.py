"""A shop with Dramatiq on dq: a delayed message, and a worker that is killed in the middle of one.

    pip install './clients/python[dramatiq]'      (Python 3.11 or newer)
    DQ_URL=redis://127.0.0.1:6379 python examples/drivers/dramatiq_shop.py

The program starts two workers of itself, kills the first one, and checks that everything has been done. It ends with
the exit code 1 if it has not. It takes some ten seconds.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dramatiq
from dqueue.dramatiq import DqBroker

URL = os.environ.get("DQ_URL", "redis://127.0.0.1:6379")

# A killed worker's messages come back after two seconds.
broker = DqBroker(url=URL, namespace="dramatiq_shop", heartbeat_timeout=2000)
dramatiq.set_broker(broker)
LEDGER = "dramatiq_shop:ledger"


@dramatiq.actor
def remind(customer):
    broker.client.rpush(LEDGER, f"reminded {customer} at {time.time()}")


@dramatiq.actor
def pack(order):
    """Takes longer than the lease, which the worker renews."""
    broker.client.rpush(LEDGER, f"began {order}")
    time.sleep(3)
    broker.client.rpush(LEDGER, f"packed {order}")


def start_worker():
    command = [sys.executable, "-m", "dramatiq", "dramatiq_shop", "--processes", "1", "--threads", "2"]
    # A process group of its own, because a kill has to take the children with it.
    return subprocess.Popen(command, cwd=Path(__file__).parent, start_new_session=True)


def wait_for(line):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = [one.decode() for one in broker.client.lrange(LEDGER, 0, -1) if one.decode().startswith(line)]
        if found:
            return found
        time.sleep(0.05)
    raise SystemExit(f"NOT {line}")


def main():
    broker.client.delete(LEDGER)
    due = time.time() + 1
    remind.send_with_options(args=("ann",), delay=1000)
    pack.send(1)
    worker = start_worker()
    try:
        reminded = float(wait_for("reminded ann")[0].split()[-1])
        wait_for("began 1")
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        worker = start_worker()
        wait_for("packed 1")
        checks = {
            "the reminder was not early": reminded >= due - 0.1,
            "the killed message ran again, once": len(wait_for("began 1")) == 2,
        }
    finally:
        worker.terminate()
        worker.wait()
        broker.client.delete(LEDGER)
    for check, holds in checks.items():
        print("ok " if holds else "NOT", check)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
