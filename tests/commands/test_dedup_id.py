"""DEDUPID: a message is not sent again within a time from its send, whatever has become of it."""

import pytest

from tests.harness.replies import Manual


@pytest.fixture
def q(r, key):
    return Manual(r, key)


def test_a_second_send_has_the_reply_of_the_first(q):
    assert q.send("x", "ID", "a", "DEDUPID", "d", 100) == b"a"
    assert q.send("y", "ID", "b", "DEDUPID", "d", 100) == b"a"
    assert q.send("y", "DEDUPID", "d", 5) == b"a"
    assert q.send("y", "DEDUPID", "e", 100) not in (b"a", None)
    assert q.info()["duplicates"] == 2


def test_a_generated_id_is_repeated(q):
    first = q.send("x", "DEDUPID", "d", 100)
    assert q.send("x", "DEDUPID", "d", 100) == first and len(first) == 36


def test_the_time_counts_from_the_first_send(q):
    q.send("x", "ID", "a", "DEDUPID", "d", 100)
    q.to(99)
    assert q.send("x", "ID", "b", "DEDUPID", "d", 100) == b"a"
    q.to(100)
    assert q.send("x", "ID", "b", "DEDUPID", "d", 100) == b"b"
    q.to(199)
    assert q.send("x", "ID", "c", "DEDUPID", "d", 1) == b"b"


@pytest.mark.parametrize("end", ["ack", "cancel", "fatal"])
def test_an_end_of_the_message_changes_nothing(q, end):
    q.send("x", "ID", "a", "DEDUPID", "d", 100)
    if end == "cancel":
        q.do("CANCEL", "a")
    else:
        [[_, receipt, *_]] = q.do("FETCH")
        q.do(*(("ACK", receipt) if end == "ack" else ("NACK", receipt, "FATAL")))
    q.do("PURGE", "STATE", "dead")
    assert q.send("x", "ID", "b", "DEDUPID", "d", 100) == b"a"
    q.do("PURGE")
    assert q.send("x", "ID", "b", "DEDUPID", "d", 100) == b"b"


def test_a_send_that_adds_nothing_leaves_it_free(q, r):
    q.send("x", "ID", "taken")
    assert q.send("x", "ID", "taken", "DEDUPID", "d", 100) is None
    assert q.send("x", "GROUP", "g", "IFGROUP", "DEDUPID", "d", 100) is None
    q.do("ALTER", "MAXLEN", 1)
    with pytest.raises(Exception, match="QUEUEFULL"):
        q.send("x", "DEDUPID", "d", 100)
    q.do("ALTER", "MAXLEN", 0)
    assert q.send("x", "ID", "a", "DEDUPID", "d", 100) == b"a"
    q.do("ALTER", "MAXLEN", 1)
    assert q.send("x", "DEDUPID", "d", 100) == b"a", "a full queue repeats a reply"


def test_the_time_of_a_rerun_counts_from_its_send(q):
    q.send("1", "ID", "a")
    [[_, receipt, *_]] = q.do("FETCH")
    assert q.send("2", "ID", "a", "REPLACE", "RERUN", "DEDUPID", "d", 100) == b"a"
    assert q.send("3", "ID", "a", "REPLACE", "RERUN", "DEDUPID", "d", 100) == b"a"
    q.do("ACK", receipt)
    assert q.do("FETCH")[0][3] == b"2"


def test_each_message_of_an_acksend_may_have_one(q):
    q.send("x")
    [[_, receipt, *_]] = q.do("FETCH")
    words = ["NEXT", q.key, "y", "ID", "b", "DEDUPID", "d", 50, "NEXT", q.key, "z", "ID", "c", "DEDUPID", "d", 50]
    assert q.do("ACKSEND", receipt, *words) == [b"b", b"b"]
    assert q.send("x", "DEDUPID", "d", 1) == b"b"


def test_a_push_to_a_group_may_have_one(q):
    push = ["GROUPPUSH", '{"g":"h"}', "GROUPBY", 1, "g"]
    assert q.do(*push, "ID", "a", "DEDUPID", "d", 50) == [b"h", b"a"]
    assert q.do(*push, "ID", "b", "DEDUPID", "d", 50) == [b"h", b"a"]


@pytest.mark.parametrize("words", [["DEDUPID", "d"], ["DEDUPID", "d", 0], ["DEDUPID", "", 5], ["DEDUPID", "d", -1], ["DEDUPID", "d", 5, "DEDUPID", "e", 5]])
def test_wrong_words_are_refused(q, words):
    with pytest.raises(Exception, match="DEDUPID"):
        q.send("x", *words)
    assert q.do("LEN") == 0


def test_many_payloads_and_schedules_have_none(q):
    for command in ["MSEND", 2, "x", "y"], ["SCHEDULE", "s", "EVERY", 1000, "PAYLOAD", "x"]:
        with pytest.raises(Exception, match="DEDUPID"):
            q.do(*command, "DEDUPID", "d", 5)


def test_it_outlives_a_restart_and_a_copy(make_server):
    server = make_server(appendonly="yes", appendfsync="always")
    client = server.client()
    do = client.execute_command
    do("DQ.SEND", "q", "x", "ID", "a", "DEDUPID", "d", 10_000_000)
    do("DQ.SEND", "q", "x", "DEDUPID", "d", 5)
    do("COPY", "q", "copy")
    for again in range(2):
        server.kill9()
        server.start()
        assert [client.execute_command("DQ.SEND", key, "x", "DEDUPID", "d", 5) for key in ("q", "copy")] == [b"a", b"a"]
        client.execute_command("BGREWRITEAOF" if again == 0 else "PING")


def test_its_memory_comes_back(q, r):
    def memory():
        return r.memory_usage(q.key, samples=0)

    before = memory()
    for n in range(2000):
        q.send("x", "ID", n, "DEDUPID", f"request-{n}", 100 + n % 7)
    q.do("CANCEL", *range(2000))
    assert memory() - before > 2000 * 100
    q.to(200)
    assert memory() - before < 30_000
