"""Family: routing, waiting at many nodes, growth, and the worker on it."""

import threading

import pytest
import redis
from dqueue import Family, Next, Queue, Worker, connect, connect_cluster, routing

from tests.harness.server import wait_for
from tests.harness.threads import running


def url(node):
    return f"redis://127.0.0.1:{node.port}"


@pytest.fixture
def f(cluster):
    family = Family("jobs", 16, connect_cluster(url(cluster.nodes[0])))
    yield family
    family.close()
    family.client.close()


@pytest.fixture
def one(dq_url):
    """A family on a single server."""
    family = Family("jobs", 16, connect(dq_url))
    yield family
    family.close()
    family.client.close()


def blocked(cluster):
    return [int(node.info("clients")["blocked_clients"]) for node in cluster.nodes]


def drained(family, block=None):
    texts = []
    while batch := family.fetch(count=10, block=block):
        texts += [message.text for message in batch]
        assert family.ack(*batch) == len(batch)
    return texts


def test_other_names_and_numbers_are_refused(dq_url):
    client = connect(dq_url)
    for name, partitions, grown_from in (("a{b", 4, None), ("", 4, None), ("f", 6, None), ("f", 8, 2)):
        with pytest.raises(ValueError):
            Family(name, partitions, client, grown_from=grown_from)


def test_messages_go_to_the_queue_of_their_group_and_come_from_all_nodes(f):
    for n in range(60):
        f.send(f"m{n}", group=f"g{n % 20}")
    for n in range(20):
        queue = f.queue(f"g{n}")
        assert queue.key == routing.route("jobs", 16, f"g{n}")
        assert [group.waiting for group in queue.groups() if group.group == f"g{n}"] == [3]
    assert f.len() == 60 and f.info()["queues"] == len({f.queue(f"g{n}").key for n in range(20)})
    texts = drained(f)
    assert sorted(texts) == sorted(f"m{n}" for n in range(60))
    for n in range(20):
        assert [text for text in texts if int(text[1:]) % 20 == n] == [f"m{n}", f"m{n + 20}", f"m{n + 40}"]
    assert f.len() == 0


def test_a_message_without_a_group_is_found_by_its_id(f):
    assert f.send("x", id="a") == "a"
    assert f.send("y", id="a") is None
    assert f.get("a").payload == b"x" and f.explain("a").code
    assert f.update("a", "z") and f.reschedule("a", delay=60_000)
    assert f.cancel("a") == "delayed" and f.get("a") is None
    made = {f.send("spread") for _ in range(40)}
    assert len(made) == 40 and f.info()["queues"] > 4
    assert f.wait("nobody", 1) is None


def test_verbs_about_all_messages_go_to_all_partitions(f):
    f.ensure(retries=0)
    f.ensure(retain=60_000)
    for n in range(20):
        f.send("x", group=f"g{n}", id=str(n))
    assert len({group.group for group in f.groups()}) == 20
    f.pause()
    assert f.fetch() == []
    f.resume()
    f.pause(group="g1")
    batch = []
    while more := f.fetch(count=10, consumer="me"):
        batch += more
    assert len(batch) == 19 and {consumer.name for consumer in f.consumers()} == {"me"}
    f.resume(group="g1")
    assert f.touch(60_000, *batch) == 19
    assert f.nack(*batch, error="broken") == 19
    assert len(list(f.list("dead"))) == 19 == len(list(f.find("dead", error="bro*")))
    assert f.redrive_found(group="g2") == 1
    assert f.redrive() == 18 and f.len("ready") == 20
    assert len(f.peek(5)) == 5
    assert f.cancel_found("ready", id="1?") == 10
    assert f.purge(state="ready") == 10
    f.set_group("g3", weight=5)
    assert [group.weight for group in f.groups() if group.group == "g3"] == [5]
    f.schedule("tick", "x", every=60_000)
    assert [schedule.name for schedule in f.schedules()] == ["tick"] and f.unschedule("tick")


def test_a_message_is_followed_by_others_in_its_queue(f):
    f.send("first", group="g")
    (message,) = f.fetch()
    assert f.ack_send(message, Next("second", group="g"), result="ok")
    assert [message.text for message in f.fetch()] == ["second"]


