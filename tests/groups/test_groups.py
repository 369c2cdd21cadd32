"""DQ.GROUPS: which groups are listed, in which state, with which figures."""

import pytest

from tests.harness.replies import as_map
from tests.harness.scene import START, Scene, text

FIELDS = {
    "group",
    "state",
    "waiting",
    "running",
    "head",
    "head-due-at",
    "lease-until",
    "weight",
    "concurrency",
    "breaker",
    "open-until",
}


def all_states(r, key):
    q = Scene(r, key, "LEASE", 500)
    q.fill("busy", "busy1", "busy2")
    assert q.take("GROUP", "busy") == ["busy1"]
    q.fill("ready", "ready1", "ready2")
    q.fill("paused", "paused1")
    q.do("PAUSE", "GROUP", "paused")
    q.fill("held", "held1", "held2")
    q.nack(q.one("GROUP", "held").receipt, "DELAY", 100)
    q.add("later1", "GROUP", "waiting", "DELAY", 77)
    return q


def test_groups_shows_every_field(r, key):
    q = Scene(r, key)
    q.fill("g", "a")
    cursor, rows = q.do("GROUPS")
    assert cursor == b"0"
    assert set(as_map(rows[0])) == FIELDS


def test_groups_shows_the_state_and_head_of_each_group(r, key):
    q = all_states(r, key)
    groups = q.groups()
    assert {name: g["state"] for name, g in groups.items()} == {
        "busy": "running",
        "ready": "ready",
        "paused": "paused",
        "held": "blocked",
        "waiting": "waiting",
    }
    assert groups["busy"]["waiting"] == 1 and groups["busy"]["running"] == 1
    assert groups["busy"]["lease-until"] == START + 500
    assert groups["ready"]["waiting"] == 2 and groups["ready"]["running"] == 0
    assert groups["ready"]["head"] == "ready1"
    assert groups["ready"]["head-due-at"] == START
    assert groups["ready"]["lease-until"] is None
    assert groups["held"]["head"] == "held1"
    assert groups["held"]["head-due-at"] == START + 100
    assert groups["waiting"]["head"] == "later1"
    assert groups["waiting"]["head-due-at"] == START + 77
    assert groups["waiting"]["waiting"] == 1


@pytest.mark.parametrize("state", ["ready", "running", "blocked", "paused", "RUNNING"])
def test_state_filters_the_groups(r, key, state):
    q = all_states(r, key)
    groups = q.groups("STATE", state)
    assert len(groups) == 1
    assert {g["state"] for g in groups.values()} == {state.lower()}


def test_held_groups_are_those_that_have_due_messages_and_give_none(r, key):
    q = Scene(r, key, "BACKOFF", "FIXED", 100)
    for group in ("behind a running one", "paused", "behind a retry", "in retry", "rated", "open"):
        q.fill(group, f"{group} 1", f"{group} 2")
    q.fill("ready", "a")
    q.fill("done", "b")
    q.add("c", "GROUP", "later", "DELAY", 10**6)
    q.add("d", "GROUP", "paused later", "DELAY", 10**6)
    q.do("GROUPSET", "rated", "RATE", 1, "PER", 1000)
    q.do("PAUSE", "GROUP", "paused later")
    q.do("PAUSE", "GROUP", "paused")
    q.do("PAUSE", "GROUP", "empty")
    q.one("GROUP", "behind a running one")
    q.one("GROUP", "done")
    q.nack(q.one("GROUP", "behind a retry").receipt)
    q.nack(q.one("GROUP", "in retry").receipt)
    q.do("CANCEL", "in retry 2")
    q.ack(q.one("GROUP", "rated").receipt)
    held = {"behind a running one", "paused", "behind a retry", "in retry", "rated"}
    assert q.groups("STATE", "held").keys() == held
    assert q.groups("STATE", "HELD", "COUNT", 2).keys() == held
    q.do("ALTER", "BREAKER", 1, "PER", 1000, "OPEN", 50)
    q.nack(q.one("GROUP", "open").receipt, "DELAY", 0)
    assert q.groups("STATE", "held").keys() == held | {"open"}
    q.do("PAUSE")
    assert q.groups("STATE", "held").keys() == held | {"open", "ready"}
    q.do("RESUME")
    q.advance(1000)
    assert q.groups("STATE", "held").keys() == {"behind a running one", "paused"}
    q.do("ALTER", "MAXRUNNING", 1)
    assert "rated" in q.groups("STATE", "held")


def test_a_running_group_that_can_deliver_more_is_ready(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b")
    q.take()
    group = q.groups()["g"]
    assert (group["state"], group["running"], group["waiting"]) == ("ready", 1, 1)
    q.take()
    group = q.groups()["g"]
    assert (group["state"], group["running"], group["waiting"]) == ("running", 2, 0)


def test_a_group_at_its_rate_is_blocked(r, key):
    q = Scene(r, key)
    q.do("GROUPSET", "g", "RATE", 1, "PER", 100)
    q.fill("g", "a", "b")
    q.ack(q.one().receipt)
    assert q.groups()["g"]["state"] == "blocked"
    q.advance(100)
    assert q.groups()["g"]["state"] == "ready"


def test_a_blocked_group_with_leases_is_running(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    got = q.hold("COUNT", 2)
    q.nack(got["a"].receipt, "DELAY", 100)
    assert q.groups()["g"]["state"] == "running"


def test_a_group_without_messages_is_not_listed(r, key):
    q = Scene(r, key, "RETAIN", 1000)
    q.fill("g", "a")
    assert q.info()["groups"] == 1
    q.drain()
    assert q.groups() == {}
    assert q.info()["groups"] == 0
    q.fill("g", "b")
    q.nack(q.one().receipt, "FATAL")
    assert q.groups() == {}


def test_ungrouped_messages_are_not_listed_as_a_group(r, key):
    q = Scene(r, key)
    q.add("u")
    assert q.groups() == {}


def test_count_is_10_by_default(r, key):
    q = Scene(r, key)
    for i in range(25):
        q.fill(f"g{i}", f"m{i}")
    cursor, rows = q.do("GROUPS")
    assert len(rows) == 10 and cursor != b"0"
    assert len(q.groups()) == 25
    assert len(q.groups("COUNT", 3)) == 25
    cursor, rows = q.do("GROUPS", "COUNT", 10000)
    assert cursor == b"0" and len(rows) == 25


def test_a_group_that_stays_is_listed_exactly_once(r, key):
    q = Scene(r, key)
    for i in range(100):
        q.fill(f"stay{i}", f"s{i}")
        q.fill(f"leave{i}", f"l{i}")
    seen, cursor, step = [], "0", 0
    while True:
        cursor, rows = q.do("GROUPS", "CURSOR", cursor, "COUNT", 7)
        seen += [text(as_map(row))["group"] for row in rows]
        if cursor == b"0":
            break
        q.do("CANCEL", f"l{step % 100}")
        q.fill(f"new{step}", f"n{step}")
        q.do("PAUSE", "GROUP", f"stay{(step * 7) % 100}")
        step += 1
        assert step < 300
    stayed = [name for name in seen if name.startswith("stay")]
    assert sorted(stayed) == sorted(f"stay{i}" for i in range(100))


def test_filtered_pages_come_to_an_end(r, key):
    q = Scene(r, key)
    for i in range(300):
        q.fill(f"g{i}", f"m{i}")
    for i in (0, 150, 299):
        q.do("PAUSE", "GROUP", f"g{i}")
    assert q.groups("STATE", "paused", "COUNT", 5).keys() == {"g0", "g150", "g299"}
