"""DQ.WAIT: every way in which a wait can end, with one client and with many.

The clients block in real time. If time ends a message, its queue has a manual clock.
"""

import pytest

from tests.harness.scene import Scene
from tests.harness.wire import Error

SOON, QUIET = 20, 0.15


def wait(server, key, id, ms=20_000, n=1, protocol=3):
    """n connections blocked in WAIT."""
    before = int(server.info("clients")["blocked_clients"])
    wires = [server.wire(protocol) for _ in range(n)]
    for wire in wires:
        wire.send("DQ.WAIT", key, id, ms)
    server.wait_blocked(before + n)
    return wires


def test_wait_replies_finished_with_the_result(server, r, key):
    q = Scene(r, key, "RETAIN", 1000)
    q.add("a")
    (wire,) = wait(server, key, "a")
    q.ack(q.one().receipt, "RESULT", b"\x00done%n")
    assert wire.recv(SOON) == [b"finished", b"\x00done%n"]
    # After the end, WAIT replies at once.
    assert q.do("WAIT", "a", 0) == [b"finished", b"\x00done%n"]


def test_wait_replies_finished_with_null_without_a_result(server, r, key):
    q = Scene(r, key)
    q.add("a")
    (wire,) = wait(server, key, "a")
    q.ack(q.one().receipt)
    assert wire.recv(SOON) == [b"finished", None]


def test_wait_replies_the_result_though_nothing_is_retained(server, r3, key):
    q = Scene(r3, key, "RETAIN", 0)
    q.add("a")
    (wire,) = wait(server, key, "a")
    q.ack(q.one().receipt, "RESULT", "x")
    assert wire.recv(SOON) == [b"finished", b"x"]
    assert q.do("WAIT", "a", 0) is None


