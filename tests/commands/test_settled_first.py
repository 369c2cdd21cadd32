"""The consequences of the end of a message are done before any command sees the queue, however close the command comes.

Each test sends the lease's end and the command that meets it in one pipeline, so that the timer comes between them or does not.
"""

import time

import pytest

from tests.harness.aof import commands
from tests.harness.replies import as_map
from tests.harness.server import wait_for

ROUNDS = 60
LEASE = 8


@pytest.fixture
def dead(key):
    return key + b":dead"


def at_the_end_of_a_lease(r, commands):
    """Sends commands one after the other while a lease of 8 ms ends, without waiting for their replies."""
    time.sleep(LEASE / 1000 - 0.002)
    pipeline = r.pipeline(transaction=False)
    for _ in range(4):
        for command in commands:
            pipeline.execute_command(*command)
        pipeline.execute_command("PING")
    return pipeline.execute(raise_on_error=False)


def when_it_has_ended(r, key) -> int:
    """Waits for the end of the lease. Returns how many messages have died."""
    wait_for(lambda: r.execute_command("DQ.LEN", key, "running") == 0)
    return as_map(r.execute_command("DQ.INFO", key))["deaths"]


def counted(r, key, dead) -> int:
    """How many messages the queue and its queue of dead ones have in all."""
    states = ("ready", "running", "dead", "delayed", "retry", "held")
    return sum(r.execute_command("DQ.LEN", q, state) for q in (key, dead) if r.exists(q) for state in states)


TAKERS = {
    "replace": lambda key: [("DQ.SEND", key, "v2", "ID", "a", "REPLACE")],
    "cancel": lambda key: [("DQ.CANCEL", key, "a")],
    "find-cancel": lambda key: [("DQ.FIND", key, "STATE", "dead", "DO", "CANCEL")],
    "find-purge": lambda key: [("DQ.FIND", key, "STATE", "dead", "DO", "PURGE")],
    "purge": lambda key: [("DQ.PURGE", key, "STATE", "dead")],
    "redrive": lambda key: [("DQ.REDRIVE", key, "ALL")],
    "redrive-ids": lambda key: [("DQ.REDRIVE", key, "IDS", 1, "a")],
    "find-redrive": lambda key: [("DQ.FIND", key, "STATE", "dead", "DO", "REDRIVE")],
}


@pytest.mark.parametrize("taker", TAKERS)
def test_a_message_that_dies_is_in_the_other_queue(r, key, dead, taker):
    for _ in range(ROUNDS):
        r.delete(key, dead)
        r.execute_command("DQ.CREATE", key, "RETRIES", 0, "DEADTO", dead)
        r.execute_command("DQ.SEND", key, "v1", "ID", "a")
        assert len(r.execute_command("DQ.FETCH", key, "LEASE", LEASE)) == 1
        at_the_end_of_a_lease(r, TAKERS[taker](key))
        deaths = when_it_has_ended(r, key)
        there = r.execute_command("DQ.LEN", dead, "ready") if r.exists(dead) else 0
        assert there == deaths, "a dead letter is in no queue"


def test_an_id_is_free_as_soon_as_its_message_has_left(r, key, dead):
    for _ in range(ROUNDS):
        r.delete(key, dead)
        r.execute_command("DQ.CREATE", key, "RETRIES", 0, "DEADTO", dead)
        r.execute_command("DQ.SEND", key, "v1", "ID", "a")
        r.execute_command("DQ.FETCH", key, "LEASE", LEASE)
        replies = at_the_end_of_a_lease(r, [("DQ.SEND", key, "v2", "ID", "a"), ("DQ.GET", key, "a")])
        for sent, found in zip(replies[::3], replies[1::3]):
            assert sent or found, "the id is taken by nothing"


def test_a_rerun_and_a_redrive_at_the_end_of_its_run(r, key, dead):
    for _ in range(ROUNDS):
        r.delete(key, dead)
        r.execute_command("DQ.CREATE", key, "RETRIES", 0, "DEADTO", dead)
        r.execute_command("DQ.SEND", key, "v1", "ID", "i")
        r.execute_command("DQ.FETCH", key, "LEASE", LEASE)
        r.execute_command("DQ.SEND", key, "v2", "ID", "i", "REPLACE", "RERUN")
        at_the_end_of_a_lease(r, [("DQ.REDRIVE", key, "ALL")] * 5)
        assert when_it_has_ended(r, key) == 1
        assert r.execute_command("DQ.LEN", dead, "ready") == 1
        assert r.execute_command("DQ.LEN", key, "ready") == 1
        r.execute_command("DQ.SEND", key, "z", "ID", "o", "PRIORITY", -9)
        (first,) = r.execute_command("DQ.FETCH", key)
        r.execute_command("DQ.NACK", key, first[1], "FATAL")
        assert r.execute_command("DQ.LEN", key, "ready") == 1
        (last,) = r.execute_command("DQ.FETCH", key)
        r.execute_command("DQ.ACK", key, last[1])
        assert counted(r, key, dead) == 2, "not v1 and z, both in the other queue"


def test_the_death_of_a_child_is_counted_before_it_is_replaced(r, key):
    parents, children = b"{%s}p" % key, b"{%s}c" % key
    for _ in range(ROUNDS):
        r.delete(parents, children)
        r.execute_command("DQ.CREATE", children, "RETRIES", 0)
        r.execute_command("DQ.SEND", parents, "p", "ID", "p", "CHILDREN", 2)
        child = ("DQ.SEND", children, "c", "ID", "a", "PARENT", parents, "p", "ONDEAD", "DIE")
        r.execute_command(*child)
        r.execute_command("DQ.FETCH", children, "LEASE", LEASE)
        at_the_end_of_a_lease(r, [(*child, "REPLACE")])
        assert when_it_has_ended(r, children) == 1
        assert r.execute_command("DQ.LEN", parents, "dead") == 1, "the parent waits for a dead child"


def test_a_log_entry_that_leaves_a_dead_letter_is_settled_by_the_next_command(make_server):
    """As a log that was made by hand, or by another program, can leave it."""
    server = make_server(appendonly="yes")
    r = server.client()
    r.execute_command("DQ.CREATE", "q", "RETRIES", 0)
    r.execute_command("DQ.SEND", "q", "v1", "ID", "a")
    [[_, receipt, *_]] = r.execute_command("DQ.FETCH", "q")
    r.restore("with", 0, r.dump("q"))
    r.execute_command("DQ.ALTER", "with", "DEADTO", "dead")
    r.execute_command("DQ.NACK", "q", receipt, "FATAL")
    *_, (name, _, entry) = commands(server)
    assert name == b"DQ.OP"
    pipeline = r.pipeline(transaction=False)
    pipeline.execute_command("DQ.OP", "with", entry)
    pipeline.execute_command("DQ.SEND", "with", "v2", "ID", "b")
    assert pipeline.execute() == [b"OK", b"b"]
    assert [r.execute_command("DQ.LEN", q, "dead") for q in ("with", "dead")] == [0, 0]
    assert r.execute_command("DQ.LEN", "dead", "ready") == 1
