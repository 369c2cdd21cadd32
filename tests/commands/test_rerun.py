"""REPLACE RERUN: while a message runs, the newest payload waits and is sent when that run has ended."""

import pytest

from tests.harness.replies import Manual, Queue, truth


@pytest.fixture
def q(r, key):
    return Manual(r, key, "LEASE", 1000, "RETRIES", 1)


def run_and_replace(q, *options, payload="new"):
    """A message `job` runs, and another payload with that id is sent."""
    q.send("old", "ID", "job")
    m = q.one()
    assert q.send(payload, "ID", "job", "REPLACE", "RERUN", *options) == b"job"
    return m


def waits(q, id="job"):
    return truth(q.get(id)["rerun"])


def test_the_newest_payload_runs_when_the_present_run_is_acked(q):
    m = run_and_replace(q)
    assert waits(q)
    assert (q.get("job")["payload"], q.get("job")["state"]) == (b"old", b"running")
    assert q.send("newest", "ID", "job", "REPLACE", "RERUN", "TYPE", "t") == b"job"
    assert (q.len(), q.fetch("COUNT", 9)) == (1, [])
    assert q.ack(m.receipt) == 1
    again = q.one("WITHMETA")
    assert (again.id, again.payload, again.attempt) == (b"job", b"newest", 1)
    assert again.meta["type"] == b"t"
    assert not waits(q)
    assert q.ack(again.receipt) == 1
    assert (q.fetch("COUNT", 9), q.len()) == ([], 0)
    assert q.info()["sent"] == 2


def test_without_a_run_it_replaces(q):
    assert q.send("a", "ID", "job", "REPLACE", "RERUN") == b"job"
    assert q.send("b", "ID", "job", "REPLACE", "RERUN") == b"job"
    assert (q.len(), q.get("job")["payload"], waits(q)) == (1, b"b", False)
    q.nack(q.one().receipt, "FATAL")
    assert q.send("c", "ID", "job", "REPLACE", "RERUN") == b"job"
    assert (q.get("job")["state"], q.len("dead")) == (b"ready", 0)


def test_replace_alone_leaves_a_running_message(q):
    run_and_replace(q)
    assert q.send("third", "ID", "job", "REPLACE") is None
    assert waits(q)


@pytest.mark.parametrize("end", ["fatal", "retries", "timeout", "cancelled", "retained"])
def test_it_runs_whatever_has_ended_the_run(r, key, end):
    retries = 0 if end in ("retries", "timeout") else 3
    q = Manual(r, key, "LEASE", 1000, "RETRIES", retries, "RETAIN", 60000, "DEDUP", 60000)
    m = run_and_replace(q, "GROUP", "g")
    match end:
        case "fatal":
            assert q.nack(m.receipt, "FATAL") == 1
        case "retries":
            assert q.nack(m.receipt) == 1
        case "timeout":
            q.advance(1000)
        case "cancelled":
            assert q.do("CANCEL", "job") == [b"running"]
        case "retained":
            assert q.ack(m.receipt) == 1
    assert [q.len(state) for state in ("ready", "dead", "cancelled", "finished")] == [1, 0, 0, 0]
    again = q.one()
    assert (again.payload, again.attempt) == (b"new", 1)
    assert q.info()["deaths"] == (end in ("fatal", "retries", "timeout"))


@pytest.mark.parametrize("back", ["failed", "silent", "snoozed", "timeout"])
def test_a_retry_takes_the_new_payload_at_once(q, back):
    m = run_and_replace(q, "TYPE", "t")
    match back:
        case "failed":
            q.nack(m.receipt, "DELAY", 0)
        case "silent":
            q.nack(m.receipt, "SILENT")
        case "snoozed":
            q.nack(m.receipt, "SILENT", "DELAY", 5)
            q.advance(5)
        case "timeout":
            q.advance(1000)
    assert not waits(q)
    again = q.one("WITHMETA")
    assert (again.payload, again.meta["type"]) == (b"new", b"t")
    assert again.attempt == (1 if back in ("silent", "snoozed") else 2)
    assert q.ack(again.receipt) == 1
    assert q.len() == 0


def test_its_delay_counts_from_the_end_of_the_run(q):
    m = run_and_replace(q, "DELAY", 500)
    q.advance(900)
    q.ack(m.receipt)
    assert (q.get("job")["state"], q.fetch()) == (b"delayed", [])
    q.advance(499)
    assert q.fetch() == []
    q.advance(1)
    assert q.one().payload == b"new"


def test_maxwait_counts_from_the_first_send_while_it_ran(q):
    m = run_and_replace(q, "MAXWAIT", 700, "DELAY", 5000)
    q.advance(600)
    q.send("newest", "ID", "job", "REPLACE", "RERUN", "MAXWAIT", 700, "DELAY", 5000)
    q.ack(m.receipt)
    q.advance(99)
    assert q.fetch() == []
    q.advance(1)
    assert q.one().payload == b"newest"


