"""BATCH, AFTER and ONFAIL of a message, the state held, and DQ.BATCHES."""

import pytest

from tests.harness.replies import as_map, as_maps
from tests.harness.scene import START, Scene, text
from tests.harness.waiting import got, waiter


def batches(q, *options):
    """BATCHES from beginning to end. Returns name -> map without the name."""
    cursor, out = "0", {}
    while True:
        cursor, rows = q.do("BATCHES", "CURSOR", cursor, *options)
        for row in text(as_maps(rows)):
            name = row.pop("batch")
            assert name not in out, "a batch came twice"
            out[name] = row
        if text(cursor) == "0":
            return out


def counts(**given):
    names = ("pending", "running", "dead", "finished", "cancelled", "held")
    return {name: given.get(name, 0) for name in names}


def after(q, id):
    row = as_map(q.row(id)["after"])
    return row and {text(name): text(value) for name, value in row.items()}


@pytest.fixture
def q(r, key):
    q = Scene(r, key, "RETRIES", 0, "RETAIN", 100_000)
    q.add("a", "BATCH", "b")
    q.add("c", "BATCH", "b")
    return q


def test_a_held_message_is_released_when_the_last_one_has_ended(q):
    q.add("held", "AFTER", "b")
    assert (q.state("held"), text(q.get("held")["status"])) == ("held", "pending")
    assert (q.len("held"), q.info()["held"], q.listed("held")) == (1, 1, ["held"])
    assert q.len() == 3
    assert [text(m["id"]) for m in q.peek("COUNT", 9)] == ["a", "c"]
    why = q.explain("held")
    assert (why["code"], why["by"], why["until"]) == ("batch-open", "b", None)
    assert "2 messages" in why["why"]
    assert batches(q) == {"b": counts(pending=2, held=1)}
    assert q.info()["batches"] == 1
    running = q.hold("COUNT", 9)
    assert list(running) == ["a", "c"]
    assert batches(q) == {"b": counts(running=2, held=1)}
    assert after(q, "held") == {"batch": "b", "pending": 0, "finished": 0, "dead": 0, "cancelled": 0}
    q.ack(running["a"].receipt)
    assert q.state("held") == "held"
    assert "1 message has not ended" in q.explain("held")["why"]
    q.advance(10)
    q.ack(running["c"].receipt)
    assert q.state("held") == "ready"
    assert q.row("held")["due-at"] == START + 10
    assert (batches(q), q.info()["batches"]) == ({}, 0)
    assert after(q, "held") == {"batch": "b", "pending": 0, "finished": 2, "dead": 0, "cancelled": 0}
    assert q.take("COUNT", 9) == ["held"]


def test_a_blocked_consumer_gets_what_is_released(q, server):
    q.server = server
    q.add("held", "AFTER", "b")
    running = q.hold("COUNT", 9)
    w = waiter(q)
    q.ack(*[m.receipt for m in running.values()])
    assert [text(m.id) for m in got(w)] == ["held"]


def test_where_the_batch_has_none_a_message_is_not_held(q):
    q.add("free", "AFTER", "other")
    assert q.state("free") == "ready"
    assert after(q, "free") == {"batch": "other", "pending": 0, "finished": 0, "dead": 0, "cancelled": 0}
    assert (q.row("free")["batch"], q.row("a")["batch"], q.row("a")["after"]) == (None, "b", None)


@pytest.mark.parametrize("end", ["ack", "cancel", "purge", "replace", "noack", "expire"])
def test_each_end_of_the_last_message_releases(r, key, end):
    q = Scene(r, key)
    q.add("m", "BATCH", "b", *(["TTL", 5] if end == "expire" else []))
    q.add("held", "AFTER", "b", "ONFAIL", "GO")
    match end:
        case "ack":
            q.ack(*q.receipts())
        case "cancel":
            q.do("CANCEL", "m")
        case "purge":
            assert q.do("PURGE", "STATE", "ready") == 1
        case "replace":
            q.add("m", "REPLACE")
        case "noack":
            q.fetch("NOACK")
        case "expire":
            q.advance(5)
    assert q.state("held") == "ready"


def test_onfail_says_what_a_dead_message_means(q):
    kinds = ("HOLD", "GO", "DIE")
    for kind in kinds:
        q.add(kind, "AFTER", "b", "ONFAIL", kind)
    running = q.hold("COUNT", 9)
    q.nack(running["a"].receipt, "FATAL")
    assert [q.state(kind) for kind in kinds] == ["held", "held", "dead"]
    assert q.row("DIE")["reason"] == "batch"
    assert after(q, "DIE")["dead"] == 1
    q.ack(running["c"].receipt)
    assert [q.state(kind) for kind in kinds] == ["held", "ready", "dead"]
    assert batches(q) == {"b": counts(dead=1, finished=1, held=1)}
    assert "1 of them dead" in q.explain("HOLD")["why"]
    for kind in kinds:
        q.add(f"late {kind}", "AFTER", "b", "ONFAIL", kind)
    assert [q.state(f"late {kind}") for kind in kinds] == ["held", "ready", "dead"]
    assert q.do("REDRIVE", "IDS", 2, "a", "DIE") == 2
    assert (q.state("DIE"), q.state("GO"), q.state("HOLD")) == ("ready", "ready", "held")
    q.do("CANCEL", "a")
    assert (q.state("HOLD"), q.state("late HOLD")) == ("ready", "ready")