def test_a_noack_delivery_ends_a_wait(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    (wire,) = wait(server, key, "a")
    q.one("NOACK")
    assert wire.recv(SOON) == [b"finished", None]


def test_wait_replies_cancelled(server, r3, key):
    q = Scene(r3, key)
    q.add("a", "DELAY", 10)
    (wire,) = wait(server, key, "a")
    q.do("CANCEL", "a")
    assert wire.recv(SOON) == [b"cancelled", None]


def test_wait_replies_dead_with_the_error(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    (wire,) = wait(server, key, "a")
    q.nack(q.one().receipt, "FATAL", "ERROR", "bad input")
    assert wire.recv(SOON) == [b"dead", b"bad input"]
    assert q.do("WAIT", "a", 0) == [b"dead", b"bad input"]


def test_a_death_by_lease_end_ends_a_wait(server, r3, key):
    q = Scene(r3, key, "RETRIES", 1, "LEASE", 50)
    q.add("a")
    (wire,) = wait(server, key, "a")
    q.nack(q.one().receipt, "ERROR", "first")
    q.one()
    assert wire.silent(QUIET)
    q.advance(50)
    assert wire.recv(SOON) == [b"dead", b"first"]


def test_an_expiry_ends_a_wait(server, r3, key):
    q = Scene(r3, key)
    q.add("a", "TTL", 50)
    (wire,) = wait(server, key, "a")
    q.advance(50)
    assert wire.recv(SOON) == [b"dead", None]


def test_an_expiry_on_the_server_clock_ends_a_wait(server, r3, key):
    wire = server.wire()
    # The commands are sent together, so that the wait begins before the message expires.
    wire.send_many([("DQ.SEND", key, "x", "ID", "a", "TTL", 200), ("DQ.WAIT", key, "a", 20_000)])
    assert wire.recv() == b"a"
    assert wire.recv(SOON) == [b"dead", None]


@pytest.mark.parametrize("purge", [[], ["STATE", "delayed"], ["GROUP", "g"]])
def test_wait_replies_null_when_the_message_is_purged(server, r3, key, purge):
    q = Scene(r3, key)
    q.add("a", "GROUP", "g", "DELAY", 10)
    (wire,) = wait(server, key, "a")
    assert q.do("PURGE", *purge) == 1
    assert wire.recv(SOON) is None


@pytest.mark.parametrize("how", [["DEL"], ["UNLINK"], ["FLUSHALL"], ["FLUSHALL", "ASYNC"], ["PEXPIRE"], ["SET"]])
def test_wait_replies_null_when_the_key_is_deleted(server, r3, key, how):
    q = Scene(r3, key)
    q.add("a")
    (wire,) = wait(server, key, "a")
    args = {"FLUSHALL": [], "PEXPIRE": [key, 50], "SET": [key, "string"]}.get(how[0], [key])
    r3.execute_command(*how, *args)
    reply = wire.recv(SOON)
    # For a key of another type, WRONGTYPE is a right reply too.
    assert reply is None or (how == ["SET"] and isinstance(reply, Error) and reply.startswith("WRONGTYPE"))


def test_wait_for_an_unknown_id_replies_null_at_once(server, r, key):
    assert r.execute_command("DQ.WAIT", key, "a", 0) is None
    assert r.exists(key) == 0
    q = Scene(r, key)
    assert q.do("WAIT", "nobody", 60_000) is None


def test_wait_replies_null_at_its_timeout(server, r, key):
    q = Scene(r, key)
    q.add("a")
    assert q.do("WAIT", "a", 100) is None
    assert q.row("a")["state"] == "ready"


def test_wait_with_timeout_0_has_no_end(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    (wire,) = wait(server, key, "a", 0)
    assert wire.silent(0.5)
    q.do("CANCEL", "a")
    assert wire.recv(SOON) == [b"cancelled", None]


def test_replace_does_not_end_a_wait(server, r3, key):
    q = Scene(r3, key)
    q.add("a", "DELAY", 100)
    (wire,) = wait(server, key, "a")
    q.do("SEND", "new", "ID", "a", "REPLACE")
    assert wire.silent(QUIET)
    q.ack(q.one().receipt, "RESULT", "second")
    assert wire.recv(SOON) == [b"finished", b"second"]


def test_retry_reschedule_update_and_silent_nack_do_not_end_a_wait(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    (wire,) = wait(server, key, "a")
    q.do("UPDATE", "a", "y")
    q.do("RESCHEDULE", "a", "DELAY", 0)
    q.nack(q.one().receipt, "SILENT")
    q.nack(q.one().receipt)
    assert wire.silent(QUIET)
    q.ack(q.one().receipt)
    assert wire.recv(SOON) == [b"finished", None]


def test_wait_works_for_a_redriven_message(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    q.nack(q.one().receipt, "FATAL", "ERROR", "e")
    q.do("REDRIVE", "ALL")
    (wire,) = wait(server, key, "a")
    q.ack(q.one().receipt)
    assert wire.recv(SOON) == [b"finished", None]


def test_many_clients_can_wait_for_one_message(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    wires = wait(server, key, "a", n=300)
    q.ack(q.one().receipt, "RESULT", "all")
    assert [w.recv(SOON) for w in wires] == [[b"finished", b"all"]] * 300
    server.wait_blocked(0)


def test_a_wait_ends_with_its_own_message_only(server, r3, key):
    q = Scene(r3, key)
    ids = [f"m{i}" for i in range(30)]
    for id in ids:
        q.add(id)
    wires = {id: wait(server, key, id, n=2) for id in ids}
    got = q.hold("COUNT", 30)
    for id in ids[::2]:
        q.ack(got[id].receipt, "RESULT", id)
    for id in ids[::2]:
        assert [w.recv(SOON) for w in wires[id]] == [[b"finished", id.encode()]] * 2
    assert all(w.silent(0.01) for id in ids[1::2] for w in wires[id])
    r3.execute_command("DEL", key)
    assert all(w.recv(SOON) is None for id in ids[1::2] for w in wires[id])


def test_wait_and_blocked_fetch_do_not_disturb_each_other(server, r3, key):
    q = Scene(r3, key)
    q.add("a", "GROUP", "g")
    q.add("b", "GROUP", "g")
    first = q.one()
    (waiter,) = wait(server, key, "a")
    (other,) = wait(server, key, "b")
    consumer = server.wire()
    consumer.send("DQ.FETCH", key, "BLOCK", 20_000)
    server.wait_blocked(3)
    q.ack(first.receipt)
    assert waiter.recv(SOON) == [b"finished", None]
    assert consumer.recv(SOON)[0][0] == b"b"
    assert other.silent(QUIET)


def test_a_client_that_leaves_its_wait_does_not_disturb_the_others(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    wires = wait(server, key, "a", n=3)
    wires[1].close()
    server.wait_blocked(2)
    q.ack(q.one().receipt)
    assert wires[0].recv(SOON) == wires[2].recv(SOON) == [b"finished", None]


def test_client_unblock_ends_a_wait(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    wire = server.wire()
    client_id = wire.ok("CLIENT", "ID")
    wire.send("DQ.WAIT", key, "a", 0)
    server.wait_blocked(1)
    assert r3.execute_command("CLIENT", "UNBLOCK", client_id) in (1, True)
    assert wire.recv(SOON) is None
    wire.send("DQ.WAIT", key, "a", 0)
    server.wait_blocked(1)
    r3.execute_command("CLIENT", "UNBLOCK", client_id, "ERROR")
    assert wire.recv(SOON).startswith("UNBLOCKED")


def test_wait_does_not_wait_in_multi_and_lua(server, r3, key):
    q = Scene(r3, key, "RETAIN", 1000)
    q.add("a")
    with server.wire() as w:
        w.ok("MULTI")
        w.ok("DQ.WAIT", key, "a", 0)
        assert w.ok("EXEC") == [None]
    script = "return redis.call('DQ.WAIT', KEYS[1], 'a', 0)"
    assert r3.execute_command("EVAL", script, 1, key) is None
    q.ack(q.one().receipt, "RESULT", "x")
    assert r3.execute_command("EVAL", script, 1, key) == [b"finished", b"x"]


def test_wait_changes_nothing(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    before = q.digest()
    assert q.do("WAIT", "a", 20) is None
    assert q.digest() == before


def test_a_rename_over_the_queue_ends_a_wait(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    (wire,) = wait(server, key, "a")
    other = Scene(r3, key + b":other", "RETAIN", 1000)
    other.add("b")
    r3.execute_command("RENAME", other.key, key)
    # The message went with the queue that was replaced.
    assert wire.recv(SOON) is None


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("preamble", ["yes", "no"])
@pytest.mark.parametrize("command", ["RELOAD", "LOADAOF"])
def test_a_wait_continues_over_a_reload_that_keeps_its_message(make_server, command, preamble, protocol):
    server = make_server(appendonly="yes", **{"aof-use-rdb-preamble": preamble})
    client = server.client()
    q = Scene(client, "q", "RETAIN", 1000)
    for id in ("a", "b"):
        q.add(id)
    # Deletions in the log must not end a wait when it is replayed.
    client.execute_command("COPY", "q", "gone")
    client.execute_command("DEL", "gone")
    held = q.hold("COUNT", 2)
    a, b = wait(server, "q", "a", protocol=protocol)[0], wait(server, "q", "b")[0]
    client.execute_command("DEBUG", command)
    assert a.silent(QUIET) and b.silent(0.01)
    q.ack(held["a"].receipt, "RESULT", "after the load")
    assert a.recv(SOON) == [b"finished", b"after the load"]
    assert b.silent(QUIET)
    client.execute_command("DEL", "q")
    assert b.recv(SOON) is None


def test_after_a_load_of_older_data_a_wait_replies_what_is_known_there(server, r3, key):
    q = Scene(r3, key, "RETAIN", 1000)
    q.add("ended")
    q.ack(q.one().receipt, "RESULT", "before")
    r3.execute_command("SAVE")
    q.do("PURGE")
    q.add("ended")
    q.add("new")
    (ended,), (new,) = wait(server, key, "ended"), wait(server, key, "new")
    r3.execute_command("DEBUG", "RELOAD", "NOSAVE")
    assert ended.recv(SOON) == [b"finished", b"before"]
    assert new.recv(SOON) is None


def test_a_wait_continues_over_a_restore_that_keeps_its_message(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    dump = r3.execute_command("DUMP", key)
    q.add("b")
    (a,), (b,) = wait(server, key, "a"), wait(server, key, "b")
    r3.execute_command("RESTORE", key, 0, dump, "REPLACE")
    assert b.recv(SOON) is None
    assert a.silent(QUIET)
    q.ack(q.one().receipt)
    assert a.recv(SOON) == [b"finished", None]


def test_a_wait_continues_over_swapdb_if_the_other_database_has_its_message(server, r3, key):
    q = Scene(r3, key)
    q.add("a")
    r3.execute_command("COPY", key, key, "DB", 9)
    q.add("b")
    (a,), (b,) = wait(server, key, "a"), wait(server, key, "b")
    r3.execute_command("SWAPDB", 0, 9)
    assert b.recv(SOON) is None
    assert a.silent(QUIET)
    q.ack(q.one().receipt)
    assert a.recv(SOON) == [b"finished", None]
