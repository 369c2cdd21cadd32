"""DQ.FIND and LIST's REV: conditions, patterns, ranges, cursors, and the actions of DO."""

import pytest

from tests.commands.test_list import number, populated
from tests.harness.replies import as_map
from tests.harness.scene import START, STATES, Scene, text
from tests.harness.waiting import got, waiter
from tests.harness.wire import Error


def page(q, state, *options):
    cursor, found = q.do("FIND", state, *options)
    assert isinstance(cursor, bytes)
    return text(cursor), found


def walk(q, state, *options):
    """FIND from beginning to end. Returns what the steps replied with, and their number."""
    cursor, out, steps = "0", [], 0
    while True:
        cursor, found = page(q, state, "CURSOR", cursor, *options)
        out.append(found)
        steps += 1
        if cursor == "0":
            return out, steps
        assert steps < 10_000, "FIND never ends"


def ids(q, state, *options):
    steps, _ = walk(q, state, "IDS", *options)
    return [one for found in steps for one in text(found)]


def done(q, state, act, *options):
    steps, _ = walk(q, state, "DO", act, *options)
    return sum(steps)


@pytest.mark.parametrize("state", STATES)
def test_find_and_list_have_the_same_order_and_rev_turns_it(r, key, state):
    q = populated(r, key, 12)
    expected = [f"{state}{i}" for i in range(12)]
    for count in (1, 5, 1000):
        assert ids(q, state, "COUNT", count) == expected
        assert ids(q, state, "COUNT", count, "REV") == expected[::-1]
        assert q.listed(state, "COUNT", count, "REV") == expected[::-1]


def test_find_shows_the_record_that_get_shows(r, key):
    q = populated(r, key, 2)
    for state in STATES:
        _, rows = page(q, state)
        assert [as_map(row) for row in rows] == [as_map(row) for row in q.page(state)[1]]


def dead_letters(q):
    for i, (error, kind) in enumerate([("timeout: a", "mail"), ("timeout: b", "fax"), ("refused", "mail")]):
        q.add(f"m{i}", "TYPE", kind, "HEADERS", 2, "to", f"user{i}", "lang", "en", "GROUP", f"g{i % 2}")
        q.nack(q.one().receipt, "FATAL", "ERROR", error)
        q.advance(10)


@pytest.mark.parametrize(
    "options, expected",
    [
        ((), [0, 1, 2]),
        (("ID", "m[12]"), [1, 2]),
        (("ID", "M*"), []),
        (("TYPE", "mail"), [0, 2]),
        (("TYPE", "mai*"), []),
        (("GROUP", "g0"), [0, 2]),
        (("GROUP", "nobody"), []),
        (("HEADER", "to", "user1"), [1]),
        (("HEADER", "lang", "en"), [0, 1, 2]),
        (("HEADER", "lang", "user1"), []),
        (("ERROR", "timeout*"), [0, 1]),
        (("ERROR", "*: ?"), [0, 1]),
        (("ERROR", "timeout"), []),
        (("PAYLOAD", "*2"), [2]),
        (("ERROR", "timeout*", "TYPE", "mail"), [0]),
        (("SINCE", START + 10), [1, 2]),
        (("UNTIL", START + 10), [0]),
        (("SINCE", START + 1, "UNTIL", START + 20), [1]),
        (("SINCE", START + 20, "UNTIL", START + 20), []),
    ],
)
def test_a_message_is_found_if_all_conditions_apply(r, key, options, expected):
    q = Scene(r, key)
    dead_letters(q)
    assert ids(q, "dead", *options) == [f"m{i}" for i in expected]
    assert ids(q, "dead", *options, "COUNT", 1, "REV") == [f"m{i}" for i in reversed(expected)]


def test_a_condition_does_not_apply_to_what_a_message_does_not_have(r, key):
    q = Scene(r, key)
    q.add("a")
    for condition in (("TYPE", "x"), ("GROUP", "x"), ("HEADER", "x", ""), ("ERROR", "*")):
        assert ids(q, "ready", *condition) == []
    assert ids(q, "ready", "ID", "*", "PAYLOAD", "*") == ["a"]


