"""EVENTS: each transition of a message is an entry of a stream, in order, none missing and none twice."""

import pytest

from tests.harness.replies import Manual, Queue, as_map, msgs
from tests.harness.server import wait_for
from tests.harness.wire import NULL_ARRAY


@pytest.fixture
def stream(key):
    return key + b":events"


@pytest.fixture
def q(r, key, stream):
    return Manual(r, key, "LEASE", 1000, "EVENTS", stream, start=5000)


def entries(r, stream) -> list:
    """The entries as (id, dict)."""
    return [(id.decode(), {k.decode(): v.decode() for k, v in fields.items()}) for id, fields in r.xrange(stream)]


def events(r, stream, *names) -> list:
    return [tuple(fields.get(name) for name in names or ("event", "id")) for _, fields in entries(r, stream)]


def kinds(r, stream) -> str:
    return " ".join(fields["event"] for _, fields in entries(r, stream))


def test_the_life_of_a_message(q, r, stream):
    q.send("x", "ID", "a", "DELAY", 100, "GROUP", "g", "TYPE", "mail")
    q.advance(100)
    m = q.one("CONSUMER", "c1")
    q.advance(5)
    q.ack(m.receipt)
    common = {"id": "a", "group": "g", "type": "mail"}
    assert [fields for _, fields in entries(r, stream)] == [
        {"event": "sent", "at": "5000", "delay": "100", **common},
        {"event": "ready", "at": "5100", **common},
        {"event": "delivered", "at": "5100", "attempt": "1", "consumer": "c1", **common},
        {"event": "acked", "at": "5105", "attempt": "1", "consumer": "c1", **common},
    ]
    assert [id for id, _ in entries(r, stream)] == ["5000-0", "5100-0", "5100-1", "5105-0"]


def test_a_message_that_is_due_at_once_is_sent_and_ready(q, r, stream):
    q.send("x", "ID", "a")
    assert events(r, stream) == [("sent", "a"), ("ready", "a")]


def test_failures(q, r, stream):
    q.send("x", "ID", "a", "RETRIES", 1)
    q.do("NACK", q.one().receipt, "DELAY", 50, "NOTE", "n")
    q.advance(50)
    q.one()
    q.advance(1000)
    assert kinds(r, stream) == "sent ready delivered noted nacked ready delivered timeout dead"
    told = [fields for _, fields in entries(r, stream)]
    assert (told[4]["delay"], told[4]["attempt"]) == ("50", "1")
    assert (told[7]["attempt"], told[7]["at"], told[8]["reason"]) == ("2", "6050", "retries")
    q.do("REDRIVE", "ALL")
    assert kinds(r, stream).endswith("dead redriven ready")


@pytest.mark.parametrize(
    "how, told",
    [
        (("CANCEL", "a"), "cancelled"),
        (("RESCHEDULE", "a", "DELAY", 70), "rescheduled"),
        (("RESCHEDULE", "a", "DELAY", 0), "rescheduled ready"),
        (("SEND", "y", "ID", "a", "REPLACE", "DELAY", 5), "replaced sent"),
        (("PURGE", "ready"), "purged"),
        (("PURGE",), "purged"),
        (("UPDATE", "a", "y"), ""),
        (("PAUSE",), ""),
        (("FETCH", "NOACK"), "delivered acked"),
        (("FIND", "ready", "DO", "CANCEL"), "cancelled"),
    ],
)
def test_what_else_can_happen(q, r, stream, how, told):
    q.send("x", "ID", "a")
    q.do(*how)
    assert kinds(r, stream) == f"sent ready {told}".strip()


def test_a_held_message_is_released(q, r, stream):
    q.send("x", "ID", "a", "BATCH", "b")
    q.send("y", "ID", "last", "AFTER", "b")
    q.ack(q.one().receipt)
    assert events(r, stream)[2:] == [
        ("sent", "last"),
        ("delivered", "a"),
        ("acked", "a"),
        ("released", "last"),
        ("ready", "last"),
    ]


