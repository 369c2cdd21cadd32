"""The packages of the systems that are taken over, each in a folder of its own below the build's, and what runs with them."""

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.harness.optional import need
from tests.harness.server import ROOT

HERE = Path(__file__).parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def packages(name: str, command: list[str], *words: str) -> Path:
    """A folder with packages, which are fetched once. The test is skipped where they cannot be had."""
    place = TARGET / "takeover"
    place.mkdir(parents=True, exist_ok=True)
    folder = place / name
    if not folder.exists():
        # Several processes of the tests may want it at once.
        made = Path(tempfile.mkdtemp(dir=place))
        ended = subprocess.run([*command, *words], cwd=made, capture_output=True, text=True, timeout=300)
        if ended.returncode:
            pytest.skip(f"{' '.join(words)}: not to be had here: {ended.stderr[-200:]}")
        with suppress(OSError):
            made.rename(folder)
    return folder


def tried(versions) -> list[str]:
    """The versions of a peer to try: all for `make test-takeover`, else the newest, which comes last."""
    return [*versions] if os.environ.get("TAKEOVER_VERSIONS") == "all" else [*versions][-1:]


BULL = "4.16.5"


def bullmq(version: str) -> Path:
    """The folder with a BullMQ, or with the Bull of that version."""
    need(shutil.which("npm"), "npm")
    install = ["npm", "install", "--prefix", ".", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    if version == BULL:
        return packages(f"bull-{version}", install, f"bull@{version}")
    return packages(f"bullmq-{version}", install, f"bullmq@{version}", "ioredis@5")


class Bullmq:
    """Programs of a BullMQ or a Bull, on Redis or, with a prefix, on dq."""

    def __init__(self, folder: Path, backend: str = "", **env: str):
        self.folder, self.backend, self.more = folder, backend, env
        self.peer = "bull" if (folder / "node_modules/bull").exists() else "bullmq"

    def command(self, port: int, *words) -> list[str]:
        return ["node", str(HERE / "bullmq.mjs"), str(self.folder), str(port), *map(str, words)]

    @property
    def env(self) -> dict:
        return {**os.environ, "DQ_BACKEND": self.backend, **self.more}

    def run(self, port: int, *words) -> str:
        ended = subprocess.run(self.command(port, *words), env=self.env, capture_output=True, text=True, timeout=3600)
        assert ended.returncode == 0, ended.stderr[-3000:]
        return ended.stdout

    def start(self, port: int, *words) -> subprocess.Popen:
        return subprocess.Popen(self.command(port, *words), env=self.env)
