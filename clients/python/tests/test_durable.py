"""Queues with `durable`: which commands are confirmed, which are repeated, and the errors of those that nobody has
confirmed.
"""

import asyncio

import pytest
import redis
from dqueue import Durable, Family, Next, NotConfirmed, Queue, connect, connect_cluster
from dqueue import asyncio as aq

from tests.harness.lossy import LossyProxy
from tests.harness.topology import Pair

HEARD = Durable(replicas=1, in_memory=True)
# There is no replica on the server of the tests.
UNHEARD = Durable(replicas=1, in_memory=True, timeout=10)


@pytest.fixture(scope="module")
def _pair():
    pair = Pair().start()
    yield pair
    pair.replica.close()
    pair.primary.close()


@pytest.fixture
def replicated(_pair):
    """The URL of a server with one replica."""
    _pair.heal()
    return f"redis://127.0.0.1:{_pair.primary.port}"


class Asyncio:
    """A queue of dqueue.asyncio whose methods wait for the asynchronous ones."""

    def __init__(self, runner, queue):
        self._runner, self._queue = runner, queue

    def __getattr__(self, name):
        method = getattr(self._queue, name)
        return lambda *args, **kwargs: self._runner.run(method(*args, **kwargs))


@pytest.fixture(params=["threads", "asyncio"])
def open_queue(request):
    """Makes queues: of threads, or of asyncio."""
    if request.param == "threads":
        yield lambda url, **settings: Queue(connect(url), "q", **settings)
        return
    with asyncio.Runner() as runner:
        clients = []

        def opened(url, **settings):
            clients.append(aq.connect(url))
            return Asyncio(runner, aq.Queue(clients[-1], "q", **settings))

        yield opened
        for client in clients:
            runner.run(client.aclose())


def test_what_replicas_have_is_confirmed(replicated, open_queue):
    queue = open_queue(replicated, durable=HEARD)
    assert queue.send("a", id="a") == "a"
    assert queue.send("a", id="a") is None
    assert len(queue.send_many(["b", "c"])) == 2
    assert queue.group_push('{"g": "x"}', ["g"])[0] == "x"
    a, b, c = queue.fetch(count=3)
    assert (queue.ack(a), queue.nack(b)) == (1, 1)
    assert len(queue.ack_send(c, Next("d"))) == 1


def test_a_send_that_nobody_confirms_is_an_error_that_names_its_id(dq_url, open_queue):
    queue = open_queue(dq_url, durable=UNHEARD, patience=0)
    with pytest.raises(NotConfirmed) as caught:
        queue.send("a")
    assert (caught.value.synced, caught.value.replicas) == (False, 0)
    assert queue.get(caught.value.id).payload == b"a"
    with pytest.raises(NotConfirmed) as caught:
        queue.ack(*queue.fetch())
    assert caught.value.reply == 1 and queue.len() == 0


def test_a_send_is_repeated_by_its_id_until_it_is_confirmed(server, replicated, open_queue):
    """Twice the reply is lost after the server has done it."""
    proxy = LossyProxy(int(replicated.rpartition(":")[2]))
    try:
        proxy.lose(b"DQ.SEND", times=2)
        queue = open_queue(f"redis://127.0.0.1:{proxy.port}", durable=HEARD)
        queue.send("a", id="mine")
        assert (proxy.lost, queue.len(), queue.info()["duplicates"]) == (2, 1, 2)
    finally:
        proxy.close()


def test_an_unconfirmed_send_that_is_confirmed_later_returns_its_id(dq_url, server):
    """The confirmations of a server without a replica, as if one came and went."""
    client = Doubtful(connect(dq_url), [0, 0, 1])
    queue = Queue(client, "q", durable=HEARD)
    assert queue.send("a", id="mine") == "mine"
    assert (client.confirmations, queue.len(), queue.info()["duplicates"]) == ([], 1, 2)


