"""The table of docs/takeover.md by peer and version: what moved and what stayed. With TAKEOVER_WRITE=1 each test writes its row."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

from tests.harness.server import ROOT, wait_for
from tests.takeover import (
    test_bullmq,
    test_celery,
    test_delayqueue,
    test_dramatiq,
    test_laravel,
)
from tests.takeover.conftest import numbers
from tests.takeover.peers import BULL, Bullmq, bullmq, tried

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.slow

PAGES = [ROOT / "docs/takeover.md", ROOT / "docs/takeover.zh-CN.md"]


def fill_bullmq(version, port, folder):
    """Jobs of all kinds, one that is completed, and a flow."""
    old = Bullmq(bullmq(version))
    old.run(port, "fill")
    old.run(port, "add", 5, "done")
    worker = old.start(port, "work", "done", folder / "ran")
    wait_for(lambda: numbers(folder / "ran"), timeout=40)
    worker.send_signal(signal.SIGTERM)
    worker.wait(20)
    if version != BULL:
        old.run(port, "flow")


def fill_celery(version, port, folder):
    old = test_celery.celery(version)
    for what in (("fill", 3600), ("protocol 1",)):
        test_celery.run(old, port, *what, log=folder / "log")


def fill_laravel(port, folder):
    test_laravel.need_php("Laravel")
    for what in (("fill", 3600), ("reserve",)):
        test_laravel.run(port, *what, log=folder / "log")
    time.sleep(2.1)


def fill_delayqueue(port, folder):
    subprocess.run([test_delayqueue.build(folder / "go"), str(port), "later"], check=True, timeout=60)


ROWS = {
    **{f"BullMQ {version}": ("bullmq", 0, "*", lambda *to, v=version: fill_bullmq(v, *to)) for version in tried(test_bullmq.VERSIONS)},
    f"Bull {BULL}": ("bull", 0, "*", lambda *to: fill_bullmq(BULL, *to)),
    **{f"Celery {version}": ("celery", 0, "*", lambda *to, v=version: fill_celery(v, *to)) for version in tried(test_celery.PINS)},
    "Dramatiq 2.2.1": ("dramatiq", 0, "*", lambda port, folder: test_dramatiq.run(port, "fill", 3600, log=folder / "log")),
    "Laravel 8.83": ("laravel", 4, "default", fill_laravel),
    "HDT3213/delayqueue 1.1.2": ("delayqueue", 0, "*", fill_delayqueue),
}


def counted(queues: list[dict], what: str) -> str:
    """The jobs of all queues by place or by reason, without the ids and bytes that differ from run to run."""
    total = {}
    for queue in queues:
        for name, count in queue[what].items():
            name = re.sub(r":.*|[^ -~]", "", name)
            total[name] = total.get(name, 0) + count
    return ", ".join(f"{count} {name}" for name, count in sorted(total.items())) or "nothing"


@pytest.mark.parametrize("name", ROWS)
def test_what_moves_and_what_stays_is_on_the_page(move, name, tmp_path):
    peer, db, queue, fill = ROWS[name]
    fill(move.old.port, tmp_path)
    prefix = ["--prefix", "app_"] if peer == "laravel" else []
    command = move.command(peer, "--queue", queue, *prefix, "--json", db=db)
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90)
    assert ended.returncode in (0, 3), ended.stderr
    queues = json.loads(ended.stdout)["queues"]
    row = f"| {name} | {counted(queues, 'moved')} | {counted(queues, 'stayed')} |"
    for page in PAGES:
        text = page.read_text()
        there = re.search(rf"^\| {re.escape(name)} \|.*$", text, re.MULTILINE)
        if os.environ.get("TAKEOVER_WRITE") and there:
            page.write_text(text.replace(there[0], row))
        else:
            assert there and there[0] == row, page
