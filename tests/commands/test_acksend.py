"""ACKSEND: the end of a message and the messages that follow from it, all or nothing."""

import pytest

from tests.harness.replies import Manual, Queue, as_map, digest, msgs
from tests.harness.server import wait_for
from tests.harness.wire import NULL_ARRAY, Error


@pytest.fixture
def dest(key):
    return key + b":dest"


def running(r, key, *options, id="a", payload="x"):
    """A queue with one running message: (queue, receipt)."""
    q = Manual(r, key, *options)
    q.send(payload, "ID", id)
    return q, q.one().receipt


def test_it_acks_and_sends_to_several_queues(r, key, dest):
    q, receipt = running(r, key, "RETAIN", 1000)
    other = Manual(r, dest)
    made, mine, yours = q.do(
        *("ACKSEND", receipt, "RESULT", "done"),
        *("NEXT", dest, "1", "TYPE", "t", "HEADERS", 1, "f", "v"),
        *("NEXT", key, "2", "ID", "next", "GROUP", "g", "SCORE", 4, "DELAY", 5),
        *("NEXT", dest, "3", "ID", "yours", "PRIORITY", -1),
    )
    assert (mine, yours, len(made)) == (b"next", b"yours", 36)
    old = q.get("a")
    assert (old["state"], old["result"]) == (b"finished", b"done")
    new = q.get("next")
    assert (new["payload"], new["group"], new["due-at"], float(new["score"])) == (b"2", b"g", 5, 4)
    assert [m.id for m in other.fetch("COUNT", 5)] == [b"yours", made]
    assert other.get(made)["type"] == b"t"
    assert (q.info()["acked"], q.info()["sent"], other.info()["sent"], other.info()["acked"]) == (1, 2, 2, 0)


def test_options_come_in_any_order_and_case(r, key, dest):
    q, receipt = running(r, key, "RETAIN", 1000)
    assert q.do("ACKSEND", receipt, "next", dest, "NEXT", "id", "RESULT", "Result", "NEXT") == [b"RESULT"]
    assert q.get("a")["result"] == b"NEXT"
    assert Queue(r, dest).payloads() == [b"NEXT"]


def test_a_stale_receipt_does_nothing(server, r, key, dest):
    q, receipt = running(r, key)
    before = q.digest()
    for stale in (receipt + 1, 0, -5, 2**60):
        assert q.do("ACKSEND", stale, "NEXT", dest, "p", "NEXT", key, "p") is None
    assert q.digest() == before
    assert not r.exists(dest)
    assert q.do("ACKSEND", receipt, "NEXT", dest, "p")
    assert q.do("ACKSEND", receipt, "NEXT", dest, "p") is None
    assert Queue(r, key + b":missing").do("ACKSEND", 1, "NEXT", dest, "p") is None
    assert not r.exists(key + b":missing")
    assert Queue(r, dest).len() == 1
    with server.wire(2) as w:
        assert w.call("DQ.ACKSEND", key, receipt, "NEXT", dest, "p") is NULL_ARRAY


def test_a_taken_id_gives_null_and_the_rest_is_sent(r, key, dest):
    q, receipt = running(r, key)
    other = Queue(r, dest)
    other.send("old", "ID", "taken")
    nexts = ("NEXT", dest, "1", "ID", "taken", "NEXT", dest, "2", "ID", "b", "NEXT", dest, "3", "ID", "b")
    assert q.do("ACKSEND", receipt, *nexts) == [None, b"b", None]
    assert other.info()["duplicates"] == 2
    assert sorted(other.payloads("COUNT", 9)) == [b"2", b"old"]


def test_a_follow_up_may_replace_a_message(r, key, dest):
    q, receipt = running(r, key)
    other = Queue(r, dest)
    other.send("old", "ID", "d", "DELAY", 9999999)
    nexts = ("NEXT", dest, "1", "ID", "d", "REPLACE", "NEXT", dest, "2", "ID", "d", "REPLACE")
    assert q.do("ACKSEND", receipt, *nexts) == [b"d", b"d"]
    assert other.payloads("COUNT", 9) == [b"2"]


def test_a_follow_up_may_take_the_id_and_the_place_of_its_message(r, key):
    q, receipt = running(r, key, "MAXLEN", 1, "MAXBYTES", 3, payload="abc")
    for step in range(3):
        assert q.do("ACKSEND", receipt, "NEXT", key, f"{step}23", "ID", "a") == [b"a"]
        one = q.one()
        assert (one.payload, one.attempt) == (b"%d23" % step, 1)
        receipt = one.receipt
    assert (q.len(), q.info()["acked"]) == (1, 3)


