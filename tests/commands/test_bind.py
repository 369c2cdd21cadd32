"""FETCH BIND: leases that end with their connection, also when their queue was renamed or moved meanwhile."""

import pytest

from tests.harness.replies import Queue
from tests.harness.server import wait_for

MOVES = {
    "RENAME": lambda r, key: r.execute_command("RENAME", key, key + b":new"),
    "RENAMENX": lambda r, key: r.execute_command("RENAMENX", key, key + b":new"),
    "RENAME in MULTI": lambda r, key: r.pipeline().execute_command("RENAME", key, key + b":new").execute(),
    "RENAME in Lua": lambda r, key: r.eval("return redis.call('RENAME', KEYS[1], KEYS[2])", 2, key, key + b":new"),
    "RENAME twice": lambda r, key: (r.rename(key, key + b":between"), r.rename(key + b":between", key + b":new")),
    "MOVE": lambda r, key: r.execute_command("MOVE", key, 9),
    "SWAPDB": lambda r, key: r.execute_command("SWAPDB", 0, 9),
}


@pytest.fixture
def db9(server):
    return server.client(db=9)


def moved(r, db9, q, how) -> Queue:
    """The queue under its new name or in its new database."""
    MOVES[how](r, q.key)
    return Queue(r, q.key + b":new") if how.startswith("RENAME") else Queue(db9, q.key)


@pytest.mark.parametrize("how", MOVES)
def test_bound_leases_end_with_their_connection_after_their_queue_was_moved(server, r, db9, key, how):
    q = Queue(r, key)
    q.do("CREATE", "LEASE", 600000)
    q.do("MSEND", 2, *"ab")
    w = server.wire()
    w.ok("DQ.FETCH", key, "BIND")
    there = moved(r, db9, q, how)
    there.fetch()
    assert there.len("running") == 2
    # The old name is now another queue.
    q.send("other", "LEASE", 600000)
    q.fetch()
    w.close()
    wait_for(lambda: there.len("ready") == 1, 5, "the bound lease's end")
    assert there.info()["timeouts"] == 1
    assert (there.len("running"), q.len("running")) == (1, 1)


@pytest.mark.parametrize("how", ["RENAME", "MOVE", "SWAPDB"])
def test_touch_and_bind_work_after_a_move_as_before_it(server, r, db9, key, how):
    q = Queue(r, key)
    q.do("CREATE", "LEASE", 600000)
    q.do("MSEND", 2, *"ab")
    w = server.wire()
    [[_, receipt, _, _]] = w.ok("DQ.FETCH", key, "BIND")
    there = moved(r, db9, q, how)
    if how != "RENAME":
        w.ok("SELECT", 9)
    assert w.ok("DQ.TOUCH", there.key, 700000, receipt) == 1
    assert len(w.ok("DQ.FETCH", there.key, "BIND")) == 1
    w.close()
    wait_for(lambda: there.len("ready") == 2, 5, "the end of both leases")
    assert there.info()["timeouts"] == 2


def test_a_bound_lease_ends_if_its_connection_closes_just_before_a_rename(server, r, key):
    q = Queue(r, key)
    q.do("CREATE", "LEASE", 600000)
    q.send("a")
    w = server.wire()
    w.ok("DQ.FETCH", key, "BIND")
    client = w.ok("CLIENT", "ID")
    with server.wire() as other:
        other.send_many([("CLIENT", "KILL", "ID", client), ("RENAME", key, key + b":new")])
        assert [other.recv(), other.recv()] == [1, b"OK"]
    there = Queue(r, key + b":new")
    wait_for(lambda: there.len("ready") == 1, 5, "the bound lease's end")


def test_leases_of_a_queue_renamed_over_a_bound_one_do_not_end(server, r, key):
    q, other = Queue(r, key), Queue(r, key + b":other")
    for queue in (q, other):
        queue.do("CREATE", "LEASE", 600000)
        queue.send("a")
    w = server.wire()
    w.ok("DQ.FETCH", key, "BIND")
    other.fetch()
    r.rename(other.key, key)
    w.close()
    # A bound lease of a connection that closes later has ended, so the first had enough time.
    q.send("b")
    with server.wire() as last:
        last.ok("DQ.FETCH", key, "BIND")
    wait_for(lambda: q.len("ready") == 1, 5, "the end of the last lease")
    assert (q.len("running"), q.info()["timeouts"]) == (1, 1)


