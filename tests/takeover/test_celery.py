"""Celery 5: what its own package has sent runs once with Celery on dq."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.harness.server import ROOT, wait_for
from tests.takeover.conftest import digest, numbers
from tests.takeover.peers import HERE, packages, tried

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.slow

PINS = {
    "5.4.0": ["celery==5.4.0", "kombu==5.4.2", "redis==5.0.8"],
    "5.5.3": ["celery==5.5.3", "kombu[redis]==5.5.4", "packaging"],
    "5.6.3": ["celery==5.6.3", "kombu[redis]==5.6.2", "packaging"],
    "5.7.0": ["celery==5.7.0", "kombu[redis]==5.7.0", "packaging"],
}


def celery(version: str):
    """The folder with a Celery."""
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", "."]
    return packages(f"celery-{version}", install, *PINS[version])


@pytest.fixture(scope="module", params=tried(PINS))
def old(request):
    return celery(request.param)


def start(folder, port, *words, log, dq=False) -> subprocess.Popen:
    path = f"{ROOT / 'clients/python/src'}" if dq else str(folder)
    env = {**os.environ, "PYTHONPATH": path, "TAKEOVER_LOG": str(log), "DQ": "1" if dq else ""}
    return subprocess.Popen([sys.executable, str(HERE / "celery_old.py"), str(port), *map(str, words)], env=env)


def run(*args, **options):
    assert start(*args, **options).wait(900) == 0


def worked(folder, port, queue, log, count, **options) -> list[int]:
    """Lets a worker run until so many tasks have run; their numbers in order."""
    worker = start(folder, port, "work", queue, log=log, **options)
    try:
        wait_for(lambda: len(numbers(log)) >= count, timeout=40)
        time.sleep(0.5)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(30)
    return numbers(log)


def test_each_task_runs_once_in_its_order(move, old, tmp_path):
    log = tmp_path / "log"
    run(old, move.old.port, "fill", 6, log=log)
    plan = json.loads(move.run("celery", "--queue", "*", "--dry-run", "--json").stdout)
    assert sum(place["jobs"] for place in plan["places"]) == 30
    said = json.loads(move.run("celery", "--queue", "*", "--json").stdout)
    assert (said["moved"], said["stayed"]) == (30, 0)
    ran = worked(old, move.new.port, "celery", log, 28, dq=True)
    assert sorted(ran) == [*range(23), *range(30, 35)]
    assert [n for n in ran if n < 30] == [*range(20), 21, 20, 22]
    late = move.new.client(protocol=3).execute_command("DQ.LIST", "celery", "delayed")[1]
    assert len(late) == 1 and late[0][b"type"] == b"note"
    other = move.new.client(protocol=3).execute_command("DQ.LIST", "other", "ready")[1]
    assert len(other) == 1


def test_options_that_no_key_tells(move, old, tmp_path, monkeypatch):
    monkeypatch.setenv("TAKEOVER_OPTIONS", json.dumps({"sep": "/", "priority_steps": [0, 5], "global_keyprefix": "app-"}))
    run(old, move.old.port, "fill", 3600, log=tmp_path / "log")
    queue = ["celery", "--queue", "*", "--prefix", "app-", "--sep", "/", "--priority-steps", "0,5", "--json"]
    said = json.loads(move.run(*queue).stdout)
    assert {queue["queue"]: queue["moved"] for queue in said["queues"]} == {"celery": {"/5": 2, "queue": 27}, "other": {"queue": 1}}
    assert not [key for key in move.old.client().keys("*") if b"_kombu" not in key]


def own(key: bytes) -> bool:
    return key.startswith(b"_kombu") or b"celeryev" in key


def test_undo_leaves_every_list_as_it_was(move, old, tmp_path):
    run(old, move.old.port, "fill", 3600, log=tmp_path / "log")
    before = digest(move.old.client(), own)
    move.run("celery", "--queue", "*", "--ledger", "l")
    assert digest(move.old.client(), own) == {}
    move.run(None, "--undo", "l")
    assert digest(move.old.client(), own) == before


def test_etas_in_the_memory_of_a_worker_are_named_and_come_when_it_stops(move, old, tmp_path):
    log = tmp_path / "log"
    run(old, move.old.port, "fill", 3600, log=log)
    worker = start(old, move.old.port, "work", "celery", log=log)
    client = move.old.client()
    wait_for(lambda: client.hlen("unacked") >= 6 and len(numbers(log)) == 23, timeout=40)
    process = move.start("celery", "--queue", "celery")
    time.sleep(1.5)
    assert process.poll() is None
    worker.send_signal(signal.SIGTERM)
    worker.wait(40)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 0, error
    assert "6 tasks with an eta in their memory" in error
    assert len(move.new.client().execute_command("DQ.LIST", "celery", "delayed", "IDS", "COUNT", 100)[1]) == 6
    assert sorted(numbers(log)) == list(range(23))


def test_what_a_killed_worker_had_is_lost_and_taken(move, old, tmp_path):
    log = tmp_path / "log"
    run(old, move.old.port, "fill", 25, log=log)
    worker = start(old, move.old.port, "work", "celery", log=log)
    client = move.old.client()
    wait_for(lambda: client.hlen("unacked") >= 6 and len(numbers(log)) == 23, timeout=40)
    worker.kill()
    worker.wait()
    time.sleep(1)
    before = digest(client, own)
    queue = ["celery", "--queue", "celery", "--visibility-timeout", "1s"]
    # All queues have one place for what workers have.
    lost = json.loads(move.run(*queue, "--queue", "other", "--ledger", "w", "--json", code=3).stdout)
    assert [len(queue["lost"]) for queue in lost["queues"]] == [6, 0]
    before.pop(b"other")
    said = json.loads(move.run(*queue, "--running", "take", "--ledger", "l", "--json").stdout)
    assert said["queues"][0]["moved"] == {"unacked": 6}
    move.run(None, "--undo", "l")
    assert digest(client, own) == before
    move.run(*queue, "--running", "take", "--ledger", "m")
    assert sorted(worked(old, move.new.port, "celery", log, 28, dq=True)) == [*range(23), *range(30, 35)]


def test_a_message_of_an_unknown_protocol_stays(move, old, tmp_path):
    run(old, move.old.port, "many", 5, log=tmp_path / "log")
    client = move.old.client()
    client.lpush("celery", "no envelope")
    before = client.lrange("celery", 0, -1)
    said = json.loads(move.run("celery", "--queue", "celery", "--json", code=3).stdout)
    assert said["moved"] == 5 and said["queues"][0]["stayed"] == {"UNKNOWN message that is no JSON": 1}
    assert client.lrange("celery", 0, -1) == [b"no envelope"] == before[:1]
