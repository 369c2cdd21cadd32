"""MAXLEN, MAXBYTES, MAXRUNNING and RATE of a whole queue."""

from tests.harness.replies import Manual


def full(q, *args):
    return q.fails("SEND", *args).startswith("QUEUEFULL")


def test_maxlen_counts_delayed_ready_and_running_messages(r, key):
    q = Manual(r, key, "MAXLEN", 2)
    q.send("a")
    q.send("b", "DELAY", 1000)
    before = q.digest()
    assert full(q, "c")
    assert full(q, "c", "ID", "new")
    assert q.digest() == before
    m = q.one()
    assert full(q, "c"), "running ones count"
    q.ack(m.receipt)
    q.send("c")
    assert full(q, "d")


def test_ended_messages_do_not_count_for_maxlen(r, key):
    q = Manual(r, key, "MAXLEN", 1, "RETAIN", 1000, "RETRIES", 0)
    q.send("finished")
    q.ack(q.one().receipt)
    q.send("dead")
    q.nack(q.one().receipt)
    q.send("cancelled", "ID", "c")
    q.do("CANCEL", "c")
    q.send("fits")
    assert full(q, "no more")


def test_replace_fits_into_a_full_queue(r, key):
    q = Manual(r, key, "MAXLEN", 1, "MAXBYTES", 4)
    q.send("abcd", "ID", "a")
    assert q.send("efgh", "ID", "a", "REPLACE") == b"a"
    assert full(q, "efghi", "ID", "a", "REPLACE")
    assert q.get("a")["payload"] == b"efgh"


def test_replace_is_accepted_after_maxlen_was_lowered(r, key):
    q = Manual(r, key)
    for id in "abc":
        q.send("1234", "ID", id)
    q.do("ALTER", "MAXLEN", 2)
    assert q.send("a longer one", "ID", "a", "REPLACE") == b"a"
    assert full(q, "", "ID", "new", "REPLACE")
    assert q.len() == 3


def test_replace_that_does_not_grow_is_accepted_after_maxbytes_was_lowered(r, key):
    q = Manual(r, key)
    for id in "abc":
        q.send("1234", "ID", id)
    q.do("ALTER", "MAXBYTES", 5)
    assert q.send("4321", "ID", "a", "REPLACE") == b"a"
    assert q.send("432", "ID", "a", "REPLACE") == b"a"
    assert full(q, "4321", "ID", "a", "REPLACE")
    assert q.info()["bytes"] == 11
    # UPDATE follows the same rule, and an empty message always fits.
    assert q.do("UPDATE", "b", "4321") == 1
    assert q.fails("UPDATE", "b", "54321").startswith("QUEUEFULL")
    assert q.send("") is not None


def test_replace_may_grow_within_maxbytes_in_a_queue_over_maxlen(r, key):
    q = Manual(r, key)
    for id in "abc":
        q.send("1234", "ID", id)
    q.do("ALTER", "MAXLEN", 1, "MAXBYTES", 13)
    assert q.send("12345", "ID", "a", "REPLACE") == b"a"
    assert full(q, "12345", "ID", "b", "REPLACE")


def test_maxbytes_counts_payload_bytes(r, key):
    q = Manual(r, key, "MAXBYTES", 10)
    q.send(b"123456")
    assert full(q, b"12345")
    q.send(b"1234")
    assert q.info()["bytes"] == 10
    assert full(q, b"1")
    q.send(b"")
    q.ack(q.one().receipt)
    assert q.info()["bytes"] == 4
    q.send(b"123456")


def test_maxbytes_limits_an_msend_as_a_whole(r, key):
    q = Manual(r, key, "MAXBYTES", 10)
    assert q.fails("MSEND", 3, "1234", "1234", "123").startswith("QUEUEFULL")
    assert q.len() == 0
    q.do("MSEND", 3, "1234", "1234", "12")


