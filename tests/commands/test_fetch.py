"""DQ.FETCH and DQ.MFETCH that do not wait, and the order of ungrouped messages."""

import pytest

from tests.harness.replies import Manual, Queue, as_map, msgs

META = {
    "group", "score", "priority", "type", "headers", "sent-at", "due-at", "lease-until", "retries-left", "note", "signal", "batch",
    "after", "parent", "children",
}  # fmt: skip


def test_a_message_has_id_receipt_attempt_payload(r, key):
    q = Manual(r, key)
    q.send(b"body", "ID", "a")
    [raw] = q.do("FETCH")
    assert len(raw) == 4
    m = q.get("a")
    assert raw == [b"a", m["receipt"], 1, b"body"]
    assert isinstance(raw[1], int) and 0 < raw[1] < 2**53


def test_fetch_of_an_empty_or_missing_queue_is_an_empty_array(r, key):
    assert Queue(r, key).do("FETCH") == []
    assert r.exists(key) == 0
    Manual(r, key)
    assert Queue(r, key).do("FETCH", "COUNT", 5) == []


def test_count_is_a_maximum_and_one_by_default(r, key):
    q = Manual(r, key)
    q.do("MSEND", 5, *"abcde")
    assert len(q.fetch()) == 1
    assert len(q.fetch("COUNT", 3)) == 3
    assert len(q.fetch("COUNT", 10000)) == 1


def test_a_leased_message_is_delivered_to_nobody_else(server, r, key):
    q = Manual(r, key)
    q.send("x")
    q.one()
    assert Queue(server.client(), key).fetch("COUNT", 10) == []


def test_withmeta_adds_the_map(r, key):
    q = Manual(r, key, start=100)
    q.send("x", "PRIORITY", 3, "TYPE", "t", "HEADERS", 1, "f", "v", "DELAY", 20)
    q.to(150)
    meta = q.one("WITHMETA", "LEASE", 1000).meta
    assert set(meta) == META
    headers = meta.pop("headers")
    assert as_map(headers) == {"f": b"v"}
    assert meta == {
        "group": None,
        "score": None,
        "priority": 3,
        "type": b"t",
        "sent-at": 100,
        "due-at": 120,
        "lease-until": 1150,
        "retries-left": 3,
        "note": None,
        "signal": None,
        "batch": None,
        "after": None,
        "parent": None,
        "children": None,
    }


def test_withmeta_shows_null_for_fields_that_were_not_set(r, key):
    q = Manual(r, key)
    q.send("x")
    meta = q.one("WITHMETA").meta
    assert (meta["type"], meta["headers"], meta["group"], meta["score"]) == (None, None, None, None)


@pytest.mark.parametrize(
    "queue, message, call, until",
    [((), (), (), 30000), (("LEASE", 7), (), (), 7), (("LEASE", 7), ("LEASE", 8), (), 8)]
    + [(("LEASE", 7), ("LEASE", 8), ("LEASE", 9), 9), (("LEASE", 7), (), ("LEASE", 9), 9)],
)
def test_the_lease_of_the_call_overrides_those_of_message_and_queue(r, key, queue, message, call, until):
    q = Manual(r, key, *queue)
    q.send("x", "ID", "a", *message)
    q.one(*call)
    assert q.get("a")["lease-until"] == until


def test_maxbytes_ends_the_batch(r, key):
    q = Manual(r, key)
    for _ in range(6):
        q.send(b"12345")
    assert len(q.fetch("COUNT", 10, "MAXBYTES", 10)) == 2
    assert len(q.fetch("COUNT", 10, "MAXBYTES", 9)) == 1
    assert len(q.fetch("COUNT", 10, "MAXBYTES", 1)) == 1
    assert len(q.fetch("COUNT", 10, "MAXBYTES", 11)) == 2


def test_ack_in_fetch_frees_slots_before_it_fetches(r, key):
    q = Manual(r, key, "MAXRUNNING", 2)
    q.do("MSEND", 4, *"abcd")
    a, b = q.fetch("COUNT", 2)
    assert q.fetch("COUNT", 2) == []
    got = q.fetch("COUNT", 2, "ACK", 3, a.receipt, b.receipt, a.receipt)
    assert [m.payload for m in got] == [b"c", b"d"]
    assert q.info()["acked"] == 2
    assert q.len() == 2


def test_ack_in_fetch_works_though_nothing_is_delivered(r, key):
    q = Manual(r, key)
    q.send("a")
    assert q.fetch("ACK", 1, q.one().receipt) == []
    assert (q.len(), q.info()["acked"]) == (0, 1)


def test_stale_receipts_in_fetch_are_ignored(r, key):
    q = Manual(r, key)
    q.do("MSEND", 2, *"ab")
    a = q.one()
    assert q.payloads("ACK", 3, 1, 2**53 - 1, -5) == [b"b"]
    assert q.len("running") == 2
    assert q.ack(a.receipt) == 1


def test_noack_finishes_the_messages_it_returns(r, key):
    q = Manual(r, key, "RETAIN", 100)
    q.send("a", "ID", "a")
    m = q.one("NOACK")
    assert (m.receipt, m.attempt, m.payload) == (0, 1, b"a")
    assert (q.len(), q.state("a")) == (0, "finished")
    info = q.info()
    assert (info["delivered"], info["acked"], info["running"]) == (1, 0, 0)