def test_who_waits_for_the_message_gets_the_end_of_the_run(server, q):
    m = run_and_replace(q)
    before = int(server.info("clients")["blocked_clients"])
    wire = server.wire()
    wire.send("DQ.WAIT", q.key, "job", 20_000)
    server.wait_blocked(before + 1)
    q.ack(m.receipt, "RESULT", "done")
    assert wire.recv(20) == [b"finished", b"done"]


def test_a_purge_takes_what_waits_with_the_message(q):
    run_and_replace(q)
    assert q.do("PURGE", "STATE", "running") == 1
    assert (q.len(), q.get("job")) == (0, None)


def test_a_dead_run_holds_its_group_no_longer(r, key):
    q = Manual(r, key, "ONDEAD", "BLOCK")
    q.send("old", "ID", "job", "GROUP", "g")
    m = q.one()
    q.send("other", "ID", "other", "GROUP", "g")
    q.send("new", "ID", "job", "GROUP", "g", "REPLACE", "RERUN")
    q.nack(m.receipt, "FATAL")
    assert [one.id for one in q.fetch("COUNT", 9, "GROUP", "g")] == [b"other", b"job"]


def test_a_dead_run_goes_to_the_queue_of_deadto_before_the_next_one(r, key):
    there = Queue(r, key + b"-dead")
    q = Manual(r, key, "DEADTO", there.key, "ONDEAD", "BLOCK")
    m = run_and_replace(q, "GROUP", "g")
    q.nack(m.receipt, "FATAL")
    assert [one.payload for one in there.fetch("COUNT", 9)] == [b"old"]
    again = q.one()
    assert (again.payload, q.len("dead"), q.len()) == (b"new", 0, 1)
    # The key of the other queue has another type, so the dead message cannot go there.
    r.delete(there.key)
    r.set(there.key, "x")
    q.send("newer", "ID", "job", "REPLACE", "RERUN")
    q.nack(again.receipt, "FATAL")
    assert (q.one().payload, q.len("dead")) == (b"newer", 0)


def test_its_batch_is_not_over_in_between(q):
    q.send("old", "ID", "job", "BATCH", "b")
    q.send("last", "ID", "last", "AFTER", "b")
    m = q.one()
    q.send("new", "ID", "job", "BATCH", "b", "REPLACE", "RERUN")
    q.ack(m.receipt)
    assert q.len("held") == 1
    q.ack(q.one().receipt)
    assert q.one().id == b"last"


def test_an_ack_and_a_fetch_in_one_give_what_waited(q):
    m = run_and_replace(q)
    [again] = q.fetch("ACK", 1, m.receipt)
    assert (again.id, again.payload) == (b"job", b"new")


def test_what_follows_from_an_ack_comes_behind_it(q):
    m = run_and_replace(q)
    sent = q.do("ACKSEND", m.receipt, "NEXT", q.key, "taken", "ID", "job", "NEXT", q.key, "x", "ID", "x")
    assert sent == [None, b"x"]
    assert [one.payload for one in q.fetch("COUNT", 9)] == [b"new", b"x"]


def test_an_acksend_lets_its_message_wait_for_a_run(q):
    first = run_and_replace(q)
    q.send("x", "ID", "x")
    other = q.one()
    sent = q.do("ACKSEND", other.receipt, "NEXT", q.key, "newer", "ID", "job", "REPLACE", "RERUN")
    assert sent == [b"job"]
    q.ack(first.receipt)
    assert q.one().payload == b"newer"


def test_it_can_be_read_from_json(q):
    options = ("GROUPBY", 1, "g", "IDPATH", "id", "REPLACE", "RERUN")
    q.do("GROUPPUSH", '{"g":1,"id":"job","v":1}', *options)
    m = q.one()
    assert q.do("GROUPPUSH", '{"g":1,"id":"job","v":2}', *options) == [b"1", b"job"]
    q.ack(m.receipt)
    assert q.one().payload == b'{"g":1,"id":"job","v":2}'


def test_a_full_queue_takes_what_needs_no_more_room(r, key):
    q = Manual(r, key, "MAXLEN", 1, "MAXBYTES", 5)
    q.send("abc", "ID", "job")
    q.one()
    assert q.send("abcde", "ID", "job", "REPLACE", "RERUN") == b"job"
    assert q.fails("SEND", "abcdef", "ID", "job", "REPLACE", "RERUN").startswith("QUEUEFULL")
    q.do("ALTER", "SENDS", "OFF")
    assert q.send("newer", "ID", "job", "REPLACE", "RERUN") == b"job"


def test_a_closed_queue_takes_none(r, key):
    q = Manual(r, key)
    q.send("abc", "ID", "job")
    q.one()
    q.do("ALTER", "SENDS", "OFF")
    assert q.fails("SEND", "x", "ID", "job", "REPLACE", "RERUN").startswith("QUEUECLOSED")


def test_in_a_copy_the_message_has_come_back(r, key):
    run_and_replace(Manual(r, key), "GROUP", "g")
    r.execute_command("COPY", key, key + b"-copy")
    copied = Queue(r, key + b"-copy").get("job")
    assert (copied["payload"], copied["state"], truth(copied["rerun"])) == (b"new", b"ready", False)
