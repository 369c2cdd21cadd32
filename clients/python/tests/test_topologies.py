"""The drivers on a Redis Cluster of three nodes, and on a primary that a Sentinel names."""

import asyncio
import threading
import time

import pytest
import redis
from dqueue import Queue
from dqueue.connection import open_client, open_client_asyncio

from tests.harness.server import Server, wait_for
from tests.torture.faults.replicas import Sentinel

HOUR = 3_600_000


@pytest.fixture(scope="module")
def _watched():
    primary, replica = Server(appendonly="yes").start(), Server(appendonly="yes").start()
    replica.client().execute_command("REPLICAOF", "127.0.0.1", primary.port)
    wait_for(lambda: replica.info("replication")["master_link_status"] == "up", 20, "the replica")
    sentinel = Sentinel(primary).start()

    def knows():
        with sentinel.wire(2) as wire:
            return len(wire.ok("SENTINEL", "REPLICAS", "dq")) == 1

    wait_for(knows, 30, "the Sentinel to know the replica")
    yield primary, replica, sentinel
    for server in (sentinel, replica, primary):
        server.close()


@pytest.fixture
def watched(_watched):
    """A primary, its replica and a Sentinel. A failover swaps the two, so only the last test makes one."""
    _watched[0].client().flushall()
    return _watched


def other_node(cluster, key):
    """A node that does not have the key."""
    owner = cluster.owner(key)
    return next(node for node in cluster.nodes if node is not owner)


# ---- URLs


def test_the_url_of_a_cluster_opens_a_client_that_finds_each_queue(cluster):
    client = open_client(f"dq+cluster://127.0.0.1:{cluster.nodes[0].port}")
    for number in range(6):
        queue = Queue(client, f"jobs:{number}")
        queue.send(str(number))
        (message,) = queue.fetch(block=1000)
        assert message.text == str(number) and queue.ack(message) == 1
    client.close()


def test_the_url_of_sentinels_opens_a_client_of_the_primary(watched):
    primary, _, sentinel = watched
    client = open_client(f"redis+sentinel://nobody:1,127.0.0.1:{sentinel.port}/dq/0")
    Queue(client, "jobs").send("x")
    assert Queue(primary.client(), "jobs").len() == 1
    with pytest.raises(ValueError, match="does not fit into the client's socket_timeout"):
        Queue(client, "jobs").fetch(block=HOUR)
    client.close()


def test_asyncio_has_the_same_urls(cluster, watched):
    async def main():
        for url in (
            f"redis+cluster://127.0.0.1:{cluster.nodes[0].port}",
            f"redis+sentinel://127.0.0.1:{watched[2].port}/dq",
        ):
            client = open_client_asyncio(url)
            await client.execute_command("DQ.SEND", "jobs", "x")
            assert await client.execute_command("DQ.LEN", "jobs") == 1
            await client.aclose()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "said"),
    [("redis+ring://host", "redis\\+cluster or redis\\+sentinel"), ("redis+sentinel://host:1", "host:port/name/db")],
)
def test_a_url_that_cannot_be_opened_is_refused(url, said):
    with pytest.raises(ValueError, match=said):
        open_client(url)


@pytest.mark.parametrize("end", ["@host:1", "@host:1/", "@/dq", "@host:x/dq", "/x@host:1/dq", "#@host:1/dq", "/dq/x@host:1"])
@pytest.mark.parametrize("open_url", [open_client, open_client_asyncio])
def test_a_refused_url_does_not_show_its_password(open_url, end):
    with pytest.raises(ValueError) as refused:
        open_url(f"redis+sentinel://ann:s3cret{end}")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("rest", [":s3cret/x@host:1", ":s3cret#x@host:1", ":s3cret?x@host:1", "s3cret/x@host", "ann:1/s3cret@host"])
@pytest.mark.parametrize("scheme", ["redis", "dq", "redis+cluster"])
@pytest.mark.parametrize("open_url", [open_client, open_client_asyncio])
def test_a_part_of_a_password_is_not_taken_for_an_address(open_url, scheme, rest):
    with pytest.raises(ValueError, match="must be escaped") as refused:
        open_url(f"{scheme}://{rest}")
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_url_may_have_an_at_sign_in_its_options_and_in_the_path_of_a_socket():
    given = open_client("redis://host:1/2?username=ann&password=a@b").get_connection_kwargs()
    assert (given["host"], given["db"], given["password"]) == ("host", 2, "a@b")
    assert open_client("unix:///run/a@b.sock").get_connection_kwargs()["path"] == "/run/a@b.sock"


