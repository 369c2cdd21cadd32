"""DQ.LIST: order, filters, and cursors that stay valid while the queue changes."""

import pytest

from tests.harness.replies import as_map
from tests.harness.scene import START, STATES, Scene, text


def populated(r, key, n=60):
    """n messages in each state, their ids `<state><i>`, i in the order LIST must give."""
    q = Scene(r, key, "RETAIN", 10**9, "LEASE", 10**6, "RETAINCOUNT", 0)
    for i in range(n):
        q.add(f"finished{i}")
        q.ack(q.one().receipt)
        q.add(f"dead{i}")
        q.nack(q.one().receipt, "FATAL")
        q.add(f"cancelled{i}")
        q.do("CANCEL", f"cancelled{i}")
        q.advance(1)
    for i in range(n):
        q.add(f"retry{i}")
        q.nack(q.one().receipt, "DELAY", 10**6 + i)
    for i in reversed(range(n)):
        q.add(f"running{i}")
        q.one("LEASE", 10**6 + i)
    q.do("PAUSE", "GROUP", "held")
    for i in range(n):
        q.add(f"blocked{i}", "GROUP", "held")
        q.add(f"ready{i}")
        q.advance(1)
    for i in reversed(range(n)):
        q.add(f"delayed{i}", "DELAY", 10**5 + i)
    return q


def number(id):
    return int("".join(c for c in id if c.isdigit()))


@pytest.mark.parametrize("state", STATES)
def test_list_orders_every_state_as_documented(r, key, state):
    q = populated(r, key, 12)
    expected = [f"{state}{i}" for i in range(12)]
    assert q.listed(state) == expected
    rows = q.rows(state)
    assert [row["id"] for row in rows] == expected
    assert {row["state"] for row in rows} == {state}
    field = {
        "delayed": "due-at",
        "retry": "due-at",
        "running": "lease-until",
        "finished": "finished-at",
        "dead": "finished-at",
        "cancelled": "finished-at",
    }.get(state)
    if field:
        values = [row[field] for row in rows]
        assert values == sorted(values) and None not in values


def test_list_shows_the_record_that_get_shows(r, key):
    q = populated(r, key, 2)
    for state in STATES:
        for row in q.rows(state):
            assert row == q.row(row["id"])


def test_count_is_10_by_default_and_the_last_cursor_is_0(r, key):
    q = Scene(r, key)
    for i in range(25):
        q.add(f"m{i:02}")
    cursor, rows = q.page("ready")
    assert len(rows) == 10 and cursor != "0"
    cursor, rows = q.page("ready", "CURSOR", cursor)
    assert len(rows) == 10 and cursor != "0"
    cursor, rows = q.page("ready", "CURSOR", cursor)
    assert len(rows) == 5 and cursor == "0"
    assert set(as_map(rows[0])) == set(q.row("m00"))


@pytest.mark.parametrize("count", [1, 3, 25, 10000])
def test_every_count_lists_all_messages(r, key, count):
    q = Scene(r, key)
    for i in range(25):
        q.add(f"m{i:02}", "DELAY", 5)
    assert q.listed("delayed", "COUNT", count) == [f"m{i:02}" for i in range(25)]


def walk(q, state, between, *options, count=7):
    """Pages through a state; between() runs after every page. Returns the ids seen."""
    seen, cursor, calls = [], "0", 0
    while True:
        cursor, ids = q.page(state, "CURSOR", cursor, "COUNT", count, "IDS", *options)
        seen += text(ids)
        if cursor == "0":
            return seen
        between(calls)
        calls += 1
        assert calls < 500


def leave(q, state, id):
    """Removes one message from the state."""
    if state in ("finished", "cancelled"):
        q.do("SEND", "x", "ID", id, "DELAY", 10**8)
    elif state == "dead":
        assert q.do("REDRIVE", "IDS", 1, id) == 1
        q.do("CANCEL", id)
    else:
        q.do("CANCEL", id)


def join(q, state, i):
    """Brings a new message into the state, at either end where the state's order allows it."""
    id = f"new{i}"
    if state == "delayed":
        q.add(id, "DELAY", 5000 if i % 2 else 10**6)
    elif state == "blocked":
        q.add(id, "GROUP", "held")
    elif state == "ready":
        q.add(id)
    elif state == "cancelled":
        q.add(id, "DELAY", 10)
        q.do("CANCEL", id)
    else:
        q.add(id, "PRIORITY", -128)
        m = q.hold("LEASE", 500_000 if i % 2 else 5 * 10**6)[id]
        if state == "retry":
            q.nack(m.receipt, "DELAY", 500_000 if i % 2 else 5 * 10**6)
        elif state == "finished":
            q.ack(m.receipt)
        elif state == "dead":
            q.nack(m.receipt, "FATAL")


@pytest.mark.parametrize("state", STATES)
def test_a_message_that_stays_is_listed_exactly_once(r3, key, state):
    n = 60
    q = populated(r3, key, n)
    gone = set()

    def change(step):
        # Messages leave before, behind and next to the cursor.
        for i in {(step * 13) % n, (step + 1) * 7, (step + 1) * 7 - 1}:
            id = f"{state}{i}"
            if 0 <= i < n and i % 3 == 0 and id not in gone:
                gone.add(id)
                leave(q, state, id)
        if step < 40:
            join(q, state, step)

    seen = walk(q, state, change)
    assert len(seen) == len(set(seen)), "one came twice"
    stayed = [f"{state}{i}" for i in range(n) if f"{state}{i}" not in gone]
    assert gone
    old = [id for id in seen if not id.startswith("new") and id not in gone]
    assert old == stayed


