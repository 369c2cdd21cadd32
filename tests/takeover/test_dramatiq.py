"""Dramatiq: what its own package has sent runs once with Dramatiq on dq."""

import json
import os
import subprocess
import sys

import pytest

from tests.harness.server import ROOT, wait_for
from tests.takeover.conftest import digest, numbers
from tests.takeover.peers import HERE

pytest.importorskip("dramatiq")
pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.slow


def start(port, *words, log, dq=False):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python/src"), "TAKEOVER_LOG": str(log), "DQ": "1" if dq else ""}
    program = [sys.executable, str(HERE / "dramatiq_old.py"), str(port), *map(str, words)]
    return subprocess.Popen(program, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(*args, **options):
    process = start(*args, **options)
    _, error = process.communicate(timeout=90)
    assert process.returncode == 0, error[-3000:]


def test_each_message_runs_once_in_its_order(move, tmp_path):
    log = tmp_path / "log"
    run(move.old.port, "fill", 4, log=log)
    said = json.loads(move.run("dramatiq", "--queue", "default", "--json").stdout)
    assert said["queues"][0]["moved"] == {"DQ": 6, "XQ": 2, "queue": 20} and said["stayed"] == 0
    client = move.new.client(protocol=3)
    dead = client.execute_command("DQ.LIST", "dramatiq:default", "dead")[1]
    assert sorted(message[b"type"] for message in dead) == [b"dies", b"dies_twice"]
    assert any(b"ValueError: no 91" in message[b"error"] for message in dead), dead
    run(move.new.port, "work", 25, log=log, dq=True)
    ran = numbers(log)
    assert sorted(ran) == [*range(20), *range(30, 35)] and ran[:20] == list(range(20))
    assert len(client.execute_command("DQ.LIST", "dramatiq:default", "delayed")[1]) == 1


def test_undo_leaves_every_key_as_it_was(move, tmp_path):
    run(move.old.port, "fill", 3600, log=tmp_path / "log")
    heartbeats = lambda key: b"__" in key  # noqa: E731
    before = digest(move.old.client(), heartbeats)
    move.run("dramatiq", "--queue", "*", "--ledger", "l")
    assert digest(move.old.client(), heartbeats) == {}
    move.run(None, "--undo", "l")
    assert digest(move.old.client(), heartbeats) == before


def test_what_a_killed_worker_had_is_lost_and_taken(move, tmp_path):
    log, client = tmp_path / "log", move.old.client()
    worker = start(move.old.port, "hold", log=log)
    wait_for(lambda: sum(client.scard(key) for key in client.keys("*__acks__*.DQ")) == 5, timeout=20)
    worker.kill()
    worker.wait()
    before = digest(client)
    queue = ["dramatiq", "--queue", "default", "--running", "take", "--json"]
    said = json.loads(move.run(*queue, "--ledger", "l").stdout)
    assert said["queues"][0]["moved"] == {"acks": 5}
    move.run(None, "--undo", "l")
    assert digest(client) == before
    move.run(*queue, "--ledger", "m")
    run(move.new.port, "work", 5, log=log, dq=True)
    assert sorted(numbers(log)) == list(range(40, 45))
