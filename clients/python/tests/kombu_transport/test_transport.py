"""The transport for kombu and Celery against a real server. `make test-celery` runs the suites of kombu and Celery."""

import os
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from queue import Empty

import pytest
from dqueue import Queue as Dq

kombu = pytest.importorskip("kombu", reason="needs kombu: pip install 'dq-queue[celery]'")

from dqueue.kombu import Channel, Tag  # noqa: E402
from kombu import Connection, Consumer, Exchange, Producer, Queue  # noqa: E402

from clients.python.tests.kombu_transport.publishing import get, publish  # noqa: E402
from tests.harness.server import wait_for  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[4] / "examples/drivers/celery_shop.py"
HOUR = 3_600_000


def task(eta=None):
    return {"task": "shop.mail", "id": "task-1", "eta": eta}


def moment(ms):
    return datetime.fromtimestamp(ms / 1000, timezone.utc)


def test_a_message_is_published_consumed_and_acked(connection, q):
    publish(connection, {"a": 1}, headers=task())
    [record] = q.list("ready")
    assert (record.type, record.retries_left, record.priority) == ("shop.mail", -1, 0)
    received = []
    with Consumer(connection, [Queue("jobs")], callbacks=[lambda body, message: received.append(message)]):
        connection.drain_events(timeout=5)
        [message] = received
        assert message.payload == {"a": 1}
        assert isinstance(message.delivery_tag, Tag)
        assert "redelivered" not in message.headers
        assert q.get(record.id).state == "running"
        message.ack()
    assert q.get(record.id) is None and q.len() == 0


def test_an_eta_is_waited_for_in_the_server(connection, q):
    publish(connection, headers=task(moment(HOUR).isoformat()))
    assert get(connection) is None
    [record] = q.list("delayed")
    assert record.due_at == HOUR
    q.advance(HOUR)
    message = get(connection)
    # Celery's worker reads the eta with `get` and would wait again; its task gets the dictionary.
    assert message.headers.get("eta") is None and message.headers.copy().get("eta") is None
    assert dict(message.headers)["eta"] == moment(HOUR).isoformat()
    message.ack()


@pytest.mark.parametrize("eta", ["1960-01-01T00:00:00+00:00", "1970-01-01T00:00:00", "no time", 7])
def test_an_eta_that_has_passed_or_is_none_is_due_at_once(connection, q, eta):
    publish(connection, headers=task(eta))
    assert get(connection).payload == "x"


def test_priorities_are_ten_and_zero_goes_first(connection, q):
    for priority in (9, 3, 0, 7, 1, 8, 4, 2, 6, 5, 99, -5):
        publish(connection, priority, priority=priority)
    order = [get(connection, no_ack=True).payload for _ in range(12)]
    assert order == [0, -5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99]
    assert q.len() == 0


def test_a_requeued_message_comes_back_first_and_is_marked(connection, q):
    publish(connection, "a")
    publish(connection, "b")
    get(connection).requeue()
    message = get(connection)
    assert (message.payload, message.headers["redelivered"]) == ("a", True)
    assert message.delivery_info["redelivered"] is True
    [record] = q.list("running")
    assert (record.attempt, record.failures) == (1, 0)


def test_a_rejected_message_is_dead_and_can_be_redriven(connection, q):
    publish(connection)
    get(connection).reject()
    [record] = q.list("dead")
    assert record.reason == "rejected"
    q.redrive()
    assert get(connection).payload == "x"


def test_a_closed_channel_gives_back_what_it_holds(url, connection, q):
    publish(connection, "a")
    publish(connection, "b")
    with Connection(url) as other:
        assert [get(other).payload, get(other).payload] == ["a", "b"]
    assert [(record.state, record.attempt) for record in q.peek(10)] == [("ready", 0)] * 2
    message = get(connection)
    assert (message.payload, message.headers["redelivered"]) == ("a", True)


def test_a_lease_that_ends_gives_the_message_to_another(url, q):
    with Connection(url, transport_options={"visibility_timeout": 5}) as lost, Connection(url) as other:
        publish(other)
        message = get(lost)
        q.advance(4999)
        assert get(other) is None
        q.advance(1)
        again = get(other)
        assert again.headers["redelivered"] is True
        again.ack()
        message.ack()
    assert q.info()["acked"] == 1


