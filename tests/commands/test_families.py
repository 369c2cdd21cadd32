"""Families of queues: DQ.ROUTE, DQ.PARTITIONS, DQ.NFETCH and DQ.NINFO on one server."""

import binascii
import json
import zlib

import pytest

from tests.harness.replies import Manual, Queue, as_map, msgs
from tests.harness.scene import STATES, text
from tests.harness.server import ROOT, wait_for
from tests.harness.wire import Error


def slot(tag):
    return binascii.crc_hqx(str(tag).encode(), 0) % 16384


def tag(partition, partitions):
    size = 16384 // partitions
    return next(n for n in range(10**6) if slot(n) // size == partition)


@pytest.fixture
def w(server):
    return server.wire(3)


def nfetch(w, *options):
    """The key and the payloads of what NFETCH gives, or None."""
    reply = w.ok("DQ.NFETCH", "f", *options)
    return None if reply is None else (reply[0].decode(), [m.payload for m in msgs(reply[1])])


def key(n):
    return "f:{%d}" % n


def send(w, n, *payloads):
    for payload in payloads:
        w.ok("DQ.SEND", key(n), payload)


def waiter(server, *options, protocol=3, auth=None):
    w = server.wire(protocol)
    if auth:
        w.ok("AUTH", *auth)
    before = int(server.info("clients")["blocked_clients"])
    w.send("DQ.NFETCH", "f", "BLOCK", 0, *options)
    server.wait_blocked(before + 1)
    return w


def got(w):
    reply = w.recv()
    return reply[0].decode(), [m.payload for m in msgs(reply[1])]


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


# ---- NFETCH ----


def test_a_family_without_queues_gives_null(server):
    assert not server.wire(2).ok("DQ.NFETCH", "f")
    assert server.wire(3).ok("DQ.NFETCH", "f") is None


def test_queues_that_were_there_before_the_first_call_are_found(make_server):
    server = make_server()
    with server.wire() as w:
        send(w, 1, "a")
        w.ok("DQ.SEND", "g:{1}", "other")
        w.ok("DQ.SEND", "f", "other")
        w.ok("DQ.SEND", "f:{}", "other")
        w.ok("DQ.SEND", "f:{any tag}", "b")
        assert sorted(nfetch(w)[1] + nfetch(w)[1]) == [b"a", b"b"]
        assert nfetch(w) is None


def test_queues_give_in_turn(w):
    for n in (1, 2, 3):
        send(w, n, *[f"{n}{i}" for i in range(4)])
    order = [nfetch(w)[0] for _ in range(12)]
    for i in range(0, 12, 3):
        assert sorted(order[i : i + 3]) == [key(1), key(2), key(3)]
    assert order[:3] * 4 == order
    assert nfetch(w) is None


def test_a_queue_that_had_nothing_keeps_its_turn(w):
    send(w, 1, "a", "b", "c")
    send(w, 2, "x")
    assert {nfetch(w)[0], nfetch(w)[0]} == {key(1), key(2)}
    assert nfetch(w)[0] == key(1)
    send(w, 2, "y")
    assert nfetch(w) == (key(2), [b"y"])


def test_count_and_the_other_options_are_those_of_fetch(w):
    send(w, 1, "a", "b", "c")
    name, messages = w.ok("DQ.NFETCH", "f", "COUNT", 2, "LEASE", 5000, "CONSUMER", "c", "WITHMETA")
    assert len(messages) == 2 and {b"group", b"lease-until"} <= set(messages[0][4])
    assert w.ok("DQ.ACK", name, messages[0][1], messages[1][1]) == 2
    assert w.ok("DQ.CONSUMERS", name)[0][b"name"] == b"c"
    [[_, receipt, *_]] = w.ok("DQ.NFETCH", "f", "NOACK")[1]
    assert receipt == 0


def test_what_cannot_give_is_passed_over_until_it_can(w):
    for n in (1, 2, 3, 4):
        send(w, n, "x", "y")
    w.ok("DQ.PAUSE", key(1))
    w.ok("DQ.ALTER", key(2), "MAXRUNNING", 1)
    w.ok("DQ.ALTER", key(3), "RATE", 1, "PER", 10**8)
    assert sorted(nfetch(w)[0] for _ in range(4)) == [key(2), key(3), key(4), key(4)]
    assert nfetch(w) is None
    # MAXRUNNING does not limit NOACK.
    assert nfetch(w, "NOACK") == (key(2), [b"y"])
    w.ok("DQ.RESUME", key(1))
    w.ok("DQ.ALTER", key(3), "RATE", 0)
    assert {nfetch(w)[0] for _ in range(3)} == {key(1), key(3)}
    assert nfetch(w) is None


def test_a_rate_lets_a_queue_give_again_without_any_command(server, w):
    w.ok("DQ.CREATE", key(1), "RATE", 1, "PER", 300)
    send(w, 1, "a", "b", "c")
    assert nfetch(w) == (key(1), [b"a"])
    assert nfetch(w) is None
    assert got(waiter(server)) == (key(1), [b"b"])
    assert got(waiter(server)) == (key(1), [b"c"])


def test_a_message_that_falls_due_is_given(server, w):
    q = Manual(server.client(), key(1))
    q.send("x", "DELAY", 50)
    assert nfetch(w) is None
    blocked = waiter(server)
    q.advance(50)
    assert got(blocked) == (key(1), [b"x"])


def test_deleted_renamed_and_overwritten_queues_are_followed(w):
    for n in (1, 2, 3):
        send(w, n, f"m{n}")
    w.ok("DEL", key(1))
    w.ok("RENAME", key(2), key(9))
    w.ok("SET", key(3), "a string")
    assert nfetch(w) == (key(9), [b"m2"])
    assert nfetch(w) is None
    w.ok("RENAME", key(9), "elsewhere")
    w.ok("DQ.SEND", "elsewhere", "x")
    assert nfetch(w) is None
    w.ok("RENAME", "elsewhere", key(3))
    assert nfetch(w) == (key(3), [b"x"])
    w.ok("DQ.SEND", key(3), "y")
    w.ok("COPY", key(3), key(4))
    assert {nfetch(w)[0] for _ in range(3)} == {key(3), key(4)}


def test_only_the_selected_database_counts(server, w):
    send(w, 1, "zero")
    w.ok("SELECT", 1)
    assert nfetch(w) is None
    blocked = server.wire()
    blocked.ok("SELECT", 1)
    blocked.send("DQ.NFETCH", "f", "BLOCK", 0)
    server.wait_blocked(1)
    w.ok("SWAPDB", 0, 1)
    assert got(blocked) == (key(1), [b"zero"])
    w.ok("SELECT", 0)


def test_flushall_and_reload_are_followed(server, w):
    send(w, 1, "a", "b")
    assert nfetch(w) == (key(1), [b"a"])
    w.ok("DEBUG", "RELOAD")
    assert nfetch(w) == (key(1), [b"b"])
    send(w, 2, "c")
    w.ok("FLUSHALL")
    assert nfetch(w) is None


def test_many_queues_give_once_each_and_one_waiter_is_woken_by_any(server, w):
    n = 10_000
    for i in range(0, n, 500):
        w.send_many([("DQ.SEND", key(j), "x") for j in range(i, i + 500)])
        [w.recv() for _ in range(500)]
    w.send_many([("DQ.NFETCH", "f")] * n)
    assert {w.recv()[0] for _ in range(n)} == {key(j).encode() for j in range(n)}
    assert nfetch(w) is None
    for j in (0, 77, n - 1):
        blocked = waiter(server)
        send(w, j, "again")
        assert got(blocked) == (key(j), [b"again"])


def test_waiters_of_all_kinds_are_served_in_the_order_they_came(server, w):
    w.ok("DQ.CREATE", key(1))
    first = waiter(server)
    second = server.wire()
    second.send("DQ.FETCH", key(1), "BLOCK", 0)
    server.wait_blocked(2)
    third = waiter(server)
    fourth = server.wire()
    fourth.send("DQ.MFETCH", 1, key(1), "BLOCK", 0)
    server.wait_blocked(4)
    fifth = waiter(server)
    for payload in "abcde":
        send(w, 1, payload)
    assert got(first)[1] == [b"a"]
    assert [m.payload for m in msgs(second.recv())] == [b"b"]
    assert got(third)[1] == [b"c"]
    assert got(fourth)[1] == [b"d"]
    assert got(fifth)[1] == [b"e"]


def test_what_comes_at_once_is_given_in_turn_to_those_who_wait(server, w):
    waiters = [waiter(server) for _ in range(4)]
    w.ok("MULTI")
    w.ok("DQ.MSEND", key(1), 2, "a", "b")
    w.ok("DQ.MSEND", key(2), 2, "c", "d")
    w.ok("EXEC")
    keys = [got(one)[0] for one in waiters]
    assert sorted(keys[:2]) == [key(1), key(2)] and sorted(keys[2:]) == [key(1), key(2)]


def test_waiters_that_repeat_a_token_get_the_same_messages(server, w):
    w.ok("DQ.CREATE", key(1))
    asked = ("CONSUMER", "c", "TOKEN", "t")
    first, repeated = waiter(server, *asked), waiter(server, *asked)
    other = waiter(server, "CONSUMER", "c", "TOKEN", "u")
    send(w, 1, "a")
    replies = [first.recv(), repeated.recv()]
    assert replies[0] == replies[1] and [m.payload for m in msgs(replies[0][1])] == [b"a"]
    send(w, 1, "b")
    assert got(other) == (key(1), [b"b"])


def test_a_waiter_that_repeats_the_token_of_a_closed_connection_is_served(server, w):
    w.ok("DQ.CREATE", key(1))
    asked = ("CONSUMER", "c", "TOKEN", "t")
    waiter(server, *asked).close()
    repeated = waiter(server, *asked)
    server.wait_blocked(1)
    send(w, 1, "a", "b")
    assert got(repeated) == (key(1), [b"a"])
    assert nfetch(w) == (key(1), [b"b"])


def test_a_waiter_gives_up_after_its_time_or_when_it_is_unblocked(server, w):
    assert w.ok("DQ.NFETCH", "f", "BLOCK", 20) is None
    blocked = server.wire()
    id = blocked.ok("CLIENT", "ID")
    for how, expected in (("TIMEOUT", None), ("ERROR", "UNBLOCKED")):
        blocked.send("DQ.NFETCH", "f", "BLOCK", 0)
        server.wait_blocked(1)
        assert w.ok("CLIENT", "UNBLOCK", id, how) == 1
        reply = blocked.recv()
        assert reply is None if expected is None else reply.startswith(expected)
        assert blocked.ok("PING") in (b"PONG", "PONG")
    send(w, 1, "x")
    assert nfetch(w) == (key(1), [b"x"])


def test_a_closed_connection_takes_nothing(server, w):
    waiter(server).close()
    server.wait_blocked(0)
    send(w, 1, "x")
    assert nfetch(w) == (key(1), [b"x"])


def test_block_is_a_poll_in_transactions_and_scripts(w):
    w.ok("MULTI")
    w.ok("DQ.NFETCH", "f", "BLOCK", 0)
    assert w.ok("EXEC") == [None]
    send(w, 1, "x", "y")
    w.ok("MULTI")
    w.ok("DQ.NFETCH", "f", "BLOCK", 0)
    [[name, _]] = w.ok("EXEC")
    assert name == key(1).encode()
    name, _ = w.ok("EVAL", "return redis.call('DQ.NFETCH', 'f', 'BLOCK', 0)", 0)
    assert name == key(1).encode()


# ---- rights ----


@pytest.fixture
def limited(server, w):
    """A user who may take from f:{2} only."""
    w.ok("ACL", "SETUSER", "limited", "reset", "on", ">secret", "%RW~f:{2}", "+@all")
    one = server.wire()
    one.ok("AUTH", "limited", "secret")
    yield one
    w.ok("ACL", "DELUSER", "limited")


def test_queues_that_the_user_may_not_take_from_are_passed_over(server, w, limited):
    for n in (1, 2, 3):
        send(w, n, "x", "y")
    assert [nfetch(limited) for _ in range(3)] == [(key(2), [b"x"]), (key(2), [b"y"]), None]
    # Others take what is left.
    assert sorted(nfetch(w)[0] for _ in range(4)) == [key(1), key(1), key(3), key(3)]


def test_reading_or_writing_alone_is_not_enough(w, limited):
    send(w, 2, "x")
    for rights in ("%R~f:*", "%W~f:*"):
        w.ok("ACL", "SETUSER", "limited", "resetkeys", rights)
        assert nfetch(limited) is None
    w.ok("ACL", "SETUSER", "limited", "resetkeys", "%RW~f:*", "-@all", "+dq.nfetch")
    # The rights of a user who was refused something are read again after a moment.
    wait_for(lambda: nfetch(limited) == (key(2), [b"x"]), what="the new rights")


def test_a_waiter_is_not_woken_by_a_queue_that_it_may_not_take_from(server, w, limited):
    blocked = waiter(server, auth=("limited", "secret"))
    other = waiter(server)
    send(w, 1, "a")
    assert got(other) == (key(1), [b"a"])
    send(w, 1, "b")
    send(w, 2, "c")
    assert got(blocked) == (key(2), [b"c"])
    blocked = waiter(server, auth=("limited", "secret"))
    # The rights are looked at anew within a second.
    w.ok("ACL", "SETUSER", "limited", "~f:*")
    assert got(blocked) == (key(1), [b"b"])


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
