"""PURGE and REDRIVE of more than 256 messages: they are done in slices while their client waits."""

import fcntl
import termios
import time

import pytest
from redis import ResponseError

from tests.harness.replies import Queue
from tests.harness.scene import Scene, assert_same_digest, twin
from tests.harness.server import wait_for

MANY = 2000


def running(r, key, *options):
    """MANY running messages of group g, two ready ones, and a running one of group h. Returns the receipts of g too."""
    q = Scene(r, key, "GROUPCONCURRENCY", 10**6, "LEASE", 10**9, *options)
    r.execute_command("DQ.MSEND", key, MANY + 2, *[b"x"] * (MANY + 2), "GROUP", "g")
    receipts = []
    while len(receipts) < MANY:
        receipts += [m.receipt for m in q.fetch("COUNT", 100, "GROUP", "g")]
    q.fill("h", "other")
    assert q.take("GROUP", "h") == ["other"]
    return q, receipts


def blocked_groups(r, key):
    """MANY groups, each with a dead message that blocks it and a second message."""
    q = Scene(r, key, "ONDEAD", "BLOCK", "LEASE", 10**9)
    pipe = r.pipeline(transaction=False)
    for n in range(MANY):
        pipe.execute_command("DQ.MSEND", key, 2, b"x", b"y", "GROUP", f"g{n}")
    pipe.execute()
    receipts = []
    while len(receipts) < MANY:
        receipts += [m.receipt for m in q.fetch("COUNT", 1000)]
    q.nack(*receipts, "FATAL")
    assert q.counts() == {"dead": MANY, "blocked": MANY}
    return q


@pytest.mark.parametrize("state", [[], ["STATE", "running"]], ids=["all", "running"])
def test_purge_removes_the_many_running_messages_of_a_group(r, key, state):
    q, receipts = running(r, key)
    assert q.do("PURGE", "GROUP", "g", *state) == MANY + (0 if state else 2)
    assert q.counts() == {"running": 1} | ({"ready": 2} if state else {})
    assert q.ack(*receipts[:3], receipts[-1]) == 0
    twin(q, key + b":twin")
    assert_same_digest(r, key, key + b":twin")


def test_purge_of_dead_messages_releases_the_groups_they_block(r, key):
    q = blocked_groups(r, key)
    assert q.do("PURGE", "STATE", "dead") == MANY
    assert q.counts() == {"ready": MANY}
    assert len(q.fetch("COUNT", 10_000)) == MANY


