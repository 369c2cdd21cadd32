"""A server that refuses the writes of its clients delivers no message to waiting clients, and fires no schedule."""

import pytest

from tests.harness.replies import Queue, msgs
from tests.harness.server import wait_for


def too_few_replicas(server):
    client = server.client()
    client.config_set("min-replicas-max-lag", 10)
    client.config_set("min-replicas-to-write", 1)
    return "NOREPLICAS", lambda: client.config_set("min-replicas-to-write", 0)


def a_failed_save(server):
    client = server.client()
    client.config_set("save", "3600 1")
    # A file cannot replace a folder that is not empty.
    folder = server.dir / client.config_get("dbfilename")["dbfilename"]
    folder.mkdir()
    (folder / "file").touch()
    client.bgsave()
    wait_for(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err", 10, "the save to fail")
    return "MISCONF", lambda: client.config_set("save", "")


@pytest.mark.parametrize("sicken", [too_few_replicas, a_failed_save])
def test_nothing_is_delivered_while_the_server_refuses_writes(make_server, key, sicken):
    server = make_server()
    waiting, other = server.wire(), server.wire()
    q = Queue(server.client(), key)
    q.do("SEND", "x", "DELAY", 1500)
    scheduled = Queue(server.client(), "scheduled")
    scheduled.do("SCHEDULE", "s", "EVERY", 1500, "PAYLOAD", "x")
    waiting.send("DQ.FETCH", key, "BLOCK", 0)
    error, heal = sicken(server)
    assert other.call("DQ.SEND", key, "y").startswith(error)
    assert waiting.silent(2.5)
    assert q.len("running") == scheduled.len() == 0
    heal()
    (message,) = msgs(waiting.recv())
    assert message.payload == b"x"
    wait_for(lambda: scheduled.len() >= 1, 10, "the schedule to go on")
    assert other.call("DQ.ACK", key, message.receipt) == 1
