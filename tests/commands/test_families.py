"""Families of queues: DQ.ROUTE, DQ.PARTITIONS and DQ.NINFO, the log and replicas."""

import json
import zlib

import pytest

from tests.harness.families import got, key, nfetch, send, slot, tag, waiter
from tests.harness.replies import Manual, Queue, as_map
from tests.harness.scene import STATES, text
from tests.harness.server import ROOT
from tests.harness.wire import Error

# ---- ROUTE and PARTITIONS ----


@pytest.mark.parametrize("partitions", [1, 2, 8, 64])
def test_the_tag_of_a_partition_is_the_smallest_integer_in_its_slots(w, partitions):
    expected = [f"f:{{{tag(i, partitions)}}}".encode() for i in range(partitions)]
    assert w.ok("DQ.PARTITIONS", "f", partitions) == expected


def test_as_many_partitions_as_slots_have_one_slot_each(w):
    keys = w.ok("DQ.PARTITIONS", "f", 16384)
    assert [slot(k[3:-1].decode()) for k in keys] == list(range(16384))


@pytest.mark.parametrize("group", ["a", "b", "customer-42", "\u00fc", "x" * 1024])
def test_a_group_belongs_to_the_partition_of_its_checksum(w, group):
    for partitions in (1, 4, 1024):
        number = zlib.crc32(group.encode()) * partitions >> 32
        assert w.ok("DQ.ROUTE", "f", partitions, group) == w.ok("DQ.PARTITIONS", "f", partitions)[number]


def test_the_server_agrees_with_the_examples_for_clients(w):
    examples = json.loads((ROOT / "tests/conformance/routing.json").read_text())
    for one in examples["routes"]:
        group = bytes.fromhex(one["group_hex"])
        assert w.ok("DQ.ROUTE", one["family"], one["partitions"], group) == one["queue"].encode()
    for partitions, tags in examples["tags"].items():
        assert w.ok("DQ.PARTITIONS", "f", partitions) == [key(tag).encode() for tag in tags]
    for partitions, crc in examples["tags_crc32"].items():
        tags = [name[3:-1] for name in w.ok("DQ.PARTITIONS", "f", partitions)]
        assert zlib.crc32(b",".join(tags)) == crc


ERRORS = [
    (("ROUTE", "f", 3, "g"), "power of two"),
    (("ROUTE", "f", 0, "g"), "partitions"),
    (("ROUTE", "f", 32768, "g"), "partitions"),
    (("ROUTE", "f{", 2, "g"), "family"),
    (("ROUTE", "f", 2, ""), "group"),
    (("ROUTE", "f", 2), "wrong number"),
    (("PARTITIONS", "f", "x"), "partitions"),
    (("PARTITIONS", "", 2), "family"),
    (("NFETCH", "f}"), "family"),
    (("NFETCH", "f", "GROUP", "g"), "GROUP"),
    (("NFETCH", "f", "ACK", 1, 5), "ACK"),
    (("NFETCH", "f", "COUNT", 0), "COUNT"),
    (("NFETCH", "f", "NOACK", "BIND"), "NOACK"),
    (("NINFO", "f{}"), "family"),
]


@pytest.mark.parametrize("call, word", ERRORS, ids=str)
def test_errors_name_the_word(w, call, word):
    reply = w.call(f"DQ.{call[0]}", *call[1:])
    assert isinstance(reply, Error) and reply.startswith("ERR") and word in str(reply)


# ---- NINFO, and everything around ----


def test_ninfo_adds_up_the_queues_of_the_family(server, w):
    empty = as_map(w.ok("DQ.NINFO", "f"))
    assert text(empty)["queues"] == 0
    for n in (1, 2):
        q = Manual(server.client(), key(n), "RETAIN", 10**6)
        for payload in "abc":
            q.send(payload)
        q.send("later", "DELAY", 10**6)
        q.ack(q.one().receipt)
        q.one()
        q.advance(100 * n)
    w.ok("DQ.SEND", "g:{1}", "x")
    waiting = server.wire()
    waiting.send("DQ.NFETCH", "nobody", "BLOCK", 0)
    server.wait_blocked(1)
    info = text(w.ok("DQ.NINFO", "f"))
    each = [text(Queue(server.client(3), key(n)).do("INFO")) for n in (1, 2)]
    assert info["queues"] == 2 and info["blocked-clients"] == 0
    for state in STATES:
        assert info[state] == sum(one[state] for one in each), state
    assert info["oldest-ready-age"] == max(one["oldest-ready-age"] for one in each)
    assert info["oldest-due-age"] == max(one["oldest-due-age"] for one in each)
    assert info["lateness-max"] == max(one["lateness-max"] for one in each)
    assert text(w.ok("DQ.NINFO", "nobody"))["blocked-clients"] == 1
    assert list(info)[0] == "queues" and len(info) >= 14


def test_what_nfetch_took_is_in_the_log_and_on_the_replica(replica_pair):
    primary, replica = replica_pair.primary, replica_pair.replica
    w = primary.wire()
    for n in (1, 2):
        send(w, n, "a", "b")
    assert {nfetch(w)[0] for _ in range(4)} == {key(1), key(2)}
    blocked = waiter(primary)
    send(w, 1, "c")
    assert got(blocked) == (key(1), [b"c"])
    for n in (1, 2):
        replica_pair.assert_same(key(n))
    reply = replica.wire().call("DQ.NFETCH", "f")
    assert isinstance(reply, Error) and reply.startswith("READONLY")
    assert text(replica.wire().ok("DQ.NINFO", "f"))["running"] == 5
    assert replica.wire().ok("DQ.ROUTE", "f", 2, "g") == w.ok("DQ.ROUTE", "f", 2, "g")


def test_a_primary_that_becomes_a_replica_sends_its_waiters_away(make_server):
    server, other = make_server(), make_server()
    blocked = waiter(server)
    w = server.wire()
    w.ok("REPLICAOF", "127.0.0.1", other.port)
    assert blocked.recv().startswith("UNBLOCKED")
    w.ok("REPLICAOF", "NO", "ONE")
    send(w, 1, "x")
    assert nfetch(w) == (key(1), [b"x"])
