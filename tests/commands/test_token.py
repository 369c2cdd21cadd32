"""FETCH TOKEN: a call that is repeated after a lost reply gets the same messages again."""

import pytest

from tests.commands.test_grace import bound
from tests.harness.replies import Manual, Queue, digest, msgs
from tests.harness.server import wait_for

FAR = 600_000


@pytest.fixture
def q(r, key):
    return Manual(r, key, "LEASE", 1000)


def same(first, again):
    return [(m.id, m.receipt, m.attempt, m.payload) for m in first] == [(m.id, m.receipt, m.attempt, m.payload) for m in again]


def test_the_same_token_gives_the_same_messages(q):
    q.do("MSEND", 5, *"abcde")
    first = q.fetch("COUNT", 3, "CONSUMER", "w", "TOKEN", "t")
    q.advance(10)
    for options in ((), ("COUNT", 1), ("COUNT", 5, "LEASE", 9, "MAXBYTES", 1), ("GROUP", "g"), ("PERGROUP", 3)):
        assert same(first, q.fetch("CONSUMER", "w", "TOKEN", "t", *options))
    assert q.get(first[0].id)["lease-until"] == 1000
    info = q.info()
    assert (info["delivered"], info["redelivered"], info["running"]) == (3, 0, 3)


def test_another_token_another_consumer_and_no_token_get_others(q):
    q.do("MSEND", 5, *"abcde")
    assert q.payloads("CONSUMER", "w", "TOKEN", "t") == [b"a"]
    assert q.payloads("CONSUMER", "v", "TOKEN", "t") == [b"b"]
    assert q.payloads("CONSUMER", "w", "TOKEN", "u") == [b"c"]
    # Only the last delivery of a consumer can be repeated.
    assert q.payloads("CONSUMER", "w", "TOKEN", "t") == [b"d"]
    assert q.payloads("CONSUMER", "v", "TOKEN", "t") == [b"b"]
    assert q.payloads("CONSUMER", "v") == [b"e"]
    assert q.payloads("CONSUMER", "v", "TOKEN", "t") == []


def test_only_what_still_runs_is_repeated(q):
    q.do("MSEND", 5, *"abcde")
    a, b, c = q.fetch("COUNT", 3, "CONSUMER", "w", "TOKEN", "t")
    q.ack(a.receipt)
    assert same([b, c], q.fetch("CONSUMER", "w", "TOKEN", "t"))
    assert same([c], q.fetch("CONSUMER", "w", "TOKEN", "t", "ACK", 2, b.receipt, a.receipt))
    assert q.info()["acked"] == 2
    # No message of the last delivery runs after the acks, so this is a normal fetch.
    [d] = q.fetch("CONSUMER", "w", "TOKEN", "t", "ACK", 1, c.receipt)
    assert d.payload == b"d"
    assert same([d], q.fetch("CONSUMER", "w", "TOKEN", "t", "ACK", 1, c.receipt))


def test_a_lease_that_is_over_is_not_repeated(q):
    q.send("a", "ID", "a")
    [first] = q.fetch("CONSUMER", "w", "TOKEN", "t")
    q.advance(1000)
    [second] = q.fetch("CONSUMER", "w", "TOKEN", "t")
    assert (second.id, second.attempt) == (b"a", 2)
    assert second.receipt > first.receipt


def test_an_empty_reply_is_no_delivery(q):
    q.send("a")
    first = q.fetch("CONSUMER", "w", "TOKEN", "t")
    assert q.fetch("CONSUMER", "w", "TOKEN", "u") == []
    assert same(first, q.fetch("CONSUMER", "w", "TOKEN", "t"))


def test_it_is_repeated_while_nothing_can_be_delivered(q):
    q.do("MSEND", 2, *"ab")
    first = q.fetch("CONSUMER", "w", "TOKEN", "t")
    q.do("ALTER", "MAXRUNNING", 1)
    q.do("PAUSE")
    assert same(first, q.fetch("CONSUMER", "w", "TOKEN", "t"))
    assert same(first, q.fetch("CONSUMER", "w", "TOKEN", "t", "BLOCK", 0))


def test_withmeta_is_that_of_the_repeated_call(q):
    q.send("a", "TYPE", "x")
    assert q.one("CONSUMER", "w", "TOKEN", "t").meta is None
    meta = q.one("CONSUMER", "w", "TOKEN", "t", "WITHMETA").meta
    assert (meta["type"], meta["lease-until"]) == (b"x", 1000)


def test_a_batch_of_a_group_is_repeated_in_order(q):
    for n in range(4):
        q.send(str(n), "GROUP", "g")
    first = q.fetch("COUNT", 3, "GROUP", "g", "CONSUMER", "w", "TOKEN", "t")
    assert [m.payload for m in first] == [b"0", b"1", b"2"]
    assert same(first, q.fetch("COUNT", 3, "GROUP", "g", "CONSUMER", "w", "TOKEN", "t"))
    q.nack(first[1].receipt, "SILENT")
    assert same(first[:1], q.fetch("CONSUMER", "w", "TOKEN", "t"))


def test_mfetch_looks_for_the_token_in_all_queues(r, key):
    queues = [Manual(r, key + b"%d" % n) for n in range(3)]
    queues[1].send("b")
    call = ("DQ.MFETCH", 3, *(q.key for q in queues), "CONSUMER", "w", "TOKEN", "t")
    name, [first] = r.execute_command(*call)
    assert (name, first[3]) == (queues[1].key, b"b")
    queues[0].send("a")
    assert r.execute_command(*call) == [queues[1].key, [first]]
    queues[1].ack(first[1])
    assert r.execute_command(*call)[0] == queues[0].key