def test_a_ttl_that_ends(q, r, stream):
    q.send("x", "ID", "a", "TTL", 10)
    q.advance(10)
    assert events(r, stream, "event", "reason", "at")[-1] == ("dead", "expired", "5010")


def test_a_schedule_that_fires(q, r, stream):
    q.do("SCHEDULE", "s", "EVERY", 100, "PAYLOAD", "x")
    q.advance(100)
    assert kinds(r, stream) == "sent ready"


def test_ready_comes_before_delivered_where_a_fetch_takes_a_message_that_nobody_promoted(server, r, key, stream):
    q = Queue(r, key)
    q.do("CREATE", "EVENTS", stream)
    for _ in range(50):
        q.send("x", "DELAY", 3)
    got = 0
    while got < 50:
        got += len(q.fetch("COUNT", 7, "NOACK"))
    seen = {}
    for event, id in events(r, stream):
        seen.setdefault(id, []).append(event)
    assert set(map(tuple, seen.values())) == {("sent", "ready", "delivered", "acked")}


def test_it_is_trimmed_exactly(q, r, stream):
    q.do("ALTER", "EVENTSLEN", 7)
    for _ in range(20):
        q.send("x")
        assert r.xlen(stream) <= 7
    assert r.xlen(stream) == 7
    q.do("MSEND", 100, *range(100))
    assert r.xlen(stream) == 7
    info = q.info()
    assert (info["events"], info["eventslen"], info["events-error"]) == (stream, 7, None)


def test_of_a_stream_as_long_as_by_default_many_entries_are_removed_at_a_time(q, r, stream):
    q.do("ALTER", "EVENTSLEN", 10_000)
    q.do("MSEND", 5000, *range(5000))
    assert r.xlen(stream) == 10_000
    lengths = []
    for n in range(40):
        q.do("MSEND", 1, n)
        lengths.append(r.xlen(stream))
    assert lengths == [9970 + 2 * (n % 16) for n in range(40)]
    q.do("MSEND", 40, *range(40))
    assert r.xlen(stream) == 10_000
    newest = [fields[b"id"] for _, fields in r.xrevrange(stream, count=1)]
    assert newest == [q.do("LIST", "ready", "COUNT", 1, "REV", "IDS")[1][0]]
    q.do("ALTER", "EVENTSLEN", 9999)
    for n in range(20):
        q.do("MSEND", 1, n)
        assert r.xlen(stream) == 9999


def test_the_default_length(q):
    assert q.info()["eventslen"] == 10_000
    assert "EVENTSLEN" in q.fails("ALTER", "EVENTSLEN", 0)


def test_it_is_ended_and_begun_by_alter(q, r, stream):
    q.send("x")
    q.do("ALTER", "EVENTS", "")
    assert q.info()["events"] is None
    q.send("x")
    q.do("ALTER", "EVENTS", stream)
    q.send("x", "ID", "c")
    assert events(r, stream)[2:] == [("sent", "c"), ("ready", "c")]
    assert len(events(r, stream)) == 4


def test_a_key_of_another_type_stops_the_events_and_nothing_else(q, r, stream):
    r.set(stream, "text")
    q.send("x", "ID", "a")
    m = q.one()
    assert b"another type" in q.info()["events-error"]
    assert b"another type" in as_map(q.do("EXPLAIN", "a"))["why"]
    assert q.ack(m.receipt) == 1
    assert r.get(stream) == b"text"
    r.delete(stream)
    assert q.info()["events-error"] is None
    q.send("y", "ID", "b")
    assert events(r, stream) == [("sent", "b"), ("ready", "b")]


def test_ids_grow_whatever_is_in_the_stream(q, r, stream):
    r.xadd(stream, {"mine": "1"}, id="9000-5")
    q.send("x")
    assert [id for id, _ in entries(r, stream)] == ["9000-5", "9000-6", "9000-7"]
    r.xdel(stream, "9000-7", "9000-6")
    q.send("x")
    assert [id for id, _ in entries(r, stream)] == ["9000-5", "9000-8", "9000-9"]
    r.xtrim(stream, maxlen=0)
    r.execute_command("XSETID", stream, "9500-0")
    q.send("x")
    assert [id for id, _ in entries(r, stream)] == ["9500-1", "9500-2"]
    r.execute_command("XSETID", stream, f"{2**64 - 1}-{2**64 - 1}")
    q.send("x")
    assert r.xlen(stream) == 2