def test_a_held_message_can_be_changed(q):
    for id in ("moved", "updated", "cancelled", "replaced"):
        q.add(id, "AFTER", "b")
    assert q.do("RESCHEDULE", "moved", "DELAY", 100) == 1
    assert q.do("UPDATE", "updated", "new") == 1
    assert text(q.do("CANCEL", "cancelled")) == ["held"]
    assert q.add("replaced", "REPLACE") == "replaced"
    assert [q.state(id) for id in ("moved", "updated", "replaced")] == ["held", "held", "ready"]
    q.do("CANCEL", "a", "c")
    assert (q.state("moved"), q.row("moved")["due-at"]) == ("delayed", START + 100)
    assert (q.state("updated"), q.row("updated")["payload"]) == ("ready", "new")


def test_ttl_counts_from_the_release_and_the_score_is_that_of_the_send(q):
    q.add("held", "AFTER", "b", "TTL", 10, "GROUP", "g")
    q.advance(50)
    assert q.state("held") == "held"
    assert q.groups()["g"]["waiting"] == 1
    q.do("CANCEL", "a", "c")
    assert q.row("held")["score"] == START
    q.advance(9)
    assert q.state("held") == "ready"
    q.advance(1)
    assert (q.state("held"), q.row("held")["reason"]) == ("dead", "expired")


def test_batches_form_trees_and_no_rings(q):
    q.add("middle", "AFTER", "b", "BATCH", "top")
    q.add("end", "AFTER", "top")
    assert batches(q)["top"] == counts(pending=1, held=1)
    assert "wait for each other" in q.fails("SEND", "x", "BATCH", "b", "AFTER", "top")
    assert "same batch" in q.fails("SEND", "x", "BATCH", "b", "AFTER", "b")
    assert q.len() == 4
    order = q.drain("COUNT", 9)
    assert order == ["a", "c", "middle", "end"]


def test_a_message_may_send_its_successors_into_its_batch(q, key):
    q.add("held", "AFTER", "b")
    q.do("CANCEL", "c")
    [receipt] = q.receipts()
    ids = q.do("ACKSEND", receipt, "NEXT", key, "p", "ID", "n", "BATCH", "b", "NEXT", key, "p", "ID", "e", "AFTER", "b")
    assert text(ids) == ["n", "e"]
    assert [q.state(id) for id in ("n", "e", "held")] == ["ready", "held", "held"]
    assert batches(q) == {"b": counts(pending=1, finished=1, cancelled=1, held=2)}
    assert q.drain() == ["n", "held", "e"]


def test_batches_are_listed_step_by_step(r, key):
    q = Scene(r, key)
    for n in range(25):
        q.do("MSEND", 2, "x", "y", "BATCH", f"b{n}")
    assert len(q.do("BATCHES")[1]) == 10
    for count in (1, 7, 10_000):
        assert list(batches(q, "COUNT", count)) == [f"b{n}" for n in range(25)]


def test_msend_grouppush_and_schedules_know_batches(r, key):
    q = Scene(r, key)
    q.do("MSEND", 3, *"abc", "BATCH", "b")
    q.do("GROUPPUSH", '{"g": 1}', "GROUPBY", 1, "g", "AFTER", "b")
    q.do("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "BATCH", "b", "AFTER", "other")
    q.advance(10)
    assert batches(q)["b"] == counts(pending=4, held=1)
    q.do("PURGE", "STATE", "ready")
    assert (q.len("ready"), q.len("held")) == (1, 0)


def test_purge_of_held_ones_and_of_all(q):
    q.add("one", "AFTER", "b", "GROUP", "g")
    q.add("two", "AFTER", "b")
    assert q.do("PURGE", "STATE", "held", "GROUP", "g") == 1
    assert q.do("PURGE", "STATE", "held") == 1
    assert batches(q) == {"b": counts(pending=2)}
    q.add("three", "AFTER", "b")
    assert q.do("PURGE") == 3
    assert (batches(q), q.len("held")) == ({}, 0)


def test_find_knows_batches(q):
    q.add("held", "AFTER", "b", "BATCH", "x")
    assert text(q.do("FIND", "ready", "BATCH", "b", "IDS")) == ["0", ["a", "c"]]
    assert text(q.do("FIND", "held", "BATCH", "x", "IDS")) == ["0", ["held"]]
    assert text(q.do("FIND", "held", "BATCH", "b", "IDS")) == ["0", []]
    assert text(q.do("FIND", "held", "REV", "SINCE", START, "IDS")) == ["0", ["held"]]
    q.ack(*q.receipts("COUNT", 2))
    assert text(q.do("FIND", "finished", "BATCH", "b", "IDS")) == ["0", ["a", "c"]], "a record shows its batch"


def test_withmeta_shows_batch_and_after(q):
    q.add("held", "AFTER", "b", "BATCH", "x")
    first, second = q.fetch("COUNT", 2, "WITHMETA")
    assert (first.meta["batch"], first.meta["after"]) == (b"b", None)
    q.ack(first.receipt, second.receipt)
    third = q.one("WITHMETA", "NOACK")
    assert third.meta["batch"] == b"x"
    assert as_map(third.meta["after"])["finished"] == 2


def test_a_copy_has_the_batches_and_runs_nothing(q, r, key):
    q.add("held", "AFTER", "b")
    q.receipts()
    copy = f"{key}:copy"
    assert r.copy(key, copy)
    other = Scene.over(r, copy)
    assert batches(other) == {"b": counts(pending=2, held=1)}
    assert other.drain("COUNT", 9)[-1] == "held"
    r.delete(copy)


def test_a_million_members_cost_little_more_than_plain_messages(r, key):
    """The bound is for a million; the cost of each message is the same with fewer."""
    n, used = 50_000, []
    for options in ((), ("BATCH", "b")):
        r.delete(key)
        for _ in range(n // 1000):
            r.execute_command("DQ.MSEND", key, 1000, *["x" * 50] * 1000, *options)
        used.append(r.memory_usage(key, samples=0))
    assert used[1] - used[0] <= 8 * n
