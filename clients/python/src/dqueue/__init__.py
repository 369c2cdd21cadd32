"""A thin, typed client for dq, the durable, ordered delay queue in Redis.

On top of redis-py:

- `Queue`: one queue on the server, with a method for each command.
- `Family`: one logical queue over many servers, with the same methods.
- `Worker`: fetches, hands each message to the handler of its type, keeps the leases alive, stops gracefully.
- `Message`: what a handler gets.
- `Tasks`: functions whose calls are sent as messages; the program `dq-worker` runs them.
- `Middleware`: what runs around sends and handlers.

`dqueue.asyncio` has the same for asyncio. `dqueue.testing` runs a queue under virtual time in pytest. All times are
milliseconds. As an argument, a `timedelta` or (for a point in time) a `datetime` will do as well.

    from dqueue import Message, Queue, Worker, connect

    mails = Queue(connect("redis://localhost"), "mails")
    mails.send("welcome ann", type="welcome", delay=10_000)

    worker = Worker(mails, concurrency=4)

    @worker.handler("welcome")
    def welcome(message: Message) -> None:
        print(message.text)

    worker.run()
"""

from dataclasses import is_dataclass

from dqueue._needs import REDIS_PY  # noqa: F401  before all that imports redis-py
from dqueue._sync.family import Family
from dqueue._sync.queue import Queue
from dqueue._sync.tasks import Job, Task, Tasks
from dqueue._sync.worker import Worker
from dqueue.connection import connect, connect_cluster
from dqueue.protocol.calls import Next, Signal
from dqueue.protocol.durable import Durable, NotConfirmed
from dqueue.protocol.effects import Effects
from dqueue.protocol.message import Message
from dqueue.protocol.options import (
    BackoffKind,
    Conditions,
    FetchOptions,
    GroupOptions,
    LimitOptions,
    NackOptions,
    Pause,
    QueueOptions,
    ScheduleOptions,
    SendOptions,
    State,
)
from dqueue.protocol.records import (
    Batch,
    Child,
    Consumer,
    Explanation,
    FailedAttempt,
    Group,
    Info,
    Limit,
    Record,
    Schedule,
    Window,
)
from dqueue.working.coding import Coding, Layers
from dqueue.working.definition import Serializer, TaskFailed
from dqueue.working.handlers import Handlers
from dqueue.working.middleware import Middleware, Sending, current_message
from dqueue.working.outcomes import Follow, Outcome, Park, Reject, Retry, Snooze
from dqueue.working.worker_options import WorkerOptions

__all__ = [
    "BackoffKind",
    "Batch",
    "Child",
    "Coding",
    "Conditions",
    "Consumer",
    "Durable",
    "Effects",
    "Explanation",
    "FailedAttempt",
    "Family",
    "FetchOptions",
    "Follow",
    "Group",
    "GroupOptions",
    "Handlers",
    "Info",
    "Job",
    "Layers",
    "Limit",
    "LimitOptions",
    "Message",
    "Middleware",
    "NackOptions",
    "Next",
    "NotConfirmed",
    "Outcome",
    "Park",
    "Pause",
    "Queue",
    "QueueOptions",
    "Record",
    "Reject",
    "Retry",
    "Schedule",
    "ScheduleOptions",
    "SendOptions",
    "Sending",
    "Serializer",
    "Signal",
    "Snooze",
    "State",
    "Task",
    "TaskFailed",
    "Tasks",
    "Window",
    "Worker",
    "WorkerOptions",
    "connect",
    "connect_cluster",
    "current_message",
]

# Records and exceptions, which programs pickle, go by the public name, wherever their class is.
for _name in __all__:
    _public = globals()[_name]
    if isinstance(_public, type) and (issubclass(_public, Exception) or is_dataclass(_public)):
        _public.__module__ = __name__
