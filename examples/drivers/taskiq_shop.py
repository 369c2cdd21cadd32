"""A shop with taskiq on dq: a delayed task, a schedule of the server, and a worker that is killed in the middle of one.

    pip install './clients/python[taskiq]'      (Python 3.11 or newer)
    DQ_URL=redis://127.0.0.1:6379 python examples/drivers/taskiq_shop.py

The program starts two workers of itself, kills the first one, and checks that everything has been done. It ends with
the exit code 1 if it has not. It takes some ten seconds.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from dqueue.taskiq import DqBroker, DqScheduleSource

URL = os.environ.get("DQ_URL", "redis://127.0.0.1:6379")
LEDGER = "taskiq_shop:ledger"

# A killed worker's tasks come back after two seconds.
broker = DqBroker(URL, "taskiq_shop", lease=2000)
source = DqScheduleSource(broker)


@broker.task("remind")
async def remind(customer: str) -> None:
    await broker.client.rpush(LEDGER, f"reminded {customer} at {time.time()}")


@broker.task("count")
async def count() -> None:
    await broker.client.rpush(LEDGER, "counted")


@broker.task("pack")
async def pack(order: int) -> None:
    """Takes longer than the lease, which the worker renews."""
    await broker.client.rpush(LEDGER, f"began {order}")
    await asyncio.sleep(3)
    await broker.client.rpush(LEDGER, f"packed {order}")


def start_worker():
    command = [sys.executable, "-m", "taskiq", "worker", "taskiq_shop:broker", "--workers", "1"]
    # A process group of its own, because a kill has to take the children with it.
    return subprocess.Popen(command, cwd=Path(__file__).parent, start_new_session=True)


async def wait_for(line):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        lines = [one.decode() for one in await broker.client.lrange(LEDGER, 0, -1)]
        found = [one for one in lines if one.startswith(line)]
        if found:
            return found
        await asyncio.sleep(0.05)
    raise SystemExit(f"NOT {line}")


async def main():
    await broker.startup()
    await broker.client.delete(LEDGER)
    due = time.time() + 1
    await remind.kicker().with_labels(delay=1).kiq("ann")
    await pack.kiq(1)
    counting = await count.schedule_by_interval(source, 1)
    worker = start_worker()
    try:
        reminded = float((await wait_for("reminded ann"))[0].split()[-1])
        await wait_for("counted")
        await counting.unschedule()
        await wait_for("began 1")
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        worker = start_worker()
        await wait_for("packed 1")
        checks = {
            "the reminder was not early": reminded >= due - 0.1,
            "the killed task ran again, once": len(await wait_for("began 1")) == 2,
        }
    finally:
        worker.terminate()
        worker.wait()
        await broker.client.delete(LEDGER)
        await broker.shutdown()
    for check, holds in checks.items():
        print("ok " if holds else "NOT", check)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
