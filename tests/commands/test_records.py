"""Records: the data that is kept of an ended message, how long it is kept, and its fields in GET."""

import time

from tests.harness.replies import Queue
from tests.harness.scene import START, Scene
from tests.harness.server import wait_for
from tests.harness.waiting import steps_between_answers

FIELDS = {
    "id", "status", "state", "payload", "attempt", "failures", "timeouts", "retries-left", "group",
    "score", "priority", "type", "headers", "sent-at", "due-at", "first-started-at", "started-at",
    "lease-until", "finished-at", "consumer", "receipt", "error", "result", "reason", "note", "signal", "batch",
    "after", "parent", "children", "first-sent-at", "rerun", "limits", "cost", "errors",
}  # fmt: skip

STATUS = {
    "delayed": "pending",
    "ready": "pending",
    "blocked": "pending",
    "retry": "pending",
    "running": "running",
    "finished": "finished",
    "dead": "error",
    "cancelled": "cancelled",
}


def finish(q, *ids):
    """Sends and acks each, one after the other."""
    for id in ids:
        q.add(id)
        assert q.ack(q.one().receipt) == 1


def die(q, *ids):
    for id in ids:
        q.add(id)
        assert q.nack(q.one().receipt, "FATAL") == 1


def cancel(q, *ids):
    for id in ids:
        q.add(id)
        q.do("CANCEL", id)


def test_get_shows_all_fields_and_the_status_of_every_state(r, key):
    q = Scene(r, key, "RETAIN", 1000, "BACKOFF", "FIXED", 100)
    finish(q, "finished")
    die(q, "dead")
    cancel(q, "cancelled")
    q.fill("g", "running", "blocked")
    q.take()
    q.add("retry")
    q.nack(q.one().receipt)
    q.add("ready")
    q.add("delayed", "DELAY", 5)
    for state, status in STATUS.items():
        row = q.row(state)
        assert set(row) == FIELDS
        assert (row["id"], row["state"], row["status"], row["payload"]) == (state, state, status, state)


def test_get_shows_a_message_that_was_not_yet_delivered(r, key):
    q = Scene(r, key)
    q.advance(5)
    q.add("a", "DELAY", 10, "TYPE", "mail", "HEADERS", 2, "x", "1", "y", "2", "PRIORITY", -3)
    assert q.row("a") == {
        "id": "a", "status": "pending", "state": "delayed", "payload": "a", "attempt": 0, "failures": 0,
        "timeouts": 0, "retries-left": 3, "group": None, "score": None, "priority": -3, "type": "mail",
        "headers": {"x": "1", "y": "2"}, "sent-at": START + 5, "due-at": START + 15, "first-started-at": None,
        "started-at": None, "lease-until": None, "finished-at": None, "consumer": None, "receipt": None,
        "error": None, "result": None, "reason": None, "note": None, "signal": None, "batch": None, "after": None, "parent": None, "children": None,
        "first-sent-at": None, "rerun": False, "limits": [], "cost": None, "errors": [],
    }  # fmt: skip


def test_get_shows_each_step_of_a_messages_life(r, key):
    q = Scene(r, key, "RETAIN", 10_000, "LEASE", 100)
    q.add("a", "RETRIES", 5)
    q.advance(10)
    first = q.one("CONSUMER", "alice")
    row = q.row("a")
    assert row["state"] == "running"
    assert (row["first-started-at"], row["started-at"]) == (START + 10, START + 10)
    assert (row["lease-until"], row["consumer"], row["receipt"]) == (START + 110, "alice", first.receipt)
    q.nack(first.receipt, "ERROR", "no luck", "DELAY", 40)
    row = q.row("a")
    assert (row["state"], row["error"], row["failures"], row["timeouts"]) == ("retry", "no luck", 1, 0)
    assert (row["due-at"], row["lease-until"], row["receipt"]) == (START + 50, None, None)
    assert (row["consumer"], row["started-at"], row["retries-left"]) == ("alice", START + 10, 4)
    q.advance(60)
    q.one("CONSUMER", "bob")
    q.advance(100)
    row = q.row("a")
    assert (row["state"], row["failures"], row["timeouts"], row["retries-left"]) == ("ready", 2, 1, 3)
    # After a backoff, due-at stays the end of that backoff.
    assert (row["due-at"], row["started-at"], row["error"]) == (START + 50, START + 70, "no luck")
    last = q.one()
    q.advance(30)
    assert q.ack(last.receipt, "RESULT", "all good") == 1
    row = q.row("a")
    assert (row["state"], row["status"], row["result"], row["error"]) == (
        "finished",
        "finished",
        "all good",
        "no luck",
    )
    assert (row["attempt"], row["failures"], row["timeouts"]) == (3, 2, 1)
    assert (row["first-started-at"], row["started-at"], row["finished-at"]) == (
        START + 10,
        START + 170,
        START + 200,
    )
    assert (row["lease-until"], row["receipt"], row["consumer"]) == (None, None, None)
    assert row["payload"] == "a"


