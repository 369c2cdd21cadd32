"""The application of Celery: `python -m benches.frameworks.celery_app URL LOG-PORT SETTINGS`."""

import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta

import dqueue.kombu  # noqa: F401  makes dq:// known
import kombu.message
from celery import Celery

from benches.frameworks.fork_server import serve
from benches.frameworks.task_log import TaskLog

app = Celery("bench", set_as_current=False)


def configure(url: str, settings: dict) -> Celery:
    app.conf.update(
        broker_url=url,
        broker_transport_options=settings,
        broker_connection_retry_on_startup=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        task_default_queue="bench",
        worker_hijack_root_logger=False,
        worker_enable_remote_control=False,
    )
    return app


def task_log() -> TaskLog:
    # A connection of each process, because a fork must not share one.
    found = _task_logs.get(os.getpid())
    if found is None:
        found = _task_logs[os.getpid()] = TaskLog(int(os.environ["TASK_LOG"]))
    return found


_task_logs: dict[int, TaskLog] = {}


@app.task(name="work")
def work(task: str, seconds: float) -> None:
    task_log().write("start", task, os.environ["WORKER"])
    time.sleep(seconds)
    task_log().write("end", task, os.environ["WORKER"])


@app.task(name="late")
def late(task: str, due: float) -> None:
    task_log().write("late", task, f"{(time.time() - due) * 1000}")


@app.task(name="nothing")
def nothing() -> None:
    pass


def send(kind: str, *args: object, due: float | None = None) -> None:
    """Sends a task, to be run at a time (Unix seconds) or now."""
    # Celery's eta may have any zone. UTC is the default.
    eta = None if due is None else datetime.fromtimestamp(0, UTC) + timedelta(seconds=due)
    {"work": work, "late": late, "nothing": nothing}[kind].apply_async(args, eta=eta)


def _note_acks() -> None:
    ack = kombu.message.Message.ack

    def noted(self, multiple=False):
        ack(self, multiple)
        if self.headers.get("task") == "work":
            task_log().write("ack", json.loads(self.body)[0][0], os.environ["WORKER"])

    kombu.message.Message.ack = noted


def _work(name: str, threads: int) -> None:
    os.environ["WORKER"] = name
    app.worker_main(
        ["worker", "-c", str(threads), "-n", f"{name}@bench", "-l", "error", "--without-mingle", "--without-gossip"]
    )


if __name__ == "__main__":
    os.environ["TASK_LOG"] = sys.argv[2]
    import benches.frameworks.celery_app as this

    this.configure(sys.argv[1], json.loads(sys.argv[3]))
    this._note_acks()
    # A worker imports these only when it starts.
    import celery.apps.worker  # noqa: F401
    import celery.bin.celery  # noqa: F401
    import celery.bin.worker  # noqa: F401
    import celery.concurrency.prefork  # noqa: F401
    import celery.worker.consumer.connection  # noqa: F401

    serve(this._work)
