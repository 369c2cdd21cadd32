"""Receipts grow, are never used twice, and only the current receipt of a running message is accepted."""

import pytest

from tests.harness.replies import Manual, Queue

ODD = [-(2**63), -1, 0, 1, 7, 2**53 - 1, 2**53, 2**63 - 1]


@pytest.fixture(params=["SERVER", "MANUAL"])
def q(r, key, request):
    """A queue on either clock; receipts obey the same rule on both."""
    queue = Queue(r, key)
    queue.do("CREATE", "CLOCK", request.param, "RETRIES", -1)
    queue.clock = request.param
    return queue


def recreate(q):
    q.client.delete(q.key)
    q.do("CREATE", "CLOCK", q.clock, "RETRIES", -1)


def test_receipts_grow_with_every_delivery(q):
    q.do("MSEND", 50, *range(50))
    seen = []
    for _ in range(40):
        batch = q.fetch("COUNT", 5)
        seen += [m.receipt for m in batch]
        q.nack(*[m.receipt for m in batch])
    assert seen == sorted(set(seen))
    assert 0 < seen[0] and seen[-1] < 2**53


def test_receipts_grow_over_a_deleted_and_recreated_key(q):
    last = 0
    for _ in range(5):
        q.do("MSEND", 20, *range(20))
        receipts = [m.receipt for m in q.fetch("COUNT", 20)]
        assert receipts[0] > last
        last = receipts[-1]
        recreate(q)


def test_a_receipt_of_a_deleted_queue_is_stale_in_a_new_one(q):
    q.send("old")
    old = q.one().receipt
    recreate(q)
    q.send("new")
    q.one()
    assert (q.ack(old), q.nack(old), q.touch(1000, old)) == (0, 0, 0)
    assert q.len("running") == 1


def test_receipts_grow_over_the_restore_of_an_older_dump(q):
    q.do("MSEND", 30, *range(30))
    dump = q.client.dump(q.key)
    later = [m.receipt for m in q.fetch("COUNT", 30)]
    q.client.restore(q.key, 0, dump, replace=True)
    assert q.ack(*later) == 0
    again = [m.receipt for m in q.fetch("COUNT", 30)]
    assert again[0] > later[-1]
    assert len(again) == 30


def test_receipts_grow_over_reload_and_flush(q):
    q.do("MSEND", 10, *range(10))
    first = q.one().receipt
    q.client.execute_command("DEBUG", "RELOAD")
    second = q.one().receipt
    assert second > first
    assert q.ack(first) == 1
    q.client.flushall()
    recreate(q)
    q.send("x")
    assert q.one().receipt > second


def test_a_receipt_can_be_acked_once(q):
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    assert q.ack(receipt) == 1
    assert q.ack(receipt) == 0
    assert (q.nack(receipt), q.touch(10, receipt)) == (0, 0)
    assert q.get("a") is None


def test_a_receipt_named_twice_counts_once(q):
    q.do("MSEND", 2, *"ab")
    a, b = (m.receipt for m in q.fetch("COUNT", 2))
    assert q.touch(9999, a, b, a) == 2
    assert q.nack(a, a) == 1
    assert q.ack(b, b, b) == 1


@pytest.mark.parametrize("verb", ["ACK", "NACK", "TOUCH"])
def test_an_integer_that_was_never_a_receipt_is_stale(q, verb):
    q.do("MSEND", 3, *"abc")
    q.one("LEASE", 600000)
    before = q.digest()
    for receipt in ODD:
        args = (receipt,) if verb != "TOUCH" else (1, receipt)
        assert q.do(verb, *args) == 0
    assert q.digest() == before


def test_a_superseded_receipt_changes_nothing(q):
    q.send("x", "ID", "a")
    old = q.one()
    q.nack(old.receipt)
    new = q.one("LEASE", 600000)
    before = q.digest()
    assert q.ack(old.receipt) == 0
    assert q.nack(old.receipt, "FATAL") == 0
    assert q.nack(old.receipt, "SILENT") == 0
    assert q.touch(1, old.receipt) == 0
    assert q.digest() == before
    assert q.ack(new.receipt) == 1


def test_a_call_with_current_and_stale_receipts_counts_the_current_ones(q):
    q.do("MSEND", 3, *"abc")
    a, b, c = (m.receipt for m in q.fetch("COUNT", 3))
    assert q.ack(a) == 1
    assert q.ack(a, b, 5) == 1
    assert q.nack(a, b, c) == 1
    assert q.len("running") == 0


def test_a_receipt_is_stale_from_its_lease_end_on(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a")
    receipt = q.one("LEASE", 10).receipt
    q.advance(10)
    assert q.state("a") == "ready"
    assert (q.ack(receipt), q.nack(receipt), q.touch(5, receipt)) == (0, 0, 0)
    assert q.state("a") == "ready"


def test_a_receipt_works_until_the_last_millisecond_of_its_lease(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a")
    receipt = q.one("LEASE", 10).receipt
    q.advance(9)
    assert q.ack(receipt) == 1


def test_get_shows_the_receipt_only_while_running(r, key):
    q = Manual(r, key, "RETAIN", 1000)
    q.send("x", "ID", "a")
    assert q.get("a")["receipt"] is None
    receipt = q.one().receipt
    assert q.get("a")["receipt"] == receipt
    q.ack(receipt)
    assert q.get("a")["receipt"] is None


def test_a_receipt_is_stale_in_another_queue(r, key):
    a, b = Manual(r, key + b"a"), Manual(r, key + b"b")
    a.send("x")
    b.send("x")
    receipt = b.one().receipt
    assert (a.ack(receipt), a.len()) == (0, 1)
    assert b.ack(receipt) == 1
