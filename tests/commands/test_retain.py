"""RETAIN of one message: how long its own record is kept."""

from tests.harness.replies import Manual, as_maps


def states(q, ids):
    return [q.state(id) for id in ids]


def listed(q, state):
    return q.do("LIST", state, "IDS", "COUNT", 1000)[1]


def test_retain_of_a_message_replaces_that_of_the_queue(r, key):
    q = Manual(r, key, "RETAIN", 100)
    q.send("x", "ID", "queue")
    q.send("x", "ID", "longer", "RETAIN", 300)
    q.send("x", "ID", "shorter", "RETAIN", 10)
    q.send("x", "ID", "none", "RETAIN", 0)
    q.ack(*(m.receipt for m in q.fetch("COUNT", 4)))
    ids = ["queue", "longer", "shorter", "none"]
    assert states(q, ids) == ["finished", "finished", "finished", None]
    assert q.advance(9)["pruned"] == 0
    assert q.advance(1)["pruned"] == 1
    assert states(q, ids) == ["finished", "finished", None, None]
    assert q.advance(89)["pruned"] == 0
    assert q.advance(1)["pruned"] == 1
    assert states(q, ids) == [None, "finished", None, None]
    assert q.advance(200)["pruned"] == 1
    assert q.len("finished") == 0


def test_retain_of_a_message_counts_in_a_queue_that_keeps_none(r, key):
    q = Manual(r, key, "RETAIN", 0)
    q.send("x", "ID", "a", "RETAIN", 50)
    q.send("x", "ID", "b")
    q.do("CANCEL", "a", "b")
    assert states(q, "ab") == ["cancelled", None]
    q.do("ALTER", "RETAIN", 10)
    q.advance(49)
    assert q.state("a") == "cancelled"
    q.advance(1)
    assert q.state("a") is None


def test_a_long_retain_does_not_keep_later_records(r, key):
    q = Manual(r, key, "RETAIN", 10)
    for n in range(20):
        q.send("x", "ID", f"own{n}", "RETAIN", 1000 + n)
    q.send("x", "ID", "last")
    q.ack(*(m.receipt for m in q.fetch("COUNT", 21)))
    q.advance(10)
    assert q.state("last") is None
    assert q.len("finished") == 20
    q.advance(1000)
    assert listed(q, "finished") == [f"own{n}".encode() for n in range(11, 20)]


def test_retaincount_counts_records_with_a_retain_of_their_own(r, key):
    q = Manual(r, key, "RETAIN", 100, "RETAINCOUNT", 2)
    for id in "abc":
        q.send("x", "ID", id, *(("RETAIN", 1000) if id == "a" else ()))
    for m in q.fetch("COUNT", 3):
        q.ack(m.receipt)
    assert listed(q, "finished") == [b"b", b"c"]


def test_records_with_their_own_retain_are_listed_in_order_and_purged(r, key):
    q = Manual(r, key, "RETAIN", 1000)
    for n in range(9):
        q.send("x", "ID", str(n), "GROUP", f"g{n % 2}", *(("RETAIN", 500 + n) if n % 3 else ()))
    for m in q.fetch("COUNT", 9):
        q.ack(m.receipt)
        q.advance(1)
    for m in q.fetch("COUNT", 9):
        q.ack(m.receipt)
        q.advance(1)
    while given := q.fetch("COUNT", 9):
        for m in given:
            q.ack(m.receipt)
            q.advance(1)
    all_of_them = as_maps(q.do("LIST", "finished", "COUNT", 100)[1])
    ends = [row["finished-at"] for row in all_of_them]
    assert len(ends) == 9 and ends == sorted(ends)
    assert q.do("PURGE", "STATE", "finished", "GROUP", "g0") == 5
    assert q.len("finished") == 4
    assert q.do("PURGE", "STATE", "finished") == 4
    assert q.advance(2000)["pruned"] == 0
    q.send("x", "ID", "1", "RETAIN", 7)
    q.ack(q.one().receipt)
    assert q.advance(7)["pruned"] == 1


def test_an_id_stays_taken_after_its_own_retain(r, key):
    q = Manual(r, key, "RETAIN", 5, "DEDUP", 100)
    q.send("x", "ID", "a", "RETAIN", 0)
    q.ack(q.one().receipt)
    assert q.state("a") is None
    assert q.send("x", "ID", "a") is None
    q.advance(100)
    assert q.send("x", "ID", "a") == b"a"


def test_noack_keeps_the_record_for_its_own_retain(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a", "RETAIN", 5)
    q.send("x", "ID", "b", "RETAIN", 0)
    q.do("ALTER", "RETAIN", 100)
    assert len(q.fetch("COUNT", 2, "NOACK")) == 2
    assert states(q, "ab") == ["finished", None]
    q.advance(5)
    assert q.state("a") is None


def test_retain_does_not_concern_dead_messages(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a", "RETAIN", 5)
    q.nack(q.one().receipt, "FATAL")
    q.advance(1000)
    assert q.state("a") == "dead"