@pytest.mark.parametrize("retain", [0, 1000])
def test_dedup_keeps_the_id_of_the_message_taken(r, key, retain):
    q, receipt = running(r, key, "DEDUP", 100, "RETAIN", retain)
    assert q.do("ACKSEND", receipt, "NEXT", key, "p", "ID", "a", "NEXT", key, "p", "ID", "b") == [None, b"b"]


@pytest.mark.parametrize("retain", [0, 1000])
def test_a_kept_record_gives_way_to_a_follow_up_of_its_id(r, key, retain):
    q, receipt = running(r, key, "RETAIN", retain)
    assert q.do("ACKSEND", receipt, "RESULT", "r", "NEXT", key, "p", "ID", "a") == [b"a"]
    assert (q.state("a"), q.len()) == ("ready", 1)


@pytest.mark.parametrize("option, limit", [("MAXLEN", 2), ("MAXBYTES", 2)])
@pytest.mark.parametrize("dest_is", ["own", "other"])
def test_a_full_queue_refuses_all_of_it(r, key, dest, option, limit, dest_is):
    if dest_is == "own":
        q, receipt = running(r, key, option, limit)
        full, room = key, 2
    else:
        q, receipt = running(r, key)
        Manual(r, dest, option, limit).send("x")
        full, room = dest, 1
    before = [digest(r, k) for k in (key, dest)]
    third = key + b":third"
    nexts = ("NEXT", third, "x", "NEXT", full, "x")
    too_many = nexts + ("NEXT", full, "x") * room
    assert q.fails("ACKSEND", receipt, *too_many).startswith("QUEUEFULL")
    assert [digest(r, k) for k in (key, dest)] == before
    assert not r.exists(third)
    assert q.state("a") == "running"
    assert len(q.do("ACKSEND", receipt, *nexts[:3], *("NEXT", full, "x") * room)) == 1 + room


def test_a_limit_that_was_lowered_does_not_stop_what_does_not_grow(r, key):
    q = Manual(r, key)
    q.do("MSEND", 4, *"abcd")
    receipt = q.one().receipt
    q.do("ALTER", "MAXLEN", 2, "MAXBYTES", 2)
    assert q.fails("ACKSEND", receipt, "NEXT", key, "x", "NEXT", key, "y").startswith("QUEUEFULL")
    assert q.fails("ACKSEND", receipt, "NEXT", key, "xx").startswith("QUEUEFULL")
    assert len(q.do("ACKSEND", receipt, "NEXT", key, "x")) == 1


def test_a_key_of_another_type_refuses_all_of_it(r, key, dest):
    q, receipt = running(r, key)
    r.set(dest, "text")
    third = key + b":third"
    for receipts in (receipt, 5):
        with pytest.raises(Exception, match="WRONGTYPE"):
            q.do("ACKSEND", receipts, "NEXT", third, "p", "NEXT", dest, "p")
    with pytest.raises(Exception, match="WRONGTYPE"):
        Queue(r, dest).do("ACKSEND", receipt, "NEXT", key, "p")
    assert not r.exists(third)
    assert q.state("a") == "running"


def test_128_messages_can_follow(r, key, dest):
    q, receipt = running(r, key)
    ids = q.do("ACKSEND", receipt, *("NEXT", dest, "p") * 128)
    assert len(set(ids)) == 128
    assert Queue(r, dest).len() == 128


def test_it_ends_a_wait_and_wakes_waiters_of_every_dest(server, r, key, dest):
    q, receipt = running(r, key)
    keys = [dest + b"%d" % n for n in range(3)] + [key]
    waiter = server.wire()
    waiter.send("DQ.WAIT", key, "a", 0)
    fetchers = [server.wire() for _ in keys]
    for w, k in zip(fetchers, keys):
        w.send("DQ.FETCH", k, "BLOCK", 0)
    server.wait_blocked(len(keys) + 1)
    q.do("ACKSEND", receipt, "RESULT", "r", *(word for k in keys for word in ("NEXT", k, "to " + k.decode())))
    assert waiter.recv(5) == [b"finished", b"r"]
    for w, k in zip(fetchers, keys):
        [m] = msgs(w.recv(5))
        assert m.payload == b"to " + k
        w.close()
    waiter.close()