def test_signals_and_limits_of_a_family(f):
    f.limit("api", concurrency=1)
    assert {one.concurrency for one in f.limits()} == {1}
    f.send("x", id="x", group="g", park=True, limits=["api"])
    assert not f.signal("x", "go", group="other") and f.signal("x", "go", group="g")
    (message,) = f.fetch()
    assert message.signal == "go"
    assert f.ack(message, cost=2) == 1
    f.limit("api")
    assert {one.rule for one in f.limits()} <= {None}


def test_one_connection_waits_at_each_node_however_many_partitions_and_threads(f, cluster):
    threads = [threading.Thread(target=f.fetch, kwargs={"block": 1500}) for _ in range(8)]
    for thread in threads:
        thread.start()
    wait_for(lambda: blocked(cluster) == [1, 1, 1])
    for n in range(8):
        f.send("x", group=f"g{n}")
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert f.len("ready") == 0 and f.len("running") == 8


def test_what_comes_while_there_is_no_room_goes_to_another_consumer(f, cluster):
    """Both consumers wait at all nodes. One of them gets the first message and must not keep the others from the
    second one.
    """
    other = Family("jobs", 16, connect_cluster(url(cluster.nodes[0])))
    got = {}

    def consume(name, family):
        got[name] = [message.text for message in family.fetch(block=4000)]

    first = threading.Thread(target=consume, args=("f", f))
    first.start()
    wait_for(lambda: blocked(cluster) == [1, 1, 1])
    for key in {cluster.owner(queue.key).port: queue for queue in f.queues()}.values():
        key.send(key.key)
    first.join(10)
    # The other two messages were given back, without an attempt, and are available to others.
    wait_for(lambda: f.len("ready") == 2)
    assert [record.attempt for record in f.list("ready")] == [0, 0]
    assert len(drained(other)) == 2 and len(got["f"]) == 1
    other.close()


def test_a_single_server_has_families_too(one):
    one.send("a", group="g")
    one.send("b")
    assert sorted(drained(one, block=200)) == ["a", "b"]
    assert one.len() == 0


def test_errors_that_will_not_pass_are_raised(one):
    one.client.execute_command("ACL", "SETUSER", "poor", "on", ">pw", "~*", "+@all", "-dq.nfetch")
    host = one.client.get_connection_kwargs()
    poor = Family("jobs", 4, connect(f"redis://poor:pw@{host['host']}:{host['port']}"))
    for _ in range(2):
        with pytest.raises(redis.exceptions.NoPermissionError):
            poor.fetch(block=1000)
    poor.close()


# ---- growth ---------------------------------------------------------------------------------------------------------


def moved_group(partitions=8):
    """A group that changes its queue when the partitions double."""
    return next(
        g for g in map(str, range(1000)) if len(routing.Layout("jobs", 2 * partitions, partitions).homes(g)) == 2
    )


def test_a_group_changes_its_queue_when_its_old_one_has_no_more_of_it(f):
    group = moved_group()
    old = Family("jobs", 8, f.client)
    new = Family("jobs", 16, f.client, grown_from=8)
    home, before = new.queue(group), old.queue(group)
    old.send("1", group=group)
    assert new.send("2", group=group, id="two") == "two"
    assert new.send("2", group=group, id="two") is None
    assert before.len() == 2 and home.len() == 0 and new.moving() == 1
    assert new.get("two", group=group).payload == b"2"
    new.ack(*new.fetch())
    # A running message holds the new partition's messages, too.
    (running,) = new.fetch()
    assert new.send_many(["3", "4"], group=group)
    assert before.len() == 3 and home.len() == 0
    new.ack(running)
    assert drained(new) == ["3", "4"]
    assert new.moving() == 0
    assert new.send("5", group=group) and new.send_many(["6", "7"], group=group)
    assert before.len() == 0 and home.len() == 3
    assert drained(new) == ["5", "6", "7"]


def test_a_send_that_is_repeated_while_the_family_grows_adds_nothing(f):
    group = moved_group()
    new = Family("jobs", 16, f.client, grown_from=8)
    before = Queue(f.client, routing.route("jobs", 8, group))
    before.send("0", group=group)
    asked = []
    real = f.client.execute_command

    def loses_a_reply(*words):
        reply = real(*words)
        asked.append(words[0])
        if len(asked) == 1:
            raise redis.ConnectionError("the reply was lost")
        return reply

    f.client.execute_command = loses_a_reply
    assert new.send("1", group=group) is not None
    f.client.execute_command = real
    assert [record.payload for record in before.list("ready")] + [
        record.payload for record in before.list("blocked")
    ] == [b"0", b"1"]
    assert new.queue(group).len() == 0