@pytest.mark.parametrize("last", [True, False], ids=["there", "deleted"])
def test_a_stream_that_has_given_its_greatest_id_stops_the_events_and_says_so(q, r, stream, last):
    greatest = f"{2**64 - 1}-{2**64 - 1}"
    r.xadd(stream, {"mine": "1"}, id=greatest)
    if not last:
        r.xdel(stream, greatest)
    q.send("x", "ID", "a")
    assert r.xlen(stream) == last
    assert b"greatest id" in q.info()["events-error"]
    assert b"greatest id" in as_map(q.do("EXPLAIN", "a"))["why"]
    r.delete(stream)
    assert q.info()["events-error"] is None
    q.send("y", "ID", "b")
    assert events(r, stream) == [("sent", "b"), ("ready", "b")]


def test_a_stream_of_another_program_is_refused(r, key, stream):
    r.xadd(stream, {"event": "login", "id": "u1"})
    r.xadd(stream, {"order": "7"})
    new = Manual(r, key + b"2")
    before = new.digest()
    for fails in (lambda: Queue(r, key).fails("CREATE", "EVENTS", stream), lambda: new.fails("ALTER", "EVENTS", stream)):
        assert "EVENTS must name a stream of events" in fails() and stream.decode() in fails()
    assert (new.digest(), r.exists(key), r.xlen(stream)) == (before, 0, 2)
    r.xtrim(stream, maxlen=0)
    Queue(r, key).do("CREATE", "EVENTS", stream)


def test_a_queue_that_is_there_may_be_created_with_nx_though_others_have_written(r, key, stream):
    Manual(r, key, "EVENTS", stream).send("x")
    r.xadd(stream, {"mine": "1"})
    assert Queue(r, key).do("CREATE", "NX", "EVENTS", stream) is None


def test_the_stream_of_another_queue_is_taken(q, r, key, stream):
    q.send("x")
    Manual(r, key + b"2", "EVENTS", stream).send("y")
    assert len(entries(r, stream)) == 4


def test_entries_of_others_are_never_trimmed(q, r, stream):
    q.do("ALTER", "EVENTSLEN", 4)
    q.do("MSEND", 5, *range(5))
    assert r.xlen(stream) == 4
    mine = r.xadd(stream, {"event": "sent", "mine": "1"})
    for n in range(10):
        q.send("x", "ID", n)
        assert r.xlen(stream) == 4 + 1 + 2 * (n + 1)
    r.execute_command("DEBUG", "RELOAD")
    q.send("x")
    assert r.xlen(stream) == 27
    assert q.info()["events-error"] is None
    r.xdel(stream, mine)
    q.send("x")
    assert r.xlen(stream) == 4


def test_a_stream_that_others_have_put_in_its_place_is_kept(q, r, stream):
    q.do("ALTER", "EVENTSLEN", 2)
    q.send("x")
    q.send("x")
    r.delete(stream)
    for n in range(1, 11):
        r.xadd(stream, {"mine": n}, id=f"{n}-0")
    q.send("x")
    q.send("x")
    assert r.xlen(stream) == 14
    assert [fields[b"mine"] for _, fields in r.xrange(stream, count=10)] == [b"%d" % n for n in range(1, 11)]


def test_a_queue_at_time_0_has_entries(r, key, stream):
    q = Manual(r, key, "EVENTS", stream)
    q.send("x")
    assert [id for id, _ in entries(r, stream)] == ["0-1", "0-2"]


