"""The ids that are taken, and the ways to free them: DEDUP, REPLACE, records."""

import pytest

from tests.harness.scene import START, Scene


def end(q, id, how):
    if how == "finished":
        q.ack(q.one().receipt)
    else:
        q.do("CANCEL", id)


def test_an_id_is_taken_while_pending_running_or_dead(r, key):
    q = Scene(r, key)
    q.add("a", "DELAY", 10)
    assert q.add("a") is None
    q.advance(10)
    assert q.add("a") is None
    held = q.one()
    assert q.add("a") is None
    q.nack(held.receipt, "DELAY", 5)
    assert q.add("a") is None
    q.advance(5)
    q.nack(q.one().receipt, "FATAL")
    assert q.add("a") is None
    assert q.info()["duplicates"] == 5
    assert q.info()["sent"] == 1


@pytest.mark.parametrize("how", ["finished", "cancelled"])
def test_without_dedup_the_id_of_an_ended_message_is_free_at_once(r, key, how):
    q = Scene(r, key)
    q.add("a")
    end(q, "a", how)
    assert q.add("a") == "a"


@pytest.mark.parametrize("how", ["finished", "cancelled"])
@pytest.mark.parametrize("retain", [0, 50, 5000])
def test_dedup_keeps_an_id_taken_for_exactly_its_time(r, key, how, retain):
    q = Scene(r, key, "DEDUP", 100, "RETAIN", retain)
    q.add("a")
    q.advance(7)
    end(q, "a", how)
    q.advance(99)
    assert q.add("a") is None
    # The record of a cancelled message can be replaced; without a record it is unknown how the message has ended.
    if how == "finished" or retain < 100:
        assert q.add("a", "REPLACE") is None
    q.advance(1)
    assert q.add("a") == "a"
    assert q.row("a")["state"] == "ready"


def test_a_new_message_replaces_a_kept_record(r, key):
    q = Scene(r, key, "RETAIN", 1000)
    q.add("a", "TYPE", "old")
    q.ack(q.one().receipt, "RESULT", "done")
    q.advance(5)
    assert q.add("a", "DELAY", 10) == "a"
    row = q.row("a")
    assert (row["state"], row["result"], row["attempt"], row["type"]) == ("delayed", None, 0, None)
    assert q.counts() == {"delayed": 1}
    assert q.listed("finished") == []
    assert q.advance(995)["pruned"] == 0
    assert q.row("a")["state"] == "ready"


def test_dedup_keeps_the_id_of_a_noack_delivery_taken(r, key):
    q = Scene(r, key, "DEDUP", 100)
    q.add("a")
    q.one("NOACK")
    assert q.add("a") is None
    q.advance(100)
    assert q.add("a") == "a"


def test_a_dead_message_that_is_pruned_or_purged_frees_its_id(r, key):
    q = Scene(r, key, "DEADRETAIN", 50, "DEDUP", 1000)
    q.add("a")
    q.nack(q.one().receipt, "FATAL")
    q.advance(49)
    assert q.add("a") is None
    q.advance(1)
    assert q.add("a") == "a"
    q.nack(q.one().receipt, "FATAL")
    assert q.do("PURGE", "STATE", "dead") == 1
    assert q.add("a") == "a"


def test_purge_of_everything_forgets_the_ids_kept_for_dedup(r, key):
    q = Scene(r, key, "DEDUP", 10**6)
    q.add("a")
    q.ack(q.one().receipt)
    q.do("PURGE", "STATE", "ready")
    assert q.add("a") is None
    q.do("PURGE", "GROUP", "g")
    assert q.add("a") is None
    q.do("PURGE")
    assert q.add("a") == "a"


def test_alter_of_dedup_applies_to_ended_messages(r, key):
    q = Scene(r, key, "DEDUP", 1000)
    q.add("a")
    q.ack(q.one().receipt)
    q.advance(100)
    q.do("ALTER", "DEDUP", 50)
    assert q.add("a") == "a"


def test_send_and_grouppush_with_a_taken_id_reply_null_on_a_full_queue(r, key):
    q = Scene(r, key, "MAXLEN", 1)
    q.add("a")
    assert q.add("a") is None
    assert q.fails("SEND", "x", "ID", "b").startswith("QUEUEFULL")
    assert q.do("GROUPPUSH", '{"id":"a"}', "GROUPBY", 1, "id", "IDPATH", "id") is None


@pytest.mark.parametrize("state", ["delayed", "ready", "blocked", "retry"])
def test_replace_makes_a_new_message_in_every_pending_state(r, key, state):
    q = Scene(r, key)
    if state == "delayed":
        q.add("a", "DELAY", 500, "TYPE", "old")
    elif state == "ready":
        q.add("a", "TYPE", "old")
    elif state == "blocked":
        q.fill("g", "head")
        q.one()
        q.add("a", "GROUP", "g", "TYPE", "old")
    else:
        q.add("a", "TYPE", "old")
        q.nack(q.one().receipt, "DELAY", 500, "ERROR", "e")
    assert q.row("a")["state"] == state
    q.advance(10)
    sent = q.info()["sent"]
    assert q.do("SEND", "new", "ID", "a", "REPLACE", "DELAY", 90, "PRIORITY", 4) == b"a"
    row = q.row("a")
    assert (row["state"], row["payload"], row["sent-at"], row["due-at"]) == (
        "delayed",
        "new",
        START + 10,
        START + 100,
    )
    assert (row["type"], row["group"], row["priority"], row["error"]) == (None, None, 4, None)
    assert (row["attempt"], row["failures"], row["first-started-at"]) == (0, 0, None)
    assert q.info()["sent"] == sent + 1
    assert q.info()["duplicates"] == 0
    q.advance(90)
    assert "a" in q.take("COUNT", 10)


@pytest.mark.parametrize("state", ["running", "finished"])
def test_replace_of_a_running_or_finished_message_is_null(r, key, state):
    q = Scene(r, key, "DEDUP", 100, "RETAIN", 100)
    q.add("a")
    held = q.one()
    if state == "finished":
        q.ack(held.receipt)
    before = {k: v for k, v in q.row("a").items()}
    assert q.do("SEND", "new", "ID", "a", "REPLACE") is None
    assert q.row("a") == before
    assert q.len() == (1 if state == "running" else 0)


def test_replace_of_a_free_id_adds_a_message(r, key):
    q = Scene(r, key)
    assert q.add("a", "REPLACE") == "a"


def test_repeated_replace_with_delay_delivers_only_the_last(r, key):
    q = Scene(r, key)
    for i in range(20):
        assert q.do("SEND", str(i), "ID", "search", "REPLACE", "DELAY", 100) == b"search"
        q.advance(99)
        assert q.take() == []
    q.advance(1)
    (m,) = q.fetch("COUNT", 10)
    assert m.payload == b"19"


def test_a_replaced_message_goes_to_the_end(r, key):
    q = Scene(r, key)
    for id in "abc":
        q.add(id)
    q.add("a", "REPLACE")
    assert q.take("COUNT", 10) == ["b", "c", "a"]


def test_the_memory_of_ids_kept_for_dedup_is_freed_over_time(r, key):
    q = Scene(r, key, "DEDUP", 100)
    base = None
    for round in range(6):
        for i in range(500):
            q.add(f"{round}:{i}")
        q.ack(*q.receipts("COUNT", 500))
        q.advance(100)
        used = r.execute_command("MEMORY", "USAGE", key)
        base = base or used
    assert used < base * 1.5