def test_more_sends_at_once_than_a_pool_of_redis_py_8_has_connections(dq_url):
    async def main():
        client = open_client_asyncio(dq_url)
        await asyncio.gather(*(client.execute_command("DQ.SEND", "jobs", "x") for _ in range(300)))
        assert await client.execute_command("DQ.LEN", "jobs") == 300
        await client.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["", "+cluster", "+sentinel"])
def test_the_pool_of_a_client_has_no_limit_unless_one_is_given(cluster, watched, dq_url, kind):
    url = {
        "": dq_url,
        "+cluster": f"redis+cluster://127.0.0.1:{cluster.nodes[0].port}",
        "+sentinel": f"redis+sentinel://127.0.0.1:{watched[2].port}/dq",
    }[kind]
    for options, limit in (({}, 2**31), ({"max_connections": 7}, 7)):
        client = open_client(url, **options)
        one = client.get_primaries()[0].redis_connection if kind == "+cluster" else client
        assert one.connection_pool.max_connections == limit
        client.close()


# ---- kombu


@pytest.fixture
def kombu():
    module = pytest.importorskip("kombu", reason="needs kombu: pip install 'dq-queue[celery]'")
    pytest.importorskip("dqueue.kombu")
    return module


def exchanged(kombu, url, names, **options):
    """Sends to each of the queues and consumes from all of them with one channel. Returns what has come."""
    came = []
    with kombu.Connection(url, transport_options=options) as connection:
        queues = [kombu.Queue(name) for name in names]

        def callback(body, message):
            came.append((message.delivery_info["routing_key"], body))
            message.ack()

        with kombu.Consumer(connection, queues, callbacks=[callback], accept=["json"]):
            producer = connection.Producer()
            for name in names:
                producer.publish(f"for {name}", routing_key=name, serializer="json")
            while len(came) < len(names):
                connection.drain_events(timeout=10)
    return sorted(came)


def test_kombu_finds_the_node_of_its_keys_in_a_cluster(cluster, kombu):
    node = other_node(cluster, "{shop}:mails")
    names = ["mails", "bills", "parcels"]
    came = exchanged(kombu, f"dq://127.0.0.1:{node.port}/0", names, global_keyprefix="{shop}:")
    assert came == sorted((name, f"for {name}") for name in names)
    found = {node.port: node.client().keys("*") for node in cluster.nodes}
    assert b"{shop}:mails" in found.pop(cluster.owner("{shop}:mails").port) and not any(found.values())


def taken(queue):
    message = queue.get(timeout=10)
    message.ack()
    return message.payload


def test_kombu_follows_its_keys_to_another_node(cluster, kombu):
    slot, source = cluster.slot("{shop}:mails"), cluster.owner("{shop}:mails")
    target = other_node(cluster, "{shop}:mails")
    options = {"global_keyprefix": "{shop}:", "visibility_timeout": 60}
    connection = kombu.Connection(f"dq://127.0.0.1:{source.port}/0", transport_options=options)
    queue = connection.SimpleQueue("mails")
    queue.put("before")
    assert taken(queue) == "before"
    queue.put("again")
    cluster.move_slot(slot, source, target)
    # For kombu this is a lost connection, after which it connects again.
    with pytest.raises(connection.recoverable_connection_errors):
        queue.get(timeout=10)
    # This connection has the address of the node now, and a new one asks for it.
    for one in (connection, connection.clone()):
        with one.SimpleQueue("mails") as queue:
            assert taken(queue) == "again"
            queue.put("again")
        one.close()
    cluster.move_slot(slot, target, source)


def test_kombu_says_what_a_cluster_needs(cluster, kombu):
    node = other_node(cluster, "")
    with pytest.raises(redis.ResponseError, match="set the transport option global_keyprefix"):
        exchanged(kombu, f"dq://127.0.0.1:{node.port}/0", ["mails"])


def test_kombu_asks_a_sentinel_for_the_primary(watched, kombu):
    primary, _, sentinel = watched
    url = f"dq-sentinel://127.0.0.1:{sentinel.port};dq-sentinel://127.0.0.1:{sentinel.port}"
    assert exchanged(kombu, url, ["mails"], master_name="dq") == [("mails", "for mails")]
    assert Queue(primary.client(), "mails").info()["acked"] == 1


# ---- Dramatiq


def dramatiq_done(broker, count=20):
    """Runs a worker until as many messages are done, on two queues."""
    dramatiq = pytest.importorskip("dramatiq")
    done = []

    @dramatiq.actor(broker=broker, queue_name="default")
    def one(number):
        done.append(number)

    @dramatiq.actor(broker=broker, queue_name="mails")
    def two(number):
        done.append(number)

    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=2)
    worker.start()
    try:
        for number in range(count):
            (one, two)[number % 2].send_with_options(args=(number,), delay=number % 3)
        broker.join("default", timeout=20_000)
        broker.join("mails", timeout=20_000)
    finally:
        worker.stop()
    return sorted(done)


