"""The number of messages of a group that are leased at once, by all consumers together."""

import pytest

from tests.harness.scene import START, Scene


def test_a_group_has_one_leased_message_by_default(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b", "c")
    first = q.one("CONSUMER", "one")
    for options in ([], ["GROUP", "g"], ["CONSUMER", "one"], ["PERGROUP", 5, "COUNT", 10], ["NOACK"], ["BLOCK", 1]):
        assert q.take(*options) == [], options
    assert q.counts() == {"blocked": 2, "running": 1}
    q.ack(first.receipt)
    assert q.counts() == {"ready": 2}
    assert q.take() == ["b"]


def test_two_groups_do_not_block_each_other(r, key):
    q = Scene(r, key)
    q.fill("g", "a1", "a2")
    q.fill("h", "b1", "b2")
    assert q.take() == ["a1"]
    assert q.take() == ["b1"]
    assert q.counts() == {"blocked": 2, "running": 2}


@pytest.mark.parametrize("n", [1, 2, 5])
def test_groupconcurrency_is_the_number_leased_at_once(r, key, n):
    q = Scene(r, key, "GROUPCONCURRENCY", n)
    q.fill("g", *[f"m{i}" for i in range(10)])
    held = q.hold("COUNT", 100)
    assert list(held) == [f"m{i}" for i in range(n)]
    receipts = [m.receipt for m in held.values()]
    for i in range(n, 10):
        q.ack(receipts.pop(0))
        freed = q.hold("COUNT", 100)
        assert list(freed) == [f"m{i}"]
        receipts += [m.receipt for m in freed.values()]
    assert q.counts() == {"running": n}


def test_groupset_concurrency_overrides_that_of_the_queue(r, key):
    q = Scene(r, key)
    assert q.do("GROUPSET", "g", "CONCURRENCY", 3) in (b"OK", True)
    q.fill("g", *[f"m{i}" for i in range(5)])
    q.fill("h", "h1", "h2")
    assert sorted(q.take("COUNT", 100)) == ["h1", "m0", "m1", "m2"]


def test_groupset_concurrency_0_restores_that_of_the_queue(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 2)
    q.do("GROUPSET", "g", "CONCURRENCY", 4)
    q.do("GROUPSET", "g", "CONCURRENCY", 0)
    q.fill("g", "a", "b", "c")
    assert q.take("COUNT", 10) == ["a", "b"]


def test_alter_of_groupconcurrency_applies_at_once(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b", "c", "d")
    held = q.receipts("COUNT", 10)
    assert len(held) == 1
    q.do("ALTER", "GROUPCONCURRENCY", 3)
    assert q.counts() == {"ready": 3, "running": 1}
    held += q.receipts("COUNT", 10)
    assert len(held) == 3
    q.do("ALTER", "GROUPCONCURRENCY", 1)
    q.ack(held[0])
    q.ack(held[1])
    assert q.take() == []
    q.ack(held[2])
    assert q.take() == ["d"]


def test_groupset_of_concurrency_applies_at_once(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b", "c")
    q.take()
    q.do("GROUPSET", "g", "CONCURRENCY", 2)
    assert q.counts() == {"ready": 2, "running": 1}
    assert q.take("COUNT", 10) == ["b"]


def test_a_group_is_free_when_its_lease_ends(r, key):
    q = Scene(r, key, "LEASE", 100)
    q.fill("g", "a", "b")
    q.take()
    q.advance(99)
    assert q.take() == []
    assert q.advance(1)["timeouts"] == 1
    got = q.one()
    assert (got.id, got.attempt) == (b"a", 2)


def test_touch_keeps_the_group_busy(r, key):
    q = Scene(r, key, "LEASE", 100)
    q.fill("g", "a", "b")
    got = q.one()
    q.advance(90)
    assert q.touch(100, got.receipt) == 1
    q.advance(99)
    assert q.take() == []
    assert q.ack(got.receipt) == 1
    assert q.take() == ["b"]


def test_cancel_of_the_running_message_frees_the_group(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    got = q.one()
    assert q.do("CANCEL", "a") == [b"running"]
    assert q.ack(got.receipt) == 0
    assert q.take() == ["b"]


def test_a_fatal_nack_frees_the_group(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b")
    q.nack(q.one().receipt, "FATAL")
    assert q.take() == ["b"]


def test_ack_in_fetch_frees_the_group_for_that_fetch(r, key):
    q = Scene(r, key)
    q.fill("g", *[f"m{i}" for i in range(5)])
    seen, receipt = [], None
    while True:
        got = q.hold(*(["ACK", 1, receipt] if receipt else []))
        if not got:
            break
        seen += got
        receipt = next(iter(got.values())).receipt
    assert seen == [f"m{i}" for i in range(5)]


def test_maxrunning_counts_messages_not_groups(r, key):
    q = Scene(r, key, "MAXRUNNING", 3)
    q.fill("g", "a", "b", "c", "d")
    q.fill("h", "e", "f")
    assert q.take("COUNT", 10, "PERGROUP", 4) == ["a", "b", "c"]
    # A limit of the whole queue changes no state: `e` is in a group that is not busy.
    assert q.row("e")["state"] == "ready"
    assert q.take() == []


def test_the_rate_of_the_queue_counts_every_message_of_a_batch(r, key):
    q = Scene(r, key, "RATE", 3, "PER", 1000)
    q.fill("g", "a", "b", "c", "d")
    got = q.hold("GROUP", "g", "COUNT", 10)
    assert list(got) == ["a", "b", "c"]
    q.ack(*[m.receipt for m in got.values()])
    assert q.row("d")["state"] == "ready"
    assert q.code("d") == "rate-limited"
    q.advance(999)
    assert q.take() == []
    q.advance(1)
    assert q.take() == ["d"]


def test_the_due_messages_of_a_busy_group_are_blocked(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b", "c")
    q.add("late", "GROUP", "g", "DELAY", 50)
    assert q.counts() == {"delayed": 1, "ready": 3}
    q.take()
    assert q.counts() == {"delayed": 1, "blocked": 2, "running": 1}
    counts = q.advance(50)
    assert counts["due"] == 1
    assert q.counts() == {"blocked": 3, "running": 1}
    assert q.len() == 4
    assert q.info()["groups"] == 1


def test_concurrency_holds_over_many_consumers(server, key):
    clients = [server.client() for _ in range(5)]
    q = Scene(clients[0], key)
    for g in range(5):
        q.fill(f"g{g}", *[f"g{g}m{i}" for i in range(4)])
    order = {f"g{g}": [] for g in range(5)}
    held = [None] * 5
    for step in range(100):
        mine = Scene.over(clients[step % 5], key)
        if held[step % 5]:
            assert mine.ack(held[step % 5]) == 1
        got = mine.hold("CONSUMER", f"c{step % 5}")
        held[step % 5] = next((m.receipt for m in got.values()), None)
        for id in got:
            order[id[:2]].append(id)
        running = [row["group"] for row in q.rows("running")]
        assert len(running) == len(set(running))
    assert order == {f"g{g}": [f"g{g}m{i}" for i in range(4)] for g in range(5)}


def test_concurrency_holds_when_many_messages_fall_due_at_once(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 2)
    for i in range(200):
        q.add(f"m{i:03}", "GROUP", f"g{i % 10}", "AT", START + 1000)
    assert q.take("COUNT", 200) == []
    q.advance(1000)
    got = q.take("COUNT", 200)
    assert got == [f"m{i:03}" for i in range(20)]


def test_mfetch_takes_batches(r, key):
    empty, q = key + b":empty", Scene(r, key)
    q.fill("g", "a1", "a2", "a3")
    q.fill("h", "b1")
    found, got = r.execute_command("DQ.MFETCH", 2, empty, key, "COUNT", 10, "PERGROUP", 2)
    assert found == key
    assert [m[0] for m in got] == [b"a1", b"a2", b"b1"]
    # Both groups are busy now, so neither queue can deliver.
    assert r.execute_command("DQ.MFETCH", 2, empty, key) is None
    assert r.exists(empty) == 0
