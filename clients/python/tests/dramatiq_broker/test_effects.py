"""The changes that actors of Dramatiq make in the same step as the acks of their messages."""

import pytest

dramatiq = pytest.importorskip("dramatiq", reason="needs dramatiq: pip install 'dq-queue[dramatiq]'")

from dqueue.dramatiq import effects  # noqa: E402

from clients.python.tests.blocks import effects_of  # noqa: E402
from tests.harness.server import wait_for  # noqa: E402


@pytest.mark.parametrize("is_async", [False, True])
def test_the_effects_of_an_actor_go_with_its_ack_and_only_with_that(broker, worker, dq_client, is_async):
    queue, tried = broker.queue("default"), []

    def pay(how):
        tried.append(how)
        effects().incrby("paid", 5)
        if how == "fails":
            raise RuntimeError(how)
        if how == "is refused":
            effects().if_missing("paid")
        if how == "is lost":
            [running] = queue.list("running")
            queue.cancel(running.id)

    async def pay_later(how):
        pay(how)

    if is_async:
        loop = dramatiq.middleware.AsyncIO()
        loop.before_worker_boot(broker, None)
        broker.add_middleware(loop)
    actor = dramatiq.actor(pay_later if is_async else pay, max_retries=1, min_backoff=1, max_backoff=1)
    for how in ("returns", "is lost", "fails", "is refused"):
        actor.send(how)
        broker.join("default", timeout=10_000)
    assert tried == ["returns", "is lost", "fails", "fails", "is refused", "is refused"]
    assert dq_client.get("paid") == b"5"
    wait_for(lambda: queue.len("dead") == 2)
    assert [record.error.split(":")[0] for record in queue.list("dead")] == ["RuntimeError", "ResponseError"]


def test_the_effects_of_the_page_are_done(broker, worker, dq_client):
    names = {"__name__": __name__}
    exec(effects_of("dramatiq"), names)
    names["pay"].send("ann", 500)
    broker.join("default", timeout=10_000)
    assert (dq_client.hget("user:ann", "paid"), dq_client.xlen("outbox")) == (b"500", 1)


def test_without_an_actor_there_are_no_effects(broker):
    with pytest.raises(RuntimeError, match="no actor runs here"):
        effects()
