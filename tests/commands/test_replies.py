"""The exact reply types of RESP2 and RESP3, read without a client library in between."""

import pytest

from tests.harness.wire import NULL_ARRAY, Error, Status


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def w(server, request):
    wire = server.wire(request.param)
    wire.protocol = request.param
    wire.ok("DQ.CREATE", "q", "CLOCK", "MANUAL", "RETAIN", 1000)
    return wire


def null(w, reply):
    """RESP3 has one null; RESP2 a null bulk string or a null array."""
    return reply is None or (w.protocol == 2 and reply is NULL_ARRAY)


def is_map(w, reply):
    if w.protocol == 3:
        return isinstance(reply, dict) and all(type(k) in (bytes, Status) for k in reply)
    return isinstance(reply, list) and len(reply) % 2 == 0 and all(isinstance(k, bytes) for k in reply[::2])


def field(w, reply, name):
    assert is_map(w, reply)
    return reply[name] if w.protocol == 3 else reply[reply.index(name) + 1]


def test_simple_replies_have_the_right_types(w):
    assert isinstance(w.ok("DQ.CREATE", "other"), Status)
    assert isinstance(w.ok("DQ.ALTER", "other", "LEASE", 5), Status)
    assert isinstance(w.ok("DQ.PAUSE", "other"), Status)
    assert isinstance(w.ok("DQ.RESUME", "other"), Status)
    assert type(w.ok("DQ.SEND", "q", "x", "ID", "a")) is bytes
    assert null(w, w.ok("DQ.SEND", "q", "x", "ID", "a"))
    assert [type(i) for i in w.ok("DQ.MSEND", "q", 2, "x", "y")] == [bytes, bytes]
    for call in (("LEN", "q"), ("ACK", "q", 1), ("NACK", "q", 1), ("TOUCH", "q", 1, 1), ("PURGE", "q")):
        assert type(w.ok("DQ." + call[0], *call[1:])) is int


def test_replies_of_fetch_have_the_right_types(w):
    assert w.ok("DQ.FETCH", "q") == []
    assert w.ok("DQ.FETCH", "missing") == []
    assert w.ok("DQ.FETCH", "q", "BLOCK", 1) == []
    assert null(w, w.ok("DQ.MFETCH", 1, "q"))
    assert null(w, w.ok("DQ.MFETCH", 1, "q", "BLOCK", 1))
    w.ok("DQ.SEND", "q", "x", "HEADERS", 1, "f", "v", "GROUP", "g", "SCORE", "1.5")
    [[id, receipt, attempt, payload, meta]] = w.ok("DQ.FETCH", "q", "WITHMETA")
    assert [type(v) for v in (id, receipt, attempt, payload)] == [bytes, int, int, bytes]
    assert is_map(w, field(w, meta, b"headers"))
    assert field(w, meta, b"score") == (1.5 if w.protocol == 3 else b"1.5")
    assert type(field(w, meta, b"due-at")) is int
    assert null(w, field(w, meta, b"type"))
    w.ok("DQ.SEND", "q", "x")
    name, messages = w.ok("DQ.MFETCH", 1, "q")
    assert (name, len(messages), len(messages[0])) == (b"q", 1, 4)


def test_whole_scores_read_as_numbers(w):
    w.ok("DQ.SEND", "q", "x", "ID", "a", "GROUP", "g", "SCORE", 1563978617)
    score = field(w, w.ok("DQ.GET", "q", "a"), b"score")
    assert float(score) == 1563978617.0
    assert isinstance(score, float if w.protocol == 3 else bytes)


def test_replies_of_get_have_the_right_types(w):
    assert null(w, w.ok("DQ.GET", "q", "a"))
    assert null(w, w.ok("DQ.GET", "missing", "a"))
    w.ok("DQ.SEND", "q", "x", "ID", "a")
    record = w.ok("DQ.GET", "q", "a")
    for name in (b"id", b"status", b"state", b"payload"):
        assert isinstance(field(w, record, name), bytes)
    for name in (b"attempt", b"failures", b"timeouts", b"retries-left", b"priority", b"sent-at", b"due-at"):
        assert type(field(w, record, name)) is int
    for name in (b"group", b"score", b"receipt", b"headers", b"lease-until", b"error", b"reason"):
        assert null(w, field(w, record, name))
    [peeked] = w.ok("DQ.PEEK", "q")
    assert is_map(w, peeked)


def test_replies_of_info_have_the_right_types(w):
    info = w.ok("DQ.INFO", "q")
    assert field(w, info, b"paused") is (False if w.protocol == 3 else field(w, info, b"paused"))
    assert field(w, info, b"paused") == 0
    assert null(w, field(w, info, b"rate"))
    assert null(w, field(w, info, b"next-due-at"))
    assert type(field(w, info, b"sent")) is int
    w.ok("DQ.PAUSE", "q")
    paused = field(w, w.ok("DQ.INFO", "q"), b"paused")
    assert paused == 1 and isinstance(paused, bool) == (w.protocol == 3)


def test_replies_of_tick_and_cancel_have_the_right_types(w):
    tick = w.ok("DQ.TICK", "q", "ADVANCE", 1)
    assert is_map(w, tick)
    assert type(field(w, tick, b"due")) is int
    w.ok("DQ.SEND", "q", "x", "ID", "a")
    reply = w.ok("DQ.CANCEL", "q", "a", "b")
    assert reply[0] == b"ready" and null(w, reply[1])


def test_no_reply_is_short_or_long_by_an_element(w):
    """After any call the next reply is that of the next command."""
    calls = [
        ("DQ.SEND", "q", "x", "ID", "a", "HEADERS", 2, "a", "b", "c", "d", "TYPE", "t", "GROUP", "g"),
        ("DQ.PEEK", "q", "COUNT", 5),
        ("DQ.GET", "q", "a"),
        ("DQ.INFO", "q"),
        ("DQ.FETCH", "q", "WITHMETA", "COUNT", 5, "CONSUMER", "c"),
        ("DQ.LIST", "q", "running"),
        ("DQ.GROUPS", "q"),
        ("DQ.CONSUMERS", "q"),
        ("DQ.EXPLAIN", "q", "a"),
        ("DQ.SCHEDULES", "q"),
        ("DQ.TICK", "q"),
        ("DQ.CANCEL", "q", "a", "b"),
        ("INFO", "dq"),
        ("COMMAND", "DOCS", "dq.send", "dq.fetch"),
    ]
    for n, call in enumerate(calls):
        reply = w.call(*call)
        assert not isinstance(reply, Error), (call, reply)
        assert w.ok("ECHO", n) == b"%d" % n, call


def test_a_client_can_change_its_protocol(server):
    w = server.wire(2)
    w.ok("DQ.SEND", "q", "x", "ID", "a")
    assert isinstance(w.ok("DQ.GET", "q", "a"), list)
    w.ok("HELLO", 3)
    assert isinstance(w.ok("DQ.GET", "q", "a"), dict)
    w.ok("HELLO", 2)
    assert isinstance(w.ok("DQ.GET", "q", "a"), list)