def test_events_come_of_both_after_all_is_done(server, r, key, dest):
    q, receipt = running(r, key)
    r.config_set("notify-keyspace-events", "KEd")
    try:
        sub = r.pubsub(ignore_subscribe_messages=True)
        sub.psubscribe("__keyspace@*")
        sub.get_message(timeout=1)
        q.do("ACKSEND", receipt, "NEXT", dest, "p", "NEXT", key, "p")
        seen = []
        wait_for(lambda: seen.append(sub.get_message(timeout=0.1)) or len([s for s in seen if s]) >= 5, 5, "the events")
        got = [(m["channel"].split(b":", 1)[1], m["data"]) for m in seen if m]
        assert [data for channel, data in got if channel == key] == [b"dq.sent", b"dq.acked", b"dq.ready"]
        assert [data for channel, data in got if channel == dest] == [b"dq.sent", b"dq.ready"]
        sub.close()
    finally:
        r.config_set("notify-keyspace-events", "")


def test_it_is_refused_at_maxmemory_and_acks_are_not(server, r, key, dest):
    q, receipt = running(r, key)
    r.config_set("maxmemory", 1)
    try:
        assert isinstance(server.wire().call("DQ.ACKSEND", key, receipt, "NEXT", dest, "p"), Error)
        assert q.ack(receipt) == 1
    finally:
        r.config_set("maxmemory", 0)


def test_what_was_due_before_is_done_also_where_it_is_refused(r, key, dest):
    """A lease that has ended is over for ACKSEND as for ACK."""
    q, receipt = running(r, key)
    q.advance(30_000)
    assert q.do("ACKSEND", receipt, "NEXT", dest, "p") is None
    assert q.info()["timeouts"] == 1
    assert not r.exists(dest)


def test_ids_that_were_made_are_found(r, key, dest):
    q, receipt = running(r, key)
    ids = q.do("ACKSEND", receipt, *("NEXT", dest, "p", "NEXT", key, "p") * 3)
    assert len(set(ids)) == 6
    assert all(Queue(r, k).state(i) == "ready" for i, k in zip(ids, [dest, key] * 3))


def test_verb_calls_are_counted(r, key, dest):
    q, receipt = running(r, key)
    before = as_map(r.info("dq")).get("dq_calls_acksend", 0)
    q.do("ACKSEND", receipt, "NEXT", dest, "p")
    assert as_map(r.info("dq"))["dq_calls_acksend"] == before + 1


def test_next_takes_the_options_of_a_message_that_came_later(r, key, dest):
    q = Manual(r, key, "RETAIN", 1000)
    q.send("x", "ID", "a", "GROUP", "g")
    receipt = q.one().receipt
    q.send("old", "ID", "b", "DELAY", 50)
    other = Manual(r, dest)
    ids = q.do(
        *("ACKSEND", receipt, "NEXT", key, "1", "GROUP", "g", "IFGROUP"),
        *("NEXT", key, "2", "ID", "c", "GROUP", "g", "RETAIN", 5),
        *("NEXT", key, "3", "ID", "d", "GROUP", "g", "IFGROUP"),
        *("NEXT", key, "4", "ID", "b", "REPLACE", "DELAY", 100, "MAXWAIT", 70),
        *("NEXT", dest, "5", "ID", "e", "EXPIREAT", 0),
    )
    # The acked message was the only one of its group.
    assert ids == [None, b"c", b"d", b"b", b"e"]
    assert (q.get("b")["due-at"], other.state("e")) == (70, "dead")


def test_a_queue_is_not_made_for_messages_whose_ifgroup_does_not_hold(r, key, dest):
    q, receipt = running(r, key)
    assert q.do("ACKSEND", receipt, "NEXT", dest, "1", "GROUP", "g", "IFGROUP") == [None]
    assert not r.exists(dest)


def test_what_ifgroup_keeps_out_needs_no_room(r, key, dest):
    q, receipt = running(r, key)
    other = Manual(r, dest, "MAXLEN", 1)
    ids = q.do("ACKSEND", receipt, "NEXT", dest, "1", "GROUP", "g", "IFGROUP", "NEXT", dest, "2", "ID", "a")
    assert ids == [None, b"a"]
    assert other.len() == 1