def test_a_bound_lease_of_a_renamed_queue_ends_after_the_log_was_loaded(make_server):
    server = make_server(appendonly="yes", **{"aof-use-rdb-preamble": "no"})
    client = server.client()
    client.execute_command("DQ.CREATE", "old", "LEASE", 600000)
    client.execute_command("DQ.SEND", "old", "a")
    w = server.wire()
    w.ok("DQ.FETCH", "old", "BIND")
    client.rename("old", "new")
    client.execute_command("DEBUG", "LOADAOF")
    w.close()
    q = Queue(client, "new")
    wait_for(lambda: q.len("ready") == 1, 5, "the bound lease's end")


def test_bound_leases_end_with_their_connection(server, r, key):
    q = Queue(r, key)
    q.do("CREATE", "LEASE", 600000, "BACKOFF", "FIXED", 600000)
    q.send("a", "ID", "a")
    q.send("b", "ID", "b")
    with server.wire() as w:
        assert len(w.ok("DQ.FETCH", key, "BIND")) == 1
        assert len(w.ok("DQ.FETCH", key)) == 1
        assert q.len("running") == 2
    wait_for(lambda: q.state("a") == "retry", 5, "the bound lease's end")
    assert (q.get("a")["timeouts"], q.get("a")["failures"]) == (1, 1)
    assert q.state("b") == "running"
    q.do("RESCHEDULE", "a", "DELAY", 0)
    assert q.one().attempt == 2


def test_the_end_of_a_connection_changes_no_acked_message(server, r, key):
    q = Queue(r, key)
    q.send("a")
    with server.wire() as w:
        [[_, receipt, _, _]] = w.ok("DQ.FETCH", key, "BIND")
        assert w.ok("DQ.ACK", key, receipt) == 1
    assert q.len() == 0
    assert r.ping()
    assert q.info()["timeouts"] == 0


def test_bound_leases_end_on_client_kill_and_not_in_a_new_queue(server, r, key):
    q = Queue(r, key)
    q.do("CREATE", "LEASE", 600000)
    q.do("MSEND", 2, *"ab")
    w = server.wire()
    w.ok("DQ.FETCH", key, "BIND", "COUNT", 2)
    r.execute_command("CLIENT", "KILL", "ID", w.ok("CLIENT", "ID"))
    wait_for(lambda: q.len("ready") == 2, 5, "both bound leases' end")
    w = server.wire()
    w.ok("DQ.FETCH", key, "BIND", "COUNT", 2)
    r.delete(key)
    w.close()
    q.send("new", "ID", "n")
    assert q.state("n") == "ready"


def closed(server, key, *options):
    """Fetches all of a queue over a connection that then closes, and returns the queue."""
    w = server.wire()
    got = w.ok("DQ.FETCH", key, "BIND", *options, "COUNT", 10)
    q = Queue(server.client(), key)
    w.close()
    return q, got


@pytest.mark.parametrize("options", [(), ("GRACE", 700)])
def test_messages_of_a_closed_connection_wait_for_their_backoff(server, r, key, options):
    q = Queue(r, key)
    q.do("CREATE", "CLOCK", "MANUAL", "BACKOFF", "EXP", 1000, "RETRIES", 2)
    q.send("x", "ID", "queue")
    q.send("y", "ID", "own", "BACKOFF", "FIXED", 50)
    q.send("z", "ID", "once", "RETRIES", 0)
    closed(server, key, *options)
    if options:
        wait_for(lambda: q.get("queue")["lease-until"] == 700, 10, "the end of the connection")
        q.tick("ADVANCE", 700)
    now = q.info()["now"]
    wait_for(lambda: q.state("queue") == "retry", 10, "the end of the lease")
    for id, wait in (("queue", 1000), ("own", 50)):
        row = q.get(id)
        assert (row["state"], row["due-at"], row["failures"], row["timeouts"]) == (b"retry", now + wait, 1, 1)
    assert q.get("once")["reason"] == b"retries"
    before = q.digest()
    r.execute_command("DEBUG", "RELOAD")
    assert q.digest() == before
    q.tick("ADVANCE", 1000)
    closed(server, key)
    wait_for(lambda: q.state("queue") == "retry", 10, "the second end")
    assert q.get("queue")["due-at"] == q.info()["now"] + 2000


def test_a_lease_that_runs_out_by_itself_has_no_backoff(server, r, key):
    q = Queue(r, key)
    q.do("CREATE", "CLOCK", "MANUAL", "BACKOFF", "FIXED", 1000, "LEASE", 500)
    q.send("x", "ID", "a")
    with server.wire() as w:
        w.ok("DQ.FETCH", key, "BIND")
        q.tick("ADVANCE", 500)
        assert q.state("a") == "ready"
