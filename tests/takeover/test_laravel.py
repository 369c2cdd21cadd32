"""Laravel: what its own package has pushed runs once with Laravel on dq."""

import json
import os
import subprocess
import time

import pytest

from tests.harness.server import ROOT
from tests.takeover.conftest import digest, numbers
from tests.takeover.peers import HERE
from tests.tools.test_php_client import need_php

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.slow

PREFIX = ["--prefix", "app_"]


@pytest.fixture(scope="module", autouse=True)
def php():
    need_php("Laravel")


def run(port, *words, log):
    env = {**os.environ, "DQ_TEST_URL": f"redis://127.0.0.1:{port}", "TAKEOVER_PHP": str(ROOT / "clients/php"), "TAKEOVER_LOG": str(log)}
    ended = subprocess.run(["php", str(HERE / "laravel.php"), *map(str, words)], env=env, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and not ended.stderr, ended.stdout + ended.stderr


def test_each_job_runs_once_in_its_order(move, tmp_path):
    log = tmp_path / "log"
    run(move.old.port, "fill", 3, log=log)
    run(move.old.port, "reserve", log=log)
    time.sleep(2.1)
    before = digest(move.old.client(db=4))
    queue = ["laravel", *PREFIX, "--queue", "default", "--json"]
    said = json.loads(move.run(*queue, "--running", "take", "--ledger", "l", db=4).stdout)
    assert said["queues"][0]["moved"] == {"delayed": 6, "queue": 9, "reserved": 1} and said["stayed"] == 0
    move.run(None, "--undo", "l", db=4)
    assert digest(move.old.client(db=4)) == before
    said = json.loads(move.run(*queue, "--ledger", "m", db=4, code=3).stdout)
    assert said["queues"][0]["moved"] == {"delayed": 6, "queue": 9} and len(said["queues"][0]["lost"]) == 1
    move.run(*queue, "--running", "take", "--ledger", "m", db=4)
    client = move.new.client(protocol=3, db=4)
    ready = client.execute_command("DQ.LIST", "app_dq:default", "ready", "COUNT", 20)[1]
    assert sum(json.loads(m[b"payload"])["attempts"] for m in ready) == 1 and ready[0][b"type"] == b"Work"
    run(move.new.port, "work", 15, log=log)
    ran = numbers(log)
    assert [n for n in ran if 0 < n < 10] == list(range(1, 10)) and sorted(ran) == [*range(10), *range(20, 25)]
    assert len(client.execute_command("DQ.LIST", "app_dq:default", "delayed")[1]) == 1


def test_undo_leaves_every_key_as_it_was(move, tmp_path):
    run(move.old.port, "fill", 3600, log=tmp_path / "log")
    before = digest(move.old.client(db=4))
    move.run("laravel", *PREFIX, "--queue", "*", "--ledger", "l", db=4)
    assert set(digest(move.old.client(db=4))) == {b"app_queues:default:notify"}
    move.run(None, "--undo", "l", db=4)
    assert digest(move.old.client(db=4)) == before
