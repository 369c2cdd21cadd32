"""DEADTO: messages that die go to another queue, with their id, payload, type, group and headers."""

import pytest

from tests.harness.replies import Manual, Queue, as_map, msgs
from tests.harness.server import wait_for

REASONS = ["retries", "rejected", "expired", "batch", "timeouts", "children"]


@pytest.fixture
def dest(key):
    return key + b":dead"


@pytest.fixture
def q(r, key, dest):
    return Manual(r, key, "RETRIES", 0, "LEASE", 1000, "DEADTO", dest, start=5000)


def headers(record) -> dict:
    pairs = record["headers"]
    return dict(pairs) if isinstance(pairs, dict) else dict(zip(pairs[::2], pairs[1::2]))


def die(q, *options, error="boom", payload="x"):
    """A message that is sent, fetched and rejected. Returns its id."""
    id = q.send(payload, *options)
    [m] = q.fetch("GROUP", options[options.index("GROUP") + 1]) if "GROUP" in options else q.fetch()
    assert m.id == id
    assert q.do("NACK", m.receipt, "FATAL", "ERROR", error) == 1
    return id


def explain(q, id):
    return as_map(q.do("EXPLAIN", id))


def test_a_dead_message_is_ready_in_the_other_queue_with_all_it_had(q, r, dest):
    other = Manual(r, dest)
    die(q, "ID", "a", "TYPE", "mail", "GROUP", "g", "HEADERS", 1, "trace", "7", payload="text")
    assert (q.get("a"), q.len("dead"), q.info()["deaths"], q.info()["deadto-moved"]) == (None, 0, 1, 1)
    record = other.get("a")
    assert (record["state"], record["payload"], record["type"], record["group"]) == (b"ready", b"text", b"mail", b"g")
    assert headers(record) == {
        b"trace": b"7",
        b"dead-from": q.key,
        b"dead-reason": b"rejected",
        b"dead-error": b"boom",
        b"dead-attempts": b"1",
    }
    assert other.one().id == b"a"
    assert r.exists(q.key)


def test_the_other_queue_is_made_with_the_defaults(q, r, dest):
    die(q, "ID", "a")
    other = Queue(r, dest)
    assert (other.info()["clock"], other.info()["lease"], other.one().id) == (b"SERVER", 30_000, b"a")


def test_a_generated_id_stays(q, r, dest):
    id = die(q)
    assert Queue(r, dest).one().id == id


@pytest.mark.parametrize("how", ["retries", "timeouts", "expired", "expired in a fetch", "batch", "bind"])
def test_every_way_to_die_leads_there(server, r, key, dest, how):
    q = Manual(r, key, "RETRIES", 0, "LEASE", 100, "DEADTO", dest)
    reason = how
    if how == "retries":
        q.send("x", "ID", "a")
        q.do("NACK", q.one().receipt)
    elif how == "timeouts":
        q.send("x", "ID", "a", "MAXTIMEOUTS", 1)
        q.one()
        q.advance(100)
    elif how == "expired":
        q.send("x", "ID", "a", "TTL", 50)
        q.advance(50)
    elif how == "expired in a fetch":
        q.send("x", "ID", "a", "EXPIREAT", 0)
        reason = "expired"
    elif how == "batch":
        Queue(r, key).do("ALTER", "DEADTO", dest, "batch")
        q.send("first", "ID", "first", "BATCH", "b")
        q.send("x", "ID", "a", "AFTER", "b", "ONFAIL", "DIE")
        q.do("NACK", q.one().receipt, "FATAL")
    else:
        reason = "retries"
        q.send("x", "ID", "a")
        with server.wire() as w:
            w.ok("DQ.FETCH", key, "BIND")
    other = Queue(r, dest)
    wait_for(lambda: other.state("a") == "ready", 5, "the message in the other queue")
    assert headers(other.get("a"))[b"dead-reason"] == reason.encode()
    assert q.get("a") is None


def test_time_alone_moves_it_in_a_slice_of_the_server(server, r, key, dest):
    q = Queue(r, key)
    q.do("CREATE", "RETRIES", 0, "LEASE", 30, "DEADTO", dest)
    with server.wire() as w:
        w.send("DQ.FETCH", dest, "BLOCK", 0)
        server.wait_blocked(1)
        q.send("x", "ID", "a")
        q.one()
        [m] = msgs(w.recv(5))
        assert m.id == b"a"


def test_only_named_reasons_go(r, key, dest):
    q = Manual(r, key, "DEADTO", dest, "expired", "REJECTED", "RETRIES", 0)
    assert q.info()["deadto"] == dest + b" rejected expired"
    q.send("x", "ID", "stays")
    q.do("NACK", q.one().receipt)
    die(q, "ID", "goes")
    assert (q.state("stays"), q.get("goes")) == ("dead", None)
    assert Queue(r, dest).ids("COUNT", 5) == [b"goes"]


