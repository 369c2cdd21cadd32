"""DQ.NFETCH on one server: taking from the queues of a family in turn, waiting at all of them, and rights."""

import pytest

from tests.harness.families import got, key, nfetch, send, waiter
from tests.harness.replies import Manual, as_map, msgs
from tests.harness.server import wait_for


def test_a_family_without_queues_gives_null(server):
    assert not server.wire(2).ok("DQ.NFETCH", "f")
    assert server.wire(3).ok("DQ.NFETCH", "f") is None


def test_queues_that_were_there_before_the_first_call_are_found(make_server):
    server = make_server()
    with server.wire() as w:
        send(w, 1, "a")
        w.ok("DQ.SEND", "g:{1}", "other")
        w.ok("DQ.SEND", "f", "other")
        w.ok("DQ.SEND", "f:{}", "other")
        w.ok("DQ.SEND", "f:{any tag}", "b")
        assert sorted(nfetch(w)[1] + nfetch(w)[1]) == [b"a", b"b"]
        assert nfetch(w) is None


def test_queues_give_in_turn(w):
    for n in (1, 2, 3):
        send(w, n, *[f"{n}{i}" for i in range(4)])
    order = [nfetch(w)[0] for _ in range(12)]
    for i in range(0, 12, 3):
        assert sorted(order[i : i + 3]) == [key(1), key(2), key(3)]
    assert order[:3] * 4 == order
    assert nfetch(w) is None


def test_a_queue_that_had_nothing_keeps_its_turn(w):
    send(w, 1, "a", "b", "c")
    send(w, 2, "x")
    assert {nfetch(w)[0], nfetch(w)[0]} == {key(1), key(2)}
    assert nfetch(w)[0] == key(1)
    send(w, 2, "y")
    assert nfetch(w) == (key(2), [b"y"])


def test_count_and_the_other_options_are_those_of_fetch(w):
    send(w, 1, "a", "b", "c")
    name, messages = w.ok("DQ.NFETCH", "f", "COUNT", 2, "LEASE", 5000, "CONSUMER", "c", "WITHMETA")
    assert len(messages) == 2 and {b"group", b"lease-until"} <= set(messages[0][4])
    assert w.ok("DQ.ACK", name, messages[0][1], messages[1][1]) == 2
    assert w.ok("DQ.CONSUMERS", name)[0][b"name"] == b"c"
    [[_, receipt, *_]] = w.ok("DQ.NFETCH", "f", "NOACK")[1]
    assert receipt == 0


def test_what_cannot_give_is_passed_over_until_it_can(w):
    for n in (1, 2, 3, 4):
        send(w, n, "x", "y")
    w.ok("DQ.PAUSE", key(1))
    w.ok("DQ.ALTER", key(2), "MAXRUNNING", 1)
    w.ok("DQ.ALTER", key(3), "RATE", 1, "PER", 10**8)
    assert sorted(nfetch(w)[0] for _ in range(4)) == [key(2), key(3), key(4), key(4)]
    assert nfetch(w) is None
    # MAXRUNNING does not limit NOACK.
    assert nfetch(w, "NOACK") == (key(2), [b"y"])
    w.ok("DQ.RESUME", key(1))
    w.ok("DQ.ALTER", key(3), "RATE", 0)
    assert {nfetch(w)[0] for _ in range(3)} == {key(1), key(3)}
    assert nfetch(w) is None


def test_a_rate_lets_a_queue_give_again_without_any_command(server, w):
    w.ok("DQ.CREATE", key(1), "RATE", 1, "PER", 300)
    send(w, 1, "a", "b", "c")
    assert nfetch(w) == (key(1), [b"a"])
    assert nfetch(w) is None
    assert got(waiter(server)) == (key(1), [b"b"])
    assert got(waiter(server)) == (key(1), [b"c"])


def test_a_message_that_falls_due_is_given(server, w):
    q = Manual(server.client(), key(1))
    q.send("x", "DELAY", 50)
    assert nfetch(w) is None
    blocked = waiter(server)
    q.advance(50)
    assert got(blocked) == (key(1), [b"x"])


def test_deleted_renamed_and_overwritten_queues_are_followed(w):
    for n in (1, 2, 3):
        send(w, n, f"m{n}")
    w.ok("DEL", key(1))
    w.ok("RENAME", key(2), key(9))
    w.ok("SET", key(3), "a string")
    assert nfetch(w) == (key(9), [b"m2"])
    assert nfetch(w) is None
    w.ok("RENAME", key(9), "elsewhere")
    w.ok("DQ.SEND", "elsewhere", "x")
    assert nfetch(w) is None
    w.ok("RENAME", "elsewhere", key(3))
    assert nfetch(w) == (key(3), [b"x"])
    w.ok("DQ.SEND", key(3), "y")
    w.ok("COPY", key(3), key(4))
    assert {nfetch(w)[0] for _ in range(3)} == {key(3), key(4)}


