"""Messages in the queue of a Celery worker that are no tasks are dead ones, and the worker goes on."""

import base64
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("celery", reason="needs celery: pip install 'dq-queue[celery]'")

import dqueue  # noqa: E402

from tests.harness.server import wait_for  # noqa: E402

SOURCES = Path(dqueue.__file__).parents[1]

SHOP = """
import dqueue.kombu
from celery import Celery

app = Celery("shop", broker={broker!r}, backend={backend!r})


@app.task(acks_late=True, ignore_result=True)
def add(a, b):
    pass
"""
# The body of a task: its arguments, its keywords, and what follows.
GOOD = [[1, 2], {}, {}]


class Deed:
    def __reduce__(self):
        return os.system, ("touch done",)


def message(body=GOOD, *, headers=None, **parts) -> str:
    """A message as Celery writes it, with other parts."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    properties = {"correlation_id": "i", "delivery_info": {"exchange": "", "routing_key": "celery"}, "delivery_tag": "t"}
    whole = {
        "body": base64.b64encode(body).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"lang": "py", "task": "shop.add", "id": "i"} | (headers or {}),
        "properties": properties | {"body_encoding": "base64"} | parts.pop("properties", {}),
    }
    return json.dumps(whole | parts)


NO_TASKS = {
    "bytes": b"hello \xff",
    "another JSON": '{"a": 1}',
    "a function": message(["touch done"], headers={"task": "os.system"}),
    "a function of old": message({"task": "os.system", "id": "i", "args": ["touch done"]}, headers={"task": None}),
    "a pickle": message(pickle.dumps(Deed()), **{"content-type": "application/x-python-serialize", "content-encoding": "binary"}),
    "no JSON": message(b"\xff"),
    "deep JSON": message(b"[" * 20_000 + b"]" * 20_000),
    "not packed": message(headers={"compression": "zlib"}),
    "an unknown encoding": message(properties={"body_encoding": "rot13"}),
    "a number": message(5),
    "null": message(None),
    "a map": message({}),
    "one part": message([1]),
    "four parts": message([*GOOD, 4]),
    "a name that is a list": message(headers={"task": []}),
    "an id that is a list": message(headers={"id": []}),
    "a map as end": message(headers={"expires": {}}),
    "a number as limits": message(headers={"timelimit": 5}),
    "texts as limits": message(headers={"timelimit": ["x", "y"]}),
    "a number as stamps": message(headers={"stamped_headers": ["a"], "stamps": 5}),
    "a number as names of stamps": message(headers={"stamped_headers": 5}),
}


@pytest.mark.parametrize("pool", ["prefork", "solo", "threads"])
def test_what_is_no_task_is_dead_and_ends_no_worker(dq_url, dq_client, tmp_path, pool):
    (tmp_path / "shop.py").write_text(SHOP.format(broker=dq_url.replace("redis://", "dq://"), backend=dq_url))
    queue = dqueue.Queue(dq_client, "celery")
    for id, payload in NO_TASKS.items():
        queue.send(payload, id=id)
        queue.send(message(), id=f"after {id}")
    env = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{tmp_path}"}
    words = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-c", "1", "-P", pool]
    worker = subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: queue.len() == 0 or worker.poll() is not None, 60)
        assert worker.poll() is None, worker.stderr.read()
    finally:
        worker.terminate()
        said = worker.communicate(timeout=60)[1]
    assert {record.id: record.reason for record in queue.list("dead")} == dict.fromkeys(NO_TASKS, "rejected")
    assert not (tmp_path / "done").exists()
    assert said.count("no task of Celery") == 9, said
