"""EXPIREAT, MAXWAIT and IFGROUP: options of one message on SEND, MSEND, GROUPPUSH and SCHEDULE."""


from tests.harness.replies import Manual, Queue, as_maps
from tests.harness.wire import NULL_ARRAY


def states(q, ids):
    return [q.state(id) for id in ids]


# ---- EXPIREAT ---------------------------------------------------------------


def test_expireat_lets_a_pending_message_die_at_that_time(r, key):
    q = Manual(r, key, "TTL", 5)
    q.send("x", "ID", "a", "EXPIREAT", 50, "DELAY", 30)
    q.send("x", "ID", "b", "EXPIREAT", 40, "DELAY", 90)
    assert q.advance(39)["expired"] == 0
    assert q.advance(1)["expired"] == 1
    assert states(q, "ab") == ["ready", "dead"]
    assert q.advance(10)["expired"] == 1
    row = q.get("a")
    assert (row["state"], row["reason"], row["finished-at"]) == (b"dead", b"expired", 50)


def test_an_expireat_that_has_passed_at_send_makes_the_message_dead_at_once(r, key):
    q = Manual(r, key, "ONDEAD", "BLOCK", start=100)
    assert q.send("x", "ID", "a", "GROUP", "g", "EXPIREAT", 100) == b"a"
    row = q.get("a")
    assert (row["state"], row["reason"], row["finished-at"]) == (b"dead", b"expired", 100)
    info = q.info()
    assert (info["sent"], info["deaths"], info["expired"], info["bytes"]) == (1, 1, 1, 0)
    q.send("y", "GROUP", "g")
    assert q.fetch() == []
    assert q.send("x", "EXPIREAT", 0) and q.len("dead") == 2
    assert len(q.do("MSEND", 2, "a", "b", "EXPIREAT", 99)) == 2
    assert q.len("dead") == 4


def test_expireat_of_a_running_message_holds_at_its_lease_end(r, key):
    q = Manual(r, key, "LEASE", 100, "RETRIES", -1)
    for id in "ab":
        q.send("x", "ID", id, "EXPIREAT", 50)
    a, b = q.fetch("COUNT", 2)
    q.advance(60)
    assert states(q, "ab") == ["running", "running"]
    assert q.ack(a.receipt) == 1
    q.advance(40)
    assert q.get("b")["reason"] == b"expired"