@pytest.mark.parametrize("state", STATES)
def test_a_range_is_about_the_time_that_orders_the_state(r, key, state):
    q = populated(r, key, 6)
    field = {"delayed": "due-at", "retry": "due-at", "running": "lease-until", "ready": "due-at", "blocked": "due-at"}
    times = [row[field.get(state, "finished-at")] for row in q.rows(state)]
    since, until = times[2], times[4]
    expected = [f"{state}{i}" for i, time in enumerate(times) if since <= time < until]
    assert 0 < len(expected) < 6
    assert ids(q, state, "SINCE", since, "UNTIL", until) == expected


def test_what_comes_back_is_ready_since_it_came_back(r, key):
    q = Scene(r, key, "LEASE", 50)
    q.add("a")
    q.one()
    q.advance(100)
    assert ids(q, "ready", "SINCE", START + 50, "UNTIL", START + 51) == ["a"]
    assert ids(q, "ready", "UNTIL", START + 50) == []


def test_count_bounds_what_a_step_examines_and_a_range_is_not_searched_for(r, key):
    q = Scene(r, key)
    for i in range(100):
        q.add(f"m{i:03}", "DELAY", 100 + i)
    steps, count = walk(q, "delayed", "ID", "nobody", "COUNT", 10)
    assert count == 10 and steps == [[]] * 10
    _, count = walk(q, "delayed", "IDS", "SINCE", START + 190, "COUNT", 10)
    assert count == 1
    _, count = walk(q, "delayed", "IDS", "UNTIL", START + 110, "COUNT", 10, "REV")
    assert count == 1
    # The default is 1,000.
    _, count = walk(q, "delayed", "IDS")
    assert count == 1


def test_what_stays_in_the_state_is_found_once_while_others_come_and_go(r, key):
    q = Scene(r, key)
    for i in range(40):
        q.add(f"m{i:02}", "DELAY", 100 + i)
    seen, cursor = [], "0"
    for step in range(100):
        cursor, found = page(q, "delayed", "CURSOR", cursor, "COUNT", 3, "IDS", "REV")
        seen += text(found)
        if cursor == "0":
            break
        q.do("CANCEL", f"m{39 - 2 * step:02}")
        q.add(f"new{step}", "DELAY", 100 + step)
    stayed = [id for id in seen if number(id) % 2 == 0 and id.startswith("m")]
    assert stayed == [f"m{i:02}" for i in range(38, -1, -2)]


def test_a_step_ends_after_4_mib_of_matched_text(r, key):
    q = Scene(r, key)
    payload = b"x" * 64 * 1024 + b"y"
    for _ in range(70):
        q.do("SEND", payload)
    steps, count = walk(q, "ready", "IDS", "PAYLOAD", "*y")
    # A payload is matched up to its first 64 KiB, which end with an x.
    assert count == 2 and steps == [[], []]
    steps, count = walk(q, "ready", "IDS", "PAYLOAD", "*x")
    assert [len(found) for found in steps] == [64, 6]


def test_a_pattern_that_would_backtrack_is_matched_in_linear_time(r, key):
    q = Scene(r, key)
    q.do("SEND", b"a" * 64 * 1024, "ID", "long")
    assert ids(q, "ready", "PAYLOAD", "*a" * 300 + "b") == []
    assert ids(q, "ready", "PAYLOAD", "*a" * 300) == ["long"]


def test_redrive_makes_only_the_found_dead_pending(r, key):
    q = Scene(r, key)
    dead_letters(q)
    assert done(q, "dead", "REDRIVE", "ERROR", "timeout*") == 2
    assert q.listed("dead") == ["m2"]
    assert q.take("COUNT", 10) == ["m0", "m1"]
    assert q.row("m0")["attempt"] == 1 and q.info()["redriven"] == 2
    assert done(q, "dead", "REDRIVE", "COUNT", 1) == 1
    assert q.listed("dead") == []


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("act", ["CANCEL", "PURGE"])
def test_cancel_and_purge_do_it_in_every_state(r, key, state, act):
    q = populated(r, key, 6)
    before = {other: q.len(other) for other in STATES}
    options = ("ID", f"{state}[0-2]", "COUNT", 2)
    ended = state in ("finished", "cancelled")
    assert done(q, state, act, *options) == (0 if act == "CANCEL" and ended else 3)
    for other in STATES:
        expected = before[other]
        if other == state and not (act == "CANCEL" and ended):
            expected -= 3
        elif other == "cancelled" and act == "CANCEL" and not ended:
            expected += 3
        assert q.len(other) == expected, other
    if act == "PURGE":
        assert q.row(f"{state}0") is None
        assert q.add(f"{state}0") == f"{state}0", "the id is free"