def test_purge_of_everything_keeps_the_settings_of_many_groups(replica_pair, key):
    """Settings outlive the messages of their group, so they must not be freed with them."""
    r = replica_pair.primary.client()
    q = blocked_groups(r, key)
    q.do("ALTER", "DEADCOUNT", MANY // 2)
    q.do("TICK")
    pipe = r.pipeline(transaction=False)
    for n in range(MANY):
        pipe.execute_command("DQ.GROUPSET", key, f"g{n}", "WEIGHT", 3)
    pipe.execute()
    assert q.counts() == {"dead": MANY // 2, "blocked": MANY}
    assert q.do("PURGE") == MANY // 2 + MANY
    assert q.counts() == {}
    group = "g7"
    q.fill(group, "a", "b")
    assert q.take("COUNT", 2, "PERGROUP", 2) == ["a", "b"]
    assert {told["weight"] for told in q.groups().values()} == {3} and len(q.groups()) == MANY
    replica_pair.assert_same(key)


def test_groups_blocked_by_pruned_messages_stay_blocked_after_a_purge(r, key):
    """No message is left to be purged in these groups, so the purge does not wait for them."""
    q = blocked_groups(r, key)
    q.do("ALTER", "DEADCOUNT", 1)
    q.do("TICK")
    assert q.do("PURGE", "STATE", "dead") == 1
    assert q.do("PURGE", "STATE", "dead") == 0
    assert q.counts() == {"ready": 1, "blocked": MANY - 1}


@pytest.fixture
def small_slices(r):
    """Slices of a fifth of the usual length, so that a purge takes more of them."""
    before = r.config_get("dq.tick-budget-us")
    r.config_set("dq.tick-budget-us", 100)
    yield
    for name, value in before.items():
        r.config_set(name, value)


def test_other_clients_see_the_count_go_down_while_a_purge_is_done_in_slices(server, r, key, small_slices):
    q = Scene(r, key)
    for _ in range(10):
        q.do("MSEND", 5000, *[b"x"] * 5000, "DELAY", 10**6)
    q.add("other")
    (purge,) = at_once(server, ["DQ.PURGE", key, "STATE", "delayed"])
    seen = [50_000]
    while seen[-1]:
        seen.append(q.len("delayed"))
    assert purge.read_response() == 50_000
    assert seen == sorted(seen, reverse=True) and len(set(seen)) > 2
    assert q.counts() == {"ready": 1}


@pytest.mark.parametrize("options", [["STATE", "delayed"], ["GROUP", "g"]], ids=["state", "group"])
def test_messages_sent_after_a_purge_began_stay(server, r, key, options):
    q = Scene(r, key)
    q.do("MSEND", MANY, *[b"x"] * MANY, "DELAY", 10**6, "GROUP", "g")
    send = ["DQ.MSEND", key, 3, "a", "b", "c", "DELAY", 1000, "PRIORITY", -1, "GROUP", "g"]
    purge, send = at_once(server, ["DQ.PURGE", key, *options], send)
    assert len(send.read_response()) == 3
    assert purge.read_response() == MANY
    assert q.counts() == {"delayed": 3}


def test_clients_that_wait_for_a_purged_message_are_answered(server, r, key):
    q = Scene(r, key)
    q.do("MSEND", MANY, *[b"x"] * MANY)
    q.add("last")
    wire = server.wire()
    wire.send("DQ.WAIT", key, "last", 60_000)
    server.wait_blocked(1)
    assert q.do("PURGE", "STATE", "ready") == MANY + 1
    assert wire.recv(2) is None


def test_a_purge_in_a_transaction_is_done_at_once(r, key):
    running(r, key)
    with r.pipeline(transaction=True) as pipe:
        pipe.execute_command("DQ.PURGE", key, "GROUP", "g")
        pipe.execute_command("DQ.LEN", key)
        assert pipe.execute() == [MANY + 2, 1]


def test_a_purge_in_a_script_is_done_at_once(r, key):
    blocked_groups(r, key)
    script = "return {redis.call('DQ.PURGE', KEYS[1], 'STATE', 'dead'), redis.call('DQ.LEN', KEYS[1])}"
    assert r.eval(script, 1, key) == [MANY, MANY]


def test_later_commands_of_the_connection_are_answered_after_the_purge(r, key):
    running(r, key)
    with r.pipeline(transaction=False) as pipe:
        pipe.execute_command("DQ.PURGE", key, "GROUP", "g", "STATE", "running")
        pipe.execute_command("DQ.LEN", key)
        pipe.execute_command("DQ.PURGE", key, "GROUP", "g", "STATE", "running")
        assert pipe.execute() == [MANY, 3, 0]


def test_redrive_after_a_purge_takes_only_the_dead_messages_left(r, key):
    q = Scene(r, key, "LEASE", 10**9)
    for group, count in (("g", MANY), ("h", 3)):
        r.execute_command("DQ.MSEND", key, count, *[b"x"] * count, "GROUP", group)
        dead = 0
        while dead < count:
            receipts = [m.receipt for m in q.fetch("COUNT", 100, "PERGROUP", 100)]
            dead += q.nack(*receipts, "FATAL")
    assert q.do("PURGE", "STATE", "dead", "GROUP", "g") == MANY
    assert q.do("REDRIVE", "ALL") == 3
    assert q.counts() == {"ready": 3}


def test_redrive_with_count_takes_that_many_dead_messages(replica_pair, key):
    q = Scene(replica_pair.primary.client(), key, "LEASE", 10**9)
    for _ in range(3):
        q.do("MSEND", MANY, *[b"x"] * MANY)
        receipts = [m.receipt for m in q.fetch("COUNT", MANY)]
        assert q.nack(*receipts, "FATAL") == MANY
    assert q.do("REDRIVE", "ALL", "COUNT", 2 * MANY) == 2 * MANY
    assert q.counts() == {"ready": 2 * MANY, "dead": MANY}
    assert q.do("REDRIVE", "ALL", "COUNT", 2 * MANY) == MANY
    assert q.counts() == {"ready": 3 * MANY}
    replica_pair.assert_same(key)


def unread(sock):
    """Returns how many bytes have been sent that the other side has not got yet."""
    return int.from_bytes(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)), "little")