class Doubtful:
    """A client of redis-py into whose pipelines other confirmations are put."""

    def __init__(self, client, confirmations):
        self.client, self.confirmations = client, confirmations

    def execute_command(self, *words):
        return self.client.execute_command(*words)

    def pipeline(self, transaction):
        pipeline = self.client.pipeline(transaction=transaction)
        execute = pipeline.execute
        # No replica confirms, so the server waits for the whole time of the command: no longer than this.
        command = pipeline.execute_command
        pipeline.execute_command = lambda *words: command(*words[:-1], 1) if words[0] == "WAIT" else command(*words)
        pipeline.execute = lambda **how: [execute(**how)[0], self.confirmations.pop(0)]
        return pipeline


def test_what_was_settled_before_the_connection_broke_is_not_confirmed_by_stale_receipts(replicated, open_queue):
    proxy = LossyProxy(int(replicated.rpartition(":")[2]))
    try:
        queue = open_queue(f"redis://127.0.0.1:{proxy.port}", durable=HEARD)
        queue.send_many(["a", "b", "c"])
        a, b, c = queue.fetch(count=3)
        for method, *words in ((queue.ack, a), (queue.nack, b), (queue.ack_send, c, Next("d"))):
            proxy.lose(b"WAIT")
            with pytest.raises(NotConfirmed, match="stale"):
                method(*words)
    finally:
        proxy.close()


def test_what_has_no_id_is_not_repeated(replicated, open_queue):
    proxy = LossyProxy(int(replicated.rpartition(":")[2]))
    try:
        queue = open_queue(f"redis://127.0.0.1:{proxy.port}", durable=HEARD)
        proxy.lose(b"DQ.MSEND")
        with pytest.raises(redis.ConnectionError):
            queue.send_many(["a", "b"])
        assert queue.len() == 2
    finally:
        proxy.close()


def test_a_server_with_a_log_confirms_by_it_or_says_that_it_is_too_old(dq_url, server, open_queue):
    queue = open_queue(dq_url, durable=True)
    version = server.info("server")
    if "valkey_version" in version or tuple(map(int, version["redis_version"].split(".")[:2])) >= (7, 2):
        queue.send("a")
        assert queue.ack(*queue.fetch()) == 1
    else:
        with pytest.raises(NotConfirmed, match=r"Redis 7\.2"):
            queue.send("a")


def test_an_error_reply_is_an_error_as_ever(replicated, open_queue):
    queue = open_queue(replicated, durable=HEARD)
    queue.create(max_len=1)
    queue.send("a")
    with pytest.raises(redis.ResponseError, match="QUEUEFULL|may have 1"):
        queue.send("b")


def test_a_timeout_that_the_client_would_not_wait_for_is_refused(dq_url):
    with pytest.raises(ValueError, match="socket_timeout"):
        Queue(connect(dq_url), "q", durable=Durable(timeout=10_000))
    with pytest.raises(ValueError, match="replicas"):
        Durable(in_memory=True)


def test_the_node_of_a_key_confirms_in_a_cluster(cluster):
    """No node has a replica, so each reports that no replica has confirmed."""
    client = connect_cluster(f"redis://127.0.0.1:{cluster.nodes[0].port}")
    family = Family("f", 8, client, durable=UNHEARD, patience=0)
    for number in range(6):
        with pytest.raises(NotConfirmed) as caught:
            family.send(str(number), id=f"m{number}")
        assert caught.value.id == f"m{number}"
    assert family.len() == 6
    client.close()


def test_the_node_of_a_key_confirms_in_a_cluster_with_asyncio(cluster):
    async def main():
        client = aq.connect_cluster(f"redis://127.0.0.1:{cluster.nodes[0].port}")
        for number in range(6):
            queue = aq.Queue(client, f"q{number}", durable=UNHEARD, patience=0)
            with pytest.raises(NotConfirmed) as caught:
                await queue.send("a", id="a")
            assert caught.value.id == "a" and await queue.len() == 1
        await client.aclose()

    asyncio.run(main())
