"""The drivers: the command that starts the worker of each, and the form of its messages."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.harness.optional import need
from tests.harness.server import ROOT
from tests.tools.test_go_client import go
from tests.tools.test_php_client import need_php

PROGRAMS = Path(__file__).parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")


@dataclass
class Driver:
    """A driver whose worker is started by `command`."""

    name: str
    library: str = ""
    """The Redis library, where there are several."""
    key: str = "work"
    database: int = 0
    stop_seconds: float = 5.0
    """How long a worker may take to stop that has a server: `grace` and two seconds."""
    stop_without: float = 5.0
    """How long such a worker may take while the server is away."""
    heeds_silence: bool = True
    """Whether it stops in that time, too, if the server accepts connections and answers nothing."""

    has_heartbeats: bool = True

    slots: int = 2
    """How many handlers run at once."""
    ahead: int = 0
    """How many messages the worker takes ahead of them."""
    is_early: bool = False
    """Whether it acks a message when its handler begins."""

    def command(self, folder: Path) -> list[str]:
        raise NotImplementedError

    def words(self, id: str, seconds: float) -> list[str | int]:
        """The payload and the options of DQ.SEND."""
        return [json.dumps([id, seconds]), "ID", id]


class Node(Driver):
    program = "node.mjs"

    def command(self, folder):
        modules = TARGET / "node-client/node_modules"
        need(shutil.which("node") and modules.is_dir(), "what clients/node/package-lock.json names")
        place = folder / "node"
        shutil.copytree(ROOT / "clients/node/src", place / "src")
        for name in ["package.json", "tsconfig.json"]:
            shutil.copy(ROOT / "clients/node" / name, place)
        (place / "node_modules").symlink_to(modules)
        subprocess.run(["npm", "run", "--silent", "build"], cwd=place, check=True)
        shutil.copy(PROGRAMS / self.program, place)
        return ["node", str(place / self.program)]


class Bullmq(Node):
    program = "bullmq.mjs"

    def words(self, id, seconds):
        return [json.dumps({"name": "job", "data": [id, seconds], "timestamp": 0}), "ID", id]


@dataclass
class Php(Driver):
    program = "worker.php"
    slots: int = 1

    def command(self, folder):
        need_php({"worker.php": "Client", "laravel.php": "Laravel", "symfony.php": "Symfony"}[self.program])
        return ["php", str(PROGRAMS / self.program)]


class Symfony(Php):
    program = "symfony.php"

    def words(self, id, seconds):
        return [*super().words(id, seconds), "RETRIES", -1]


class Laravel(Php):
    program = "laravel.php"

    def words(self, id, seconds):
        job = f'O:4:"Work":2:{{s:2:"id";s:{len(id)}:"{id}";s:7:"seconds";d:{seconds};}}'
        call = "Illuminate\\Queue\\CallQueuedHandler@call"
        payload = {"displayName": "Work", "job": call, "maxTries": None, "data": {"commandName": "Work", "command": job}}
        return [json.dumps(payload), "RETRIES", -1]


class Go(Driver):
    def command(self, folder):
        go("build", "-o", folder / "go-worker", PROGRAMS / "go/main.go")
        return [str(folder / "go-worker")]


LARAVEL = {"key": "app_dq:default", "database": 4, "heeds_silence": False}
IOREDIS, NODE_REDIS = Node("Node", "ioredis"), Node("Node", "node-redis")
BULLMQ = Bullmq("BullMQ", key="bull:work")
PHP = Php("PHP")
LARAVEL_PHPREDIS, LARAVEL_PREDIS = Laravel("Laravel", "phpredis", **LARAVEL), Laravel("Laravel", "predis", **LARAVEL)
# The transport does not learn that its worker is to stop, so it repeats its command until `patience` is over.
# `messenger:consume --keepalive` has heartbeats, since Symfony 7.2.
SYMFONY = Symfony("Symfony", stop_without=18.0, heeds_silence=False, has_heartbeats=False)
GO = Go("Go")