def test_heartbeats_extend_the_leases_of_all_that_is_held(url, q):
    with Connection(url, transport_options={"visibility_timeout": 900}) as connection:
        for _ in range(3):
            publish(connection)
        held = [get(connection) for _ in range(3)]
        held.pop().ack()
        channel, cycle = connection.default_channel, connection.transport.cycle
        q.advance(300_000)
        cycle.keep_leases()
        assert {record.lease_until for record in q.list("running")} == {900_000}
        channel._touched_at -= 301
        cycle.keep_leases()
        assert [record.lease_until for record in q.list("running")] == [1_200_000] * 2


def test_an_expiration_counts_from_the_send(connection, q):
    # Times of day are the client's, so the clock of the queue is set to them.
    q.advance_to(int(time.time() * 1000) + 60_000)
    publish(connection, "a", expiration=100)
    publish(connection, "b", expiration=100, headers=task(moment(q.now + 50_000).isoformat()))
    publish(connection, "c", expiration=0)
    q.advance(99_000)
    assert q.len() == 1
    q.advance(101_000)
    assert {record.reason for record in q.list("dead")} == {"expired"} and q.len() == 0


def test_a_queue_with_x_expires_goes(connection, dq_client):
    queue = Queue("brief", expires=60)(connection.default_channel)
    queue.declare()
    Producer(connection.default_channel).publish("x", routing_key="brief")
    assert 0 < dq_client.pttl("brief") <= 60_000


def test_size_and_purge_leave_out_what_is_held(connection, q):
    for eta in (None, None, moment(HOUR).isoformat()):
        publish(connection, headers=task(eta))
    held = get(connection)
    queue = Queue("jobs")(connection.default_channel)
    assert queue.queue_declare(passive=True).message_count == 2
    assert queue.purge() == 2
    assert q.len() == 1
    held.ack()


def test_a_deleted_queue_is_gone(connection, q, dq_client):
    exchange = Exchange("direct", type="direct")
    queue = Queue("made", exchange, routing_key="made")(connection.default_channel)
    queue.declare()
    assert Dq(dq_client, "made").info()["deadcount"] == 10_000
    assert queue.queue_declare(passive=True).message_count == 0
    queue.delete()
    assert not dq_client.exists("made")
    with pytest.raises(connection.channel_errors):
        queue.queue_declare(passive=True)


def test_a_queue_that_the_server_has_lost_gets_its_options_again(url, dq_client):
    with Connection(url, transport_options={"queue_options": {"DEADCOUNT": 7}, "lost_workers": 2}) as connection:
        publish(connection)
        dq_client.flushall()
        publish(connection)
    found = Dq(dq_client, "jobs")
    assert (found.info()["deadcount"], found.len()) == (7, 1)
    for _ in range(2):
        found.touch(1, *found.fetch(consumer="lost"))
        wait_for(lambda: found.len("running") == 0)
    assert [record.reason for record in found.list("dead")] == ["timeouts"]


@pytest.mark.parametrize("loss", ["FLUSHALL", "DEL"])
def test_a_producer_reaches_the_queues_of_its_exchange_after_a_loss(connection, dq_client, loss):
    news = Exchange("news", type="topic")
    declared = Queue("found", news, routing_key="sport.#")(connection.default_channel)
    declared.declare()
    producer = Producer(connection.default_channel, exchange=news)
    for number in range(2):
        producer.publish(f"text {number}", routing_key="sport.chess")
        assert Dq(dq_client, "found").len() == 1
        # A second declaration of the queue over the same connection finds it, too.
        for _ in range(number):
            declared.declare()
        dq_client.execute_command(*([loss] if loss == "FLUSHALL" else [loss, "found", *dq_client.keys("_kombu*")]))
    declared.declare()
    with Connection(connection.as_uri()) as other:
        Producer(other.default_channel, exchange=news).publish("text", routing_key="sport.go")
    assert Dq(dq_client, "found").len() == 1


def test_a_deleted_queue_is_not_bound_again(connection, dq_client):
    news = Exchange("news", type="topic")
    queues = [Queue(name, news, routing_key="#")(connection.default_channel) for name in ("found", "kept")]
    for queue in queues:
        queue.declare()
    queues[0].delete()
    Producer(connection.default_channel, exchange=news).publish("text", routing_key="sport.go")
    assert (dq_client.exists("found"), Dq(dq_client, "kept").len()) == (0, 1)