def test_a_dead_message_shows_the_reason(r, key):
    q = Scene(r, key, "RETRIES", 0, "LEASE", 50)
    q.add("rejected")
    q.nack(q.one().receipt, "FATAL", "ERROR", "bad")
    q.add("retries")
    q.nack(q.one().receipt, "ERROR", "worse")
    q.add("timeout")
    q.one()
    q.add("expired", "TTL", 20)
    q.advance(50)
    rows = {id: q.row(id) for id in ("rejected", "retries", "timeout", "expired")}
    assert {row["state"] for row in rows.values()} == {"dead"}
    assert {row["status"] for row in rows.values()} == {"error"}
    assert [row["reason"] for row in rows.values()] == ["rejected", "retries", "retries", "expired"]
    assert [row["finished-at"] for row in rows.values()] == [START, START, START + 50, START + 20]
    assert [row["error"] for row in rows.values()] == ["bad", "worse", None, None]
    assert [row["retries-left"] for row in rows.values()][1:3] == [0, 0]


def test_a_result_or_error_can_be_any_bytes(r, key):
    q = Scene(r, key, "RETAIN", 1000)
    blob = bytes(range(256))
    q.add("a")
    q.ack(q.one().receipt, "RESULT", blob)
    assert q.get("a")["result"] == blob
    q.add("b")
    q.nack(q.one().receipt, "FATAL", "ERROR", blob)
    assert q.get("b")["error"] == blob


def test_ack_stores_its_result_for_every_receipt(r, key):
    q = Scene(r, key, "RETAIN", 1000)
    for id in "abc":
        q.add(id)
    assert q.ack(*q.receipts("COUNT", 3), "RESULT", "ok") == 3
    assert [q.row(id)["result"] for id in "abc"] == ["ok"] * 3


def test_retain_0_keeps_no_record(r, key):
    q = Scene(r, key)
    finish(q, "a")
    cancel(q, "b")
    assert q.row("a") is None and q.row("b") is None
    assert q.counts() == {}


def test_a_record_is_kept_for_exactly_retain(r, key):
    q = Scene(r, key, "RETAIN", 100)
    finish(q, "a")
    q.advance(30)
    cancel(q, "b")
    assert q.advance(69)["pruned"] == 0
    assert q.counts() == {"finished": 1, "cancelled": 1}
    assert q.advance(1)["pruned"] == 1
    assert q.counts() == {"cancelled": 1}
    assert q.row("a") is None
    assert q.advance(30)["pruned"] == 1
    assert q.counts() == {}


def test_retaincount_counts_finished_and_cancelled_together(r, key):
    q = Scene(r, key, "RETAIN", 10**9, "RETAINCOUNT", 3)
    finish(q, "f1")
    cancel(q, "c1")
    finish(q, "f2")
    assert q.counts() == {"finished": 2, "cancelled": 1}
    finish(q, "f3")
    assert q.row("f1") is None
    assert q.listed("cancelled") == ["c1"] and q.listed("finished") == ["f2", "f3"]
    finish(q, "f4")
    assert q.listed("cancelled") == [] and q.listed("finished") == ["f2", "f3", "f4"]


def test_retaincount_is_10000_by_default_and_0_means_no_limit(r, key):
    q = Scene(r, key, "RETAIN", 10**9)
    assert q.info()["retaincount"] == 10000
    q.do("ALTER", "RETAINCOUNT", 0)
    for _ in range(11):
        q.do("MSEND", 1000, *["x"] * 1000)
        q.ack(*q.receipts("COUNT", 1000))
    assert q.len("finished") == 11_000
    q.do("ALTER", "RETAINCOUNT", 10)
    assert q.len("finished") == 10


def test_deadretain_and_deadcount_limit_the_dead_messages(r, key):
    q = Scene(r, key, "DEADRETAIN", 100)
    die(q, "a")
    q.advance(50)
    die(q, "b")
    assert q.advance(50)["pruned"] == 1
    assert q.listed("dead") == ["b"]
    q.do("ALTER", "DEADRETAIN", 0, "DEADCOUNT", 2)
    die(q, "c", "d")
    assert q.listed("dead") == ["c", "d"]
    q.advance(10**9)
    assert q.len("dead") == 2


