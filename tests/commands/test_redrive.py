"""DQ.REDRIVE makes dead messages pending again: which of them, in which position, with which counters."""

import pytest

from tests.harness.scene import START, Scene


def dead(r, key, *ids, options=(), group=None):
    """A queue to which each id was sent and then rejected, a millisecond apart."""
    q = Scene(r, key, *options)
    for id in ids:
        q.add(id, *(["GROUP", group] if group else []))
    for _ in ids:
        q.nack(q.one().receipt, "FATAL", "ERROR", "broken")
        q.advance(1)
    assert q.listed("dead") == list(ids)
    return q


def test_redrive_all_makes_every_dead_message_ready(r, key):
    q = dead(r, key, "a", "b", "c")
    assert q.do("REDRIVE", "ALL") == 3
    assert q.counts() == {"ready": 3}
    assert q.take("COUNT", 10) == ["a", "b", "c"]
    assert q.info()["redriven"] == 3
    assert q.do("REDRIVE", "ALL") == 0


def test_redrive_with_count_takes_the_oldest_deaths(r, key):
    q = Scene(r, key)
    for id in "abc":
        q.add(id)
    got = q.hold("COUNT", 3)
    for id in "cab":
        q.nack(got[id].receipt, "FATAL")
        q.advance(1)
    assert q.do("REDRIVE", "ALL", "COUNT", 2) == 2
    assert q.listed("dead") == ["b"]
    assert sorted(q.listed("ready")) == ["a", "c"]
    assert q.do("REDRIVE", "ALL", "COUNT", 10000) == 1


def test_redrive_by_ids_takes_the_dead_ones_among_them(r, key):
    q = dead(r, key, "a", "b", "c")
    q.add("alive")
    assert q.do("REDRIVE", "IDS", 4, "c", "alive", "unknown", "a") == 2
    assert q.listed("dead") == ["b"]
    assert q.do("REDRIVE", "IDS", 2, "b", "b") == 1


def test_a_redriven_message_is_due_now_with_counters_at_zero(r, key):
    q = Scene(r, key, "RETRIES", 1, "LEASE", 50)
    q.add("a", "TYPE", "t", "PRIORITY", 2, "HEADERS", 1, "h", "v")
    q.nack(q.one("CONSUMER", "alice").receipt, "ERROR", "broken")
    q.one()
    q.advance(50)
    row = q.row("a")
    assert (row["state"], row["attempt"], row["failures"], row["timeouts"]) == ("dead", 2, 2, 1)
    q.advance(1000)
    assert q.do("REDRIVE", "IDS", 1, "a") == 1
    row = q.row("a")
    assert (row["state"], row["attempt"], row["failures"], row["timeouts"]) == ("ready", 0, 0, 0)
    assert (row["due-at"], row["sent-at"], row["retries-left"]) == (START + 1050, START, 1)
    assert (row["error"], row["first-started-at"]) == ("broken", START)
    assert (row["reason"], row["finished-at"]) == (None, None)
    assert (row["type"], row["priority"], row["headers"]) == ("t", 2, {"h": "v"})
    m = q.one()
    assert m.attempt == 1
    # The message has all its attempts again: one failure is allowed, the next one is its death.
    q.nack(m.receipt)
    assert q.row("a")["state"] == "ready"
    q.nack(q.one().receipt)
    assert q.row("a")["reason"] == "retries"


def test_a_redriven_message_takes_its_old_position_in_its_group(r, key):
    q = Scene(r, key)
    for i in range(5):
        q.add(f"m{i}", "GROUP", "g", "SCORE", i)
    q.nack(q.one().receipt, "FATAL")
    q.nack(q.one().receipt, "FATAL")
    assert q.do("REDRIVE", "ALL") == 2
    assert q.row("m1")["score"] == 1.0
    assert q.drain() == [f"m{i}" for i in range(5)]


def test_redrive_keeps_the_default_score(r, key):
    q = Scene(r, key)
    q.fill("g", "a")
    q.nack(q.one().receipt, "FATAL")
    q.advance(100)
    q.fill("g", "b")
    q.do("REDRIVE", "ALL")
    assert q.row("a")["score"] == START
    assert q.drain() == ["a", "b"]


def test_a_message_redriven_into_a_busy_group_is_blocked(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b", "c")
    q.nack(q.one().receipt, "FATAL")
    held = q.one()
    assert q.do("REDRIVE", "ALL") == 1
    assert q.row("a")["state"] == "blocked"
    assert q.take() == []
    q.ack(held.receipt)
    assert q.drain() == ["a", "c"]


def test_a_redriven_message_has_its_whole_ttl_again(r, key):
    q = Scene(r, key)
    q.add("a", "TTL", 50)
    q.advance(50)
    assert q.row("a")["reason"] == "expired"
    q.advance(1000)
    assert q.do("REDRIVE", "ALL") == 1
    q.advance(49)
    assert q.row("a")["state"] == "ready"
    assert q.advance(1)["expired"] == 1


def test_maxlen_does_not_stop_a_redrive(r, key):
    q = dead(r, key, "a", "b", options=("MAXLEN", 2))
    q.add("x")
    q.add("y")
    assert q.do("REDRIVE", "ALL") == 2
    assert q.len() == 4
    assert q.fails("SEND", "z").startswith("QUEUEFULL")


def test_redrive_wakes_a_blocked_consumer(server, r3, key):
    q = dead(r3, key, "a")
    wire = server.wire()
    wire.send("DQ.FETCH", key, "BLOCK", 10_000)
    server.wait_blocked(1)
    assert q.do("REDRIVE", "ALL") == 1
    assert wire.recv(2)[0][0] == b"a"


def test_redrive_takes_only_dead_messages(r, key):
    q = Scene(r, key, "RETAIN", 1000)
    q.add("f")
    q.ack(q.one().receipt)
    q.add("c")
    q.do("CANCEL", "c")
    q.add("r")
    q.one()
    q.add("w")
    before = q.digest()
    assert q.do("REDRIVE", "ALL") == 0
    assert q.do("REDRIVE", "IDS", 4, "f", "c", "r", "w") == 0
    assert q.digest() == before


@pytest.mark.slow
def test_redrive_of_many_makes_all_of_them_ready(server, r3, key):
    q = Scene(r3, key, "RETRIES", 0, "LEASE", 10)
    for _ in range(20):
        q.do("MSEND", 5000, *["x"] * 5000)
        r3.execute_command("DQ.FETCH", key, "COUNT", 5000)
    q.advance(10)
    assert q.len("dead") == 100_000
    assert q.do("REDRIVE", "ALL") == 100_000
    assert q.counts() == {"ready": 100_000}
    assert len(q.fetch("COUNT", 10_000)) == 10_000
