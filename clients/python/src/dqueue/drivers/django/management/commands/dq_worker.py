"""`manage.py dq_worker`: runs tasks until SIGTERM or SIGINT, and ends with 0 then."""

import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dqueue.drivers.django.backend import DqBackend
from dqueue.drivers.django.tasks import DEFAULT_TASK_BACKEND_ALIAS, task_backends
from dqueue.drivers.django.worker import TaskWorker


class Command(BaseCommand):
    help = "Runs the tasks of a dq backend until SIGTERM or SIGINT."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--concurrency", type=int, default=1, help="threads for each queue (1)")
        parser.add_argument("--queue", action="append", help="a queue to work on, may be repeated (QUEUES)")
        parser.add_argument("--backend", default=DEFAULT_TASK_BACKEND_ALIAS, help="the alias in TASKS (default)")
        parser.add_argument("--grace", type=float, default=20, help="seconds that tasks get to finish at the end (20)")

    def handle(self, *args: Any, **options: Any) -> None:
        backend = task_backends[options["backend"]]
        if not isinstance(backend, DqBackend):
            raise CommandError(f"TASKS[{options['backend']!r}] is not a dqueue.django.DqBackend")
        names = options["queue"] or sorted(backend.queues)
        if options["concurrency"] < 1 or not names:
            raise CommandError("there is nothing to do: --concurrency must be at least 1, and a queue is needed")
        grace = int(options["grace"] * 1000)
        first, *others = [
            TaskWorker(backend, name, concurrency=options["concurrency"], grace=grace).worker for name in names
        ]
        failures: list[BaseException] = []

        def run(worker: Any) -> None:
            try:
                worker.run(signals=False)
            except BaseException as error:
                failures.append(error)
                first.stop()

        threads = [threading.Thread(target=run, args=[worker]) for worker in others]
        relaying = threading.Event()
        if backend.outbox is not None:
            threads.append(threading.Thread(target=backend.outbox.sending.run, args=[relaying]))
        for thread in threads:
            thread.start()
        self.stdout.write(f"dq_worker: {options['concurrency']} threads for each of {', '.join(names)}")
        self.stdout.flush()
        try:
            # The main thread gets the signals.
            first.run()
        finally:
            relaying.set()
            for worker in others:
                worker.stop()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]