def test_noack_shows_the_group_of_its_last_messages(r, key):
    q = Manual(r, key, start=70)
    q.do("MSEND", 5, *"abcde", "GROUP", "g2", "PRIORITY", 3, "TYPE", "t", "RETRIES", 8)
    got = q.fetch("COUNT", 5, "NOACK", "WITHMETA")
    assert [m.payload for m in got] == [b"a", b"b", b"c", b"d", b"e"]
    assert q.do("GROUPS")[1] == []
    for m in got:
        known = {**m.meta, "score": float(m.meta["score"])}
        assert known == {
            "group": b"g2",
            "score": 70.0,
            "priority": 3,
            "type": b"t",
            "headers": None,
            "sent-at": 70,
            "due-at": 70,
            "lease-until": None,
            "retries-left": 8,
            "note": None,
            "signal": None,
            "batch": None,
            "after": None,
            "parent": None,
            "children": None,
        }


def test_noack_counts_against_rate_but_not_against_maxrunning(r, key):
    q = Manual(r, key, "MAXRUNNING", 1, "RATE", 3, "PER", 100)
    q.do("MSEND", 9, *"abcdefghi")
    assert len(q.fetch("NOACK")) == 1
    assert len(q.fetch("COUNT", 5)) == 1
    assert len(q.fetch("COUNT", 5, "NOACK")) in (0, 1)
    q.advance(100)
    q.do("ALTER", "MAXRUNNING", 0)
    assert len(q.fetch("COUNT", 9, "NOACK")) == 3


def test_get_shows_the_consumer_of_a_fetch(r, key):
    q = Manual(r, key)
    q.send("a", "ID", "a")
    q.one("CONSUMER", b"w\0rker")
    assert q.get("a")["consumer"] == b"w\0rker"
    assert q.info()["consumers"] == 1


def test_fetch_without_consumer_records_no_consumer(r, key):
    q = Manual(r, key)
    q.send("a", "ID", "a")
    q.one()
    assert q.get("a")["consumer"] is None
    assert q.info()["consumers"] == 0


def test_ready_order_is_priority_then_ready_time_then_send_order(r, key):
    q = Manual(r, key)
    q.send("late", "DELAY", 20)
    q.send("early", "DELAY", 10)
    q.send("now1")
    q.send("now2")
    q.send("urgent", "DELAY", 15, "PRIORITY", -1)
    q.send("tie1", "DELAY", 10)
    q.send("lazy", "PRIORITY", 1)
    q.advance(20)
    want = [b"urgent", b"now1", b"now2", b"early", b"tie1", b"late", b"lazy"]
    assert [p["payload"] for p in q.peek("COUNT", 10)] == want
    assert q.payloads("COUNT", 10) == want


def test_a_nacked_message_goes_behind_those_that_are_ready(r, key):
    q = Manual(r, key)
    q.send("a")
    q.advance(1)
    q.send("b")
    q.advance(1)
    q.nack(q.one().receipt)
    assert q.payloads("COUNT", 2) == [b"b", b"a"]


def test_a_timed_out_message_is_ordered_by_its_lease_end(r, key):
    q = Manual(r, key)
    q.send("a")
    q.one("LEASE", 10)
    q.send("b", "DELAY", 9)
    q.send("c", "DELAY", 11)
    q.advance(100)
    assert q.payloads("COUNT", 3) == [b"b", b"a", b"c"]


def test_mfetch_takes_from_the_first_queue_that_has_messages(r, key):
    a, b, c = (Manual(r, key + s) for s in (b"a", b"b", b"c"))
    keys = [a.key, b"missing", b.key, c.key]
    assert r.execute_command("DQ.MFETCH", 4, *keys) is None
    b.do("MSEND", 2, "b1", "b2")
    c.send("c1")
    name, got = r.execute_command("DQ.MFETCH", 4, *keys, "COUNT", 5, "WITHMETA", "LEASE", 70)
    assert name == b.key
    assert [m.payload for m in msgs(got)] == [b"b1", b"b2"]
    assert msgs(got)[0].meta["lease-until"] == 70
    name, got = r.execute_command("DQ.MFETCH", 4, *keys, "NOACK")
    assert (name, msgs(got)[0].receipt) == (c.key, 0)
    assert r.exists("missing") == 0


def test_mfetch_delivers_nothing_if_one_key_has_another_type(r, key):
    q = Manual(r, key)
    q.send("x")
    r.set(key + b"s", "text")
    with pytest.raises(Exception, match="WRONGTYPE"):
        r.execute_command("DQ.MFETCH", 2, key, key + b"s")
    assert q.len("ready") == 1


def test_fetch_counts_attempts(r, key):
    q = Manual(r, key, "RETRIES", -1)
    q.send("x")
    for attempt in range(1, 30):
        m = q.one()
        assert m.attempt == attempt
        assert q.nack(m.receipt) == 1
    info = q.info()
    assert (info["delivered"], info["redelivered"], info["nacked"]) == (29, 28, 29)
