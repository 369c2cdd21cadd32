"""Queue: lost replies, socket timeouts, a server that is away, and clusters."""

from datetime import timedelta

import pytest
import redis
from dqueue import Queue, connect

from tests.harness.lossy import LossyProxy
from tests.harness.topology import Cluster


def test_block_must_be_shorter_than_the_socket_timeout(dq_url):
    q = Queue(connect(dq_url, socket_timeout=0.5), "jobs")
    for block in (0, 500, timedelta(seconds=1)):
        with pytest.raises(ValueError, match="socket_timeout"):
            q.fetch(block=block)
    assert q.fetch(block=400) == []
    with pytest.raises(ValueError, match="socket_timeout"):
        q.wait("x", 0)
    assert Queue(connect(dq_url, socket_timeout=None), "jobs").fetch(block=600) == []
    with pytest.raises(ValueError, match="socket_timeout"):
        # An endless block does not fit into any socket timeout, whatever redis-py's own default is.
        Queue(redis.Redis.from_url(dq_url, socket_timeout=3), "jobs").fetch(block=3000)


def test_a_lost_reply_does_not_send_twice(server):
    proxy = LossyProxy(server.port)
    q = Queue(connect(f"redis://127.0.0.1:{proxy.port}"), "jobs")
    proxy.lose(b"DQ.SEND", times=3)
    id = q.send("x")
    assert proxy.lost == 3
    assert q.len() == 1 and q.get(id).id == id
    assert q.info()["duplicates"] == 3
    proxy.lose(b"DQ.SEND")
    assert q.send("y", id="mine") is None
    proxy.lose(b"DQ.MSEND")
    with pytest.raises((redis.ConnectionError, redis.TimeoutError)):
        q.send_many(["z"])
    assert q.len() == 3
    proxy.close()


def test_send_gives_up_after_its_patience(server):
    q = Queue(connect("redis://127.0.0.1:1"), "jobs", patience=300)
    with pytest.raises(redis.ConnectionError):
        q.send("x")
    with pytest.raises(redis.ResponseError, match="DELAY"):
        Queue(connect(f"redis://127.0.0.1:{server.port}"), "jobs").send("x", delay=-1)


def test_a_queue_works_on_a_cluster():
    nodes = Cluster().start()
    try:
        client = redis.RedisCluster(host="127.0.0.1", port=nodes.nodes[0].port, socket_timeout=2)
        for key in ("jobs:{0}", "jobs:{1}", "jobs:{2}"):
            q = Queue(client, key)
            id = q.send("x", type="t")
            [message] = q.fetch(block=500)
            assert (message.id, message.type, q.ack(message)) == (id, "t", 1)
            with pytest.raises(ValueError, match="socket_timeout"):
                q.fetch(block=2000)
        client.close()
    finally:
        nodes.close()
