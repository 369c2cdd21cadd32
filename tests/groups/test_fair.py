"""FAIR: whether groups take turns by messages, by the time of workers, or by COST."""

import pytest

from tests.harness.scene import Scene


def work(q, ms, takes):
    """One worker that handles messages for this time. Returns how long it worked for each group."""
    worked, begun = {}, q.now
    while q.now < begun + ms:
        ((id, m),) = q.hold().items()
        group = id[0]
        worked[group] = worked.get(group, 0) + takes[group]
        q.advance(takes[group])
        assert q.ack(m.receipt) == 1
    return worked


def shares(worked):
    return {group: ms / sum(worked.values()) for group, ms in worked.items()}


@pytest.fixture
def q(r, key):
    q = Scene(r, key, "FAIR", "TIME")
    for n in range(200):
        q.add(f"a{n}", "GROUP", "a")
        q.add(f"b{n}", "GROUP", "b")
    return q


def test_groups_share_the_time_of_workers(q):
    assert q.info()["fair"] == b"TIME"
    got = shares(work(q, 2000, {"a": 50, "b": 10}))
    assert 0.45 < got["a"] < 0.55


def test_weight_divides_the_time(q):
    q.do("GROUPSET", "a", "WEIGHT", 3)
    got = shares(work(q, 2000, {"a": 30, "b": 20}))
    assert 0.7 < got["a"] < 0.8


def test_fair_can_be_altered_back(q):
    work(q, 500, {"a": 50, "b": 10})
    q.do("ALTER", "FAIR", "COUNT")
    assert q.info()["fair"] == b"COUNT"
    order = [id[0] for id in q.take("COUNT", 2)]
    assert sorted(order) == ["a", "b"]
