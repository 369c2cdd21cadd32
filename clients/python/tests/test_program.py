"""dq-worker: the program, its processes, signals, reload and logs."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import dqueue
import pytest
from dqueue import Queue, connect

from tests.harness.server import wait_for

SOURCES = Path(dqueue.__file__).parents[1]
needs_watchfiles = pytest.mark.skipif(importlib.util.find_spec("watchfiles") is None, reason="needs watchfiles")
SHOP = """
import os
from pathlib import Path
from dqueue import Queue, Tasks, Worker, connect
from dqueue import asyncio as aq

tasks = Tasks(Queue(connect("{url}"), "jobs"), retain=60_000)
async_tasks = aq.Tasks(aq.Queue(aq.connect("{url}"), "jobs"), retain=60_000)
worker = Worker(tasks.queue, block=100)
number = 5


@tasks.task
def mark():
    return [os.getpid(), os.getppid()]


@tasks.task
def sleep(seconds):
    import time

    Path("asleep").touch()
    time.sleep(seconds)
    return "slept"


@tasks.task(retries=0)
def fail():
    raise ValueError("no")


@async_tasks.task(name="mark")
async def async_mark():
    return [os.getpid(), os.getppid()]


@worker.handler()
def plain(message):
    return "plain"
"""


@pytest.fixture
def q(dq_url):
    return Queue(connect(dq_url), "jobs")


@pytest.fixture
def shop(dq_url, tmp_path):
    (tmp_path / "shop.py").write_text(SHOP.format(url=dq_url))
    return tmp_path


def command(*words):
    env = {**os.environ, "PYTHONPATH": str(SOURCES), "PYTHONDONTWRITEBYTECODE": "1"}
    return [sys.executable, "-m", "dqueue.program", *words], env


@contextmanager
def working(shop, *words, code=0):
    """A running dq-worker. Its log is in the file `log`."""
    arguments, env = command(*words)
    with (shop / "log").open("w") as log:
        process = subprocess.Popen(arguments, cwd=shop, env=env, stderr=log)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == code, (shop / "log").read_text()
    finally:
        process.kill()
        process.wait()


def result(q, type, payload='{"args": [], "kwargs": {}}'):
    state, value = q.wait(q.send(payload, type=type, retain=60_000), 9000)
    assert state == "finished", value
    return value


@pytest.mark.parametrize("target", ["shop:tasks", "shop:async_tasks"])
def test_tasks_of_both_kinds_run_in_one_process(shop, q, target):
    with working(shop, target) as process:
        assert json.loads(result(q, "mark"))[0] == process.pid
        (consumer,) = q.consumers()
        # The second worker of the process: the module shop has made one already.
        assert consumer.name.split(":")[1] == str(process.pid)


def test_a_worker_is_a_target_too(shop, q):
    with working(shop, "shop:worker"):
        assert result(q, "any") == "plain"


def test_what_runs_may_finish_after_a_signal(shop, q):
    id = None
    with working(shop, "shop:tasks", "--concurrency", "1"):
        id = q.send('{"args": [1], "kwargs": {}}', type="sleep", retain=60_000)
        wait_for((shop / "asleep").exists)
    assert q.get(id).result == '"slept"'


def test_each_process_is_started_again_and_ends_with_the_signal(shop, q):
    with working(shop, "shop:tasks", "--processes", "2", "--concurrency", "1") as parent:
        wait_for(lambda: waiting(q) == 2, timeout=20)
        child, its_parent = json.loads(result(q, "mark"))
        assert its_parent == parent.pid
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: f"process {child} ended with -9" in (shop / "log").read_text(), timeout=20)
        wait_for(lambda: waiting(q) == 2, timeout=20)
    assert not Path(f"/proc/{child}").exists()


def test_processes_end_when_their_parent_is_killed(shop, q):
    with working(shop, "shop:tasks", "--processes", "2", "--concurrency", "1", code=-9) as parent:
        wait_for(lambda: waiting(q) == 2, timeout=20)
        pids = [int(pid) for pid in Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()]
        assert len(pids) == 2
        parent.kill()
        wait_for(lambda: not any(is_running(pid) for pid in pids), timeout=20)


def waiting(q):
    return q.client.info("clients")["blocked_clients"]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@needs_watchfiles
def test_reload_starts_anew_with_the_changed_module(shop, q):
    with working(shop, "shop:tasks", "--reload"):
        first = json.loads(result(q, "mark"))[0]
        text = (shop / "shop.py").read_text()
        (shop / "shop.py").write_text(text.replace('return "slept"', 'return "changed"'))
        wait_for(lambda: not is_running(first), timeout=20)
        assert result(q, "sleep", '{"args": [0], "kwargs": {}}') == '"changed"'
        # A module that is broken for a while does not end the program.
        (shop / "shop.py").write_text("tasks = 1 +")
        wait_for(lambda: "SyntaxError" in (shop / "log").read_text(), timeout=20)
        (shop / "shop.py").write_text(text)
        assert result(q, "sleep", '{"args": [0], "kwargs": {}}') == '"slept"'


def test_lines_of_the_log_are_json_with_the_message(shop, q):
    with working(shop, "shop:tasks", "--log-format", "json"):
        result(q, "mark")
        failed = q.send('{"args": [], "kwargs": {}}', type="fail", retries=0)
        q.wait(failed, 9000)
    lines = [json.loads(line) for line in (shop / "log").read_text().splitlines()]
    (done,) = [line for line in lines if line.get("message_type") == "mark"]
    assert done["level"] == "info" and done["queue"] == "jobs" and done["attempt"] == 1 and done["duration_ms"] >= 0
    (bad,) = [line for line in lines if line.get("message_id") == failed]
    assert bad["level"] == "warning" and "ValueError: no" in bad["error"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["shop"], "must be module:name"),
        (["nowhere:tasks"], "there is no module nowhere"),
        (["shop:nothing"], "shop has no nothing"),
        (["shop:number"], "is no Tasks and no Worker, but int"),
        (["shop:worker", "--concurrency", "3"], "a Worker, which has its own concurrency"),
        (["shop:tasks", "--processes", "0"], "must be at least 1"),
        (["nowhere:tasks", "--processes", "2"], "there is no module nowhere"),
        pytest.param(
            ["shop:tasks", "--reload", "--watch", "nowhere"], "nowhere is no directory", marks=needs_watchfiles
        ),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(shop, words, said):
    arguments, env = command(*words)
    done = subprocess.run(arguments, cwd=shop, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr


def test_the_example_runs(dq_url):
    example = SOURCES.parents[2] / "examples/drivers/python_shop.py"
    env = {**os.environ, "PYTHONPATH": str(SOURCES), "DQ_URL": dq_url}
    done = subprocess.run([sys.executable, example], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all tasks have run" in done.stdout
