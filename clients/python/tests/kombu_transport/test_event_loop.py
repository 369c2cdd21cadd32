"""The transport in an event loop, as in a worker of Celery: leases, lost replies, and acks that take a fetch along."""

import socket

import pytest

pytest.importorskip("kombu", reason="needs kombu: pip install 'dq-queue[celery]'")

from kombu import Connection, Consumer, Queue  # noqa: E402
from kombu.asynchronous.hub import Hub  # noqa: E402
from redis.exceptions import ConnectionError, ResponseError  # noqa: E402

from clients.python.tests.kombu_transport.publishing import publish  # noqa: E402
from clients.python.tests.pacing import Pairs  # noqa: E402
from tests.harness.server import wait_for  # noqa: E402

HOUR = 3_600_000


def test_the_event_loop_takes_what_there_is_room_for(connection, q):
    for number in range(5):
        publish(connection, number)
    received, hub = [], Hub()
    try:
        with Consumer(
            connection, [Queue("jobs")], prefetch_count=4, callbacks=[lambda body, message: received.append(message)]
        ):
            connection.register_with_event_loop(hub)
            wait_for(lambda: hub.run_once() or len(received) == 4)
            assert q.len("running") == 4
            received[0].ack()
            wait_for(lambda: hub.run_once() or len(received) == 5)
            assert [message.payload for message in received] == [0, 1, 2, 3, 4]
    finally:
        hub.close()


@pytest.fixture
def looping(connection, q):
    """A consumer in an event loop that holds one message, and the hub."""
    publish(connection)
    received, hub = [], Hub()
    with Consumer(connection, [Queue("jobs")], callbacks=[lambda body, message: received.append(message)]):
        connection.register_with_event_loop(hub)
        wait_for(lambda: hub.run_once() or received)
        yield connection.default_channel, hub, received
    hub.close()


def needs(channel, option):
    if not channel.knows(option):
        pytest.skip(f"the module has no {option}")


def lease_end(q):
    return next(q.list("running")).lease_until


def test_a_lost_connection_ends_the_leases_soon(looping, q):
    channel, hub, received = looping
    needs(channel, "GRACE")
    assert lease_end(q) == HOUR
    channel.client.connection.disconnect()
    wait_for(lambda: lease_end(q) == 15_000)
    q.advance(15_000)
    assert q.len("ready") == 1


def test_a_worker_that_lives_on_keeps_its_leases_over_a_lost_connection(looping, q):
    channel, hub, received = looping
    needs(channel, "GRACE")
    channel.client.connection.disconnect()
    wait_for(lambda: lease_end(q) == 15_000)
    channel._touched_at -= 6
    channel.connection.cycle.keep_leases()
    assert lease_end(q) == HOUR
    received[0].ack()
    assert q.len() == 0


@pytest.mark.parametrize("error", [None, ResponseError("MISCONF"), ConnectionError("reset")])
def test_a_reply_that_was_lost_is_given_again(looping, connection, q, monkeypatch, error):
    """This is so if it was asked for long ago, and if the server refuses to renew the lease."""
    channel, hub, received = looping
    needs(channel, "TOKEN")
    if error:

        def refuse(self, name, *words):
            if name == "DQ.TOUCH":
                raise error
            return call(self, name, *words)

        call = type(channel).call
        monkeypatch.setattr(type(channel), "call", refuse)
    for tick in hub.on_tick:
        tick()
    wait_for(lambda: q.info()["blocked-clients"])
    publish(connection, "y")
    wait_for(lambda: q.len("running") == 2)
    channel._asked_at = 0.0
    channel.client.connection.disconnect()
    wait_for(lambda: hub.run_once() or len(received) == 2)
    assert received[1].payload == "y" and "redelivered" not in received[1].headers
    received[1].ack()
    assert q.len("running") == 1


@pytest.mark.parametrize(
    ("settle", "left"),
    [("ack", (0, 0, 0)), ("reject", (0, 0, 1)), ("requeue", (1, 1, 0))],
)
def test_a_task_that_outlives_the_channel_settles_its_message(connection, q, monkeypatch, settle, left):
    publish(connection)
    received, hub = [], Hub()
    consumer = Consumer(connection, [Queue("jobs")], callbacks=[lambda body, message: received.append(message)])
    consumer.consume()
    connection.register_with_event_loop(hub)
    wait_for(lambda: hub.run_once() or received)
    channel = connection.default_channel
    # This acts as if the server could not be reached when the messages were to be given back.
    monkeypatch.setattr(channel, "do_restore", False)
    channel.close()
    hub.close()
    assert q.len("running") == 1
    getattr(received[0], settle)()
    assert (q.len(), q.len("ready"), q.len("dead")) == left


