"""DQ.LIMIT, DQ.LIMITS, LIMITS and COST of a message, COST of an ACK."""

import pytest

from tests.harness.replies import as_map
from tests.harness.scene import START, Scene, text
from tests.harness.waiting import got, waiter


@pytest.fixture
def q(r, key):
    return Scene(r, key)


def limits(q, *options):
    """LIMITS from beginning to end. Returns name -> map without the name."""
    cursor, out = "0", {}
    while True:
        cursor, rows = q.do("LIMITS", "CURSOR", cursor, *options)
        for row in rows:
            row = text(as_map(row))
            name = row.pop("limit")
            assert name not in out, "a limit came twice"
            out[name] = row
        if text(cursor) == "0":
            return out


def limit(q, *words):
    assert q.do("LIMIT", *words) in (b"OK", True)


def test_a_limit_lets_as_many_run_as_it_allows(q):
    limit(q, "api", "CONCURRENCY", 2)
    for n in range(4):
        q.add(f"m{n}", "LIMITS", 1, "api")
    q.add("free")
    running = q.hold("COUNT", 9)
    assert list(running) == ["m0", "free", "m1"]
    assert q.explain("m2") | {"why": ""} == {"code": "limit", "why": "", "until": None, "by": "api"}
    assert q.counts() == {"ready": 2, "running": 3}
    assert q.take("GROUP", "none") == [] == q.take("COUNT", 9, "NOACK")
    q.ack(running["m0"].receipt)
    assert [text(m["id"]) for m in q.peek("COUNT", 9)] == ["m2"]
    assert q.take("COUNT", 9) == ["m2"]
    q.nack(running["m1"].receipt, "FATAL")
    assert q.take("COUNT", 9) == ["m3"]


def test_a_limit_has_several_windows(q):
    limit(q, "api", "RATE", 2, "PER", 100, "RATE", 3, "PER", 1000)
    for n in range(6):
        q.add(f"m{n}", "LIMITS", 1, "api")
    assert q.take("COUNT", 9) == ["m0", "m1"]
    assert q.explain("m2")["until"] == START + 100
    q.advance(100)
    assert q.take("COUNT", 9) == ["m2"]
    assert limits(q)["api"] == {
        "rule": "api",
        "concurrency": 0,
        "weight": 0,
        "rates": [[2, 100, 1], [3, 1000, 3]],
        "running": 3,
        "running-cost": 3,
        "waiting": 1,
        "next-free": START + 1000,
    }
    q.advance(899)
    assert q.take("COUNT", 9) == []
    q.advance(1)
    assert q.take("COUNT", 9) == ["m3", "m4"]


def test_each_name_of_a_pattern_has_its_own_counters(q):
    limit(q, "user-*", "CONCURRENCY", 1)
    limit(q, "user-vip", "CONCURRENCY", 2)
    limit(q, "all", "CONCURRENCY", 4)
    for user in ("1", "2", "vip"):
        for n in range(3):
            q.add(f"{user}{n}", "LIMITS", 2, f"user-{user}", "all")
    running = q.hold("COUNT", 9)
    assert list(running) == ["10", "20", "vip0", "vip1"]
    seen = limits(q, "COUNT", 1)
    assert {name: (row["rule"], row["running"]) for name, row in seen.items()} == {
        "user-*": ("user-*", 0),
        "user-vip": ("user-vip", 2),
        "all": ("all", 4),
        "user-1": ("user-*", 1),
        "user-2": ("user-*", 1),
    }
    q.ack(running["20"].receipt)
    assert q.take("COUNT", 9) == ["21"]
    limit(q, "user-*")
    limit(q, "all")
    q.ack(running["vip0"].receipt)
    assert sorted(q.drain("COUNT", 9)) == ["11", "12", "22", "vip2"]
    q.advance(60_000)
    assert set(limits(q)) >= {"user-vip"}


def test_costs_are_booked_and_corrected(q):
    limit(q, "tokens", "RATE", 100, "PER", 1000, "WEIGHT")
    q.add("a", "LIMITS", 1, "tokens", "COST", 90)
    q.add("b", "LIMITS", 1, "tokens", "COST", 60)
    assert (q.row("a")["limits"], q.row("a")["cost"]) == (["tokens"], 90)
    (a,) = q.hold("COUNT", 9).values()
    q.advance(10)
    assert q.take() == []
    assert q.do("ACK", a.receipt, "COST", 30) == 1
    (b,) = q.hold("COUNT", 9).values()
    assert limits(q)["tokens"]["rates"] == [[100, 1000, 90]]
    assert q.do("ACK", b.receipt, "COST", 200, "RESULT", "done") == 1
    assert limits(q)["tokens"]["rates"] == [[100, 1000, 100]], "what is over it is not shown"
    assert limits(q)["tokens"]["next-free"] == START + 1010
    q.add("plain")
    assert q.row("plain")["limits"] == [] and q.row("plain")["cost"] is None


def test_weight_counts_costs_in_concurrency(q):
    limit(q, "cores", "CONCURRENCY", 8, "WEIGHT")
    for id, cost in (("a", 5), ("b", 5), ("c", 3)):
        q.add(id, "LIMITS", 1, "cores", "COST", cost)
    running = q.hold("COUNT", 9)
    assert list(running) == ["a"]
    q.ack(running["a"].receipt)
    assert q.take("COUNT", 9) == ["b", "c"]