def at_once(server, *commands):
    """Sends each command on a connection of its own while the server is stopped, so that the server finds all of
    them at once.
    """
    clients = [server.client() for _ in commands]
    connections = [client.connection_pool.get_connection() for client in clients]
    ids = []
    for connection in connections:
        connection.send_command("CLIENT", "ID")
        ids.append(connection.read_response())
    # The server would serve the connection first that it has served last.
    connections[0].send_command("PING")
    connections[0].read_response()
    server.pause()
    for connection, command in zip(connections, commands, strict=True):
        connection.send_command(*(word(ids) if callable(word) else word for word in command))
        # The commands arrive in this order, because no earlier one is still on its way.
        wait_for(lambda sock=connection._sock: unread(sock) == 0, what="the command to arrive")
    server.resume()
    return connections


def test_a_purge_whose_queue_is_deleted_meanwhile_says_how_far_it_came(server, r, key):
    running(r, key)
    purge, delete = at_once(server, ["DQ.PURGE", key, "GROUP", "g"], ["DEL", key])
    assert delete.read_response() == 1
    assert_partial(purge, 0, "the queue was deleted")
    assert r.exists(key) == 0


def assert_partial(connection, n, why):
    with pytest.raises(ResponseError, match=f"^PARTIAL {n} .*{why}"):
        connection.read_response()


ENDINGS = {
    "deleted": ["DEL", "k"],
    "renamed": ["RENAME", "k", "other"],
    "swapped": ["SWAPDB", "0", "1"],
    "flushed": ["FLUSHALL"],
    "loaded anew|flushed": ["DEBUG", "RELOAD"],
}


@pytest.mark.parametrize("why", ENDINGS)
@pytest.mark.parametrize("words", [["DQ.PURGE", "k", "STATE", "dead"], ["DQ.REDRIVE", "k", "ALL"]], ids=lambda words: words[0])
def test_what_ends_before_its_time_tells_how_much_was_done(make_server, words, why):
    server = make_server(enable_debug_command="local")
    q = Scene(server.client(), "k", "LEASE", 10**9)
    q.do("MSEND", MANY, *[b"x"] * MANY)
    q.nack(*[m.receipt for m in q.fetch("COUNT", MANY)], "FATAL")
    bulk, other = at_once(server, words, ENDINGS[why])
    assert other.read_response() == (1 if why == "deleted" else b"OK")
    assert_partial(bulk, "[0-9]+", f"({why})")


@pytest.mark.parametrize("how", ["FLUSHDB", "FLUSHALL"])
def test_a_purge_whose_database_is_flushed_meanwhile_says_how_far_it_came(make_server, key, how):
    server = make_server(enable_debug_command="local")
    running(server.client(), key)
    purge, flush = at_once(server, ["DQ.PURGE", key, "GROUP", "g"], [how])
    assert flush.read_response() == b"OK"
    assert_partial(purge, 0, "the database was flushed")


