"""DQ.PURGE by state, by group, by both, and of a whole queue."""

import pytest

from tests.harness.replies import Manual
from tests.harness.scene import STATES, Scene, assert_same_digest, twin
from tests.harness.server import wait_for


def populated(r, key):
    """Two messages in every state, of group g and without one (blocked ones: of g and h)."""
    q = Scene(r, key, "RETAIN", 10**9, "GROUPCONCURRENCY", 10)
    for state in ("finished", "dead", "cancelled", "retry", "running"):
        for suffix, options in (("g", ["GROUP", "g"]), ("u", [])):
            id = f"{state}-{suffix}"
            q.add(id, "PRIORITY", -5, *options)
            if state == "cancelled":
                q.do("CANCEL", id)
                continue
            m = q.hold("COUNT", 1)
            assert list(m) == [id]
            receipt = m[id].receipt
            if state == "finished":
                q.ack(receipt)
            elif state == "dead":
                q.nack(receipt, "FATAL")
            elif state == "retry":
                # This message blocks its group, hence ONRETRY SKIP from here on.
                q.nack(receipt, "DELAY", 10**8)
                if suffix == "g":
                    q.do("ALTER", "ONRETRY", "SKIP")
    for suffix, options in (("g", ["GROUP", "g"]), ("u", [])):
        q.add(f"ready-{suffix}", *options)
        q.add(f"delayed-{suffix}", "DELAY", 10**7, *options)
    q.do("PAUSE", "GROUP", "h")
    q.add("blocked-h", "GROUP", "h")
    return q


ALL = {state: 2 for state in STATES} | {"blocked": 1}


def test_the_populated_queue_has_messages_in_every_state(r, key):
    assert populated(r, key).counts() == ALL


@pytest.mark.parametrize("state", STATES)
def test_purge_by_state_removes_that_state_and_frees_the_ids(r, key, state):
    q = populated(r, key)
    ids = q.listed(state)
    assert q.do("PURGE", "STATE", state.upper()) == ALL[state]
    assert q.counts() == {s: n for s, n in ALL.items() if s != state}
    assert q.listed(state) == []
    for id in ids:
        assert q.row(id) is None
        assert q.add(id, "DELAY", 5) == id


def test_purge_by_group_removes_all_of_that_group(r, key):
    q = populated(r, key)
    assert q.do("PURGE", "GROUP", "g") == 7
    assert q.counts() == {s: 1 for s in STATES}
    assert q.listed("ready") == ["ready-u"]
    assert "g" not in q.groups()


@pytest.mark.parametrize("state", [s for s in STATES if s != "blocked"])
def test_purge_by_state_and_group_removes_only_what_matches_both(r, key, state):
    q = populated(r, key)
    assert q.do("PURGE", "GROUP", "g", "STATE", state) == 1
    assert q.listed(state) == [f"{state}-u"]


def test_purge_without_filter_removes_everything(r, key):
    q = populated(r, key)
    assert q.do("PURGE") == 15
    assert q.counts() == {}
    assert q.info()["bytes"] == 0
    assert r.exists(key) == 1
    assert q.do("PURGE") == 0


def test_purge_keeps_the_totals(r, key):
    q = populated(r, key)
    before = q.info()
    q.do("PURGE")
    after = q.info()
    for name in ("sent", "delivered", "acked", "cancellations", "deaths"):
        assert after[name] == before[name]


