"""The order inside one group: priority, then SCORE, then send order, among its due messages."""

import random

import pytest

from tests.harness.scene import START, Scene

ALL = ("GROUP", "g", "COUNT", 100)


def test_order_is_by_priority_then_score_then_send_order(r, key):
    q = Scene(r, key)
    q.add("late", "GROUP", "g", "SCORE", 5)
    q.add("first", "GROUP", "g", "SCORE", 1)
    q.add("second", "GROUP", "g", "SCORE", 1)
    q.add("urgent", "GROUP", "g", "SCORE", 9, "PRIORITY", -1)
    q.add("patient", "GROUP", "g", "SCORE", 0, "PRIORITY", 1)
    assert q.take(*ALL) == ["urgent", "first", "second", "late", "patient"]


def test_priorities_range_from_minus_128_to_127(r, key):
    q = Scene(r, key)
    for p in (127, 0, -128, 1, -1):
        q.add(f"p{p}", "GROUP", "g", "PRIORITY", p)
    assert q.take(*ALL) == ["p-128", "p-1", "p0", "p1", "p127"]


def test_default_score_is_the_due_time(r, key):
    q = Scene(r, key)
    q.add("at50", "GROUP", "g", "DELAY", 50)
    q.add("at20", "GROUP", "g", "AT", START + 20)
    q.add("now", "GROUP", "g")
    q.add("scored", "GROUP", "g", "SCORE", START + 30)
    assert [q.row(id)["score"] for id in ("at50", "at20", "now", "scored")] == [
        START + 50,
        START + 20,
        START,
        START + 30,
    ]
    q.advance(100)
    assert q.take(*ALL) == ["now", "at20", "scored", "at50"]


def test_a_due_time_in_the_past_counts_as_now_for_the_score(r, key):
    q = Scene(r, key)
    q.add("now", "GROUP", "g")
    q.add("past", "GROUP", "g", "AT", 5)
    assert q.row("past")["due-at"] == START
    assert q.row("past")["score"] == START
    assert q.take(*ALL) == ["now", "past"]


def test_a_delayed_message_does_not_block_its_group(r, key):
    q = Scene(r, key)
    q.add("delayed", "GROUP", "g", "SCORE", 1, "DELAY", 100)
    q.add("due", "GROUP", "g", "SCORE", 2)
    assert q.take(*ALL) == ["due"]
    q.add("due2", "GROUP", "g", "SCORE", 3)
    q.advance(100)
    # The group is busy with `due`; when it is free the lowest score goes first.
    assert q.take(*ALL) == []
    assert q.row("delayed")["state"] == "blocked"


@pytest.mark.parametrize(
    "scores",
    [
        ["-inf_is_refused", "-1e300", "-1.5", "-1e-300", "0", "1e-300", "1.5", "9007199254740993", "1e300"],
    ],
)
def test_scores_are_doubles(r, key, scores):
    q = Scene(r, key)
    values = scores[1:]
    shuffled = values[:]
    random.Random(7).shuffle(shuffled)
    for s in shuffled:
        q.add(s, "GROUP", "g", "SCORE", s)
    assert q.take(*ALL) == values
    for s in values:
        assert q.row(s)["score"] == float(s)


def test_zero_and_minus_zero_are_equal_scores(r, key):
    q = Scene(r, key)
    q.add("a", "GROUP", "g", "SCORE", "0")
    q.add("b", "GROUP", "g", "SCORE", "-0")
    q.add("c", "GROUP", "g", "SCORE", "0.0")
    assert q.take(*ALL) == ["a", "b", "c"]