def test_an_ack_after_the_channel_gave_its_message_back_is_logged(connection, q, caplog):
    publish(connection)
    received, hub = [], Hub()
    consumer = Consumer(connection, [Queue("jobs")], callbacks=[lambda body, message: received.append(message)])
    consumer.consume()
    connection.register_with_event_loop(hub)
    wait_for(lambda: hub.run_once() or received)
    connection.default_channel.close()
    hub.close()
    received[0].ack()
    assert q.len("ready") == 1
    assert "acked after their leases" in caplog.text


@pytest.fixture
def full(connection, q):
    """A consumer in an event loop that may hold one message and does, while a second one waits."""
    publish(connection, "first")
    publish(connection, "second")
    received, hub = [], Hub()
    with Consumer(
        connection, [Queue("jobs")], prefetch_count=1, callbacks=[lambda body, message: received.append(message)]
    ):
        connection.register_with_event_loop(hub)
        wait_for(lambda: hub.run_once() or received)
        yield connection.default_channel, hub, received
    hub.close()


def is_fetched(q):
    """Whether the first message is acked and the second one fetched."""
    return q.len("running") == 1 and q.len() == 1


def test_an_ack_takes_the_next_fetch_along(full, q):
    channel, hub, received = full
    received[0].ack()
    # No turn of the event loop was needed.
    wait_for(lambda: is_fetched(q))
    wait_for(lambda: hub.run_once() or len(received) == 2)
    received[1].ack()
    wait_for(lambda: q.len() == 0)
    # A reply to the ack has come, one to the fetch has not, and the loop goes on.
    publish(channel.connection.client, "third")
    wait_for(lambda: hub.run_once() or len(received) == 3)


def test_without_an_event_loop_an_ack_fetches_nothing(connection, q):
    publish(connection, "first")
    publish(connection, "second")
    received = []
    with Consumer(
        connection, [Queue("jobs")], prefetch_count=1, callbacks=[lambda body, message: received.append(message)]
    ):
        connection.drain_events(timeout=5)
        received[0].ack()
        assert not connection.default_channel._in_poll
        assert q.len("ready") == 1 and q.len("running") == 0
        connection.drain_events(timeout=5)
        assert [message.payload for message in received] == ["first", "second"]


def test_an_ack_whose_reply_is_lost_counts(full, q):
    channel, hub, received = full
    received[0].ack()
    wait_for(lambda: is_fetched(q))
    channel.client.connection.disconnect()
    wait_for(lambda: hub.run_once() or len(received) == 2)
    assert received[1].payload == "second" and q.len() == 1


def test_an_ack_that_does_not_get_through_is_sent_again(full, q):
    channel, hub, received = full
    connection = channel.client.connection
    connection.send_packed_command = lambda *args: None
    received[0].ack()
    assert q.len("running") == 1 and q.len("ready") == 1
    del connection.send_packed_command
    connection.disconnect()
    wait_for(lambda: hub.run_once() or len(received) == 2)
    assert is_fetched(q)


def test_an_ack_goes_another_way_where_the_connection_of_the_fetch_has_ended(full, q):
    channel, hub, received = full
    channel.client.connection._sock.shutdown(socket.SHUT_RDWR)
    received[0].ack()
    assert q.len() == 1
    wait_for(lambda: hub.run_once() or len(received) == 2)
    assert is_fetched(q)


def test_an_ack_that_comes_too_late_is_logged_and_the_loop_goes_on(full, q, caplog):
    channel, hub, received = full
    q.advance(2 * HOUR)
    received[0].ack()
    wait_for(lambda: hub.run_once() or len(received) == 2)
    assert "acked after their leases" in caplog.text


@pytest.fixture
def hurried(connection, q):
    """A consumer in an event loop that holds four of seven messages, and whose acks come fast."""
    for number in range(7):
        publish(connection, number)
    received, hub = [], Hub()
    with Consumer(
        connection, [Queue("jobs")], prefetch_count=4, callbacks=[lambda body, message: received.append(message)]
    ) as consumer:
        connection.register_with_event_loop(hub)
        wait_for(lambda: hub.run_once() or len(received) == 4)
        consumer.channel._acks = Pairs()
        yield consumer, hub, received
    hub.close()


def calls(client):
    used = client.info("commandstats")
    return tuple(used.get(f"cmdstat_dq.{verb}", {"calls": 0})["calls"] for verb in ("ack", "mfetch"))


