"""PARK and DQ.SIGNAL: a message waits for a signal, without polling."""

import pytest

from tests.harness.replies import Manual, Queue, as_map, as_maps


@pytest.fixture
def q(r, key):
    return Manual(r, key, "LEASE", 1000, start=1000)


def parked(q, *options, id="job"):
    """A message that a worker has parked."""
    q.send("x", "ID", id)
    m = q.one()
    assert q.nack(m.receipt, "SILENT", "PARK", *options) == 1
    return m


def signal(q, id="job", *options):
    return q.do("SIGNAL", id, *options)


def explained(q, id="job"):
    told = as_map(q.do("EXPLAIN", id))
    return told["code"], told["until"], told["by"]


def test_a_parked_message_is_held_until_a_signal_comes(q):
    m = parked(q, "NOTE", "step 2")
    assert (q.state("job"), q.len("held"), q.len(), q.fetch()) == ("held", 1, 1, [])
    assert q.get("job")["status"] == b"pending"
    assert q.ack(m.receipt) == 0
    q.advance(10**9)
    assert q.fetch() == []
    assert signal(q, "job", "DATA", "approved\r\n\0") == 1
    assert (q.state("job"), q.get("job")["signal"]) == ("ready", b"approved\r\n\0")
    again = q.one("WITHMETA")
    assert (again.id, again.attempt, again.meta["signal"], again.meta["note"]) == (b"job", 1, b"approved\r\n\0", b"step 2")
    assert q.get("job")["failures"] == 0
    assert q.ack(again.receipt) == 1


def test_a_signal_without_data_is_an_empty_text(q):
    parked(q)
    assert signal(q) == 1
    assert q.one("WITHMETA").meta["signal"] == b""


def test_without_a_signal_it_is_due_when_its_time_is_over(q):
    parked(q, "FOR", 500)
    assert explained(q) == (b"parked", 1500, None)
    assert q.advance(499)["due"] == 0
    assert q.fetch() == []
    assert q.advance(1)["due"] == 1
    again = q.one("WITHMETA")
    assert (again.attempt, again.meta["signal"], again.meta["due-at"]) == (1, None, 1500)


def test_a_signal_ends_the_wait_before_its_time(q):
    parked(q, "FOR", 500)
    assert signal(q) == 1
    q.ack(q.one().receipt)
    assert q.advance(1000)["due"] == 0
    assert q.len() == 0


def test_a_message_can_be_parked_when_it_is_sent(q):
    q.send("x", "ID", "job", "PARK")
    q.send("y", "ID", "other", "PARK", "FOR", 50)
    assert q.len("held") == 2
    assert explained(q) == (b"parked", None, None)
    q.advance(50)
    assert q.one("WITHMETA").id == b"other"
    assert signal(q, "job", "DATA", "go") == 1
    again = q.one("WITHMETA")
    assert (again.id, again.attempt, again.meta["signal"]) == (b"job", 1, b"go")


def test_a_signal_before_its_due_time_lets_it_fall_due_then(q):
    q.send("x", "ID", "job", "PARK", "DELAY", 100)
    assert signal(q) == 1
    assert q.state("job") == "delayed"
    q.advance(100)
    assert q.one("WITHMETA").meta["signal"] == b""


def test_a_signal_that_comes_before_the_park_is_kept(q):
    q.send("x", "ID", "job")
    m = q.one("WITHMETA")
    assert m.meta["signal"] is None
    assert signal(q, "job", "DATA", "one") == 1
    assert signal(q, "job", "DATA", "two") == 1
    assert q.get("job")["signal"] == b"two"
    # The signal has come already, so there is nothing to wait for.
    q.nack(m.receipt, "SILENT", "PARK")
    again = q.one("WITHMETA")
    assert again.meta["signal"] == b"two"
    # This delivery has got the signal, so the next PARK waits for another one.
    q.nack(again.receipt, "SILENT", "PARK")
    assert (q.state("job"), q.get("job")["signal"]) == ("held", None)
    assert signal(q, "job", "DATA", "three") == 1
    assert q.one("WITHMETA").meta["signal"] == b"three"


