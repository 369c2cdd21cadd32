"""The program dq, built and run as by a user: without a terminal, or in a real one (tmux)."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from tests.harness.server import ROOT, engine, module_path, wait_for


def build() -> Path:
    """The program under test: DQ_CLI, else the quick build of cli/ (no work if it is up to date)."""
    if given := os.environ.get("DQ_CLI"):
        return Path(given).resolve()
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "cli"
    manifest = ROOT / "cli/Cargo.toml"
    subprocess.run(["cargo", "build", "--quiet", "--manifest-path", manifest, "--target-dir", target], check=True)
    return target / "debug/dq"


def programs() -> dict:
    """The variables by which the packages for tests start a server of the programs under test."""
    return {"DQ_CLI": str(build()), "DQ_ENGINE": shutil.which(engine()), "DQ_MODULE": str(module_path())}


class Cli:
    """Runs dq on one server."""

    def __init__(self, program: Path, url: str):
        self.program = program
        self.url = url

    def env(self) -> dict:
        return {**os.environ, "DQ_URL": self.url}

    def __call__(self, *args, code: int = 0, text: bool = True):
        """Runs to the end, which must have this exit code."""
        command = [self.program, *map(str, args)]
        ended = subprocess.run(
            command, env=self.env(), stdin=subprocess.DEVNULL, capture_output=True, text=text, timeout=60
        )
        assert ended.returncode == code, (command, ended)
        return ended

    def start(self, *args) -> "Started":
        """Starts it, for `with`."""
        return Started([self.program, *map(str, args)], self.env())


class Started:
    """A dq process that runs for some time."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def output(self) -> str:
        """The whole output until the program ended."""
        out, err = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, err
        return out

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Screen:
    """dq in a terminal of its own, for `with`: keys go in, the screen comes out."""

    def __init__(self, cli: Cli, *args, columns: int = 80, rows: int = 24):
        self.socket = f"dq-test-{os.getpid()}-{time.monotonic_ns()}"
        # The shell stays, so that the state of the terminal afterwards can be seen.
        line = " ".join([str(cli.program), *map(str, args)]) + "; echo ended with $?; exec sleep 1000"
        size = ["-x", str(columns), "-y", str(rows)]
        command = ["tmux", "-u", "-L", self.socket, "-f", "/dev/null", "new-session", "-d", "-s", "dq", *size, line]
        subprocess.run(command, env={**cli.env(), "LC_ALL": "C.UTF-8"}, check=True)

    def _tmux(self, *args) -> str:
        command = ["tmux", "-u", "-L", self.socket, *args]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def press(self, *keys: str) -> None:
        """Presses keys, named as tmux names them."""
        self._tmux("send-keys", "-t", "dq", *keys)

    def text(self) -> str:
        """The text on the screen."""
        return self._tmux("capture-pane", "-p", "-t", "dq")

    def lines(self) -> list:
        return self.text().splitlines()

    def styled_lines(self) -> list:
        """The text on the screen, to its edges, with the terminal's codes for bold and the like."""
        return self._tmux("capture-pane", "-e", "-N", "-p", "-t", "dq").splitlines()

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-t", "dq", "-x", str(columns), "-y", str(rows))

    def sees(self, *texts: str, timeout: float = 20) -> str:
        """Waits until all these are on the screen at once; returns it."""

        def whole():
            screen = self.text()
            return screen if all(text in screen for text in texts) else None

        try:
            return wait_for(whole, timeout, f"{texts} on the screen")
        except AssertionError as failed:
            raise AssertionError(f"{failed}:\n{self.text()}") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True)