def test_a_fanout_reaches_all_its_queues(url, connection, dq_client):
    exchange = Exchange("news", type="fanout")
    received = []
    with Connection(url) as other:
        consumers = [
            Consumer(one, [Queue(name, exchange)], no_ack=True, callbacks=[lambda body, _: received.append(body)])
            for name, one in (("left", connection), ("right", other))
        ]
        for consumer in consumers:
            consumer.consume()
        # The first drain subscribes.
        wait_for(lambda: drained(connection) or drained(other) or subscribers(dq_client) == 2)
        Producer(connection.default_channel, exchange).publish("hello", serializer="json")
        wait_for(lambda: drained(connection) or drained(other) or len(received) == 2)
    assert received == ["hello", "hello"]


def subscribers(client):
    return sum(int(one["psub"]) == 1 for one in client.client_list())


def drained(connection):
    try:
        connection.drain_events(timeout=0.05)
    except OSError:
        pass


def test_messages_without_ack_are_finished_when_they_are_delivered(connection, q):
    publish(connection, "a")
    publish(connection, "b")
    received = []
    with Consumer(connection, [Queue("jobs")], no_ack=True, callbacks=[lambda body, _: received.append(body)]):
        connection.drain_events(timeout=5)
    assert received == ["a"] and q.len("running") == 0
    assert get(connection, no_ack=True).payload == "b"
    assert q.len() == 0


@pytest.mark.parametrize("payload", [b"\xff", "1", "{}", '{"properties": 1}'])
def test_what_is_no_message_of_kombu_does_not_stop_the_queue(connection, q, payload):
    q.send(payload)
    publish(connection)
    received = []
    with Consumer(connection, [Queue("jobs")], callbacks=[lambda body, message: received.append(body)]):
        wait_for(lambda: drained(connection) or received)
    [record] = q.list("dead")
    assert "no message of kombu" in record.error


@pytest.mark.skipif(not hasattr(Producer, "batch"), reason="batches came with kombu 5.7")
def test_a_batch_of_publications_is_sent_at_its_end(connection, q):
    producer = Producer(connection.default_channel, serializer="json")
    with producer.batch():
        producer.publish("a", routing_key="jobs")
        producer.publish("b", routing_key="jobs", priority=1)
        assert q.len() == 0
    assert [record.priority for record in q.peek(10)] == [0, 1]
    q.client.flushall()
    with producer.batch():
        producer.publish("c", routing_key="jobs")
    assert (q.len(), q.info()["deadcount"]) == (1, 10_000)


def test_keys_have_the_global_prefix(url, dq_client):
    with Connection(url, transport_options={"global_keyprefix": "shop:"}) as connection:
        queue = Queue("jobs", Exchange("jobs"), routing_key="jobs")(connection.default_channel)
        queue.declare()
        publish(connection)
        assert dq_client.type("shop:jobs") == b"dqueue-rs"
        received = []
        with Consumer(connection, [queue], callbacks=[lambda body, message: received.append(message)]):
            connection.drain_events(timeout=5)
            received[0].ack()
        assert Dq(dq_client, "shop:jobs").len() == 0
        queue.delete()
        assert not dq_client.exists("shop:jobs")


def test_a_failover_is_a_lost_connection(connection, q):
    channel: Channel = connection.default_channel
    with Consumer(connection, [Queue("jobs")], callbacks=[print]):
        connection.transport.cycle.on_poll_start()
        wait_for(lambda: q.info()["blocked-clients"] == 1)
        [blocked] = [one["id"] for one in q.client.client_list() if "b" in one["flags"]]
        q.client.client_unblock(int(blocked), error=True)
        with pytest.raises(connection.connection_errors):
            channel._brpop_read()
        with pytest.raises(Empty):
            connection.transport.cycle.get(print, timeout=0.05)


@pytest.mark.slow
def test_the_example_survives_the_kill_of_its_worker(dq_url, tmp_path):
    pytest.importorskip("celery", reason="needs celery: pip install 'dq-queue[celery]'")
    env = {**os.environ, "DQ_URL": dq_url, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, EXAMPLE], env=env, cwd=tmp_path, capture_output=True, text=True, start_new_session=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Old:
    """A connection of redis-py before its version 8."""

    def __init__(self):
        self.host, self.port, self._sock = "first", 1, None

    def connect(self):
        self._sock = self._sock or (self.host, self.port)

    def disconnect(self):
        self._sock = None

    def send_command(self, *words):
        pass

    def read_response(self):
        return 0


def test_connections_without_the_property_is_connected_follow_the_keys():
    from dqueue.drivers.kombu.connection import Following, Place

    place = Place()
    connection = type("Connection", (Following, Old), {})(place=place)
    connection.connect()
    assert connection._sock == ("first", 1)
    place.address = ("second", 2)
    connection.connect()
    assert connection._sock == ("second", 2)