# ---- nodes that come and go -----------------------------------------------------------------------------------------


def test_waiting_consumers_follow_a_queue_to_another_node(f, cluster):
    queue = f.queue("g")
    source = cluster.owner(queue.key)
    target = next(node for node in cluster.nodes if node is not source)
    got = []

    def consume():
        while batch := f.fetch(block=3000):
            got.extend(message.text for message in batch)
            f.ack(*batch)

    thread = threading.Thread(target=consume)
    thread.start()
    wait_for(lambda: blocked(cluster) == [1, 1, 1])
    slot = cluster.slot(queue.key)
    cluster.move_slot(slot, source, target)
    try:
        f.send("x", group="g")
        wait_for(lambda: got == ["x"])
    finally:
        cluster.move_slot(slot, target, source)
    f.send("y", group="g")
    wait_for(lambda: got == ["x", "y"])
    thread.join(20)


def test_a_node_that_did_not_answer_is_waited_at_again(f, cluster):
    node = cluster.nodes[1]
    got = []

    def consume():
        while len(got) < 2:
            got.extend(message.text for message in f.fetch(block=1000))

    thread = threading.Thread(target=consume)
    thread.start()
    wait_for(lambda: blocked(cluster) == [1, 1, 1])
    with node.wire() as w:
        w.ok("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wait_for(lambda: blocked(cluster) == [1, 1, 1])
    queue = next(queue for queue in f.queues() if cluster.owner(queue.key) is node)
    queue.send("x")
    queue.send("y")
    thread.join(10)
    assert sorted(got) == ["x", "y"]


# ---- the worker -----------------------------------------------------------------------------------------------------


def test_a_worker_handles_the_messages_of_all_nodes_in_the_order_of_their_groups(f, cluster):
    f.ensure(retain=60_000, retries=2)
    worker = Worker(f, concurrency=4, block=500)
    seen = []

    @worker.handler("work")
    def work(message):
        seen.append((message.group, message.text))
        if message.text == "3" and message.attempt == 1:
            raise ValueError("once")
        return "done" if message.text == "5" else None

    with running(worker):
        for n in range(10):
            for group in "abcdef":
                f.send(str(n), group=group, type="work", id=f"{group}{n}")
        wait_for(lambda: f.len() == 0, 20)
        wait_for(lambda: sum(blocked(cluster)) <= 3)
    for group in "abcdef":
        order = [text for g, text in seen if g == group]
        assert order == list("0123") + list("3456789")
    assert f.get("a5", group="a").result == "done"
    wait_for(lambda: blocked(cluster) == [0, 0, 0])


def test_a_worker_that_stops_gives_back_what_it_has(f):
    for n in range(20):
        f.send("x", group=f"g{n}")
    worker = Worker(f, concurrency=2, block=300, grace=100)
    started, go_on = threading.Semaphore(0), threading.Event()

    @worker.handler()
    def slow(message):
        started.release()
        go_on.wait(10)

    with running(worker):
        started.acquire()
        started.acquire()
        worker.stop()
        wait_for(lambda: f.len("running") == 0)
        go_on.set()
    assert f.len("ready") == 20


def test_a_message_that_is_given_back_too_late_is_told(one, caplog):
    one.send("x")
    messages = one.fetch(lease=1)
    wait_for(lambda: one.len("running") == 0)
    connections = one._node_connections({"count": 1}, 100)
    connections._give_back(messages)
    connections.close()
    assert caplog.messages == ["1 of 1 messages came too late to be given back"]


def test_leases_of_messages_with_equal_receipts_are_kept_apart(f):
    from dqueue.protocol.message import Message
    from dqueue.working.leases import Leases

    def message(queue):
        return Message("i", 7, 1, b"", None, None, 0, None, {}, 0, 0, 0, 0, queue=queue)

    leases = Leases()
    one, other = message("a"), message("b")
    leases.add(one)
    leases.add(other)
    assert leases.drop(one) and leases.holds(other) and not leases.holds(one)
