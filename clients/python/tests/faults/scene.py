"""The worker of a driver behind a way to its server that breaks."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from dqueue import Queue
from dqueue.protocol.records import Record

from clients.python.tests.faults.drivers import Driver
from tests.harness.faulty_worker import FaultyWorker
from tests.harness.server import ROOT, wait_for

PROGRAMS = Path(__file__).parent / "programs"
GRACE = 3.0
"""Seconds that a worker gives its handlers when it is stopped."""


class Scene(FaultyWorker):
    def __init__(self, driver: Driver, folder: Path) -> None:
        super().__init__(driver.key, folder)
        self.driver = driver

    def popen(self, environment: dict[str, str]) -> subprocess.Popen:
        environment["PYTHONPATH"] = f"{ROOT / 'clients/python/src'}{os.pathsep}{PROGRAMS}"
        environment["PYTHONUNBUFFERED"] = "1"
        environment["FAULTS_EARLY"] = "yes" if self.driver.is_early else ""
        command = [sys.executable, *self.driver.command]
        return subprocess.Popen(
            command, cwd=PROGRAMS, env=environment, stdout=self.output, stderr=self.output, start_new_session=True
        )

    def send(self, seconds: float = 0.0, how: str = "return") -> str:
        """Sends a message, and returns its id."""
        id = self.new_id()
        self.driver.send(self.client, id, seconds, how)
        return id

    def replace(self) -> None:
        """Starts the worker again if it has ended, as a service manager does."""
        assert self.worker is not None
        if self.worker.poll() is not None:
            self.launch()

    def wait_until(self, condition: Callable[[], object], seconds: float, what: str) -> None:
        """Waits for a condition, and replaces the worker meanwhile."""

        def look() -> object:
            self.replace()
            return condition()

        with self.explained():
            wait_for(look, seconds, what)

    def dead(self, id: str) -> Record | None:
        """Returns the record of a dead message."""
        # Frameworks give the message an id of their own.
        records = Queue(self.client, self.driver.key).list("dead")
        return next((one for one in records if f'"{id}"'.encode() in one.payload), None)