@pytest.mark.parametrize("words", [["retries"], ["RETRIES", "timeouts"], REASONS])
def test_a_reason_that_is_also_an_option(r, key, dest, words):
    """`retries` is a reason, and RETRIES before a number is the option."""
    q = Manual(r, key, "DEADTO", dest, *words, "RETRIES", 7)
    assert (q.info()["retries"], q.info()["deadto"].split()[1:]) == (7, [w.lower().encode() for w in words])


def test_it_is_altered_and_ended(q, r, key, dest):
    q.do("ALTER", "DEADTO", "")
    assert q.info()["deadto"] is None
    die(q, "ID", "a")
    assert q.state("a") == "dead"
    q.do("ALTER", "DEADTO", dest)
    assert q.state("a") == "dead"
    die(q, "ID", "b")
    assert Queue(r, dest).ids("COUNT", 5) == [b"b"]
    assert q.do("REDRIVE", "ALL") == 1


def test_a_taken_id_gets_a_new_one(q, r, dest):
    other = Manual(r, dest)
    other.send("old", "ID", "a")
    die(q, "ID", "a", payload="new")
    old, new = other.fetch("COUNT", 5)
    assert (old.id, old.payload, new.payload, len(new.id)) == (b"a", b"old", b"new", 36)
    told = explain(q, "a")
    assert (told["code"], told["by"]) == (b"moved", dest)
    assert new.id in told["why"]


def test_explain_says_where_it_went(q, r, dest):
    die(q, "ID", "a")
    told = explain(q, "a")
    assert (told["code"], told["by"], told["until"]) == (b"moved", dest, None)
    assert b"rejected" in told["why"]
    r.execute_command("DEBUG", "RELOAD")
    assert explain(q, "a") == told
    # The id is free again, and then it is the new message that is explained.
    q.send("x", "ID", "a")
    assert explain(q, "a")["code"] == b"next"


CANNOT = {
    "SENDS OFF": ("SENDS", "OFF"),
    "MAXLEN": ("MAXLEN", 1),
    "MAXBYTES": ("MAXBYTES", 1),
}


@pytest.mark.parametrize("option", CANNOT)
def test_what_cannot_go_stays_and_says_why(q, r, dest, option):
    other = Manual(r, dest)
    other.send("x")
    other.do("ALTER", *CANNOT[option])
    die(q, "ID", "a")
    assert (q.state("a"), other.len()) == ("dead", 1)
    told = explain(q, "a")
    assert (told["code"], told["by"]) == (b"dead", dest)
    assert option.split()[0].encode() in told["why"]
    assert option.split()[0].encode() in q.info()["deadto-error"]
    other.do("ALTER", "SENDS", "ON", "MAXLEN", 0, "MAXBYTES", 0)
    assert q.do("REDRIVE", "ALL") == 1
    die_again = q.one()
    q.do("NACK", die_again.receipt, "FATAL")
    assert (q.get("a"), q.info()["deadto-error"], other.len()) == (None, None, 2)


def test_a_key_of_another_type_keeps_it_here(q, r, dest):
    r.set(dest, "text")
    die(q, "ID", "a")
    assert q.state("a") == "dead"
    assert b"another type" in explain(q, "a")["why"]
    assert r.get(dest) == b"text"


def test_as_many_go_as_there_is_room_for(r, key, dest):
    q = Manual(r, key, "RETRIES", 0, "LEASE", 10, "DEADTO", dest)
    other = Manual(r, dest, "MAXLEN", 3)
    q.do("MSEND", 5, *"abcde")
    q.fetch("COUNT", 5)
    q.advance(10)
    assert (other.payloads("COUNT", 9), q.len("dead"), q.info()["deadto-moved"]) == ([b"a", b"b", b"c"], 2, 3)


def test_a_queue_that_was_renamed_to_its_own_deadto_keeps_its_dead(q, r, dest):
    r.rename(q.key, dest)
    q.key = dest
    die(q, "ID", "a")
    assert q.state("a") == "dead"
    assert b"itself" in q.info()["deadto-error"]


def test_a_circle_ends_after_eight_hops(r, key, dest):
    a = Manual(r, key, "RETRIES", 0, "DEADTO", dest)
    b = Manual(r, dest, "RETRIES", 0, "DEADTO", key)
    a.send("x", "ID", "m")
    at = [a, b]
    for hop in range(8):
        one = at[hop % 2]
        one.do("NACK", one.one().receipt, "FATAL")
        assert one.get("m") is None
        got = headers(at[(hop + 1) % 2].get("m"))
        assert got[b"dead-from"] == one.key
        assert got.get(b"dead-hops") == (None if hop == 0 else b"%d" % (hop + 1))
    a.do("NACK", a.one().receipt, "FATAL")
    assert (a.state("m"), b.len()) == ("dead", 0)
    assert b"8 queues" in explain(a, "m")["why"]


