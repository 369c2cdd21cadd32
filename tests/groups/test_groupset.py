"""DQ.GROUPSET: weight, concurrency and rate of one group."""


from tests.harness.scene import START, Scene


def test_options_come_in_any_order_and_case(r, key):
    q = Scene(r, key)
    q.do("groupset", "g", "rate", 1, "per", 100, "Concurrency", 2, "weight", 9)
    group = q.groups()["g"]
    assert (group["weight"], group["concurrency"]) == (9, 2)


def test_groupset_changes_only_what_is_named(r, key):
    q = Scene(r, key)
    q.do("GROUPSET", "g", "WEIGHT", 5)
    q.do("GROUPSET", "g", "CONCURRENCY", 2)
    assert (q.groups()["g"]["weight"], q.groups()["g"]["concurrency"]) == (5, 2)


def test_a_group_without_settings_uses_those_of_the_queue(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 7)
    q.fill("g", "a")
    assert (q.groups()["g"]["weight"], q.groups()["g"]["concurrency"]) == (1, 7)


def test_settings_outlive_the_messages_of_a_group(r, key):
    q = Scene(r, key)
    q.do("GROUPSET", "g", "CONCURRENCY", 2)
    q.fill("g", "a", "b", "c")
    assert q.drain("COUNT", 2) == ["a", "b", "c"]
    assert q.groups()["g"]["concurrency"] == 2
    q.fill("g", "d", "e", "f")
    assert q.take("COUNT", 10) == ["d", "e"]


def test_rate_is_exceeded_in_no_window(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 50)
    q.do("GROUPSET", "g", "RATE", 2, "PER", 1000)
    q.fill("g", *"abcdef")
    assert q.take() == ["a"]
    q.advance(400)
    assert q.take("COUNT", 10) == ["b"]
    assert q.counts() == {"blocked": 4, "running": 2}
    q.to(START + 999)
    assert q.take("COUNT", 10) == []
    q.to(START + 1000)
    assert q.row("c")["state"] == "ready"
    assert q.take("COUNT", 10) == ["c"]
    q.to(START + 1399)
    assert q.take("COUNT", 10) == []
    q.to(START + 1400)
    assert q.take("COUNT", 10) == ["d"]


def test_the_rate_of_one_group_does_not_limit_the_others(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 50)
    q.do("GROUPSET", "g", "RATE", 1, "PER", 1000)
    q.fill("g", "a", "b")
    q.fill("h", "x", "y")
    q.add("u")
    assert sorted(q.take("COUNT", 10)) == ["a", "u", "x", "y"]


def test_rate_counts_every_message_of_a_batch(r, key):
    q = Scene(r, key)
    q.do("GROUPSET", "g", "RATE", 3, "PER", 100)
    q.fill("g", *"abcde")
    assert q.take("GROUP", "g", "COUNT", 10) == ["a", "b", "c"]


def test_rate_counts_deliveries_that_failed(r, key):
    q = Scene(r, key)
    q.do("GROUPSET", "g", "RATE", 2, "PER", 100)
    q.fill("g", "a")
    q.nack(q.one().receipt)
    q.nack(q.one().receipt)
    assert q.take() == []
    assert q.row("a")["state"] == "blocked"
    q.advance(100)
    assert q.take() == ["a"]


def test_rate_counts_noack_deliveries(r, key):
    q = Scene(r, key)
    q.do("GROUPSET", "g", "RATE", 2, "PER", 100)
    q.fill("g", *"abc")
    assert q.take("NOACK", "COUNT", 10) == ["a", "b"]
    q.advance(100)
    assert q.take("NOACK", "COUNT", 10) == ["c"]


def test_rate_0_removes_the_rate(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 50)
    q.do("GROUPSET", "g", "RATE", 1, "PER", 1000)
    q.fill("g", *"abc")
    assert q.take("COUNT", 10) == ["a"]
    q.do("GROUPSET", "g", "RATE", 0)
    assert q.row("b")["state"] == "ready"
    assert q.take("COUNT", 10) == ["b", "c"]


def test_the_rate_of_the_queue_applies_besides_that_of_the_group(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 50, "RATE", 2, "PER", 1000)
    q.do("GROUPSET", "g", "RATE", 5, "PER", 1000)
    q.fill("g", *"abcdefg")
    assert q.take("COUNT", 10) == ["a", "b"]
    q.advance(1000)
    assert q.take("COUNT", 10) == ["c", "d"]


def test_a_group_at_its_rate_joins_the_line_when_a_slot_is_free(r, key):
    q = Scene(r, key, "GROUPCONCURRENCY", 50)
    q.do("GROUPSET", "g", "RATE", 1, "PER", 100)
    q.fill("g", "a", "b")
    q.fill("h", "x", "y", "z")
    assert q.take("COUNT", 2) == ["a", "x"]
    q.advance(100)
    assert q.take("COUNT", 10) == ["y", "b", "z"]


def test_a_group_with_default_settings_is_forgotten(r, key):
    q = Scene(r, key)
    q.do("GROUPSET", "g", "WEIGHT", 3, "CONCURRENCY", 2, "RATE", 1, "PER", 10)
    q.do("GROUPSET", "g", "WEIGHT", 1, "CONCURRENCY", 0, "RATE", 0)
    assert q.groups() == {}
