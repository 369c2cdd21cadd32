"""Fixtures of the tests of dq web; a test module takes them by naming this one in pytest_plugins."""

import pytest

from tests.harness.cli import Cli
from tests.harness.web import Web

pytest_plugins = ["tests.harness.cli_fixtures"]


@pytest.fixture
def start(program, server, tmp_path):
    """Starts dq web on the shared server, or on the server of a URL: start("--read-only")."""
    running = []

    def start(*options, url=None, before=()):
        cli = Cli(program, url or f"redis://127.0.0.1:{server.port}")
        web = Web(cli, tmp_path / f"web-{len(running)}.log", *options, before=before)
        running.append(web)
        return web.__enter__()

    yield start
    for web in running:
        web.__exit__()


@pytest.fixture
def web(start):
    return start().visitor()


@pytest.fixture
def shop(r3):
    """A queue with a held group, a running message with a note, a dead one, a batch and a schedule; two families."""
    do = r3.execute_command
    do("DQ.CREATE", "shop", "BACKOFF", "FIXED", 60000, "RETAIN", 60000)
    for id, group in [("a1", "ann"), ("a2", "ann"), ("b1", "bob")]:
        do("DQ.SEND", "shop", '{"order": 12345678901234567890, "total": 1.10}', "ID", id, "GROUP", group)
    do("DQ.SEND", "shop", "x", "ID", "dead", "TYPE", "mail", "HEADERS", 1, "tenant", "t1")
    for id, receipt, *_ in do("DQ.FETCH", "shop", "COUNT", 10, "CONSUMER", "worker-1"):
        if id == b"dead":
            do("DQ.NACK", "shop", receipt, "FATAL", "ERROR", "no such mailbox")
        if id == b"a1":
            do("DQ.NACK", "shop", receipt, "ERROR", "HTTP 500")
        if id == b"b1":
            do("DQ.TOUCH", "shop", 60000, receipt, "NOTE", "page 7")
    do("DQ.MSEND", "shop", 2, "1", "2", "BATCH", "album")
    do("DQ.SEND", "shop", "publish", "ID", "last", "AFTER", "album")
    do("DQ.SCHEDULE", "shop", "nightly", "CRON", "0 3 * * *", "PAYLOAD", "x")
    for key in do("DQ.PARTITIONS", "mails", 4):
        do("DQ.SEND", key, "x", "ID", "m")
    return r3