def test_a_signal_goes_to_a_retry_as_well(q):
    parked(q)
    signal(q, "job", "DATA", "go")
    q.nack(q.one().receipt, "DELAY", 0)
    assert q.one("WITHMETA").meta["signal"] == b"go"
    q.advance(1000)
    assert q.one("WITHMETA").meta["signal"] == b"go"


def test_a_signal_to_a_delayed_message_stays_with_it(q):
    q.send("x", "ID", "job", "DELAY", 100)
    assert signal(q, "job", "DATA", "early") == 1
    assert q.state("job") == "delayed"
    q.advance(100)
    assert q.one("WITHMETA").meta["signal"] == b"early"


def test_a_signal_to_nobody_changes_nothing(r, key):
    q = Manual(r, key, "RETAIN", 1000)
    q.send("x", "ID", "job")
    q.ack(q.one().receipt)
    before = q.digest()
    assert (signal(q), signal(q, "nobody")) == (0, 0)
    assert q.digest() == before
    missing = Queue(r, key + b"-none")
    assert signal(missing) == 0
    assert r.exists(missing.key) == 0


def test_it_goes_with_the_end_of_the_message(r, key):
    q = Manual(r, key, "RETAIN", 1000)
    q.send("x", "ID", "job")
    m = q.one()
    signal(q, "job", "DATA", "go")
    q.nack(m.receipt, "FATAL")
    assert q.get("job")["signal"] is None
    q.do("REDRIVE", "ALL")
    assert q.one("WITHMETA").meta["signal"] is None


@pytest.mark.parametrize("act", ["cancel", "purge", "purge-held", "replace"])
def test_a_parked_message_can_be_taken_away(q, act):
    parked(q, "FOR", 500)
    match act:
        case "cancel":
            assert q.do("CANCEL", "job") == [b"held"]
        case "purge":
            assert q.do("PURGE") == 1
        case "purge-held":
            assert q.do("PURGE", "STATE", "held") == 1
        case "replace":
            assert q.send("y", "ID", "job", "REPLACE") == b"job"
    assert q.len("held") == 0
    assert q.advance(500)["due"] == 0
    assert q.payloads("COUNT", 9) == ([b"y"] if act == "replace" else [])


def test_update_and_reschedule_leave_it_parked(q):
    parked(q, "FOR", 500)
    assert q.do("UPDATE", "job", "new") == 1
    assert q.do("RESCHEDULE", "job", "DELAY", 800) == 1
    assert q.state("job") == "held"
    assert signal(q) == 1
    assert (q.state("job"), q.get("job")["due-at"]) == ("delayed", 1800)
    q.advance(800)
    assert q.one().payload == b"new"


def test_a_parked_message_keeps_its_place_in_its_group_and_holds_back_nobody(q):
    for id in "abc":
        q.send(id, "ID", id, "GROUP", "g")
    m = q.one()
    q.nack(m.receipt, "SILENT", "PARK")
    [group] = as_maps(q.do("GROUPS")[1])
    assert (group["state"], group["waiting"], group["head"]) == (b"ready", 3, b"b")
    b = q.one()
    assert b.id == b"b"
    signal(q, "a")
    q.ack(b.receipt)
    assert [q.one().id] == [b"a"]


def test_the_others_of_its_delivery_come_back_with_it(q):
    for id in "abc":
        q.send(id, "ID", id, "GROUP", "g")
    a, *_ = q.fetch("COUNT", 3, "PERGROUP", 3)
    assert q.nack(a.receipt, "SILENT", "PARK") == 1
    assert q.ids("COUNT", 9, "PERGROUP", 9) == [b"b", b"c"]


def test_a_ttl_counts_from_its_release_and_expireat_does_not(q):
    q.send("x", "ID", "job", "TTL", 100)
    q.nack(q.one().receipt, "SILENT", "PARK")
    q.advance(500)
    assert q.state("job") == "held"
    signal(q)
    q.advance(99)
    assert q.state("job") == "ready"
    q.advance(1)
    assert q.get("job")["reason"] == b"expired"
    q.send("x", "ID", "other", "PARK", "EXPIREAT", 2000)
    q.to(2000)
    assert q.get("other")["reason"] == b"expired"


