"""Mistakes that are easily made: each gets an error with the word that was probably meant, and changes nothing."""

import pytest

from tests.harness.replies import Manual, Queue
from tests.harness.wire import Error

SECONDS = 1_700_000_000
BIND_CALLS = {
    "FETCH": "return redis.call('DQ.FETCH', KEYS[1], 'BIND')",
    "MFETCH": "return redis.call('DQ.MFETCH', 1, KEYS[1], 'BIND', 'GRACE', 5)",
    "NFETCH": "return redis.call('DQ.NFETCH', 'jobs', 'BIND')",
}


def refused(server, *words) -> str:
    reply = server.wire().call(*words)
    assert isinstance(reply, Error), reply
    return str(reply)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("words", [
    ("SEND", "K", "p", "AT", SECONDS),
    ("SEND", "K", "p", "EXPIREAT", SECONDS),
    ("MSEND", "K", 2, "p", "q", "AT", SECONDS),
    ("GROUPPUSH", "K", '{"g":1,"n":1700000000}', "GROUPBY", 1, "g", "ATPATH", "n"),
    ("RESCHEDULE", "K", "a", "AT", SECONDS),
    ("FIND", "K", "ready", "SINCE", SECONDS),
    ("FIND", "K", "ready", "UNTIL", SECONDS, "DO", "PURGE"),
])
def test_a_time_in_seconds_is_refused_and_the_milliseconds_are_shown(server, r, key, words, there):
    q = Queue(r, key)
    if there:
        q.send("x", "ID", "a", "DELAY", 10**6)
    text = refused(server, "DQ." + words[0], *[key if word == "K" else word for word in words[1:]])
    named = next(word for word in ("ATPATH", "AT", "EXPIREAT", "SINCE", "UNTIL") if word in words)
    assert text.startswith(f"ERR {named} {SECONDS} ")
    assert "milliseconds" in text and f"{SECONDS}000 was probably meant" in text
    assert r.exists(key) == there and (not there or q.len() == 1)


def test_a_time_in_seconds_in_acksend_leaves_the_delivery_as_it_is(server, r, key):
    q = Queue(r, key)
    q.send("x", "ID", "a")
    receipt = q.do("FETCH")[0][1]
    text = refused(server, "DQ.ACKSEND", key, receipt, "NEXT", key, "p", "AT", SECONDS)
    assert f"AT {SECONDS} " in text and q.len("running") == q.len() == 1


def test_small_times_are_valid_on_a_manual_clock(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a", "AT", 500)
    assert q.do("FIND", "delayed", "SINCE", 1, "UNTIL", 900, "IDS")[1] == [b"a"]


def test_a_receipt_without_its_count_shows_how_to_ack_one(server, r, key):
    q = Queue(r, key)
    q.send("x")
    receipt = q.do("FETCH")[0][1]
    assert f"ACK 1 {receipt}" in refused(server, "DQ.FETCH", key, "ACK", receipt)
    assert q.len("running") == 1


def test_a_mistyped_option_names_the_nearest_one_and_an_absent_value_the_syntax(server, r, key):
    assert refused(server, "DQ.SEND", key, "p", "DELY", 5) == "ERR unknown option 'DELY'; did you mean DELAY?"
    assert "the syntax is DQ.SEND key payload [ID id]" in refused(server, "DQ.SEND", key, "p", "DELAY")
    assert not r.exists(key)
    assert refused(server, "DQ.ALTER", key, "RETIRES", 5) == "ERR unknown option 'RETIRES'; did you mean RETRIES?"


def test_purge_takes_its_state_as_len_does(server, r, key):
    q = Queue(r, key)
    q.do("MSEND", 2, *"ab")
    q.send("c", "DELAY", 10**6)
    assert "STATE is given twice" in refused(server, "DQ.PURGE", key, "ready", "STATE", "ready")
    assert (q.do("PURGE", "ready"), q.len()) == (2, 1)


@pytest.mark.parametrize("how", BIND_CALLS)
def test_bind_in_a_script_is_refused_since_it_has_no_connection(server, r, key, how):
    q = Queue(r, key)
    q.send("x")
    text = refused(server, "EVAL", BIND_CALLS[how], 1, key)
    assert "BIND cannot be used in a script" in text and q.len("ready") == 1


def test_bind_in_multi_goes_on_working(r, key):
    q = Queue(r, key)
    q.send("x")
    [delivered] = r.pipeline().execute_command("DQ.FETCH", key, "BIND").execute()
    assert len(delivered) == 1