def test_a_message_that_has_gone_holds_its_group_no_longer(r, key, dest):
    q = Manual(r, key, "ONDEAD", "BLOCK", "DEADTO", dest)
    die(q, "GROUP", "g", "ID", "a")
    q.send("next", "GROUP", "g")
    assert q.one().payload == b"next"
    # A message that stays does.
    Queue(r, dest).do("ALTER", "SENDS", "OFF")
    q.send("y", "GROUP", "h", "ID", "b")
    [m] = q.fetch("GROUP", "h")
    q.do("NACK", m.receipt, "FATAL")
    q.send("z", "GROUP", "h")
    assert q.fetch("GROUP", "h") == []


def test_deadcount_counts_only_those_that_stay(r, key, dest):
    q = Manual(r, key, "DEADCOUNT", 2)
    for id in "ab":
        die(q, "ID", id)
    q.do("ALTER", "DEADTO", dest)
    for id in "cd":
        die(q, "ID", id)
    assert [q.state(id) for id in "abcd"] == ["dead", "dead", None, None]
    Queue(r, dest).do("ALTER", "SENDS", "OFF")
    die(q, "ID", "e")
    q.advance(1)
    assert [q.state(id) for id in "abe"] == [None, "dead", "dead"]


def test_who_waits_for_its_end_is_told_that_it_is_dead(server, q, r, dest):
    q.send("x", "ID", "a")
    with server.wire() as w:
        w.send("DQ.WAIT", q.key, "a", 0)
        server.wait_blocked(1)
        q.do("NACK", q.one().receipt, "FATAL", "ERROR", "why")
        assert w.recv(5) == [b"dead", b"why"]


def test_events_come_of_both_queues(q, r, dest):
    r.config_set("notify-keyspace-events", "KEd")
    try:
        sub = r.pubsub(ignore_subscribe_messages=True)
        sub.psubscribe("__keyspace@*")
        sub.get_message(timeout=1)
        q.send("x")
        q.do("NACK", q.one().receipt, "FATAL")
        seen = []
        wait_for(lambda: seen.append(sub.get_message(timeout=0.1)) or len([s for s in seen if s]) >= 7, 5, "the events")
        got = [(m["channel"].split(b":", 1)[1], m["data"]) for m in seen if m]
        assert got[-4:] == [(q.key, b"dq.nacked"), (q.key, b"dq.dead"), (dest, b"dq.sent"), (dest, b"dq.ready")]
        sub.close()
    finally:
        r.config_set("notify-keyspace-events", "")


def test_a_burst_of_deaths_goes_in_slices_and_none_is_lost(server, r, key, dest):
    q = Queue(r, key)
    q.do("CREATE", "RETRIES", 0, "LEASE", 200, "DEADTO", dest)
    for _ in range(5):
        q.do("MSEND", 1000, *range(1000))
        q.do("FETCH", "COUNT", 1000)
    other = Queue(r, dest)
    wait_for(lambda: r.exists(dest) and other.len() == 5000, 20, "all of them")
    assert (q.len(), q.info()["deaths"], q.info()["deadto-moved"]) == (0, 5000, 5000)
    seen = other.payloads("COUNT", 5000)
    assert sorted(seen) == sorted([b"%d" % n for n in range(1000)] * 5)


def test_find_and_redrive_see_only_those_that_stay(q, r, dest):
    die(q, "ID", "a")
    assert q.do("REDRIVE", "ALL") == 0
    assert q.do("LIST", "dead")[1] == []


def test_who_sets_it_needs_the_right_to_write_there(server, r, key, dest):
    w = server.wire(2)
    for rules, allowed in (([f"~{key.decode()}"], False), ([f"~{key.decode()}", f"%W~{dest.decode()}"], True)):
        w.ok("ACL", "SETUSER", "limited", "reset", "on", *rules, "+@all")
        for call in ("DQ.CREATE", "DQ.ALTER"):
            reply = w.ok("ACL", "DRYRUN", "limited", call, key, "RETRIES", 1, "DEADTO", dest)
            assert (reply == b"OK") == allowed, (call, rules, reply)
            assert w.ok("ACL", "DRYRUN", "limited", call, key, "DEADTO", "") == b"OK"
    w.ok("ACL", "DELUSER", "limited")
    assert w.ok("COMMAND", "GETKEYS", "DQ.CREATE", "a", "DEADTO", "b", "retries", "TTL", 5) == [b"a", b"b"]
    assert w.ok("COMMAND", "GETKEYS", "DQ.ALTER", "a", "TTL", 5) == [b"a"]