def test_dead_messages_are_kept_for_ever_by_default(r, key):
    q = Scene(r, key)
    die(q, "a")
    assert q.advance(2**50)["pruned"] == 0
    assert q.row("a")["state"] == "dead"


def test_alter_of_retention_applies_at_once(r, key):
    q = Scene(r, key, "RETAIN", 1000)
    finish(q, "a")
    q.advance(100)
    finish(q, "b")
    q.do("ALTER", "RETAIN", 50)
    assert q.listed("finished") == ["b"]
    q.do("ALTER", "RETAIN", 2000)
    q.advance(1999)
    assert q.listed("finished") == ["b"]
    q.do("ALTER", "RETAIN", 0)
    assert q.listed("finished") == []
    die(q, "x", "y", "z")
    q.do("ALTER", "DEADCOUNT", 1)
    assert q.listed("dead") == ["z"]


def test_a_dead_message_that_is_cancelled_becomes_a_cancelled_record(r, key):
    q = Scene(r, key, "RETAIN", 100)
    die(q, "a")
    q.advance(10)
    assert q.do("CANCEL", "a") == [b"dead"]
    row = q.row("a")
    assert (row["state"], row["status"], row["finished-at"]) == ("cancelled", "cancelled", START + 10)
    q.advance(99)
    assert q.len("cancelled") == 1
    q.advance(1)
    assert q.counts() == {}


def test_a_cancelled_message_that_was_dead_shows_no_reason(r, key):
    q = Scene(r, key, "RETAIN", 100)
    q.add("rejected")
    assert q.nack(q.one().receipt, "FATAL", "ERROR", "no") == 1
    q.add("expired", "TTL", 5)
    q.advance(5)
    assert [row["reason"] for row in q.rows("dead")] == ["rejected", "expired"]
    assert q.do("CANCEL", "rejected", "expired") == [b"dead", b"dead"]
    assert [(row["state"], row["reason"]) for row in q.rows("cancelled")] == [("cancelled", None)] * 2
    assert q.row("rejected")["reason"] is None
    # The last error is still shown.
    assert q.row("rejected")["error"] == "no"


def test_ended_messages_cannot_be_changed(r, key):
    q = Scene(r, key, "RETAIN", 1000)
    finish(q, "a")
    cancel(q, "b")
    before = q.digest()
    assert q.do("CANCEL", "a", "b", "unknown") == [b"finished", b"cancelled", None]
    assert q.do("RESCHEDULE", "a", "DELAY", 5) == 0
    assert q.do("UPDATE", "b", "x") == 0
    assert q.digest() == before


def test_a_cancelled_message_keeps_its_group_consumer_and_times(r, key):
    q = Scene(r, key, "RETAIN", 1000)
    q.add("a", "GROUP", "g", "SCORE", 2, "TYPE", "t")
    q.one("CONSUMER", "alice")
    q.advance(7)
    assert q.do("CANCEL", "a") == [b"running"]
    row = q.row("a")
    assert (row["group"], row["score"], row["type"]) == ("g", 2.0, "t")
    assert (row["consumer"], row["started-at"], row["finished-at"]) == ("alice", START, START + 7)
    assert (row["receipt"], row["lease-until"]) == (None, None)


def test_old_records_are_removed_without_any_command(server, r3, key):
    q = Queue(r3, key)
    q.do("CREATE", "RETAIN", 1500)
    q.do("MSEND", 2000, *[b"x" * 1000] * 2000)
    q.ack(*[m.receipt for m in q.fetch("COUNT", 2000)])
    full = r3.execute_command("MEMORY", "USAGE", key)
    assert full > 2_000_000
    time.sleep(1.5)
    # MEMORY USAGE is no command of the module, so only the timer can have removed the records.
    wait_for(lambda: r3.execute_command("MEMORY", "USAGE", key) < full / 5, 5, "the pruning of old records")


def test_removing_many_old_records_does_not_hold_the_server(server, r3, key):
    """100,000 records expire at once; other clients are answered repeatedly while the records are removed."""
    q = Queue(r3, key)
    q.do("CREATE", "RETAINCOUNT", 0, "RETAIN", 10**9)
    for _ in range(20):
        q.do("MSEND", 5000, *["x"] * 5000)
        q.ack(*[m.receipt for m in q.fetch("COUNT", 5000)])
    over = ("DQ.ALTER", key, "RETAIN", 1)
    steps = steps_between_answers(server, over, ask=("DQ.LEN", key, "finished"))
    assert len(steps) > 4 and max(steps) < 100_000 / 4
    wait_for(lambda: q.len("finished") == 0, 20, "the end of all records")
