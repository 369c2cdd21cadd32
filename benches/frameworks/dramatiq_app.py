"""The application of Dramatiq: `python -m benches.frameworks.dramatiq_app URL LOG-PORT SETTINGS`."""

import json
import os
import signal
import sys
import time

import dramatiq
from dqueue.dramatiq import DqBroker, DqConsumer
from dramatiq.brokers.redis import RedisBroker, _RedisConsumer

from benches.frameworks.fork_server import serve
from benches.frameworks.task_log import TaskLog

broker: dramatiq.Broker
actors: dict[str, dramatiq.Actor] = {}


def configure(url: str, settings: dict) -> dramatiq.Broker:
    global broker
    if url.startswith("dq://"):
        broker = DqBroker(url=url, **settings)
    else:
        broker = RedisBroker(url=url, **settings)
    for function in (work, late, nothing):
        actors[function.__name__] = dramatiq.actor(function, broker=broker, queue_name="bench")
    return broker


def task_log() -> TaskLog:
    found = _task_logs.get(os.getpid())
    if found is None:
        found = _task_logs[os.getpid()] = TaskLog(int(os.environ["TASK_LOG"]))
    return found


_task_logs: dict[int, TaskLog] = {}


def work(task: str, seconds: float) -> None:
    task_log().write("start", task, os.environ["WORKER"])
    time.sleep(seconds)
    task_log().write("end", task, os.environ["WORKER"])


def late(task: str, due: float) -> None:
    task_log().write("late", task, f"{(time.time() - due) * 1000}")


def nothing() -> None:
    pass


def send(kind: str, *args: object, due: float | None = None) -> None:
    """Sends a task, to be run at a time (Unix seconds) or now."""
    delay = None if due is None else max(0, round((due - time.time()) * 1000))
    actors[kind].send_with_options(args=args, delay=delay)


def _note_acks() -> None:
    for consumer in (DqConsumer, _RedisConsumer):
        _noted(consumer)


def _noted(consumer: type) -> None:
    ack = consumer.ack

    def noted(self, message):
        ack(self, message)
        if message.actor_name == "work":
            task_log().write("ack", message.args[0], os.environ["WORKER"])

    consumer.ack = noted


def _work(name: str, threads: int) -> None:
    os.environ["WORKER"] = name
    worker = dramatiq.Worker(broker, worker_threads=threads)
    worker.start()
    signal.pause()


if __name__ == "__main__":
    os.environ["TASK_LOG"] = sys.argv[2]
    import benches.frameworks.dramatiq_app as this

    this.configure(sys.argv[1], json.loads(sys.argv[3]))
    this._note_acks()
    serve(this._work)