def test_reschedule_leaves_expireat_and_redrive_drops_it(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a", "EXPIREAT", 50)
    q.do("RESCHEDULE", "a", "DELAY", 500)
    q.advance(50)
    assert q.state("a") == "dead"
    assert q.do("REDRIVE", "IDS", 1, "a") == 1
    q.advance(1000)
    assert q.state("a") == "ready"
    assert len(q.fetch()) == 1


def test_many_redriven_messages_drop_their_expireat(r, key):
    q = Manual(r, key)
    q.do("MSEND", 300, *range(300), "EXPIREAT", 10)
    q.advance(10)
    assert q.len("dead") == 300
    assert q.do("REDRIVE", "ALL") == 300
    q.advance(1000)
    assert (q.len("ready"), q.len("dead")) == (300, 0)


def test_alter_ttl_does_not_concern_messages_with_expireat(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a", "EXPIREAT", 500)
    q.send("x", "ID", "b")
    q.do("ALTER", "TTL", 10)
    q.advance(10)
    assert states(q, "ab") == ["ready", "dead"]
    q.do("ALTER", "TTL", 0)
    q.advance(490)
    assert q.state("a") == "dead"


# ---- MAXWAIT ----------------------------------------------------------------


def test_maxwait_bounds_how_long_a_row_of_sends_delays_the_message(r, key):
    q = Manual(r, key)
    options = ("ID", "a", "REPLACE", "DELAY", 100, "MAXWAIT", 250)
    q.send("0", *options)
    row = q.get("a")
    assert (row["due-at"], row["first-sent-at"], row["sent-at"]) == (100, 0, 0)
    for at, due in ((90, 190), (180, 250), (240, 250)):
        q.to(at)
        q.send(str(at), *options)
        row = q.get("a")
        assert (row["due-at"], row["first-sent-at"], row["sent-at"]) == (due, 0, at)
    q.to(250)
    assert q.payloads() == [b"240"]


def test_a_late_replacement_is_due_at_once(r, key):
    q = Manual(r, key)
    options = ("ID", "a", "REPLACE", "DELAY", 100, "MAXWAIT", 50)
    q.send("0", *options)
    q.to(60)
    q.send("1", *options)
    assert (q.get("a")["due-at"], q.state("a")) == (60, "ready")


def test_the_latest_maxwait_counts_from_the_first_send_though_that_had_none(r, key):
    q = Manual(r, key)
    q.send("0", "ID", "a", "DELAY", 1000)
    assert q.get("a")["first-sent-at"] is None
    q.to(10)
    q.send("1", "ID", "a", "REPLACE", "DELAY", 1000)
    assert q.get("a")["first-sent-at"] is None
    q.to(20)
    q.send("2", "ID", "a", "REPLACE", "DELAY", 1000, "MAXWAIT", 300)
    assert (q.get("a")["due-at"], q.get("a")["first-sent-at"]) == (300, 0)
    q.send("3", "ID", "a", "REPLACE", "DELAY", 1000)
    assert (q.get("a")["due-at"], q.get("a")["first-sent-at"]) == (1020, None)


def test_a_row_ends_with_its_message(r, key):
    q = Manual(r, key)
    options = ("ID", "a", "REPLACE", "DELAY", 100, "MAXWAIT", 150)
    q.send("0", *options)
    q.to(90)
    q.send("1", *options)
    q.to(150)
    q.ack(q.one().receipt)
    q.to(160)
    q.send("2", *options)
    row = q.get("a")
    assert (row["due-at"], row["first-sent-at"]) == (260, 160)


# ---- IFGROUP ----------------------------------------------------------------


def test_ifgroup_adds_only_where_the_group_has_a_message(r, key):
    q = Manual(r, key, "RETAIN", 1000)
    assert q.send("x", "GROUP", "g", "IFGROUP") is None
    first = q.send("first", "GROUP", "g", "DELAY", 10)
    second = q.send("second", "IFGROUP", "GROUP", "g")
    assert first and second
    q.do("CANCEL", first)
    q.ack(q.one().receipt)
    # Records do not count.
    before = q.digest()
    assert q.send("x", "GROUP", "g", "IFGROUP") is None
    assert q.digest() == before
    q.send("x", "GROUP", "g")
    m = q.one()
    assert q.send("y", "GROUP", "g", "IFGROUP") is not None
    assert q.send("y", "GROUP", "other", "IFGROUP") is None
    q.nack(m.receipt, "FATAL")
    assert q.info()["duplicates"] == 0


def test_ifgroup_does_not_make_a_queue_and_counts_no_duplicate(r, key):
    q = Queue(r, key)
    assert q.do("SEND", "x", "GROUP", "g", "IFGROUP") is None
    assert q.do("MSEND", 2, "a", "b", "GROUP", "g", "IFGROUP") is None
    assert r.exists(key) == 0
    q.do("CREATE", "MAXLEN", 1)
    q.send("x", "ID", "a", "GROUP", "h")
    assert q.send("x", "ID", "a", "GROUP", "g", "IFGROUP") is None
    assert q.info()["duplicates"] == 0
    assert q.do("MSEND", 2, "a", "b", "GROUP", "g", "IFGROUP") is None
    assert "QUEUEFULL" in q.fails("SEND", "x", "GROUP", "h", "IFGROUP")


def test_msend_and_grouppush_with_ifgroup_reply_null(server, key):
    w = server.wire(2)
    push = ("DQ.GROUPPUSH", key, '{"user":7}', "GROUPBY", 1, "user")
    assert w.ok(*push, "IFGROUP") is NULL_ARRAY
    assert w.ok("DQ.MSEND", key, 2, "a", "b", "GROUP", "7", "IFGROUP") is NULL_ARRAY
    w.ok(*push)
    assert w.ok(*push, "IFGROUP")[0] == b"7"
    assert len(w.ok("DQ.MSEND", key, 2, "a", "b", "GROUP", "7", "IFGROUP")) == 2


def test_a_purged_group_has_no_messages(r, key):
    q = Manual(r, key)
    q.do("MSEND", 50, *range(50), "GROUP", "g")
    q.do("MSEND", 50, *range(50), "GROUP", "h")
    q.do("PURGE", "STATE", "ready")
    assert q.send("x", "GROUP", "g", "IFGROUP") is None
    q.send("x", "GROUP", "h")
    q.do("PURGE", "GROUP", "h")
    assert q.send("x", "GROUP", "h", "IFGROUP") is None


def test_a_redriven_group_has_messages(r, key):
    q = Manual(r, key)
    q.do("MSEND", 300, *range(300), "GROUP", "g", "TTL", 1)
    q.advance(1)
    assert q.send("x", "GROUP", "g", "IFGROUP") is None
    assert q.do("REDRIVE", "ALL") == 300
    assert q.send("x", "GROUP", "g", "IFGROUP") is not None


def test_a_schedule_whose_ifgroup_does_not_hold_skips_the_fire(r, key):
    q = Manual(r, key)
    q.do("SCHEDULE", "s", "EVERY", 10, "START", 10, "PAYLOAD", "p", "GROUP", "g", "IFGROUP", "RETAIN", 3)
    assert q.advance(10)["fired"] == 0
    q.send("x", "ID", "a", "GROUP", "g")
    assert q.advance(10)["fired"] == 1
    assert [row["id"] for row in q.peek("COUNT", 9)] == [b"a"]
    [schedule] = as_maps(q.do("SCHEDULES"))
    assert (schedule["next-at"], schedule["last-at"], schedule["fired"]) == (30, 20, 1)
    q.ack(q.one().receipt)
    q.ack(q.one().receipt)
    assert q.state("s@20") == "finished"
    assert q.advance(10)["fired"] == 0
    q.client.execute_command("DEBUG", "RELOAD")
    assert q.advance(10)["fired"] == 0


# ---- all of them ------------------------------------------------------------
