"""docs/drivers/celery.md works as pasted."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import dqueue
import pytest

pytest.importorskip("celery", reason="needs celery: pip install 'dq-queue[celery]'")

SOURCES = Path(dqueue.__file__).parents[1]
PAGE = SOURCES.parents[2] / "docs/drivers/celery.md"


def test_the_user_of_the_page_may_do_all_that_a_worker_does(dq_url, dq_client, tmp_path):
    [line] = re.findall(r"^(ACL SETUSER celery .*)$", PAGE.read_text(), re.MULTILINE)
    dq_client.execute_command(*line.split())
    dq_client.execute_command("ACL", "LOG", "RESET")
    broker = dq_url.replace("redis://", "dq://celery:secret@")
    (tmp_path / "shop.py").write_text(f"""
import dqueue.kombu
from celery import Celery

app = Celery("shop", broker={broker!r}, backend={dq_url!r})
app.conf.task_acks_late = True


@app.task
def add(a, b):
    return a + b
""")
    env = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{tmp_path}"}
    call = "from shop import add, app; print(add.apply_async((2, 3), countdown=1).get(timeout=30), len(app.control.ping(timeout=5)))"
    worker = subprocess.Popen([sys.executable, "-m", "celery", "-A", "shop", "worker", "-c", "2"], cwd=tmp_path, env=env)
    try:
        done = subprocess.run([sys.executable, "-c", call], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "5 1\n"), done.stderr
    finally:
        worker.terminate()
        worker.wait(60)
        refused = dq_client.execute_command("ACL", "LOG")
        dq_client.execute_command("ACL", "DELUSER", "celery")
    assert refused == []


def test_the_call_of_the_page_is_run_by_its_worker(dq_url, tmp_path):
    page = PAGE.read_text()
    [_, file] = re.search(r"the module `(\w+)`.*?```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL).groups()
    [line] = re.findall(r"`(celery -A \w+ worker)`", page)
    [call, printed, seconds] = re.search(r"`(python -c '.*?')`\n\s+prints (\d+) after (\w+) seconds", page).groups()
    port = dq_url.rpartition(":")[2]
    (tmp_path / "shop.py").write_text(file.replace("localhost:6379", f"127.0.0.1:{port}"))
    env = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{tmp_path}"}
    worker = subprocess.Popen([sys.executable, "-m", *shlex.split(line)], cwd=tmp_path, env=env)
    try:
        called = [sys.executable, *shlex.split(call)[1:]]
        done = subprocess.run(called, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, seconds) == (0, f"{printed}\n", "five"), done.stderr
    finally:
        worker.terminate()
        assert worker.wait(60) == 0
