"""A shop with the tasks of the Python package: delayed, failing and scheduled tasks, and a worker that is killed.

    pip install ./clients/python      (Python 3.11 or newer)
    DQ_URL=redis://127.0.0.1:6379 python examples/drivers/python_shop.py

The program starts `dq-worker` with two processes, kills one of them at its work, and checks that every task has run. It
ends with the exit code 1 if one has not. It takes some five seconds.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from dqueue import Queue, Retry, Tasks, connect, current_message

queue = Queue(connect(os.environ.get("DQ_URL", "redis://127.0.0.1:6379")), "python_shop")
tasks = Tasks(queue, retries=5, retain=600_000)


@tasks.task
def remind(customer: str, due: float) -> float:
    """Returns how late it is, in ms."""
    return (time.time() - due) * 1000


@tasks.task
def charge(order: int) -> str:
    attempt = current_message().attempt
    if attempt < 3:
        raise Retry("the bank is busy", delay=100)
    return f"charged {order} at attempt {attempt}"


@tasks.task
def pack(order: int, started: str) -> str:
    Path(started).write_text(str(os.getpid()))
    time.sleep(1)
    return f"packed {order} at attempt {current_message().attempt}"


@tasks.task(every=500)
def count_stock() -> None:
    pass


def start_worker() -> subprocess.Popen:
    command = [sys.executable, "-m", "dqueue.program", "python_shop:tasks", "--path", str(Path(__file__).parent)]
    return subprocess.Popen([*command, "--processes", "2", "--concurrency", "4", "--lease", "2000"])


def main() -> int:
    queue.purge()
    started = Path(f"/tmp/python_shop.{os.getpid()}")
    worker = start_worker()
    try:
        due = time.time() + 1
        later = remind.with_options(at=round(due * 1000))
        reminders = [later.send(f"customer {number}", round(due * 1000) / 1000) for number in range(20)]
        charged = charge.send(7)
        packed = pack.send(7, str(started))
        while not started.exists() or not started.read_text():
            time.sleep(0.01)
        os.kill(int(started.read_text()), signal.SIGKILL)
        print(packed.result())
        print(charged.result())
        late = [reminder.result() for reminder in reminders]
        print(f"20 reminders, at most {max(late):.0f} ms late")
        counted = sum(record.type == "count_stock" for record in queue.list("finished"))
        print(f"stock counted {counted} times")
    finally:
        worker.terminate()
        code = worker.wait(30)
        queue.unschedule("count_stock")
        started.unlink(missing_ok=True)
    is_right = packed.result() == "packed 7 at attempt 2" and charged.result() == "charged 7 at attempt 3"
    is_right = is_right and min(late) >= 0 and counted > 0 and code == 0
    print("all tasks have run" if is_right else "SOMETHING IS WRONG")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
