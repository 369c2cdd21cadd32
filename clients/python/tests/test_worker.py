"""Worker: handlers, heartbeats, outcomes, reconnects, shutdown."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dqueue
import pytest
import redis
from dqueue import Follow, Next, Queue, Reject, Retry, Snooze, Worker, connect

from tests.harness.lossy import LossyProxy
from tests.harness.server import wait_for
from tests.harness.threads import running

SOURCES = Path(dqueue.__file__).parents[1]


@pytest.fixture
def q(dq_url):
    q = Queue(connect(dq_url), "jobs")
    q.create(retain=3_600_000, dedup=60_000)
    return q


def test_handlers_get_their_types_and_decide_the_outcome(q):
    q.alter(retries=1)
    worker = Worker(q, concurrency=3, block=200)
    seen = []

    @worker.handler("a", "b")
    def both(message):
        seen.append(message.type)
        return f"did {message.text}"

    @worker.handler("again")
    def again(message):
        if message.attempt == 1:
            raise Retry("not yet", delay=50)

    @worker.handler("never")
    def never(message):
        raise Reject("makes no sense")

    @worker.handler("broken")
    def broken(message):
        raise KeyError("field")

    for type in ("a", "b", "again", "never", "broken", "unknown"):
        q.send(f"for {type}", id=type, type=type)
    q.send("untyped", id="untyped")
    with running(worker):
        wait_for(lambda: q.len() == 0)
    assert sorted(seen) == ["a", "b"]
    assert q.get("a").result == "did for a" and q.get("b").state == "finished"
    assert (q.get("again").state, q.get("again").attempt, q.get("again").error) == ("finished", 2, "not yet")
    assert (q.get("never").reason, q.get("never").error, q.get("never").attempt) == ("rejected", "makes no sense", 1)
    assert (q.get("broken").reason, q.get("broken").error) == ("retries", "KeyError: 'field'")
    assert q.get("unknown").error == "LookupError: no handler for type 'unknown'"
    assert q.get("untyped").state == "dead"
    assert q.get("a").consumer == worker.consumer


def test_results_are_kept_with_their_own_messages(q):
    worker = Worker(q, concurrency=4, block=200)
    together = threading.Barrier(4)

    @worker.handler()
    def handle(message):
        together.wait(10)
        return message.text or None

    ids = q.send_many(["a", "", "b", ""])
    with running(worker):
        wait_for(lambda: q.len("finished") == 4)
    assert [q.get(id).result for id in ids] == ["a", None, "b", None]


def test_a_result_of_a_wrong_type_fails_its_message_alone(q):
    q.alter(retries=0)
    worker = Worker(q, concurrency=2, block=200)
    together = threading.Barrier(2)

    @worker.handler()
    def handle(message):
        together.wait(10)
        return {"no": "text"} if message.text == "wrong" else "right"

    wrong, right = q.send_many(["wrong", "right"])
    with running(worker):
        wait_for(lambda: q.len() == 0)
    assert (q.get(wrong).state, q.get(right).result) == ("dead", "right")


def test_a_result_that_the_server_refuses_fails_its_message_alone(q):
    q.alter(retries=0)
    usual = q.client.config_get("dq.max-payload")["dq.max-payload"]
    q.client.config_set("dq.max-payload", 1000)
    try:
        worker = Worker(q, concurrency=2, block=200)
        together = threading.Barrier(2)

        @worker.handler()
        def handle(message):
            if message.text != "later":
                together.wait(10)
            return "x" * 1001 if message.text == "long" else "right"

        long, right = q.send_many(["long", "right"])
        with running(worker):
            wait_for(lambda: q.len() == 0)
            later = q.send("later")
            wait_for(lambda: q.len() == 0)
    finally:
        q.client.config_set("dq.max-payload", usual)
    assert "a result must be at most 1000 bytes long" in q.get(long).error
    assert (q.get(long).state, q.get(right).result, q.get(later).result) == ("dead", "right", "right")


def test_a_handler_snoozes_and_follows(q):
    q.alter(retries=0)
    worker = Worker(q, block=200)
    attempts = []

    @worker.handler("busy")
    def busy(message):
        attempts.append(message.attempt)
        if len(attempts) < 4:
            raise Snooze("429", delay=10)
        return Follow(Next("packed", to="parcels", id="p"), Next("told", id="told", type="mail", delay=600_000), result="r")

    q.send("x", id="x", type="busy")
    with running(worker):
        wait_for(lambda: q.get("x").state == "finished")
    assert attempts == [1, 1, 1, 1]
    record = q.get("x")
    assert (record.failures, record.attempt, record.error, record.result) == (0, 1, "429", "r")
    assert q.get("told").state == "delayed"
    assert [message.id for message in Queue(q.client, "parcels").fetch()] == ["p"]


def test_concurrency_is_the_number_of_handlers_at_once(q):
    worker = Worker(q, concurrency=4, block=200)
    together, most, lock = 0, 0, threading.Lock()

    @worker.handler()
    def slow(message):
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        time.sleep(0.02)
        with lock:
            together -= 1

    q.send_many(["x"] * 60)
    with running(worker):
        wait_for(lambda: q.len() == 0)
    assert most == 4
    assert q.info()["delivered"] == q.info()["acked"] == 60


def test_heartbeats_keep_the_lease_of_a_long_handler(q):
    worker = Worker(q, lease=900, block=100, concurrency=3)

    @worker.handler()
    def long(message):
        time.sleep(2.2)

    q.send_many(["x"] * 3)
    with running(worker):
        wait_for(lambda: q.len() == 0)
    assert (q.info()["timeouts"], q.info()["delivered"], q.info()["acked"]) == (0, 3, 3)


def test_a_time_limit_ends_the_heartbeats(q):
    worker = Worker(q, lease=900, block=100, concurrency=2, time_limit=1200)
    attempts = []

    @worker.handler()
    def stuck(message):
        attempts.append(message)
        if message.attempt == 1:
            time.sleep(4)

    q.send("x")
    with running(worker):
        wait_for(lambda: len(attempts) == 2 and q.len() == 0)
        wait_for(lambda: attempts[0].lost or q.info()["acked"] == 1)
    assert q.info()["timeouts"] == 1 and q.info()["acked"] == 1
    assert attempts[1].receipt > attempts[0].receipt


def test_a_message_whose_lease_was_lost_is_not_acked(q):
    worker = Worker(q, lease=600, block=100)
    held, go_on = [], threading.Event()

    @worker.handler()
    def handle(message):
        held.append(message)
        if len(held) == 1:
            go_on.wait(10)

    q.send("x", id="x")
    with running(worker):
        wait_for(lambda: held)

        def ended():
            # A heartbeat may come in between.
            q.touch(1, held[0])
            return q.get("x").state == "ready"

        wait_for(ended)
        wait_for(lambda: held[0].lost)
        go_on.set()
        wait_for(lambda: q.len() == 0)
    assert len(held) == 2 and not held[1].lost
    assert q.info()["acked"] == 1


def test_stop_lets_handlers_finish(q):
    worker = Worker(q, concurrency=2, block=300)
    begun = []

    @worker.handler()
    def handle(message):
        begun.append(message)
        time.sleep(1.5)

    q.send_many(["x"] * 5)
    with running(worker):
        # A stopping worker gives back the messages that it has fetched and not begun.
        wait_for(lambda: len(begun) == 2)
    assert q.len("finished") == 2 and q.len("ready") == 3 and q.len("running") == 0
    assert q.info()["nacked"] == 0


def test_stop_returns_messages_whose_handlers_take_too_long(q):
    worker = Worker(q, grace=300, block=100)
    begun, end = threading.Event(), threading.Event()

    @worker.handler()
    def handle(message):
        begun.set()
        end.wait(30)

    q.send("x", id="x")
    with running(worker):
        begun.wait(5)
    record = q.get("x")
    assert (record.state, record.failures) == ("ready", 0)
    assert q.fetch()[0].attempt == 1
    end.set()


def test_sigterm_stops_the_worker(q, dq_url, tmp_path):
    script = tmp_path / "work.py"
    script.write_text(
        "import sys, time\n"
        "from dqueue import Queue, Worker, connect\n"
        f"worker = Worker(Queue(connect({dq_url!r}), 'jobs'), grace=300, block=200)\n"
        "@worker.handler()\n"
        "def handle(message):\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(60)\n"
        "worker.run()\n"
        "print('ended', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    q.send("x", id="x")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    assert process.stdout.read() == "ended\n"
    assert (q.get("x").state, q.info()["nacked"], q.info()["timeouts"]) == ("ready", 1, 0)


def test_a_worker_survives_closed_connections(q, server, dq_url):
    worker = Worker(q, concurrency=2, block=200)
    handled = []

    @worker.handler()
    def handle(message):
        handled.append(message.text)
        time.sleep(0.05)

    with running(worker):
        for n in range(10):
            q.send(str(n))
        with server.wire() as wire:
            wire.call("CLIENT", "KILL", "TYPE", "normal")
        wait_for(lambda: len(handled) > 3)
        server.restart(crash=True)
        for n in range(10, 20):
            q.send(str(n))
        wait_for(lambda: Queue(connect(dq_url), "jobs").len() == 0, timeout=40)
    assert set(handled) == {str(n) for n in range(20)}
    assert Queue(connect(dq_url), "jobs").len("finished") == 20


def test_messages_whose_delivery_was_lost_come_again_at_once(q, server):
    proxy = LossyProxy(server.port)
    worker = Worker(Queue(connect(f"redis://127.0.0.1:{proxy.port}"), "jobs"), concurrency=3, block=200)
    attempts = []
    worker.handler()(lambda message: attempts.append(message.attempt))
    q.send_many(["x"] * 3)
    proxy.lose(b"DQ.FETCH")
    try:
        with running(worker):
            wait_for(lambda: q.len() == 0)
    finally:
        proxy.close()
    # Without the token they would have come after the lease of 30 s, in their second attempt.
    assert attempts == [1, 1, 1] and proxy.lost == 1 and q.info()["timeouts"] == 0


def test_a_permanent_error_ends_the_worker(dq_url):
    client = connect(dq_url)
    client.set("jobs", "a string")
    worker = Worker(Queue(client, "jobs"), block=100, concurrency=2)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        worker.run()


def test_the_block_is_kept_below_the_socket_timeout(dq_url):
    worker = Worker(Queue(connect(dq_url, socket_timeout=1), "jobs"), block=5000)
    assert worker._timing.block == 500


def test_two_workers_of_a_process_have_two_names(dq_url):
    queue = Queue(connect(dq_url), "jobs")
    assert Worker(queue).consumer != Worker(queue).consumer
