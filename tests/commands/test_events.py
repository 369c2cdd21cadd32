"""Keyspace events of the module, and its sections in INFO."""

import re

import pytest

from tests.harness.replies import Manual, Queue
from tests.harness.wire import Error


@pytest.fixture
def queue_and_events(make_server):
    """A queue on a manual clock, and a function that returns the events of its key since the last call."""
    server = make_server(notify_keyspace_events="KEd")
    client = server.client()
    listener = server.client(protocol=2).pubsub()
    listener.psubscribe("__keyspace@0__:*", "__keyevent@0__:*")
    for _ in range(2):
        listener.get_message(timeout=5)
    q = Manual(client, "q", "LEASE", 100, "RETRIES", 1)

    def events():
        client.publish("__keyevent@0__:end", "")
        seen = []
        while (message := listener.get_message(timeout=5)) is not None:
            channel, data = message["channel"], message["data"]
            if channel == b"__keyevent@0__:end":
                break
            if channel.startswith(b"__keyevent@0__:dq."):
                assert data == b"q"
                seen.append(channel.split(b":", 1)[1].decode())
            elif data.startswith(b"dq."):
                assert channel == b"__keyspace@0__:q"
        return list(dict.fromkeys(seen))

    events()
    return q, events


def test_each_operation_publishes_its_event(queue_and_events):
    q, events = queue_and_events
    q.send("a", "ID", "a", "DELAY", 10)
    assert events() == ["dq.sent"]
    q.advance(10)
    assert events() == ["dq.ready"]
    m = q.one()
    assert events() == ["dq.delivered"]
    q.ack(m.receipt)
    assert events() == ["dq.acked"]
    q.send("b", "ID", "b")
    assert "dq.sent" in events()
    m = q.one()
    events()
    q.nack(m.receipt)
    assert events()[0] == "dq.nacked"
    q.one()
    events()
    q.advance(100)
    assert set(events()) >= {"dq.timeout", "dq.dead"}
    q.send("c", "ID", "c")
    events()
    q.do("CANCEL", "c")
    assert events() == ["dq.cancelled"]


def test_each_change_of_a_breaker_is_an_event(queue_and_events):
    q, events = queue_and_events
    q.do("ALTER", "BREAKER", 1, "PER", 10, "OPEN", 50, "RETRIES", -1)
    q.send("a", "GROUP", "g")
    m = q.one()
    events()
    q.nack(m.receipt)
    assert events() == ["dq.nacked", "dq.breaker"]
    q.advance(49)
    assert events() == []
    q.advance(1)
    assert set(events()) == {"dq.breaker", "dq.ready"}
    m = q.one()
    assert events() == ["dq.delivered"]
    q.ack(m.receipt)
    assert events() == ["dq.acked", "dq.breaker"]
    q.do("RESUME", "GROUP", "g")
    assert events() == []


def test_a_timeout_with_retries_left_publishes_no_death(queue_and_events):
    q, events = queue_and_events
    q.send("a")
    q.one()
    events()
    q.advance(100)
    seen = events()
    assert "dq.timeout" in seen and "dq.dead" not in seen


def test_an_operation_that_changes_nothing_publishes_nothing(queue_and_events):
    q, events = queue_and_events
    q.send("x", "ID", "a")
    q.one()
    events()
    q.fetch()
    q.ack(5)
    q.nack(5)
    q.send("x", "ID", "a")
    q.do("CANCEL", "unknown")
    q.fails("SEND", "x", "DELAY", "soon")
    q.get("a")
    q.advance(0)
    assert events() == []


def test_a_fatal_nack_and_an_expiry_publish_a_death(queue_and_events):
    q, events = queue_and_events
    q.send("a")
    m = q.one()
    events()
    q.nack(m.receipt, "FATAL")
    assert "dq.dead" in events()
    q.send("b", "TTL", 5)
    events()
    q.advance(5)
    assert "dq.dead" in events()


def test_nothing_is_published_by_default(server, key):
    w, listener = server.wire(2), server.wire(2)
    listener.call("PSUBSCRIBE", "__key*")
    w.ok("DQ.SEND", key, "x")
    w.ok("DQ.FETCH", key)
    assert listener.silent(0.05)


def section(w):
    text = w.ok("INFO", "dq").decode()
    return text, dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def test_info_dq_has_every_figure_and_no_content(server):
    w = server.wire()
    q = Queue(server.client(), "secret-key")
    before = section(w)[0]
    assert re.search(r"^# dq", before, re.M), "sections are named by the module"
    q.do("MSEND", 3, *["secret-payload"] * 3)
    q.send("secret-payload", "DELAY", 600000)
    q.ack(q.one().receipt)
    q.one()
    text, fields = section(w)
    assert all(name.startswith("dq_") for name in fields)
    for word in ("queues", "delayed", "ready", "running", "dead", "blocked_clients", "lateness", "slice", "lag", "memory"):
        assert re.search(rf"dq_.*{word}", text), f"nothing about {word}"
    assert next(v for k, v in fields.items() if re.fullmatch(r"dq_(.*_)?queues", k)) == "1"
    for verb in ("send", "fetch", "ack"):
        assert any(verb in k for k in fields), f"no calls of {verb}"
    assert "secret" not in text


def test_info_everything_and_info_modules_include_info_dq(server):
    w = server.wire()
    assert "# dq" in w.ok("INFO", "everything").decode()
    assert "# dq" in w.ok("INFO", "modules").decode()
    assert not isinstance(w.call("INFO"), Error)


def test_info_dq_counts_blocked_clients(server, key):
    w, waiting = server.wire(), server.wire()
    waiting.send("DQ.FETCH", key, "BLOCK", 0)
    server.wait_blocked(1)
    _, fields = section(w)
    assert next(v for k, v in fields.items() if k.endswith("blocked_clients")) == "1"
    waiting.close()
    server.wait_blocked(0)
    _, fields = section(w)
    assert next(v for k, v in fields.items() if k.endswith("blocked_clients")) == "0"
