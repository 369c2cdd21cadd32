"""DQ.SEND and DQ.MSEND: ids, due times, type and headers, REPLACE, options of a single message."""

import time
import uuid

import pytest

from tests.harness.replies import Manual, Queue, as_map
from tests.harness.server import now_ms


def test_the_generated_id_is_a_uuid7_of_its_time(r, key):
    q = Queue(r, key)
    before = now_ms()
    id = q.send(b"x")
    parsed = uuid.UUID(id.decode())
    assert id == str(parsed).encode()
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert before - 50 <= parsed.int >> 80 <= now_ms() + 50


def test_generated_ids_never_repeat(r, key):
    q = Queue(r, key)
    ids = [i for _ in range(20) for i in q.do("MSEND", 100, *["x"] * 100)]
    r.delete(key)
    ids += q.do("MSEND", 100, *["x"] * 100)
    assert len(set(ids)) == 2100


def test_queues_created_at_once_generate_different_ids(r, key):
    ids = [Queue(r, key + b"%d" % n).send() for n in range(200)]
    assert len(set(ids)) == 200


def test_a_message_is_found_by_its_generated_id(r, key):
    q = Queue(r, key)
    id = q.send(b"body")
    assert q.get(id)["payload"] == b"body"
    assert q.get(id)["id"] == id
    assert q.get(id.upper()) is None or id.upper() == id


@pytest.mark.parametrize("id", [b"a", b"\0", b"\xff\r\n%n%s", b"REPLACE", b"x" * 1024])
def test_any_bytes_can_be_an_id(r, key, id):
    q = Queue(r, key)
    assert q.send(b"p", "ID", id) == id
    assert q.one().id == id


@pytest.mark.parametrize("payload", [b"", b"\0", b"DELAY", b"\xff\xfe\r\n", b"y" * 1_000_000])
def test_any_bytes_can_be_a_payload(r, key, payload):
    q = Queue(r, key)
    q.send(payload)
    q.do("MSEND", 2, payload, payload)
    assert q.payloads("COUNT", 3) == [payload] * 3


def test_a_uuid_can_be_given_as_an_id(r, key):
    q = Queue(r, key)
    generated = q.send(b"1")
    assert q.send(b"2", "ID", generated) is None
    foreign = str(uuid.UUID(int=(0x0190_0000_0000 << 80) | (7 << 76) | (2 << 62) | 5)).encode()
    assert q.send(b"3", "ID", foreign) == foreign
    assert q.send(b"4", "ID", foreign) is None
    assert q.get(foreign)["payload"] == b"3"


def test_delay_and_at_set_the_due_time(r, key):
    q = Manual(r, key, start=1000)
    q.send("x", "ID", "delay", "DELAY", 500)
    q.send("x", "ID", "at", "AT", 1700)
    q.send("x", "ID", "now", "DELAY", 0)
    q.send("x", "ID", "past", "AT", 3)
    got = {i: (q.state(i), q.get(i)["due-at"]) for i in ("delay", "at", "now", "past")}
    assert got == {
        "delay": ("delayed", 1500),
        "at": ("delayed", 1700),
        "now": ("ready", 1000),
        "past": ("ready", 1000),
    }
    q.to(1499)
    assert q.ids("COUNT", 10) == [b"now", b"past"]
    q.to(1500)
    assert q.ids("COUNT", 10) == [b"delay"]
    q.to(1699)
    assert q.fetch() == []
    q.to(1700)
    assert q.ids("COUNT", 10) == [b"at"]