def test_a_new_message_with_a_lower_score_goes_first(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    head = q.one()
    q.add("early", "GROUP", "g", "SCORE", 1)
    q.ack(head.receipt)
    assert q.drain() == ["early", "b"]


def test_reschedule_moves_the_default_score_but_not_a_given_one(r, key):
    q = Scene(r, key)
    q.add("moved", "GROUP", "g")
    q.add("kept", "GROUP", "g", "SCORE", START)
    q.add("other", "GROUP", "g", "SCORE", START + 5)
    assert q.do("RESCHEDULE", "moved", "DELAY", 10) == 1
    assert q.do("RESCHEDULE", "kept", "DELAY", 10) == 1
    assert q.row("moved")["score"] == START + 10
    assert q.row("kept")["score"] == START
    q.advance(10)
    assert q.take(*ALL) == ["kept", "other", "moved"]


def test_a_retry_keeps_the_default_score(r, key):
    q = Scene(r, key, "ONRETRY", "SKIP", "BACKOFF", "FIXED", 100)
    q.fill("g", "a")
    q.nack(q.one().receipt)
    q.advance(50)
    q.fill("g", "b")
    q.advance(50)
    assert q.row("a")["score"] == START
    assert q.row("a")["due-at"] == START + 100
    assert q.take(*ALL) == ["a", "b"]


def test_update_keeps_the_position(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    assert q.do("UPDATE", "a", "new") == 1
    got = q.fetch(*ALL)
    assert [m.payload for m in got] == [b"new", b"b"]


def test_a_silent_nack_returns_a_message_to_its_old_position(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b", "c")
    q.nack(q.one().receipt, "SILENT")
    q.add("before", "GROUP", "g", "SCORE", 1)
    # A silent nack is no failure, so it does not block the group: a lower score goes first.
    assert q.drain() == ["before", "a", "b", "c"]


def test_msend_sends_all_its_messages_to_one_group_in_order(r, key):
    q = Scene(r, key)
    ids = q.do("MSEND", 4, "w", "x", "y", "z", "GROUP", "g", "SCORE", 3)
    q.add("before", "GROUP", "g", "SCORE", 2)
    got = q.fetch(*ALL)
    assert [m.payload for m in got] == [b"before", b"w", b"x", b"y", b"z"]
    assert [m.id for m in got[1:]] == ids


def test_messages_with_equal_scores_keep_their_send_order(r, key):
    q = Scene(r, key)
    for i in range(20):
        q.add(f"m{i:02}", "GROUP", "g", "DELAY", 100 - i, "SCORE", 1)
    q.advance(100)
    assert q.take(*ALL) == [f"m{i:02}" for i in range(20)]


def test_withmeta_shows_group_and_score(r, key):
    q = Scene(r, key)
    q.add("a", "GROUP", b"\x00%n\r\n", "SCORE", "2.5")
    q.add("b")
    both = {m.id: m.meta for m in q.fetch("COUNT", 10, "WITHMETA")}
    assert both[b"a"]["group"] == b"\x00%n\r\n"
    assert float(both[b"a"]["score"]) == 2.5
    assert both[b"b"]["group"] is None
    assert both[b"b"]["score"] is None


def test_a_group_name_can_be_any_1024_bytes(r, key):
    q = Scene(r, key)
    for name in (b"\x00", b"\xff\xfe", b"g" * 1024, b" ", b"0"):
        q.do("SEND", name, "GROUP", name)
        got = q.one("GROUP", name)
        assert got.payload == name


def test_ungrouped_messages_are_ordered_by_ready_time(r, key):
    q = Scene(r, key)
    q.add("c", "DELAY", 30)
    q.add("b", "DELAY", 20)
    q.add("a")
    q.add("b2", "DELAY", 20)
    q.advance(30)
    assert q.take("COUNT", 10) == ["a", "b", "b2", "c"]


def test_peek_shows_what_fetch_delivers(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 3)
    rng = random.Random(3)
    for i in range(60):
        options = ["PRIORITY", rng.choice((-1, 0, 0, 0, 1))]
        if rng.random() < 0.8:
            options += ["GROUP", rng.choice("abcd"), "SCORE", rng.randrange(10)]
        q.add(f"m{i}", *options)
    while True:
        seen = [m["id"].decode() for m in q.peek("COUNT", 7)]
        got = q.hold("COUNT", 7)
        assert list(got) == seen
        if not got:
            break
        q.ack(*[m.receipt for m in got.values()])


def test_a_random_group_is_delivered_in_order(r, key):
    rng = random.Random(11)
    q = Scene(r, key)
    sent = []
    for i in range(500):
        priority, score = rng.randrange(-2, 3), rng.randrange(20)
        q.add(f"m{i}", "GROUP", "g", "SCORE", score, "PRIORITY", priority)
        sent.append((priority, score, i))
    assert q.drain() == [f"m{i}" for _, _, i in sorted(sent)]