def test_maxrunning_limits_the_messages_leased_at_once(r, key):
    q = Manual(r, key, "MAXRUNNING", 2, "LEASE", 10)
    q.do("MSEND", 6, *"abcdef")
    a, b = q.fetch("COUNT", 5)
    assert q.fetch("COUNT", 5) == []
    assert (q.len("ready"), q.len("running")) == (4, 2), "a limit of the queue changes no state"
    q.ack(a.receipt)
    assert q.payloads("COUNT", 5) == [b"c"]
    q.advance(10)
    assert len(q.fetch("COUNT", 5)) == 2


def test_maxrunning_can_be_raised_and_removed(r, key):
    q = Manual(r, key, "MAXRUNNING", 1)
    q.do("MSEND", 6, *"abcdef")
    q.fetch()
    q.do("ALTER", "MAXRUNNING", 3)
    assert len(q.fetch("COUNT", 9)) == 2
    q.do("ALTER", "MAXRUNNING", 0)
    assert len(q.fetch("COUNT", 9)) == 3


def test_nack_and_cancel_free_a_slot_of_maxrunning(r, key):
    q = Manual(r, key, "MAXRUNNING", 1, "BACKOFF", "FIXED", 1000)
    q.do("MSEND", 3, *"abc")
    q.nack(q.one().receipt)
    second = q.one()
    q.do("CANCEL", second.id)
    assert q.payloads() == [b"c"]


def test_rate_is_a_sliding_window(r, key):
    q = Manual(r, key, "RATE", 3, "PER", 1000)
    q.do("MSEND", 20, *range(20))
    assert len(q.fetch("COUNT", 1)) == 1
    q.to(300)
    assert len(q.fetch("COUNT", 1)) == 1
    q.to(600)
    assert len(q.fetch("COUNT", 9)) == 1
    q.to(999)
    assert q.fetch("COUNT", 9) == []
    q.to(1000)
    assert len(q.fetch("COUNT", 9)) == 1
    q.to(1299)
    assert q.fetch("COUNT", 9) == []
    q.to(1300)
    assert len(q.fetch("COUNT", 9)) == 1
    q.to(1600)
    assert len(q.fetch("COUNT", 9)) == 1
    q.to(5000)
    assert len(q.fetch("COUNT", 9)) == 3
    assert q.len("ready") == 11


def test_rate_is_exceeded_in_no_window(r3, key):
    q = Manual(r3, key, "RATE", 5, "PER", 100)
    q.do("MSEND", 400, *range(400))
    times = []
    for _ in range(150):
        times += [q.now] * len(q.fetch("COUNT", 3))
        q.advance(7)
    for i in range(len(times) - 5):
        assert times[i + 5] - times[i] >= 100
    assert len(times) >= 50, "and the allowance is used"


def test_redeliveries_count_for_rate_and_acks_give_nothing_back(r, key):
    q = Manual(r, key, "RATE", 2, "PER", 100)
    q.send("a")
    q.nack(q.one().receipt)
    q.ack(q.one().receipt)
    q.send("b")
    assert q.fetch() == []
    q.advance(100)
    assert q.payloads() == [b"b"]


def test_rate_can_be_changed_and_removed(r, key):
    q = Manual(r, key, "RATE", 1, "PER", 1000)
    q.do("MSEND", 6, *"abcdef")
    assert len(q.fetch("COUNT", 9)) == 1
    q.do("ALTER", "RATE", 3, "PER", 1000)
    assert len(q.fetch("COUNT", 9)) == 2
    q.do("ALTER", "RATE", 0)
    assert len(q.fetch("COUNT", 9)) == 3
    assert q.info()["rate"] is None


def test_peek_obeys_limits_and_pauses(r, key):
    q = Manual(r, key, "RATE", 2, "PER", 1000)
    q.do("MSEND", 5, *"abcde")
    peeked = [m["id"] for m in q.peek("COUNT", 9)]
    assert len(peeked) == 2
    assert q.ids("COUNT", 9) == peeked
    assert q.peek("COUNT", 9) == []
    q.do("ALTER", "RATE", 0, "MAXRUNNING", 3)
    assert len(q.peek("COUNT", 9)) == 1
    q.do("PAUSE")
    assert q.peek("COUNT", 9) == []
