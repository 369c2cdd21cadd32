"""The broker for Dramatiq against a real server."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import redis

dramatiq = pytest.importorskip("dramatiq", reason="needs dramatiq: pip install 'dq-queue[dramatiq]'")

from dqueue.dramatiq import DqBroker  # noqa: E402

from clients.python.tests.dramatiq_broker.sending import send  # noqa: E402
from tests.harness.server import wait_for  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[4] / "examples/drivers/dramatiq_shop.py"
HOUR = 3_600_000


def test_actors_run_and_their_messages_are_acked(broker, worker):
    done = []

    @dramatiq.actor
    def add(n):
        done.append(n)

    for n in range(50):
        add.send(n)
    broker.join("default", timeout=10_000)
    assert sorted(done) == [*range(50)]
    assert broker.queue("default").info()["acked"] == 50


def test_a_delayed_message_waits_in_the_server(broker, q):
    @dramatiq.actor
    def add(n):
        pass

    add.send_with_options(args=(1,), delay=HOUR)
    add.send_with_options(args=(2,), delay=-5)
    consumer = broker.consume("default", prefetch=9, timeout=10)
    message = next(consumer)
    assert message.args == (2,) and "eta" not in message.options
    consumer.ack(message)
    assert next(consumer) is None
    [record] = q.list("delayed")
    assert (record.due_at, record.type, record.retries_left) == (HOUR, "add", -1)
    q.advance(HOUR)
    message = next(consumer)
    assert message.args == (1,)
    consumer.requeue([message])
    assert q.len("ready") == 1
    consumer.close()


def test_an_actor_that_fails_is_tried_again_and_then_dead(broker, worker):
    attempts = []

    @dramatiq.actor(max_retries=2, min_backoff=10, max_backoff=20)
    def fail():
        attempts.append(1)
        raise LookupError("no such thing")

    fail.send()
    broker.join("default", timeout=10_000)
    [record] = broker.queue("default").list("dead")
    assert (len(attempts), record.reason, record.type) == (3, "rejected", "fail")


def test_priorities_of_actors_hold_in_the_server(broker, q):
    @dramatiq.actor(priority=10)
    def late():
        pass

    @dramatiq.actor(priority=1000)
    def last():
        pass

    @dramatiq.actor
    def soon():
        pass

    for actor in (last, late, soon):
        actor.send()
    assert [record.type for record in q.peek(3)] == ["soon", "late", "last"]


def test_leases_are_kept_and_end_with_their_worker(dq_url, q):
    lost = DqBroker(url=dq_url, middleware=[], heartbeat_timeout=900)
    other = DqBroker(url=dq_url, middleware=[])
    lost.enqueue(dramatiq.Message("default", "add", (), {}, {}))
    consumer = lost.consume("default", timeout=1)
    message = next(consumer)
    q.advance(600)
    consumer.held._touched_at -= 1
    assert next(consumer) is None
    q.advance(899)
    assert other.queue("default").len("ready") == 0
    q.advance(1)
    again = next(other.consume("default"))
    assert again.message_id == message.message_id
    consumer.ack(message)
    assert q.len("running") == 1


def test_two_workers_of_a_process_have_two_consumer_names(broker, q):
    broker.declare_queue("default")
    workers = [dramatiq.Worker(broker, worker_timeout=1000, worker_threads=1) for _ in range(2)]
    for worker in workers:
        worker.start()
    wait_for(lambda: q.info()["blocked-clients"] == 2)
    assert len({one.name for one in q.consumers()}) == 2
    for worker in workers:
        worker.stop()


def test_a_consumer_waits_for_room_and_for_messages(broker, q):
    consumer = broker.consume("default", prefetch=1, timeout=5000)
    threading.Timer(0.05, broker.enqueue, [dramatiq.Message("default", "a", (), {}, {})]).start()
    first = next(consumer)
    broker.enqueue(dramatiq.Message("default", "b", (), {}, {}))
    threading.Timer(0.05, consumer.ack, [first]).start()
    assert next(consumer).actor_name == "b"


@pytest.mark.parametrize("verb", ["ack", "nack"])
def test_a_worker_settles_again_after_a_lost_connection(broker, q, worker, monkeypatch, verb):
    monkeypatch.setattr(dramatiq.worker, "POST_PROCESS_MESSAGE_RETRY_DELAY_SECS", 0.01)
    lost = []

    @dramatiq.actor(max_retries=0)
    def act():
        if verb == "nack":
            raise LookupError("no such thing")

    consumer = broker.consume("default")
    settle = getattr(type(consumer.queue), verb)

    def once_lost(queue, *receipts, **options):
        settled = settle(queue, *receipts, **options)
        if not lost:
            lost.append(receipts)
            raise redis.ConnectionError("reset")
        return settled

    monkeypatch.setattr(type(consumer.queue), verb, once_lost)
    act.send()
    broker.join("default", timeout=10_000)
    worker.join()
    assert len(lost) == 1 and len(consumer.held) == 0
    assert (q.info()["acked"], q.len("dead")) == ((1, 0) if verb == "ack" else (0, 1))


def test_a_message_without_an_actor_is_dead(broker, q, worker):
    broker.declare_queue("default")
    message = broker.enqueue(dramatiq.Message("default", "nobody", (), {}, {}))
    broker.join("default", timeout=10_000)
    [record] = q.list("dead")
    assert (record.id, record.reason) == (message.options["redis_message_id"], "rejected")


NO_TASKS = {
    "bytes": b"hello \xff",
    "no map": b"[1]",
    "a function": {"actor_name": "os.system", "args": ["exit 1"]},
    "no name": {"actor_name": []},
    "no options": {"options": 5},
    "no arguments": {"args": 5},
    "no keywords": {"kwargs": [1]},
    "another queue": {"queue_name": "other"},
    "more": {"more": 1},
}


def test_what_is_no_task_of_the_queue_is_dead_and_ends_no_thread(broker, q, worker):
    ran = []

    @dramatiq.actor(max_retries=0)
    def act(*args):
        ran.append(args)

    whole = act.message(1).asdict()
    for id, bad in NO_TASKS.items():
        q.send(bad if isinstance(bad, bytes) else json.dumps(whole | bad), id=id)
        act.send(id)
    broker.join("default", timeout=10_000)
    worker.join()
    assert {record.id: bool(record.error) for record in q.list("dead")} == dict.fromkeys(NO_TASKS, True)
    assert sorted(ran) == sorted((id,) for id in NO_TASKS)


def test_dead_messages_are_kept_for_their_time(dq_url):
    broker = DqBroker(url=dq_url, middleware=[], dead_message_ttl=1)
    send(broker, *["act"] * 300)
    consumer = broker.consume("default", prefetch=300)
    for _ in range(300):
        consumer.nack(next(consumer))
    broker.join("default", timeout=10_000)
    queue = broker.queue("default")
    while queue.len("dead"):
        time.sleep(0.001)
    assert queue.info()["nacked"] == 300


def test_a_worker_that_stops_gives_back_what_has_not_begun(broker, q):
    begun, stopped = threading.Event(), threading.Event()

    @dramatiq.actor
    def act():
        begun.set()
        stopped.wait(20)

    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=1)
    worker.start()
    act.send_with_options(delay=HOUR)
    for _ in range(3):
        act.send()
    begun.wait(20)
    threading.Timer(0.2, stopped.set).start()
    worker.stop()
    assert (q.info()["acked"], q.len("ready"), q.len("delayed"), q.len("running")) == (1, 2, 1, 0)


def test_joining_counts_what_runs_and_what_is_delayed(broker, q):
    send(broker, "act")
    broker.enqueue(dramatiq.Message("default", "act", (), {}, {}), delay=HOUR)
    consumer = broker.consume("default")
    message = next(consumer)
    for expected in (2, 1):
        assert q.len() == expected
        with pytest.raises(dramatiq.errors.QueueJoinTimeout):
            broker.join("default", interval=1, timeout=10)
        consumer.ack(message)
    q.advance(HOUR)
    consumer.ack(next(consumer))
    broker.join("default", timeout=10_000)


def test_many_messages_of_a_lost_worker_go_to_another(dq_url, q):
    lost, other = (DqBroker(url=dq_url, middleware=[], heartbeat_timeout=900) for _ in range(2))
    send(lost, *["act"] * 2000)
    consumer = lost.consume("default", prefetch=2000)
    sent = {next(consumer).options["redis_message_id"] for _ in range(2000)}
    assert (len(sent), q.len("running")) == (2000, 2000)
    q.advance(900)
    taking = other.consume("default", prefetch=2000)
    assert {next(taking).options["redis_message_id"] for _ in range(2000)} == sent


def test_what_is_no_message_of_dramatiq_is_dead(broker, q):
    q.send("no message")
    broker.enqueue(dramatiq.Message("default", "a", (), {}, {}))
    assert next(broker.consume("default", prefetch=5)).actor_name == "a"
    assert q.len("dead") == 1


def test_flush_empties_the_queue(broker, q):
    broker.declare_queue("default")
    broker.enqueue(dramatiq.Message("default", "a", (), {}, {}), delay=HOUR)
    broker.flush_all()
    assert q.len() == 0
    broker.join("default", timeout=1)
    broker.enqueue(dramatiq.Message("default", "a", (), {}, {}))
    with pytest.raises(dramatiq.QueueJoinTimeout):
        broker.join("default", interval=1, timeout=1)


@pytest.mark.parametrize("settle", ["ack", "nack"])
def test_what_became_of_a_message_is_told_over_the_next_connection(broker, q, monkeypatch, settle):
    broker.enqueue(dramatiq.Message("default", "a", (), {}, {}))
    consumer = broker.consume("default")
    message = next(consumer)
    tries = []
    execute = broker.client.execute_command

    def lost(*words, **options):
        tries.append(words)
        if len(tries) < 4:
            raise redis.ConnectionError("gone")
        return execute(*words, **options)

    monkeypatch.setattr(broker.client, "execute_command", lost)
    getattr(consumer, settle)(message)
    assert (q.len("running"), len(consumer.held)) == (0, 0)


@pytest.mark.parametrize("settle", ["ack", "nack"])
def test_a_worker_that_stops_gives_up_on_a_server_that_is_gone(broker, monkeypatch, settle):
    broker.enqueue(dramatiq.Message("default", "a", (), {}, {}))
    consumer = broker.consume("default")
    message = next(consumer)

    def lost(*_words, **_options):
        raise redis.ConnectionError("gone")

    monkeypatch.setattr("dqueue.working.lastwords.LAST_WORDS", 0.05)
    broker.last_words.end()
    broker.emit_before("worker_shutdown", None)
    monkeypatch.setattr(broker.client, "execute_command", lost)
    # This must not be an error that Dramatiq would repeat for ever.
    getattr(consumer, settle)(message)
    broker.last_words.end()


def test_a_consumer_that_gets_no_answer_leaves_a_stopping_worker_its_last_words(broker, monkeypatch):
    def lost(*_words, **_options):
        raise redis.ConnectionError("gone")

    monkeypatch.setattr("dqueue.drivers.dramatiqconsumer.LONGEST_PAUSE", 0)
    consumer = broker.consume("default", timeout=1)
    assert next(consumer) is None
    broker.emit_before("worker_shutdown", None)
    broker.last_words.waited(1.5)
    monkeypatch.setattr(broker.client, "execute_command", lost)
    assert next(consumer) is None
    assert broker.last_words.left <= 0.5
    broker.last_words.end()


def test_a_worker_that_stops_is_not_kept_by_a_server_that_is_silent(broker, server):
    consumer = broker.consume("default", timeout=5000)
    broker.emit_before("worker_shutdown", None)
    server.pause()
    try:
        # The client itself would wait for ten seconds.
        assert next(consumer) is None
        assert broker.last_words.is_over
    finally:
        server.resume()
        broker.last_words.end()


@pytest.mark.slow
def test_the_example_survives_the_kill_of_its_worker(dq_url, tmp_path):
    env = {**os.environ, "DQ_URL": dq_url, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, EXAMPLE], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