def test_acks_that_come_fast_take_one_fetch_along(hurried, q, dq_client, monkeypatch):
    # Only the second ack ends the wait.
    monkeypatch.setattr("dqueue.drivers.kombu.fetching.PATIENCE", 3600)
    consumer, hub, received = hurried
    dq_client.config_resetstat()
    received[0].ack()
    for tick in [*hub.on_tick]:
        tick()
    assert (q.info()["acked"], calls(dq_client)) == (0, (0, 0))
    received[1].ack()
    wait_for(lambda: hub.run_once() or len(received) == 6)
    assert (q.info()["acked"], q.len("running")) == (2, 4)
    assert calls(dq_client) == (1, 1)


def test_an_ack_that_no_other_follows_is_sent_soon(hurried, q, dq_client):
    consumer, hub, received = hurried
    dq_client.config_resetstat()
    received[0].ack()
    wait_for(lambda: hub.run_once() or len(received) == 5)
    assert (q.info()["acked"], calls(dq_client)) == (1, (1, 1))


def test_acks_that_come_fast_share_a_command_while_a_fetch_is_on_its_way(hurried, q, dq_client):
    consumer, hub, received = hurried
    while received[-1].payload != 6:
        received[-4].ack()
        count = len(received)
        wait_for(lambda count=count: hub.run_once() or len(received) > count)
    # Four are held. Two acks take a fetch along that has nothing to bring, and the other two follow it.
    for message in received[-4:-2]:
        message.ack()
    wait_for(lambda: hub.run_once() or q.info()["acked"] == 5)
    dq_client.config_resetstat()
    for message in received[-2:]:
        message.ack()
    wait_for(lambda: q.len() == 0)
    assert calls(dq_client) == (1, 0)


def test_acks_that_follow_a_fetch_leave_its_replies_alone(hurried, q, dq_client):
    consumer, hub, received = hurried
    dq_client.config_resetstat()
    # The second ack is sent with a fetch, whose replies are read when the loop continues.
    for message in received[:4]:
        message.ack()
    wait_for(lambda: hub.run_once() or len(received) == 7)
    assert q.info()["acked"] == 4
    assert calls(dq_client) == (2, 2)


def test_acks_of_several_queues_take_one_fetch_along(connection, q, dq_client):
    for name in ("jobs", "mails"):
        for number in range(2):
            publish(connection, number, name)
    received, hub = [], Hub()
    with Consumer(
        connection,
        [Queue("jobs"), Queue("mails")],
        prefetch_count=2,
        callbacks=[lambda body, message: received.append(message)],
    ):
        connection.register_with_event_loop(hub)
        wait_for(lambda: hub.run_once() or len(received) == 2)
        connection.default_channel._acks = Pairs()
        assert {message.delivery_tag.queue for message in received} == {"jobs", "mails"}
        dq_client.config_resetstat()
        for message in [*received]:
            message.ack()
        wait_for(lambda: hub.run_once() or len(received) == 3)
        assert calls(dq_client)[0] == 2
    hub.close()


@pytest.mark.parametrize("end", [Consumer.cancel, lambda consumer: consumer.channel.close()], ids=["cancel", "close"])
def test_a_worker_that_stops_sends_the_acks_that_wait(hurried, q, monkeypatch, end):
    monkeypatch.setattr("dqueue.drivers.kombu.fetching.PATIENCE", 3600)
    consumer, hub, received = hurried
    received[0].ack()
    assert q.info()["acked"] == 0
    end(consumer)
    assert q.info()["acked"] == 1


def test_a_task_that_ends_while_its_worker_stops_is_acked_at_once(hurried, q):
    consumer, hub, received = hurried
    consumer.cancel()
    received[0].ack()
    assert q.info()["acked"] == 1


def test_a_closed_channel_loses_nothing_of_an_ack_with_a_fetch(url, q):
    with Connection(url) as connection:
        for text in ("first", "second"):
            publish(connection, text)
        received, hub = [], Hub()
        consumer = Consumer(
            connection, [Queue("jobs")], prefetch_count=1, callbacks=[lambda body, message: received.append(message)]
        )
        consumer.consume()
        connection.register_with_event_loop(hub)
        wait_for(lambda: hub.run_once() or received)
        received[0].ack()
        connection.default_channel.close()
        hub.close()
    assert q.len("ready") == 1 and q.len() == 1


def test_a_callback_that_fails_gives_back_the_rest(connection, q):
    for number in range(3):
        publish(connection, number)

    def fail(body, message):
        raise LookupError(body)

    hub = Hub()
    try:
        with Consumer(connection, [Queue("jobs")], prefetch_count=3, callbacks=[fail]):
            connection.register_with_event_loop(hub)
            with pytest.raises(LookupError):
                wait_for(lambda: hub.run_once())
            assert (q.len("running"), q.len("ready")) == (1, 2)
    finally:
        hub.close()
