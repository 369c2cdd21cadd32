"""Acks of Dramatiq's workers: they bring the next messages, wait for one another, and outlive lost connections."""

import threading
import time

import pytest
import redis

dramatiq = pytest.importorskip("dramatiq", reason="needs dramatiq: pip install 'dq-queue[dramatiq]'")

from clients.python.tests.dramatiq_broker.sending import send  # noqa: E402
from clients.python.tests.pacing import Pairs  # noqa: E402


class Taking(threading.Thread):
    """Takes one message of a consumer in a thread."""

    def __init__(self, consumer):
        super().__init__()
        self.consumer = consumer
        self.taken = []
        self.start()

    def run(self):
        self.taken.append(next(self.consumer))

    def until_it_waits_for_room(self):
        while self.is_alive() and not self.consumer.held.is_waiting_for_room:
            time.sleep(0.001)

    def result(self):
        self.join()
        [message] = self.taken
        return message


def test_an_ack_brings_the_message_that_a_full_worker_waits_for(broker, q, dq_client):
    send(broker, "a", "b", "c")
    consumer = broker.consume("default", prefetch=1, timeout=5000)
    message = next(consumer)
    dq_client.config_resetstat()
    for expected in ("b", "c"):
        taking = Taking(consumer)
        taking.until_it_waits_for_room()
        # The next message comes by the reply of this ack: the consumer sends nothing.
        consumer.ack(message)
        message = taking.result()
        assert message.actor_name == expected
    used = dq_client.info("commandstats")
    assert (used["cmdstat_dq.fetch"]["calls"], "cmdstat_dq.ack" in used) == (2, False)
    consumer.ack(message)
    assert (q.len(), q.info()["acked"], len(consumer.held)) == (0, 3, 0)


@pytest.fixture
def hurried(broker, q):
    """A consumer that holds two messages, while three are ready, and whose acks come fast."""
    send(broker, "a", "b", "c", "d", "e")
    consumer = broker.consume("default", prefetch=2, timeout=5000)
    consumer.held.acks = Pairs()
    return consumer, [next(consumer), next(consumer)]


def test_acks_that_come_fast_bring_as_many_messages_at_once(hurried, q, dq_client, monkeypatch):
    # The consumer does not end the wait by itself.
    monkeypatch.setattr("dqueue.drivers.held.PATIENCE", 3600)
    consumer, held = hurried
    dq_client.config_resetstat()
    taking = Taking(consumer)
    taking.until_it_waits_for_room()
    consumer.ack(held[0])
    assert (q.info()["acked"], len(consumer.held)) == (0, 2)
    consumer.ack(held[1])
    assert [taking.result().actor_name, next(consumer).actor_name] == ["c", "d"]
    assert (q.info()["acked"], len(consumer.held)) == (2, 2)
    used = dq_client.info("commandstats")
    assert (used["cmdstat_dq.fetch"]["calls"], "cmdstat_dq.ack" in used) == (1, False)


def test_an_ack_that_no_other_follows_is_sent_soon(hurried, q, dq_client):
    consumer, held = hurried
    dq_client.config_resetstat()
    taking = Taking(consumer)
    taking.until_it_waits_for_room()
    consumer.ack(held[0])
    assert taking.result().actor_name == "c"
    assert (q.info()["acked"], len(consumer.held)) == (1, 2)
    used = dq_client.info("commandstats")
    assert (used["cmdstat_dq.fetch"]["calls"], "cmdstat_dq.ack" in used) == (1, False)


def test_an_ack_that_waits_outlives_a_lost_connection(broker, hurried, q):
    consumer, held = hurried
    settle = consumer.queue.fetch

    def lost(**options):
        raise redis.ConnectionError("reset")

    consumer.queue.fetch = lost
    consumer.held.is_waiting_for_room = True
    consumer.ack(held[0])
    consumer.held.is_waiting_for_room = False
    assert next(consumer) is None
    assert q.info()["acked"] == 0
    consumer.queue.fetch = settle
    assert next(consumer).actor_name == "c"
    assert q.info()["acked"] == 1


def test_acks_that_wait_go_over_to_the_next_consumer(broker, hurried, q):
    consumer, held = hurried
    consumer.held.is_waiting_for_room = True
    consumer.ack(held[0])
    consumer.held.is_waiting_for_room = False
    # After an unexpected error Dramatiq continues with a new consumer.
    assert next(broker.consume("default", prefetch=2, timeout=5000)).actor_name == "c"
    assert q.info()["acked"] == 1


def test_a_closed_consumer_sends_the_acks_that_wait(hurried, q):
    consumer, held = hurried
    consumer.held.is_waiting_for_room = True
    consumer.ack(held[0])
    consumer.held.is_waiting_for_room = False
    assert q.info()["acked"] == 0
    consumer.close()
    assert (q.info()["acked"], q.len("running")) == (1, 1)


@pytest.fixture
def full(broker, q):
    """A consumer that waits for room, the message that it holds, and its way to fetch. A second message is ready."""
    send(broker, "a", "b")
    consumer = broker.consume("default", prefetch=1, timeout=5000)
    message = next(consumer)
    consumer.held.is_waiting_for_room = True
    return consumer, message, consumer.queue.fetch


def test_an_ack_leaves_its_fetch_to_the_one_that_is_on_its_way(broker, q):
    send(broker, "a", "b", "c")
    consumer = broker.consume("default", prefetch=2, timeout=5000)
    held = [next(consumer), next(consumer)]
    consumer.held.is_waiting_for_room = True
    settle = consumer.queue.fetch
    acked = []

    def fetch(**options):
        # A TOKEN repeats the last delivery of its consumer, so the other ack does not fetch meanwhile.
        acked.append(len(options["ack"]))
        if len(acked) == 1:
            consumer.ack(held[1])
        return settle(**options)

    consumer.queue.fetch = fetch
    consumer.ack(held[0])
    assert (acked, q.info()["acked"], q.len("running")) == ([1, 1], 2, 1)


def test_an_ack_does_not_wait_for_the_fetch_of_an_idle_worker(full, q):
    consumer, message, _ = full
    consumer.held.is_waiting_for_room = False
    with consumer.held.fetching:
        consumer.ack(message)
    assert q.info()["acked"] == 1


def test_what_an_ack_brings_to_a_closed_consumer_goes_back(full, q):
    consumer, message, settle = full

    def fetch(**options):
        # The consumer is closed while the reply to the ack is on its way.
        messages = settle(**options)
        consumer.close()
        return messages

    consumer.queue.fetch = fetch
    consumer.ack(message)
    assert (q.len("ready"), q.len("running"), q.info()["acked"]) == (1, 0, 1)
    assert len(consumer.held) == 0


def test_an_ack_whose_reply_is_lost_is_sent_again(full, q):
    consumer, message, settle = full

    def lost(**options):
        consumer.queue.fetch = settle
        settle(**options)
        raise redis.ConnectionError("reset")

    def refuse(*_):
        raise redis.ResponseError("NOPERM")

    consumer.queue.fetch = lost
    # The renewal of a lease that was asked for long ago may be refused.
    consumer.held.lease = 1
    consumer.queue.touch = refuse
    consumer.ack(message)
    assert q.info()["acked"] == 1
    # The consumer has repeated the fetch with its token, so it also has the message of the lost reply.
    assert len(consumer.held) == q.len("running") == 1