def test_receipts_of_purged_messages_are_stale(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    receipt = q.one().receipt
    assert q.do("PURGE", "STATE", "running") == 1
    assert q.ack(receipt) == 0
    assert q.touch(100, receipt) == 0
    assert q.nack(receipt) == 0
    assert q.take() == ["b"]


def test_purge_that_matches_nothing_changes_nothing(r, key):
    q = populated(r, key)
    before = q.digest()
    assert q.do("PURGE", "GROUP", "nobody") == 0
    assert q.do("PURGE", "GROUP", "h", "STATE", "dead") == 0
    assert q.digest() == before


def test_a_purged_message_is_never_delivered(r, key):
    q = Scene(r, key, "LEASE", 10)
    for i in range(50):
        q.add(f"d{i}", "DELAY", 5)
        q.add(f"r{i}", "GROUP", f"g{i % 3}")
    q.take("COUNT", 10)
    assert q.do("PURGE") == 100
    q.advance(1000)
    assert q.take("COUNT", 1000) == []
    assert q.fetch("COUNT", 10, "NOACK") == []


def test_purge_frees_room_for_maxlen_at_once(r, key):
    q = Scene(r, key, "MAXLEN", 3)
    for id in "abc":
        q.add(id)
    q.do("PURGE", "STATE", "ready")
    assert q.add("d") == "d"


def test_purge_keeps_the_settings_of_queue_and_groups(r, key):
    q = Scene(r, key, "LEASE", 77)
    q.do("GROUPSET", "g", "WEIGHT", 4)
    q.fill("g", "a")
    q.do("PURGE")
    assert q.info()["lease"] == 77
    assert q.groups()["g"]["weight"] == 4


@pytest.mark.parametrize("options", [[], ["STATE", "ready"], ["GROUP", "g"]], ids=["all", "state", "group"])
def test_a_large_purge_frees_the_memory_of_its_messages(server, r3, key, options):
    n = 100_000
    before = server.client().info("memory")["used_memory"]
    for _ in range(n // 10_000):
        r3.execute_command("DQ.MSEND", key, 10_000, *["0123456789"] * 10_000, "GROUP", "g")
    q = Scene.over(r3, key)
    assert q.len() == n
    full = server.client().info("memory")["used_memory"]
    assert q.do("PURGE", *options) == n
    assert q.len() == 0 and q.fetch("COUNT", 10) == []
    # Of a whole queue the timer frees it in slices.
    wait_for(lambda: server.client().info("memory")["used_memory"] < before + (full - before) / 4, what="the memory")


# The messages of these groups, delayed, ready and blocked, are more than PURGE removes in one step.
GROUPS, EACH = 200, 50


def many_groups(r, key):
    """Adds EACH delayed and EACH due messages to each of GROUPS groups: of four kinds in turn, paused, held up by one
    in retry, busy with one, and ready. Also the receipts of those that run."""
    q = Scene(r, key, "LEASE", 10**9)
    pipe = r.pipeline(transaction=False)
    for g in range(GROUPS):
        for when, options in (("later", ["DELAY", 10**6]), ("now", [])):
            payload = b"%s %d" % (when.encode(), g % 4)
            pipe.execute_command("DQ.MSEND", key, EACH, *[payload] * EACH, "GROUP", f"g{g}", *options)
        if g % 4 == 0:
            pipe.execute_command("DQ.PAUSE", key, "GROUP", f"g{g}")
    pipe.execute()
    receipts = [q.one("GROUP", f"g{g}").receipt for g in range(GROUPS) if g % 4 in (1, 2)]
    q.nack(*receipts[0::2], "DELAY", 10**7)
    return q, receipts[1::2]


@pytest.mark.parametrize("state", ["delayed", "ready", "blocked", "retry", "running"])
def test_purge_of_a_state_of_many_groups_removes_just_that(r3, key, state):
    q, running = many_groups(r3, key)
    kinds = [
        {"delayed": EACH, "blocked": EACH},
        {"delayed": EACH, "blocked": EACH - 1, "retry": 1},
        {"delayed": EACH, "blocked": EACH - 1, "running": 1},
        {"delayed": EACH, "ready": EACH},
    ]

    def counts():
        total = {s: GROUPS // 4 * sum(kind.get(s, 0) for kind in kinds) for s in STATES}
        return {s: n for s, n in total.items() if n}

    assert q.counts() == counts()
    assert q.do("PURGE", "STATE", state) == counts()[state]
    for kind in kinds:
        if kind.pop(state, 0) and state in ("retry", "running"):
            kind["ready"] = kind.pop("blocked")
    assert q.counts() == counts()
    left = sum(counts().values())
    assert q.len() == left
    assert q.page(state)[1] == []
    info = q.info()
    later = GROUPS * EACH if state != "delayed" else 0
    assert info["bytes"] == 7 * later + 5 * (left - later)
    assert info["groups"] == GROUPS
    for g, row in enumerate(q.groups("COUNT", 1000).values()):
        kind = kinds[g % 4]
        assert row["waiting"] == sum(n for s, n in kind.items() if s != "running")
        assert row["running"] == kind.get("running", 0)
    twin(q, key + b":twin")
    assert_same_digest(r3, key, key + b":twin")

    # Exactly the messages that are left are delivered.
    for g in range(0, GROUPS, 4):
        q.do("RESUME", "GROUP", f"g{g}")
    q.advance(10**8)
    assert q.ack(*running) == (0 if state == "running" else len(running))
    delivered = {}
    while got := q.fetch("COUNT", 10_000, "PERGROUP", 1000):
        for m in got:
            delivered[m.payload] = delivered.get(m.payload, 0) + 1
        q.ack(*[m.receipt for m in got])
    expected = {}
    for number, kind in enumerate(kinds):
        due = sum(kind.get(s, 0) for s in ("ready", "blocked", "retry"))
        for payload, n in ((b"later", kind.get("delayed", 0)), (b"now", due)):
            if n:
                expected[b"%s %d" % (payload, number)] = n * GROUPS // 4
    assert delivered == expected
    assert q.counts() == {}


def held_back(r, key, state):
    """600 groups of two messages each, blocked by the first: more than one slice removes."""
    q = Scene.over(r, key)
    groups = [f"g{n}" for n in range(600)]
    pipe = r.pipeline(transaction=False)
    for group in groups:
        pipe.execute_command("DQ.MSEND", key, 2, f"{group} first", f"{group} second", "GROUP", group)
    pipe.execute()
    got = q.fetch("COUNT", 1000, "LEASE", 10**8)
    assert [m.payload for m in got] == [b"%s first" % group.encode() for group in groups]
    if state == "retry":
        assert q.nack(*[m.receipt for m in got], "DELAY", 10**8) == 600
    return q, groups


@pytest.mark.parametrize("state", ["retry", "running"])
def test_groups_released_by_a_large_purge_are_delivered_in_their_order(r, key, state):
    q, groups = held_back(r, key, state)
    pipe = r.pipeline(transaction=False)
    pipe.execute_command("DQ.PURGE", key, "STATE", state)
    purged, dump = pipe.dump(key).execute()
    assert purged == 600
    info = q.info()
    assert (info[state], info["ready"], info["blocked"]) == (0, 600, 0)
    r.restore(key + b":copy", 0, dump)
    copy = Scene.over(r, key + b":copy")
    for each in (q, copy):
        given = [m.payload for m in each.fetch("COUNT", 1000)]
        assert given == [b"%s second" % group.encode() for group in groups]


def test_purge_of_many_messages_leaves_the_others(r3, key):
    q = Manual(r3, key)
    for _ in range(30):
        q.do("MSEND", 1000, *["x"] * 1000)
    q.do("MSEND", 5, *"abcde", "DELAY", 10)
    assert q.do("PURGE", "STATE", "ready") == 30000
    assert q.fetch() == []
    assert q.len() == 5
    q.advance(10)
    assert q.payloads("COUNT", 9) == list(map(str.encode, "abcde"))
