"""The worker of a driver behind a way to its server that breaks."""

import subprocess
from pathlib import Path

from tests.drivers.faults.workers import Driver
from tests.harness.faulty_worker import FaultyWorker
from tests.harness.server import ROOT


class Scene(FaultyWorker):
    def __init__(self, driver: Driver, command: list[str], folder: Path) -> None:
        super().__init__(driver.key, folder, driver.database)
        self.driver = driver
        self.command = command

    def popen(self, environment: dict[str, str]) -> subprocess.Popen:
        environment |= {"FAULTS_LIBRARY": self.driver.library, "FAULTS_PHP": str(ROOT / "clients/php")}
        return subprocess.Popen(self.command, env=environment, stdout=self.output, stderr=self.output, start_new_session=True)

    def send(self, seconds: float = 0.0) -> str:
        """Sends a message, and returns its id."""
        id = self.new_id()
        self.client.execute_command("DQ.SEND", self.driver.key, *self.driver.words(id, seconds))
        return id
