"""`manage.py dq_outbox`: sends what the outbox has until SIGTERM or SIGINT, and ends with 0 then."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dqueue.drivers.django.backend import DqBackend
from dqueue.drivers.django.tasks import DEFAULT_TASK_BACKEND_ALIAS, task_backends


class Command(BaseCommand):
    help = "Sends the messages of the outbox of a dq backend until SIGTERM or SIGINT."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--backend", default=DEFAULT_TASK_BACKEND_ALIAS, help="the alias in TASKS (default)")

    def handle(self, *args: Any, **options: Any) -> None:
        backend = task_backends[options["backend"]]
        if not isinstance(backend, DqBackend) or backend.outbox is None:
            raise CommandError(f"TASKS[{options['backend']!r}] is not a dqueue.django.DqBackend with the option outbox")
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        self.stdout.write(f"dq_outbox: relays from the database {backend.outbox.alias}")
        self.stdout.flush()
        backend.outbox.sending.run(stop)