def test_the_largest_due_time_is_accepted(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a", "AT", 2**53 - 1)
    q.send("x", "ID", "b", "DELAY", 2**53 - 1)
    assert q.len("delayed") == 2


def test_a_message_is_never_delivered_early_on_the_server_clock(r, key):
    q = Queue(r, key)
    due = now_ms() + 80
    q.send("x", "AT", due)
    while not (got := q.fetch()):
        time.sleep(0.001)
    assert now_ms() >= due
    assert len(got) == 1


@pytest.mark.parametrize("end", ["dead", "expired", "cancelled"])
def test_replace_of_a_dead_or_cancelled_message_makes_it_pending_again(r, key, end):
    q = Manual(r, key, "RETRIES", 0, "DEDUP", 100, "RETAIN", 100)
    q.send("1", "ID", "a", "TTL", 5)
    match end:
        case "dead":
            q.nack(q.one().receipt)
        case "expired":
            q.advance(5)
        case "cancelled":
            q.do("CANCEL", "a")
    assert q.send("2", "ID", "a") is None
    assert q.send("2", "ID", "a", "REPLACE", "DELAY", 10) == b"a"
    record = q.get("a")
    assert (record["state"], record["payload"], record["failures"]) == (b"delayed", b"2", 0)
    assert [q.len("dead"), q.len("cancelled"), q.len()] == [0, 0, 1]
    assert q.info()["sent"] == 2
    q.advance(10)
    assert q.payloads("COUNT", 9) == [b"2"]


def test_a_dead_message_that_is_replaced_holds_its_group_no_longer(r, key):
    q = Manual(r, key, "RETRIES", 0, "ONDEAD", "BLOCK")
    q.send("1", "ID", "a", "GROUP", "g")
    q.send("2", "ID", "b", "GROUP", "g")
    q.nack(q.one().receipt)
    assert q.fetch() == []
    assert q.send("3", "ID", "a", "REPLACE", "GROUP", "g") == b"a"
    assert q.payloads() == [b"2"]


def test_lower_priority_goes_first(r, key):
    q = Manual(r, key)
    for p in (0, 127, -128, 5, -5):
        q.send(str(p), "PRIORITY", p)
    assert q.payloads("COUNT", 9) == [b"-128", b"-5", b"0", b"5", b"127"]


def test_type_and_headers_come_back(r, key):
    q = Manual(r, key)
    q.send("x", "HEADERS", 3, "a", "1", b"\0", b"\xff", "DELAY", "ID", "TYPE", "TYPE", "ID", "i")
    meta = q.one("WITHMETA").meta
    assert meta["type"] == b"TYPE"
    assert as_map(meta["headers"]) == {"a": b"1", "\0": b"\xff", "DELAY": b"ID"}
    assert q.get("i")["type"] == b"TYPE"
    assert as_map(q.get("i")["headers"]) == {"a": b"1", "\0": b"\xff", "DELAY": b"ID"}


def test_of_equal_header_fields_the_last_one_is_kept(r, key):
    q = Manual(r, key)
    q.send("x", "HEADERS", 3, "a", "1", "b", "2", "a", "3")
    assert as_map(q.one("WITHMETA").meta["headers"]) == {"a": b"3", "b": b"2"}


def test_options_of_a_message_override_those_of_the_queue(r, key):
    q = Manual(r, key, "LEASE", 1000, "RETRIES", 9, "BACKOFF", "FIXED", 1000, "TTL", 5000)
    q.send("x", "ID", "a", "LEASE", 10, "RETRIES", 1, "BACKOFF", "LINEAR", 20, "TTL", 500)
    m = q.one("WITHMETA")
    assert (m.meta["lease-until"], m.meta["retries-left"]) == (10, 1)
    q.nack(m.receipt)
    assert (q.state("a"), q.get("a")["due-at"]) == ("retry", 20)
    q.to(499)
    assert q.state("a") == "ready"
    q.to(500)
    assert (q.state("a"), q.get("a")["reason"]) == ("dead", b"expired")


def test_zero_and_minus_one_override_the_options_of_the_queue(r, key):
    q = Manual(r, key, "RETRIES", 0, "TTL", 10)
    q.send("x", "ID", "a", "RETRIES", -1, "TTL", 0)
    for _ in range(6):
        q.nack(q.one().receipt)
    q.advance(100)
    assert q.get("a")["retries-left"] == -1
    assert q.state("a") == "ready"


def test_msend_replies_the_ids_in_the_order_of_its_payloads(r, key):
    q = Manual(r, key)
    ids = q.do("MSEND", 3, "DELAY", "ID", "HEADERS", "DELAY", 5, "TYPE", "t", "PRIORITY", -3)
    assert len(set(ids)) == 3
    assert q.fetch() == []
    q.advance(5)
    got = q.fetch("COUNT", 9, "WITHMETA")
    assert [m.id for m in got] == ids
    assert [m.payload for m in got] == [b"DELAY", b"ID", b"HEADERS"]
    assert {(m.meta["type"], m.meta["priority"]) for m in got} == {(b"t", -3)}


def test_msend_adds_all_its_messages_or_none(r, key):
    q = Manual(r, key, "MAXLEN", 3)
    assert q.fails("MSEND", 4, *"abcd").startswith("QUEUEFULL")
    assert q.len() == 0
    assert len(q.do("MSEND", 3, *"abc")) == 3


def test_msend_takes_ten_thousand_messages(r, key):
    q = Manual(r, key)
    ids = q.do("MSEND", 10000, *range(10000))
    assert len(set(ids)) == 10000
    assert q.payloads("COUNT", 10000) == [b"%d" % n for n in range(10000)]


def test_a_sent_message_has_the_status_pending(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "now")
    q.send("x", "ID", "later", "DELAY", 1)
    assert q.get("now")["status"] == q.get("later")["status"] == b"pending"