def test_dramatiq_works_on_a_cluster(cluster):
    dq = pytest.importorskip("dqueue.dramatiq", reason="needs dramatiq: pip install 'dq-queue[dramatiq]'")
    broker = dq.DqBroker(url=f"dq+cluster://127.0.0.1:{cluster.nodes[0].port}", middleware=[])
    assert dramatiq_done(broker) == [*range(20)]
    assert cluster.owner("dramatiq:default") is not cluster.owner("dramatiq:mails")
    broker.close()


def test_dramatiq_asks_a_sentinel_for_the_primary(watched):
    dq = pytest.importorskip("dqueue.dramatiq", reason="needs dramatiq: pip install 'dq-queue[dramatiq]'")
    broker = dq.DqBroker(url=f"dq+sentinel://127.0.0.1:{watched[2].port}/dq/0", middleware=[])
    assert dramatiq_done(broker) == [*range(20)]
    broker.close()


# ---- taskiq


def taskiq_done(url, queue_name):
    """Sends to two queues of a broker, adds a schedule, and runs a worker until all of it is done."""
    dq = pytest.importorskip("dqueue.taskiq", reason="needs taskiq: pip install 'dq-queue[taskiq]'")
    from taskiq import ScheduledTask
    from taskiq.receiver import Receiver

    done = []

    async def main():
        broker = dq.DqBroker(url, queue_name, additional_queues=[f"{queue_name}:other"], block=100)
        source = dq.DqScheduleSource(broker)

        @broker.task("shop:add")
        async def add(number):
            done.append(number)

        await broker.startup()
        finish = asyncio.Event()
        receiver = asyncio.create_task(Receiver(broker, max_async_tasks=4, run_startup=False).listen(finish))
        await add.kiq(1)
        await add.kicker().with_labels(queue_name=f"{queue_name}:other").kiq(2)
        await source.add_schedule(
            ScheduledTask(task_name="shop:add", labels={}, args=[3], kwargs={}, schedule_id="s", interval=1)
        )
        deadline = time.monotonic() + 20
        while not {1, 2, 3} <= set(done) and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        assert [one.schedule_id for one in await source.get_schedules()] == ["s"]
        await source.delete_schedule("s")
        finish.set()
        await receiver
        await broker.shutdown()

    asyncio.run(main())
    return set(done)


def test_taskiq_works_on_a_cluster(cluster):
    assert taskiq_done(f"dq+cluster://127.0.0.1:{cluster.nodes[0].port}", "{taskiq}") == {1, 2, 3}


def test_taskiq_asks_a_sentinel_for_the_primary(watched):
    assert taskiq_done(f"dq+sentinel://127.0.0.1:{watched[2].port}/dq", "taskiq") == {1, 2, 3}


# ---- Django


def test_django_has_its_tasks_on_a_cluster(cluster):
    pytest.importorskip("django", minversion="6.0", reason="needs Django 6: pip install 'dq-queue[django]'")
    from django.tasks import TaskResultStatus, task_backends
    from django.test import override_settings
    from dqueue.drivers.django.worker import TaskWorker

    from clients.python.tests.test_django import add

    url = f"dq+cluster://127.0.0.1:{cluster.nodes[0].port}"
    settings = {"default": {"BACKEND": "dqueue.django.DqBackend", "OPTIONS": {"url": url}}}
    with override_settings(TASKS=settings):
        result = add.enqueue(1, b=2)
        worker = TaskWorker(task_backends["default"], "default", concurrency=1, grace=1000).worker
        thread = threading.Thread(target=worker.run)
        thread.start()

        def is_done():
            result.refresh()
            return result.status == TaskResultStatus.SUCCESSFUL

        wait_for(is_done)
        worker.stop()
        thread.join(20)
        assert result.return_value == 3


# ---- a failover, which has to be the last one


def test_clients_of_a_sentinel_go_on_at_the_new_primary(watched, kombu):
    primary, replica, sentinel = watched
    client = open_client(f"dq+sentinel://127.0.0.1:{sentinel.port}/dq")
    queue = Queue(client, "jobs", patience=60_000)
    queue.send("before", id="before")
    wait_for(lambda: Queue(replica.client(), "jobs").len() == 1, 10, "the replica to have it")
    primary.kill9()
    assert queue.send("after") is not None
    assert replica.info("replication")["role"] == "master"
    assert [message.text for message in queue.fetch(count=5)] == ["before", "after"]
    client.close()
    url = f"dq-sentinel://127.0.0.1:{sentinel.port}"
    assert exchanged(kombu, url, ["mails"], master_name="dq") == [("mails", "for mails")]
    with pytest.raises(redis.ConnectionError):
        primary.client().ping()