def test_it_waits_for_its_batch_first(q):
    q.send("x", "ID", "first", "BATCH", "b")
    q.send("y", "ID", "job", "AFTER", "b", "PARK", "FOR", 100)
    q.advance(300)
    assert explained(q)[0] == b"batch-open"
    q.ack(q.one().receipt)
    assert explained(q) == (b"parked", 1400, None)
    assert as_map(q.get("job")["after"])["finished"] == 1
    signal(q, "job", "DATA", "go")
    assert q.one("WITHMETA").meta["signal"] == b"go"


def test_a_signal_while_its_batch_holds_it_ends_the_wait_for_one(q):
    q.send("x", "ID", "first", "BATCH", "b")
    q.send("y", "ID", "job", "AFTER", "b", "PARK")
    assert signal(q, "job", "DATA", "go") == 1
    assert q.state("job") == "held"
    q.ack(q.one().receipt)
    assert q.one("WITHMETA").meta["signal"] == b"go"


def test_a_parked_message_keeps_its_batch_open(q):
    q.send("x", "ID", "job", "BATCH", "b")
    q.send("y", "ID", "last", "AFTER", "b")
    q.nack(q.one().receipt, "SILENT", "PARK")
    assert q.fetch() == []
    signal(q)
    q.ack(q.one().receipt)
    assert q.one().id == b"last"


def test_list_and_find_show_held_messages_by_the_time_since_when(q):
    q.send("x", "ID", "b-sent", "PARK")
    q.advance(10)
    parked(q, id="a-later")
    q.advance(10)
    q.send("x", "ID", "c-last", "PARK", "TYPE", "t")
    ids = [b"b-sent", b"a-later", b"c-last"]
    assert q.do("LIST", "held", "IDS")[1] == ids
    assert q.do("LIST", "held", "REV", "IDS")[1] == ids[::-1]
    assert q.do("FIND", "held", "SINCE", 1010, "UNTIL", 1020, "IDS")[1] == [b"a-later"]
    assert q.do("FIND", "held", "TYPE", "t", "IDS")[1] == [b"c-last"]
    assert q.do("FIND", "held", "DO", "CANCEL")[1] == 3


def test_acksend_signals_in_the_same_step(q, r, key):
    other = Manual(r, b"{" + key + b"}:other")
    main = Manual(r, b"{" + key + b"}:main")
    parked(other)
    main.send("x")
    m = main.one()
    reply = main.do(
        "ACKSEND", m.receipt, "RESULT", "r",
        "SIGNAL", other.key, "job", "done",
        "NEXT", main.key, "next", "ID", "n",
        "SIGNAL", other.key, "nobody", "",
        "SIGNAL", key + b"-missing{" + key + b"}", "job", "x",
    )  # fmt: skip
    assert reply == [1, b"n", 0, 0]
    assert other.one("WITHMETA").meta["signal"] == b"done"
    assert r.exists(key + b"-missing{" + key + b"}") == 0
    assert main.do("ACKSEND", m.receipt, "SIGNAL", other.key, "job", "again") is None
    assert other.get("job")["signal"] == b"done"


def test_it_can_be_given_wherever_a_message_is_sent(q):
    q.do("MSEND", 2, "x", "y", "PARK")
    q.do("GROUPPUSH", '{"g": 1}', "GROUPBY", 1, "g", "PARK", "FOR", 7)
    q.do("SCHEDULE", "s", "EVERY", 5, "PAYLOAD", "x", "PARK")
    q.advance(5)
    q.do("UNSCHEDULE", "s")
    assert q.len("held") == 4
    q.advance(2)
    assert q.len("held") == 3


def test_info_tells_what_held_messages_wait_for(q):
    def figures():
        return tuple(q.info()[name] for name in ("held", "parents", "parked"))

    q.send("x", "ID", "m", "BATCH", "b")
    q.send("x", "ID", "p", "AFTER", "b", "CHILDREN", 1, "PARK")
    q.send("x", "ID", "s", "PARK")
    assert figures() == (2, 0, 1)
    q.do("CANCEL", "m")
    assert figures() == (2, 1, 1)
    q.send("c", "ID", "a", "PARENT", q.key, "p")
    q.do("CANCEL", "a")
    assert figures() == (2, 0, 2)
    q.do("SIGNAL", "p")
    assert figures() == (1, 0, 1)
    q.do("PURGE")
    assert figures() == (0, 0, 0)
