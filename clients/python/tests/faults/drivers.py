"""The drivers: how the worker of each is started, and how a message for it is sent."""

import asyncio
import importlib.util
import json
from dataclasses import dataclass, replace
from typing import Any

import redis

KILLS = {"os._exit", "SIGKILL"}
"""The ends of a handler that end its process, too."""


@dataclass
class Driver:
    """A driver. `send` gets a client of the server, the id of the message, and the other arguments of its handler."""

    name: str
    needs: tuple[str, ...] = ()
    """The modules without which the driver cannot be tested."""
    command: tuple[str, ...] = ()
    """The arguments of the Python that is the worker."""
    key: str = "work"
    """The queue."""
    slots: int = 2
    """How many handlers run at once."""
    ahead: int = 0
    """How many messages the worker takes ahead of them."""
    is_early: bool = False
    """Whether it acks a message when its handler begins."""

    def is_there(self) -> bool:
        return all(importlib.util.find_spec(module) for module in self.needs)

    keeps_errors: bool = True
    """Whether a message whose handler raises something is dead, with its error. Frameworks with result backends ack it."""

    def runs_again(self) -> bool:
        """Whether a task that runs while the connection is lost is delivered again."""
        return False

    def send(self, client: redis.Redis, id: str, *args: object) -> None:
        raise NotImplementedError


class Plain(Driver):
    """A Worker of the package itself. Where RETRIES has a limit, lost workers count for it; here lost workers have
    their own limit.
    """

    def send(self, client: redis.Redis, id: str, *args: object) -> None:
        retries = -1 if args[-1] in KILLS or args[-1] == "return" else 0
        client.execute_command("DQ.SEND", self.key, json.dumps([id, *args]), "ID", id, "RETRIES", retries)


class Celery(Driver):
    def runs_again(self) -> bool:
        import celery

        return tuple(celery.VERSION[:2]) < (5, 6)

    def send(self, client: redis.Redis, id: str, *args: object) -> None:
        import dqueue.kombu  # noqa: F401  makes dq:// known
        from celery import Celery as App

        app = App("sender", broker=_url(client, "dq"), set_as_current=False)
        with app.connection_for_write() as connection:
            app.send_task("work", [id, *args], queue="work", task_id=id, connection=connection)


class Dramatiq(Driver):
    def send(self, client: redis.Redis, id: str, *args: object) -> None:
        import dramatiq
        from dqueue.dramatiq import DqBroker

        broker = DqBroker(url=_url(client), middleware=[])
        broker.enqueue(dramatiq.Message("work", "work", (id, *args), {}, {}))
        broker.close()


class Taskiq(Driver):
    def send(self, client: redis.Redis, id: str, *args: object) -> None:
        asyncio.run(self._send(_url(client), id, args))

    async def _send(self, url: str, id: str, args: tuple[object, ...]) -> None:
        from dqueue.taskiq import DqBroker
        from taskiq.kicker import AsyncKicker

        broker = DqBroker(url, queue_name="work")
        await AsyncKicker("work", broker, {}).kiq(id, *args)
        await broker.shutdown()


class Django(Driver):
    def send(self, client: redis.Redis, id: str, *args: object) -> None:
        content = {"task": "django_app.work", "args": [id, *args], "kwargs": {}}
        options = ("RETRIES", -1, "MAXTIMEOUTS", 3, "RETAIN", 60_000)
        client.execute_command("DQ.SEND", self.key, json.dumps(content), "ID", id, *options)


def _url(client: redis.Redis, scheme: str = "redis") -> str:
    settings: dict[str, Any] = client.get_connection_kwargs()
    return f"{scheme}://127.0.0.1:{settings['port']}"


THREADS = Plain("Worker", command=("threads.py",))
TASKS = Plain("asyncio.Worker", command=("tasks.py",))
CELERY = Celery(
    "Celery",
    ("celery",),
    ("-m", "celery", "-A", "celery_app", "worker", "-c", "2", "-l", "info", "--without-gossip", "--without-mingle"),
    ahead=2,
    keeps_errors=False,
)
CELERY_EARLY = replace(CELERY, name="Celery, early acks", is_early=True)
DRAMATIQ = Dramatiq(
    "Dramatiq",
    ("dramatiq",),
    ("-m", "dramatiq", "dramatiq_app", "-p", "1", "-t", "2"),
    key="dramatiq:work",
    ahead=2,
)
TASKIQ = Taskiq(
    "taskiq",
    ("taskiq",),
    ("-m", "taskiq", "worker", "taskiq_app:broker", "--workers", "1"),
    keeps_errors=False,
)
DJANGO = Django("Django", ("django",), ("django_app.py", "dq_worker", "--concurrency", "2", "--grace", "3"))
