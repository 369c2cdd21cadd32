"""A server with dq for a test run: `dqueue.testing` has its page and its fixtures."""

import importlib
import os
import shutil
import subprocess


class Server:
    """A server with dq for tests: in memory, on a free port. It ends with this process, even if that is killed.

    It is the program `dq` that DQ_CLI names, that of the package dq-server, or the one on PATH. `options` are more
    options of `dq server`.
    """

    def __init__(self, *options: str) -> None:
        command = [_program(), "server", "--ephemeral", *options]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        """The address of the server: redis://127.0.0.1:PORT."""
        if not self.url:
            _, said = self._process.communicate()
            raise RuntimeError(f"{command[0]} starts no server: {said.strip()}")

    def stop(self) -> None:
        """Ends the server."""
        self._process.terminate()
        self._process.communicate()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _program() -> str:
    named = os.environ.get("DQ_CLI")
    if named:
        return named
    try:
        return str(importlib.import_module("dq_server").program())
    except ModuleNotFoundError:
        found = shutil.which("dq")
    if found is None:
        raise RuntimeError(
            "tests with dq need a server: pip install dq-server, or have the program dq on PATH, or let DQ_TEST_URL "
            "name a server with dq"
        )
    return found