@pytest.mark.parametrize("reverse", [[], ["REV"]])
@pytest.mark.parametrize("state", ["delayed", "ready", "blocked", "retry", "running"])
def test_a_message_that_moves_within_its_state_is_listed_exactly_once(r3, key, state, reverse):
    n = 60
    q = populated(r3, key, n)

    def move(step):
        # Listed ones and others, to either end of the state.
        for i in range(step % 5, n, 5):
            id = f"{state}{i}"
            earlier = (i + step) % 2
            if state == "running":
                receipt = q.row(id)["receipt"]
                assert q.do("TOUCH", 500_000 + step if earlier else 5 * 10**6 - step, receipt) == 1
            elif state in ("ready", "blocked"):
                assert q.do("RESCHEDULE", id, "AT", 1) == 1
            else:
                assert q.do("RESCHEDULE", id, "DELAY", 500 + step if earlier else 10**7 - step) == 1

    q.advance(2000)
    seen = walk(q, state, move, *reverse)
    assert sorted(seen) == sorted(f"{state}{i}" for i in range(n))


@pytest.mark.parametrize("state", STATES)
def test_a_cursor_works_after_the_messages_before_it_have_left(r3, key, state):
    q = populated(r3, key, 10)
    cursor, ids = q.page(state, "COUNT", 4, "IDS")
    for id in text(ids):
        leave(q, state, id)
    rest = []
    while cursor != "0":
        cursor, ids = q.page(state, "CURSOR", cursor, "COUNT", 4, "IDS")
        rest += text(ids)
    assert rest[:6] == [f"{state}{i}" for i in range(4, 10)]


def test_messages_of_one_millisecond_are_all_listed(r, key):
    q = Scene(r, key)
    for i in range(100):
        q.add(f"m{i}", "AT", START + 50)
    for state in ("delayed", "ready"):
        seen = walk(q, state, lambda _: None, count=3)
        assert sorted(seen) == sorted(f"m{i}" for i in range(100))
        q.advance(50)


def test_a_cursor_survives_reload(r, key):
    q = Scene(r, key)
    for i in range(40):
        q.add(f"m{i:02}", "GROUP", f"g{i % 3}", "DELAY", i)
    seen = walk(q, "delayed", lambda _: r.execute_command("DEBUG", "RELOAD"))
    assert sorted(seen) == sorted(f"m{i:02}" for i in range(1, 40))


@pytest.mark.parametrize("state", ["delayed", "ready", "finished", "dead"])
def test_group_and_type_filter_the_list(r3, key, state):
    q = Scene(r3, key, "RETAIN", 10**9, "GROUPCONCURRENCY", 1000)
    expected = {}
    for i in range(90):
        group, kind = f"g{i % 3}", f"t{i % 5}"
        q.add(f"m{i:02}", "GROUP", group, "TYPE", kind, *(["DELAY", 100 + i] if state == "delayed" else []))
        expected.setdefault((group, kind), []).append(f"m{i:02}")
    q.add("plain", *(["DELAY", 50] if state == "delayed" else []))
    if state in ("finished", "dead"):
        for m in q.fetch("COUNT", 1000):
            q.ack(m.receipt) if state == "finished" else q.nack(m.receipt, "FATAL")
            q.advance(1)
    for (group, kind), ids in expected.items():
        assert sorted(q.listed(state, "GROUP", group, "TYPE", kind, "COUNT", 4)) == ids
    by_group = q.listed(state, "GROUP", "g1", "COUNT", 4)
    assert sorted(by_group) == [f"m{i:02}" for i in range(90) if i % 3 == 1]
    assert q.listed(state, "TYPE", "t2") == [id for id in q.listed(state) if id[0] == "m" and number(id) % 5 == 2]
    assert q.listed(state, "GROUP", "nobody") == []
    assert q.listed(state, "TYPE", "nothing") == []


def test_group_filters_blocked_and_ready_messages(r, key):
    q = Scene(r, key)
    q.fill("a", "a1", "a2", "a3")
    q.fill("b", "b1", "b2")
    q.take("GROUP", "a")
    assert q.listed("blocked") == ["a2", "a3"]
    assert q.listed("blocked", "GROUP", "a") == ["a2", "a3"]
    assert q.listed("blocked", "GROUP", "b") == []
    assert q.listed("ready") == ["b1", "b2"]
    assert q.listed("ready", "GROUP", "b", "COUNT", 1) == ["b1", "b2"]


@pytest.mark.slow
def test_the_cost_of_a_page_depends_on_count_and_not_on_the_queue(server, r3):
    def cost(key, *options):
        """Processor seconds of the server for 100 pages: the least of three runs, as other programs disturb its caches."""
        q = Scene.over(r3, key)
        cursor, _ = q.page("ready", "COUNT", 500, "IDS")

        def once():
            began = server.cpu_seconds()
            for _ in range(100):
                q.page("ready", "CURSOR", cursor, "COUNT", 10, *options)
            return server.cpu_seconds() - began

        return min(once() for _ in range(3))

    for key, n in (("small", 1), ("middle", 20), ("large", 200)):
        for _ in range(n):
            r3.execute_command("DQ.MSEND", key, 1000, *["x"] * 1000)
    assert cost("large") < cost("small") * 12
    # A call with a filter that matches nothing has a bounded cost too: a full scan would take ten times as many steps.
    assert cost("large", "TYPE", "nothing") < cost("middle", "TYPE", "nothing") * 4