def test_a_message_that_costs_more_than_is_ever_allowed_says_so(q):
    q.add("large", "GROUP", "g", "LIMITS", 1, "api", "COST", 11)
    limit(q, "api", "RATE", 10, "PER", 100, "WEIGHT")
    q.add("small", "LIMITS", 1, "api")
    assert q.take("COUNT", 9) == ["small"]
    why = q.explain("large")
    assert (why["code"], why["by"], why["until"]) == ("limit", "api", None)
    assert "can never be delivered" in why["why"] and "never allows more than 10" in why["why"]
    assert limits(q)["api"]["next-free"] == "never"
    limit(q, "api", "RATE", 11, "PER", 100, "WEIGHT")
    assert limits(q)["api"]["next-free"] != "never"
    q.advance(100)
    assert q.take("COUNT", 9) == ["large"]


COSTLY = ("LIMITS", 2, "free", "user-7", "COST", 11)


@pytest.mark.parametrize(
    "words",
    [
        ("SEND", "x", *COSTLY),
        ("SEND", "x", "ID", "waits", "REPLACE", *COSTLY),
        ("SEND", "x", "ID", "runs", "REPLACE", "RERUN", *COSTLY),
        ("MSEND", 2, "x", "y", *COSTLY),
        ("GROUPPUSH", '{"g": 1}', "GROUPBY", 1, "g", *COSTLY),
        ("SCHEDULE", "tick", "EVERY", 1000, "PAYLOAD", "x", *COSTLY),
        ("ACKSEND", "<receipt>", "NEXT", "<key>", "y", *COSTLY),
    ],
    ids=lambda words: " ".join(map(str, words[:4])),
)
def test_what_could_never_be_delivered_is_refused(q, key, words):
    limit(q, "user-*", "CONCURRENCY", 10, "WEIGHT")
    q.add("runs")
    [running] = q.hold().values()
    q.add("waits")
    before = q.digest()
    words = [{"<receipt>": running.receipt, "<key>": key}.get(word, word) for word in words]
    assert q.fails(*words).startswith("COST 11 can never be delivered: one of its LIMITS allows at most 10")
    assert q.digest() == before
    q.do(*(10 if word == 11 else word for word in words))
    assert q.digest() != before


def test_requests_and_tokens_of_a_user_are_limited(q):
    limit(q, "*:requests", "RATE", 2, "PER", 1000)
    limit(q, "*:tokens", "RATE", 100, "PER", 1000, "WEIGHT")
    for id, cost in (("a", 60), ("b", 30), ("c", 5)):
        q.add(id, "LIMITS", 2, "u:requests", "u:tokens", "COST", cost)
    (a, _) = q.hold("COUNT", 9).values()
    seen = limits(q)
    assert (seen["u:requests"]["rates"], seen["u:tokens"]["rates"]) == ([[2, 1000, 2]], [[100, 1000, 90]])
    assert (q.explain("c")["by"], q.explain("c")["until"]) == ("u:requests", START + 1000)
    assert q.do("ACK", a.receipt, "COST", 80) == 1
    seen = limits(q)
    assert (seen["u:requests"]["rates"], seen["u:tokens"]["rates"]) == ([[2, 1000, 2]], [[100, 1000, 100]])
    q.advance(1000)
    assert q.take("COUNT", 9) == ["c"]


def test_the_head_of_a_group_waits_and_its_group_with_it(q):
    limit(q, "api", "CONCURRENCY", 1)
    q.add("first", "GROUP", "g", "LIMITS", 1, "api")
    q.add("other", "LIMITS", 1, "api")
    q.add("behind", "GROUP", "g")
    running = q.hold("COUNT", 9)
    assert list(running) == ["first"]
    q.ack(running["first"].receipt)
    assert q.take("COUNT", 9) == ["other", "behind"]
    assert set(q.groups()) == {"g"}, "messages without a group form none that is seen"


def test_waiting_clients_are_served_when_there_is_room(r3, key, server):
    q = Scene(r3, key)
    q.server = server
    limit(q, "api", "CONCURRENCY", 1)
    q.add("a", "LIMITS", 1, "api")
    q.add("b", "LIMITS", 1, "api")
    (a,) = q.hold("COUNT", 9).values()
    w = waiter(q)
    q.ack(a.receipt)
    assert [text(m.id) for m in got(w)] == ["b"]


def test_waiting_clients_are_served_when_a_window_has_room(r3, key, server):
    q = Scene.over(r3, key)
    q.server = server
    limit(q, "api", "RATE", 1, "PER", 300)
    q.do("SEND", "a", "ID", "a", "LIMITS", 1, "api")
    q.do("SEND", "b", "ID", "b", "LIMITS", 1, "api")
    (a,) = q.hold("COUNT", 9).values()
    w = waiter(q)
    assert [text(m.id) for m in got(w)] == ["b"]
    begun = [as_map(q.do("GET", id))["started-at"] for id in ("a", "b")]
    assert begun[1] - begun[0] >= 300


def test_a_group_that_waits_for_a_limit_is_held(q):
    q.do("LIMIT", "l", "CONCURRENCY", 1)
    for id in "ab":
        q.send("x", "ID", id, "GROUP", "g" + id, "LIMITS", 1, "l")
    q.send("x", "ID", "free", "GROUP", "free")
    running = q.one()

    def held() -> list:
        return [text(as_map(group))["group"] for group in q.do("GROUPS", "STATE", "held")[1]]

    assert held() == ["gb"]
    q.ack(running.receipt)
    assert held() == []