def test_nfetch_looks_for_the_token_in_all_queues_of_the_family(server, r):
    a, b = Queue(r, b"f:{a}"), Queue(r, b"f:{b}")
    a.send("a")
    call = ("DQ.NFETCH", "f", "CONSUMER", "w", "TOKEN")
    name, [first] = r.execute_command(*call, "t")
    assert name == a.key
    b.send("b")
    assert r.execute_command(*call, "t") == [a.key, [first]]
    r.execute_command("DEBUG", "RELOAD")
    assert r.execute_command(*call, "t") == [a.key, [first]]
    name, [second] = r.execute_command(*call, "u")
    assert name == b.key
    assert r.execute_command(*call, "u") == [b.key, [second]]
    w = server.wire()
    w.send(*call, "v", "BLOCK", 0)
    server.wait_blocked(1)
    a.send("c")
    name, [third] = w.recv(5)
    w.close()
    assert r.execute_command(*call, "v", "BLOCK", 0) == [name, [third]]


def test_a_blocked_fetch_that_was_served_later_can_be_repeated(server, r, key):
    q = Queue(r, key)
    w = server.wire()
    w.send("DQ.FETCH", key, "BLOCK", 0, "CONSUMER", "w", "TOKEN", "t")
    server.wait_blocked(1)
    q.do("MSEND", 2, *"ab")
    [first] = msgs(w.recv(5))
    w.close()
    assert same([first], q.fetch("BLOCK", 0, "CONSUMER", "w", "TOKEN", "t"))
    assert q.len("ready") == 1


def test_a_call_that_was_left_behind_and_its_repetition_get_the_same(server, r, key):
    q = Queue(r, key)
    waiters = [server.wire() for _ in range(4)]
    for n, (w, token) in enumerate(zip(waiters, "tutt")):
        w.send("DQ.FETCH", key, "BLOCK", 0, "CONSUMER", "w", "TOKEN", token)
        server.wait_blocked(n + 1)
    waiters[2].close()
    server.wait_blocked(3)
    q.send("a")
    [first] = msgs(waiters[0].recv(5))
    assert same([first], msgs(waiters[3].recv(5)))
    q.send("b")
    [other] = msgs(waiters[1].recv(5))
    assert other.payload == b"b"
    for w in waiters:
        w.close()


def test_a_repeated_call_does_not_wait_behind_others(server, r, key):
    q = Queue(r, key)
    q.send("a")
    first = q.fetch("CONSUMER", "w", "TOKEN", "t")
    w = server.wire()
    w.send("DQ.FETCH", key, "BLOCK", 0)
    server.wait_blocked(1)
    assert same(first, q.fetch("BLOCK", 0, "CONSUMER", "w", "TOKEN", "t"))
    w.close()


def test_tokens_of_any_bytes_and_of_64(q):
    q.do("MSEND", 2, *"ab")
    for token in (b"\0\xff" * 32, b"\r"):
        first = q.fetch("CONSUMER", token, "TOKEN", token)
        assert len(first) == 1
        assert same(first, q.fetch("CONSUMER", token, "TOKEN", token))


def test_a_copy_has_nothing_to_repeat(r, key):
    q = Queue(r, key)
    q.do("MSEND", 2, *"ab")
    first = q.fetch("CONSUMER", "w", "TOKEN", "t", "LEASE", FAR)
    r.copy(key, key + b":copy")
    copy = Queue(r, key + b":copy")
    [again] = copy.fetch("CONSUMER", "w", "TOKEN", "t")
    assert again.receipt != first[0].receipt
    assert same(first, q.fetch("CONSUMER", "w", "TOKEN", "t"))


def test_a_repeated_call_binds_to_its_own_connection(server, r, key):
    q = Queue(r, key)
    q.do("CREATE", "LEASE", FAR)
    q.do("MSEND", 2, *"ab")
    old, receipts = bound(server, key)
    new, again = bound(server, key)
    assert receipts == again
    old.close()
    # A lease bound to a connection that closes later has ended, so the first had enough time.
    other = server.wire()
    other.ok("DQ.FETCH", key, "BIND")
    other.close()
    wait_for(lambda: q.len("ready") == 1, 5, "the end of the other lease")
    assert q.len("running") == 1
    new.close()
    wait_for(lambda: q.len("ready") == 2, 5, "the end of the lease")


def test_tokens_and_grace_are_replicated(replica_pair):
    client = replica_pair.primary.client()
    q = Queue(client, "q")
    q.do("CREATE", "LEASE", FAR)
    q.do("MSEND", 4, *"abcd")
    w, receipts = bound(replica_pair.primary, "q", "COUNT", 2, "GRACE", 60_000)
    before = q.digest()
    w.close()
    wait_for(lambda: q.digest() != before, 5, "the earlier ends")
    w = replica_pair.primary.wire()
    w.send("DQ.FETCH", "q", "BLOCK", 0, "CONSUMER", "v", "TOKEN", "u", "COUNT", 2)
    assert len(w.recv(5)) == 2
    replica_pair.assert_same("q")
    twin = replica_pair.replica.client()
    client.close()
    replica_pair.primary.stop()
    twin.execute_command("REPLICAOF", "NO", "ONE")
    there = Queue(twin, "q")
    assert [m.receipt for m in there.fetch("CONSUMER", "w", "TOKEN", "t")] == receipts
    assert len(there.fetch("CONSUMER", "v", "TOKEN", "u")) == 2
    assert digest(twin, "q") != before
