"""COMPRESS: payloads of messages that rest are packed, and nobody sees it but in memory."""

import json
import uuid

import pytest

from tests.harness.replies import Queue
from tests.harness.server import wait_for

MESSAGES = 4000
DELAY = 3_600_000
# Another time at which all of them are due.
LATER = 4_000_000


def payload(n: int) -> str:
    return json.dumps({
        "headers": {"lang": "py", "task": "shop.mails.send", "id": str(uuid.uuid5(uuid.NAMESPACE_URL, str(n))), "retries": 0, "eta": None},
        "body": [n, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}],
        "properties": {"delivery_mode": 2, "priority": 0, "body_encoding": "base64", "delivery_info": {"exchange": ""}},
    })  # fmt: skip


def info(client, key="q"):
    return Queue(client, key).info()


def fill(client, *options, key="q"):
    client.execute_command("DQ.CREATE", key, "CLOCK", "MANUAL", *options)
    pipe = client.pipeline(transaction=False)
    for n in range(MESSAGES):
        pipe.execute_command("DQ.SEND", key, payload(n), "ID", f"m{n}", "DELAY", DELAY)
    pipe.execute()


def wait_until_packed(client, key="q"):
    least = sum(len(payload(n)) for n in range(MESSAGES - 128))
    wait_for(lambda: info(client, key)["packed-bytes"] >= least, 60, "packing")
    return info(client, key)


def payloads(client, key="q"):
    client.execute_command("DQ.TICK", key, "TO", LATER)
    given = client.execute_command("DQ.FETCH", key, "COUNT", MESSAGES)
    return {delivery[3].decode() for delivery in given}


EXPECTED = {payload(n) for n in range(MESSAGES)}


def test_payloads_that_rest_take_a_part_of_their_memory(make_server):
    client = make_server().client()
    fill(client, "COMPRESS", "OFF", key="plain")
    fill(client, "COMPRESS", "ON")
    packed = wait_until_packed(client)
    assert packed["packed-memory"] * 2 < packed["packed-bytes"]
    assert info(client, "plain")["packed-bytes"] == 0
    # Nothing else was to be done in slices.
    assert client.info("dq")["dq_slices"] > 0
    used = {key: client.memory_usage(key, samples=0) for key in ("q", "plain")}
    assert used["q"] * 2 < used["plain"]
    assert Queue(client, "q").get("m7")["payload"].decode() == payload(7)
    found = client.execute_command("DQ.FIND", "q", "delayed", "PAYLOAD", "*[[]7, *")
    assert "b'm7'" in str(found) and "b'm8'" not in str(found)
    assert payloads(client) == EXPECTED
    client.execute_command("DQ.ALTER", "q", "COMPRESS", "OFF")
    assert info(client)["compress"] == b"OFF"


@pytest.mark.parametrize("way", ["reload", "dump", "copy", "log"])
def test_packed_payloads_survive(make_server, way):
    server = make_server(appendonly="yes", aof_use_rdb_preamble="no")
    client = server.client()
    fill(client, "COMPRESS", "ON")
    before = wait_until_packed(client)
    digest = client.execute_command("DEBUG", "DIGEST-VALUE", "q")
    match way:
        case "reload":
            client.execute_command("DEBUG", "RELOAD")
        case "dump":
            dump = client.dump("q")
            assert len(dump) * 3 < before["packed-bytes"] * 2
            client.restore("q", 0, dump, replace=True)
        case "copy":
            client.copy("q", "p")
            client.rename("p", "q")
        case "log":
            client.execute_command("BGREWRITEAOF")
            wait_for(lambda: not client.info("persistence")["aof_rewrite_in_progress"], 20, "the rewrite")
            client.execute_command("DEBUG", "LOADAOF")
    assert info(client)["packed-bytes"] >= before["packed-bytes"]
    assert client.execute_command("DEBUG", "DIGEST-VALUE", "q") == digest
    assert payloads(client) == EXPECTED


def test_what_is_delivered_soon_is_not_packed(make_server):
    client = make_server().client()
    client.config_set("dq.compress", "on")
    pipe = client.pipeline(transaction=False)
    for n in range(MESSAGES):
        pipe.execute_command("DQ.SEND", "q", payload(n))
    pipe.execute()
    client.execute_command("DQ.FETCH", "q", "COUNT", MESSAGES)
    assert info(client)["compress"] == b"ON"
    assert info(client)["packed-bytes"] == 0


def test_a_replica_packs_by_itself(replica_pair):
    primary, replica = replica_pair.primary.client(), replica_pair.replica.client()
    fill(primary, "COMPRESS", "ON")
    wait_until_packed(primary)
    wait_until_packed(replica)
    digests = [client.execute_command("DEBUG", "DIGEST-VALUE", "q") for client in (primary, replica)]
    assert digests[0] == digests[1]