def test_only_the_selected_database_counts(server, w):
    send(w, 1, "zero")
    w.ok("SELECT", 1)
    assert nfetch(w) is None
    blocked = server.wire()
    blocked.ok("SELECT", 1)
    blocked.send("DQ.NFETCH", "f", "BLOCK", 0)
    server.wait_blocked(1)
    w.ok("SWAPDB", 0, 1)
    assert got(blocked) == (key(1), [b"zero"])
    w.ok("SELECT", 0)


def test_flushall_and_reload_are_followed(server, w):
    send(w, 1, "a", "b")
    assert nfetch(w) == (key(1), [b"a"])
    w.ok("DEBUG", "RELOAD")
    assert nfetch(w) == (key(1), [b"b"])
    send(w, 2, "c")
    w.ok("FLUSHALL")
    assert nfetch(w) is None


def test_many_queues_give_once_each_and_one_waiter_is_woken_by_any(server, w):
    n = 10_000
    for i in range(0, n, 500):
        w.send_many([("DQ.SEND", key(j), "x") for j in range(i, i + 500)])
        [w.recv() for _ in range(500)]
    w.send_many([("DQ.NFETCH", "f")] * n)
    assert {w.recv()[0] for _ in range(n)} == {key(j).encode() for j in range(n)}
    assert nfetch(w) is None
    for j in (0, 77, n - 1):
        blocked = waiter(server)
        send(w, j, "again")
        assert got(blocked) == (key(j), [b"again"])


def test_waiters_of_all_kinds_are_served_in_the_order_they_came(server, w):
    w.ok("DQ.CREATE", key(1))
    first = waiter(server)
    second = server.wire()
    second.send("DQ.FETCH", key(1), "BLOCK", 0)
    server.wait_blocked(2)
    third = waiter(server)
    fourth = server.wire()
    fourth.send("DQ.MFETCH", 1, key(1), "BLOCK", 0)
    server.wait_blocked(4)
    fifth = waiter(server)
    for payload in "abcde":
        send(w, 1, payload)
    assert got(first)[1] == [b"a"]
    assert [m.payload for m in msgs(second.recv())] == [b"b"]
    assert got(third)[1] == [b"c"]
    assert got(fourth)[1] == [b"d"]
    assert got(fifth)[1] == [b"e"]


def test_what_comes_at_once_is_given_in_turn_to_those_who_wait(server, w):
    waiters = [waiter(server) for _ in range(4)]
    w.ok("MULTI")
    w.ok("DQ.MSEND", key(1), 2, "a", "b")
    w.ok("DQ.MSEND", key(2), 2, "c", "d")
    w.ok("EXEC")
    keys = [got(one)[0] for one in waiters]
    assert sorted(keys[:2]) == [key(1), key(2)] and sorted(keys[2:]) == [key(1), key(2)]


def test_waiters_that_repeat_a_token_get_the_same_messages(server, w):
    w.ok("DQ.CREATE", key(1))
    asked = ("CONSUMER", "c", "TOKEN", "t")
    first, repeated = waiter(server, *asked), waiter(server, *asked)
    other = waiter(server, "CONSUMER", "c", "TOKEN", "u")
    send(w, 1, "a")
    replies = [first.recv(), repeated.recv()]
    assert replies[0] == replies[1] and [m.payload for m in msgs(replies[0][1])] == [b"a"]
    send(w, 1, "b")
    assert got(other) == (key(1), [b"b"])


def test_a_waiter_that_repeats_the_token_of_a_closed_connection_is_served(server, w):
    w.ok("DQ.CREATE", key(1))
    asked = ("CONSUMER", "c", "TOKEN", "t")
    waiter(server, *asked).close()
    repeated = waiter(server, *asked)
    server.wait_blocked(1)
    send(w, 1, "a", "b")
    assert got(repeated) == (key(1), [b"a"])
    assert nfetch(w) == (key(1), [b"b"])