def test_two_queues_may_share_a_stream(r, key, stream):
    a, b = Manual(r, key, "EVENTS", stream), Manual(r, key + b"b", "EVENTS", stream, start=50)
    a.send("x", "ID", "a")
    b.send("x", "ID", "b")
    a.do("ACKSEND", a.one().receipt, "NEXT", b.key, "y", "ID", "c")
    assert events(r, stream)[4:] == [("delivered", "a"), ("acked", "a"), ("sent", "c"), ("ready", "c")]


def test_a_message_that_goes_to_another_queue_is_told_in_both(r, key, stream):
    dest, other = key + b"d", key + b"e"
    q = Manual(r, key, "EVENTS", stream, "DEADTO", dest)
    Manual(r, dest, "EVENTS", other)
    q.send("x", "ID", "a")
    q.do("NACK", q.one().receipt, "FATAL")
    assert kinds(r, stream) == "sent ready delivered nacked dead"
    assert events(r, other) == [("sent", "a"), ("ready", "a")]


def test_readers_that_wait_are_woken(server, q, r, stream):
    with server.wire() as w:
        w.send("XREAD", "BLOCK", 0, "STREAMS", stream, "$")
        server.wait_blocked(1)
        q.send("x", "ID", "a")
        reply = w.recv(5)
        assert b"sent" in str(reply).encode()


def test_readers_are_woken_by_time_alone(server, r, key, stream):
    q = Queue(r, key)
    q.do("CREATE", "EVENTS", stream)
    q.send("x", "DELAY", 100)
    with server.wire() as w:
        w.send("XREAD", "BLOCK", 0, "STREAMS", stream, "$")
        server.wait_blocked(1)
        assert b"ready" in str(w.recv(5)).encode()


def test_who_watches_the_stream_is_told(server, q, r, stream):
    q.send("x")
    w = server.wire()
    w.ok("WATCH", stream)
    q.send("y")
    w.ok("MULTI")
    w.ok("PING")
    assert w.call("EXEC") in (None, NULL_ARRAY)
    w.close()


def test_keyspace_events_are_those_of_streams(q, r, stream):
    q.do("ALTER", "EVENTSLEN", 3)
    r.config_set("notify-keyspace-events", "KEt")
    try:
        sub = r.pubsub(ignore_subscribe_messages=True)
        sub.psubscribe("__keyspace@*")
        sub.get_message(timeout=1)
        q.send("x")
        q.send("x")
        seen = []
        wait_for(lambda: seen.append(sub.get_message(timeout=0.1)) or len([s for s in seen if s]) >= 5, 5, "the events")
        assert [m["data"] for m in seen if m] == [b"xadd"] * 4 + [b"xtrim"]
        sub.close()
    finally:
        r.config_set("notify-keyspace-events", "")


def test_it_goes_on_at_maxmemory(server, q, r, stream):
    q.send("x")
    m = q.one()
    r.config_set("maxmemory", 1)
    try:
        assert q.ack(m.receipt) == 1
    finally:
        r.config_set("maxmemory", 0)
    assert kinds(r, stream) == "sent ready delivered acked"


def test_a_client_that_waits_is_told_of(server, q, r, stream):
    with server.wire() as w:
        w.send("DQ.FETCH", q.key, "BLOCK", 0, "CONSUMER", "c")
        server.wait_blocked(1)
        q.send("x", "ID", "a")
        [m] = msgs(w.recv(5))
        assert events(r, stream, "event", "consumer") == [("sent", None), ("ready", None), ("delivered", "c")]


def test_who_sets_it_needs_the_right_to_write_there(server, key, stream):
    w = server.wire(2)
    for rules, allowed in (([f"~{key.decode()}"], False), ([f"~{key.decode()}", f"%W~{stream.decode()}"], True)):
        w.ok("ACL", "SETUSER", "limited", "reset", "on", *rules, "+@all")
        for call in ("DQ.CREATE", "DQ.ALTER"):
            reply = w.ok("ACL", "DRYRUN", "limited", call, key, "EVENTS", stream, "EVENTSLEN", 5)
            assert (reply == b"OK") == allowed
    w.ok("ACL", "DELUSER", "limited")
