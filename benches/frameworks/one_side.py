"""One side of a pair, measured in a process of its own."""

import sys
import time
from dataclasses import dataclass

from benches.frameworks.contenders import Contender
from benches.frameworks.measures import MEASURES, Rows, Size
from tests.harness.server import Server


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@dataclass
class Side:
    """The measurements of one side of a pair."""

    name: str
    settings: str
    rows: Rows
    server: str
    """The server and its version."""


def measured(kind: type[Contender], names: list[str], size: Size) -> Side:
    """Measures one side of a pair on servers of its own."""
    server, task_log = Server().start(), Server(load_module=False).start()
    contender = kind(server, task_log)
    try:
        rows: Rows = {}
        for name in names:
            if name == "memory" and not contender.has_eta_memory:
                continue
            say(f"{contender.name}: {name}")
            rows |= MEASURES[name](contender, size, lambda text: say(f"{contender.name}: {text}"))
        return Side(contender.name, contender.settings, rows, _version(server))
    finally:
        contender.close()
        server.close()
        task_log.close()


def _version(server: Server) -> str:
    about = server.client().info("server")
    return f"Valkey {about['valkey_version']}" if "valkey_version" in about else f"Redis {about['redis_version']}"