def test_an_unblocked_client_gets_an_error_and_the_rest_stays(server, r, key):
    q, _ = running(r, key)
    purge, unblock = at_once(
        server, ["DQ.PURGE", key, "GROUP", "g"], ["CLIENT", "UNBLOCK", lambda ids: ids[0], "TIMEOUT"]
    )
    assert unblock.read_response() == 1
    with pytest.raises(ResponseError, match="^PARTIAL [0-9]+ .*CLIENT UNBLOCK"):
        purge.read_response()
    # The purge stops with its client, so the rest stays until another purge.
    left = q.len()
    assert 3 <= left <= MANY + 3
    assert q.do("PURGE", "GROUP", "g") == left - 1


def test_a_killed_client_leaves_the_queue_consistent(server, r, key):
    q, _ = running(r, key)
    purge, kill = at_once(server, ["DQ.PURGE", key, "GROUP", "g"], ["CLIENT", "KILL", "ID", lambda ids: ids[0]])
    assert kill.read_response() == 1
    with pytest.raises(Exception):
        purge.read_response()
    left = q.len()
    assert q.do("PURGE", "GROUP", "g") == left - 1
    twin(q, key + b":twin")
    assert_same_digest(r, key, key + b":twin")


@pytest.mark.parametrize("state", ["delayed", "ready", "retry", "dead"])
def test_replicas_have_the_same_queue_after_a_large_purge_of_a_state(replica_pair, key, state):
    q = Scene(replica_pair.primary.client(), key, "ONDEAD", "BLOCK", "LEASE", 10**9)
    for first in range(0, MANY, 500):
        for n in range(first, first + 500):
            q.do("SEND", "x", "GROUP", f"g{n % 700}", "DELAY", n * 1000 * (state == "delayed"), "PRIORITY", n % 3)
        if state in ("retry", "dead"):
            receipts = [m.receipt for m in q.fetch("COUNT", 500)]
            # The groups of the first messages are blocked in the later rounds.
            if receipts:
                q.nack(*receipts, *(["DELAY", 10**6] if state == "retry" else ["FATAL"]))
    count = q.len(state)
    assert count > 256
    assert q.do("PURGE", "STATE", state) == count
    assert q.len(state) == 0
    replica_pair.assert_same(key)


def test_an_unblocked_redrive_leaves_the_rest_dead(server, r, key):
    q = Scene(r, key, "LEASE", 10**9)
    q.do("MSEND", MANY, *[b"x"] * MANY)
    receipts = [m.receipt for m in q.fetch("COUNT", MANY)]
    assert q.nack(*receipts, "FATAL") == MANY
    redrive, unblock = at_once(server, ["DQ.REDRIVE", key, "ALL"], ["CLIENT", "UNBLOCK", lambda ids: ids[0], "TIMEOUT"])
    assert unblock.read_response() == 1
    with pytest.raises(ResponseError, match="^PARTIAL [0-9]+ .*CLIENT UNBLOCK") as error:
        redrive.read_response()
    dead = q.len("dead")
    assert f"PARTIAL {MANY - dead} " in str(error.value)
    assert q.counts() == {s: n for s, n in (("ready", MANY - dead), ("dead", dead)) if n}
    assert q.do("REDRIVE", "ALL") == dead


def test_purge_of_ready_messages_includes_all_that_are_due(r3, key):
    """Messages that have fallen due count as ready for a purge, even if the timer has not processed them yet."""
    q = Queue(r3, key)
    r3.execute_command("DQ.CREATE", key)
    at = int(time.time() * 1000) + 1500
    pipe = r3.pipeline(transaction=False)
    count = 30_000
    for n in range(count // 10):
        pipe.execute_command("DQ.MSEND", key, 10, *[b"x"] * 10, "GROUP", f"g{n}", "AT", at)
    pipe.execute()
    # A slow machine may still be sending when they fall due. They must all be purged then, too.
    wait_for(lambda: q.info()["now"] >= at, what="the due time")
    assert q.do("PURGE", "STATE", "ready") == count
    assert q.len() == 0