def test_a_waiter_gives_up_after_its_time_or_when_it_is_unblocked(server, w):
    assert w.ok("DQ.NFETCH", "f", "BLOCK", 20) is None
    blocked = server.wire()
    id = blocked.ok("CLIENT", "ID")
    for how, expected in (("TIMEOUT", None), ("ERROR", "UNBLOCKED")):
        blocked.send("DQ.NFETCH", "f", "BLOCK", 0)
        server.wait_blocked(1)
        assert w.ok("CLIENT", "UNBLOCK", id, how) == 1
        reply = blocked.recv()
        assert reply is None if expected is None else reply.startswith(expected)
        assert blocked.ok("PING") in (b"PONG", "PONG")
    send(w, 1, "x")
    assert nfetch(w) == (key(1), [b"x"])


def test_a_closed_connection_takes_nothing(server, w):
    waiter(server).close()
    server.wait_blocked(0)
    send(w, 1, "x")
    assert nfetch(w) == (key(1), [b"x"])


def test_block_is_a_poll_in_transactions_and_scripts(w):
    w.ok("MULTI")
    w.ok("DQ.NFETCH", "f", "BLOCK", 0)
    assert w.ok("EXEC") == [None]
    send(w, 1, "x", "y")
    w.ok("MULTI")
    w.ok("DQ.NFETCH", "f", "BLOCK", 0)
    [[name, _]] = w.ok("EXEC")
    assert name == key(1).encode()
    name, _ = w.ok("EVAL", "return redis.call('DQ.NFETCH', 'f', 'BLOCK', 0)", 0)
    assert name == key(1).encode()


# ---- rights ----


@pytest.fixture
def limited(server, w):
    """A user who may take from f:{2} only."""
    w.ok("ACL", "SETUSER", "limited", "reset", "on", ">secret", "%RW~f:{2}", "+@all")
    one = server.wire()
    one.ok("AUTH", "limited", "secret")
    yield one
    w.ok("ACL", "DELUSER", "limited")


def test_queues_that_the_user_may_not_take_from_are_passed_over(server, w, limited):
    for n in (1, 2, 3):
        send(w, n, "x", "y")
    assert [nfetch(limited) for _ in range(3)] == [(key(2), [b"x"]), (key(2), [b"y"]), None]
    # Other clients take the remaining messages.
    assert sorted(nfetch(w)[0] for _ in range(4)) == [key(1), key(1), key(3), key(3)]


def test_reading_or_writing_alone_is_not_enough(w, limited):
    send(w, 2, "x")
    for rights in ("%R~f:*", "%W~f:*"):
        w.ok("ACL", "SETUSER", "limited", "resetkeys", rights)
        assert nfetch(limited) is None
    w.ok("ACL", "SETUSER", "limited", "resetkeys", "%RW~f:*", "-@all", "+dq.nfetch")
    # The rights of a user who was refused something are read again after a moment.
    wait_for(lambda: nfetch(limited) == (key(2), [b"x"]), what="the new rights")


def test_a_waiter_is_not_woken_by_a_queue_that_it_may_not_take_from(server, w, limited):
    blocked = waiter(server, auth=("limited", "secret"))
    other = waiter(server)
    send(w, 1, "a")
    assert got(other) == (key(1), [b"a"])
    send(w, 1, "b")
    send(w, 2, "c")
    assert got(blocked) == (key(2), [b"c"])
    blocked = waiter(server, auth=("limited", "secret"))
    # The rights are checked again within a second.
    w.ok("ACL", "SETUSER", "limited", "~f:*")
    assert got(blocked) == (key(1), [b"b"])


def test_a_selector_for_another_command_opens_no_queue(server, w, limited):
    """NFETCH takes messages like FETCH of the key: one selector must allow both the command and the key."""
    for n in (1, 2, 3):
        send(w, n, f"{n}a", f"{n}b")
    w.ok("ACL", "SETUSER", "limited", "reset", "on", ">secret", "%RW~f:{1}", "+dq.nfetch", "(+get %RW~f:{2})", "(+@all ~f:{3})")
    assert sorted(nfetch(limited)[1][0] for _ in range(4)) == [b"1a", b"1b", b"3a", b"3b"]
    assert nfetch(limited) is None
    blocked = waiter(server, auth=("limited", "secret"))
    send(w, 2, "2c")
    send(w, 1, "1c")
    assert got(blocked) == (key(1), [b"1c"])


def test_ninfo_counts_what_info_of_the_key_would_show(server, w, limited):
    for n in (1, 2, 3):
        send(w, n, "x")
    w.ok("ACL", "SETUSER", "limited", "reset", "on", ">secret", "%R~f:{1}", "+dq.ninfo", "(+get %R~f:{2})", "(+@all ~f:{3})")
    for protocol in (2, 3):
        one = server.wire(protocol)
        one.ok("AUTH", "limited", "secret")
        info = as_map(one.ok("DQ.NINFO", "f"))
        assert (info["queues"], info["ready"]) == (2, 2)