def test_do_goes_over_a_state_that_shrinks_under_it(r, key):
    q = Scene(r, key)
    for i in range(25):
        q.add(f"m{i:02}", "DELAY", 100 + i // 4)
    for options in (("COUNT", 4), ("COUNT", 4, "REV")):
        q.do("PURGE")
        for i in range(25):
            q.add(f"m{i:02}", "DELAY", 100 + i // 4)
        assert done(q, "delayed", "PURGE", *options) == 25
        assert q.len() == 0


def test_a_running_message_that_is_purged_or_cancelled_frees_its_group_and_its_receipt_is_stale(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b", "c")
    receipt = q.one().receipt
    assert done(q, "running", "PURGE") == 1
    assert q.ack(receipt) == 0
    receipt = q.one().receipt
    assert done(q, "running", "CANCEL") == 1
    assert q.ack(receipt) == 0
    assert q.take() == ["c"]


def test_purge_of_a_dead_message_that_holds_its_group_lets_the_group_go_on(r, key):
    q = Scene(r, key, "ONDEAD", "BLOCK")
    q.fill("g", "a", "b")
    q.nack(q.one().receipt, "FATAL")
    assert q.take() == []
    assert done(q, "dead", "PURGE") == 1
    assert q.take() == ["b"]


def test_a_blocked_consumer_gets_what_is_redriven(server, r, key):
    q = Scene(r, key)
    q.add("a")
    q.nack(q.one().receipt, "FATAL")
    q.server = server
    blocked = waiter(q)
    assert done(q, "dead", "REDRIVE") == 1
    assert [m.id for m in got(blocked)] == [b"a"]


ERRORS = [
    ((), "wrong number of arguments"),
    (("nonsense",), "state"),
    (("ready", "DO"), "DO"),
    (("ready", "DO", "NOTHING"), "DO"),
    (("ready", "DO", "REDRIVE"), "REDRIVE"),
    (("ready", "IDS", "DO", "PURGE"), "IDS"),
    (("ready", "COUNT", 0), "COUNT"),
    (("ready", "COUNT", 10001), "COUNT"),
    (("ready", "CURSOR", "x"), "CURSOR"),
    (("ready", "SINCE", "x"), "SINCE"),
    (("ready", "UNTIL", -1), "UNTIL"),
    (("ready", "HEADER", "f"), "HEADER"),
    (("ready", "REV", "REV"), "REV"),
    (("ready", "ID", "a", "ID", "b"), "ID"),
    (("ready", "TYPE", ""), "TYPE"),
    (("ready", "NONSENSE"), "NONSENSE"),
]


@pytest.mark.parametrize("options, word", ERRORS, ids=str)
def test_an_error_names_the_word_and_changes_nothing(server, r, key, options, word):
    q = Scene(r, key)
    q.add("a")
    reply = server.wire(2).call("DQ.FIND", key, *options)
    assert isinstance(reply, Error) and word in str(reply)
    assert q.listed("ready") == ["a"]


def test_a_find_that_changes_nothing_does_not_touch_a_watched_key(r, key):
    q = Scene(r, key)
    q.add("a")
    pipe = r.pipeline(transaction=True)
    pipe.watch(key)
    q.do("FIND", "ready")
    q.do("FIND", "ready", "ID", "nobody", "DO", "PURGE")
    pipe.multi()
    pipe.ping()
    assert pipe.execute() == [True]


def test_a_replica_repeats_what_do_did_and_refuses_find_itself(replica_pair):
    primary, replica = replica_pair.primary, replica_pair.replica
    r = primary.client()
    q = populated(r, "q", 8)
    for state in STATES:
        done(q, state, "PURGE", "ID", f"{state}[0-2]")
    done(q, "dead", "REDRIVE", "ID", "dead[3-4]")
    done(q, "delayed", "CANCEL", "ID", "delayed[3-4]")
    replica_pair.assert_same("q")
    reply = replica.wire(2).call("DQ.FIND", "q", "ready")
    assert isinstance(reply, Error) and str(reply).startswith("READONLY")


def test_find_is_allowed_when_memory_is_full(server, r, key):
    q = Scene(r, key)
    q.add("a")
    r.config_set("maxmemory", 1)
    try:
        assert ids(q, "ready") == ["a"]
        assert done(q, "ready", "PURGE") == 1
    finally:
        r.config_set("maxmemory", 0)
