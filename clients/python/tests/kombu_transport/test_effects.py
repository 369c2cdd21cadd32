"""The changes that tasks of Celery make in the same step as their acks, with a worker of processes and one of threads."""

import os
import subprocess
import sys
from pathlib import Path

import dqueue
import pytest

celery = pytest.importorskip("celery", reason="needs celery: pip install 'dq-queue[celery]'")

from dqueue.drivers.kombu.effects import ack_with  # noqa: E402
from dqueue.kombu import effects  # noqa: E402
from kombu import Connection  # noqa: E402

from clients.python.tests.blocks import effects_of  # noqa: E402
from tests.harness.lossy import LossyProxy  # noqa: E402
from tests.harness.server import wait_for  # noqa: E402

SOURCES = Path(dqueue.__file__).parents[1]
SHOP = """
import dqueue.kombu
import redis
from celery import Celery, current_task
from dqueue.kombu import effects

app = Celery("shop", broker={broker!r}, backend={backend!r})


@app.task(acks_late=True)
def pay(how):
    effects().incrby("paid", 5)
    if how == "fails":
        raise RuntimeError(how)
    if how == "is refused":
        effects().if_missing("paid")
    if how == "is lost":
        tag = current_task.request.properties["delivery_tag"]
        redis.Redis.from_url({backend!r}).execute_command("DQ.CANCEL", tag.queue, tag.id)
    return how


@app.task
def early():
    effects()
"""
CALL = """
from shop import early, paying, pay

for how in ("returns", "is refused", "is lost", "fails"):
    print(pay.delay(how).get(timeout=60, propagate=False))
print(early.delay().get(timeout=60, propagate=False))
paying.delay("ann", 500).get(timeout=60)
"""


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_the_effects_of_a_task_go_with_its_ack_and_only_with_that(dq_url, dq_client, tmp_path, pool):
    shop = SHOP.format(broker=dq_url.replace("redis://", "dq://"), backend=dq_url)
    (tmp_path / "shop.py").write_text(shop + effects_of("celery").replace("def pay(", "def paying("))
    env = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{tmp_path}"}
    words = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-c", "2", "-P", pool]
    worker = subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
    try:
        done = subprocess.run([sys.executable, "-c", CALL], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        queue = dqueue.Queue(dq_client, "celery")
        wait_for(lambda: queue.len() == 0)
    finally:
        worker.terminate()
        said = worker.communicate(timeout=60)[1]
    early = "shop.early was acked before it ran: effects need acks_late=True"
    assert (done.returncode, done.stdout) == (0, f"returns\nis refused\nis lost\nfails\n{early}\n"), done.stderr
    assert (dq_client.get("paid"), dq_client.hget("user:ann", "paid"), dq_client.xlen("outbox")) == (b"5", b"500", 1)
    [dead] = queue.list("dead")
    assert dead.error.startswith("its effects were refused: CONDITION 1")
    # The process that holds a message leaves the ack to the one that runs its task.
    assert said.count("its effects are not done") == 1 and "were acked after their leases" not in said


def test_effects_whose_reply_is_lost_are_done_once(server, dq_client, caplog):
    proxy = LossyProxy(server.port)
    with Connection(f"dq://127.0.0.1:{proxy.port}") as connection:
        connection.SimpleQueue("jobs").put("x")
        message = connection.default_channel.basic_get("jobs")
        proxy.lose(b"APPLY")
        ack_with(connection.default_channel, message.delivery_tag, dqueue.Effects().incrby("paid"))
    assert (proxy.lost, dq_client.get("paid"), dqueue.Queue(dq_client, "jobs").len()) == (1, b"1", 0)
    assert "its effects are not done" not in caplog.text


def test_without_a_task_there_are_no_effects():
    with pytest.raises(RuntimeError, match="no task runs here"):
        effects()
