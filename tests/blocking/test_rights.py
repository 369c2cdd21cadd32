"""Clients that wait are served by the present rights of their user, not by those at their begin."""

import pytest

from tests.harness.wire import Error

CALLS = {
    "DQ.FETCH": lambda key: ("DQ.FETCH", key, "BLOCK", 5000),
    "DQ.MFETCH": lambda key: ("DQ.MFETCH", 2, key, key + b":other", "BLOCK", 5000),
    "DQ.NFETCH": lambda key: ("DQ.NFETCH", key.rsplit(b":", 1)[0], "BLOCK", 5000),
    "DQ.WAIT": lambda key: ("DQ.WAIT", key, "m", 5000),
}
# Changes of a user that take the rights away. %s is the verb.
LOSSES = {
    "keys": ("resetkeys", "~nothing:*"),
    "commands": ("-@all",),
    "the command": ("-%s",),
    "all by off": ("off",),
    "all by reset": ("reset",),
}


@pytest.fixture
def family_key(key):
    return b"rights" + key.replace(b":", b"") + b":{1}"


@pytest.fixture
def admin(server):
    with server.wire() as w:
        yield w
        w.ok("ACL", "DELUSER", "poor", "other")


def waiting(server, admin, call, *rules, protocol=2, user="poor"):
    """A client of a user with these rules that waits."""
    admin.ok("ACL", "SETUSER", user, "reset", "on", ">secret", *rules)
    w = server.wire(protocol)
    w.ok("AUTH", user, "secret")
    before = int(server.info("clients")["blocked_clients"])
    w.send(*call)
    server.wait_blocked(before + 1)
    return w


def finish(admin, key):
    """Creates the event that the client waits for: a message, and its end."""
    if admin.ok("DQ.LEN", key) == 0:
        admin.ok("DQ.SEND", key, "x", "ID", "m")
    [[_, receipt, *_]] = admin.ok("DQ.FETCH", key)
    admin.ok("DQ.ACK", key, receipt, "RESULT", "secret")


def cause(admin, key, verb):
    if verb == "DQ.WAIT":
        finish(admin, key)
    else:
        admin.ok("DQ.SEND", key, "x", "ID", "m")


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("verb", CALLS)
def test_a_client_that_has_lost_its_rights_gets_an_error_and_no_payload(server, admin, family_key, verb, loss, protocol):
    if verb == "DQ.WAIT":
        admin.ok("DQ.CREATE", family_key, "RETAIN", 60_000)
        admin.ok("DQ.SEND", family_key, "x", "ID", "m")
    w = waiting(server, admin, CALLS[verb](family_key), "~*", "+@all", protocol=protocol)
    admin.ok("ACL", "SETUSER", "poor", *[rule.replace("%s", verb.lower()) for rule in LOSSES[loss]])
    cause(admin, family_key, verb)
    if verb == "DQ.NFETCH" and loss not in ("the command", "all by off"):
        # Queues that the user may not take from are passed over, and its client continues to wait.
        assert admin.ok("DQ.LEN", family_key, "ready") == 1
        return
    reply = w.recv()
    assert isinstance(reply, Error) and reply.startswith("NOPERM"), reply
    if verb != "DQ.WAIT":
        assert admin.ok("DQ.LEN", family_key, "ready") == 1, "nothing was taken for it"


@pytest.mark.parametrize("verb", CALLS)
def test_a_client_that_keeps_enough_rights_is_served(server, admin, family_key, verb):
    if verb == "DQ.WAIT":
        admin.ok("DQ.SEND", family_key, "x", "ID", "m")
    w = waiting(server, admin, CALLS[verb](family_key), "~*", "+@all")
    admin.ok("ACL", "SETUSER", "poor", "-@all", f"+{verb.lower()}", "resetkeys", "%RW~rights*")
    cause(admin, family_key, verb)
    assert not isinstance(w.recv(), Error)


def test_selectors_count_as_for_the_call_itself(server, admin, key):
    w = waiting(server, admin, ("DQ.FETCH", key, "BLOCK", 5000), "(+dq.fetch ~*)")
    # The user has each right, but not in one selector.
    admin.ok("ACL", "SETUSER", "poor", "clearselectors", "(+dq.fetch ~nothing)", "(+get ~*)")
    admin.ok("DQ.SEND", key, "x")
    assert w.recv().startswith("NOPERM")
    w = waiting(server, admin, ("DQ.FETCH", key, "BLOCK", 5000, "GROUP", "g"), "~*", "+@all")
    admin.ok("ACL", "SETUSER", "poor", "resetkeys", "-@all", f"(+@all ~{key.decode()})")
    admin.ok("DQ.SEND", key, "y", "GROUP", "g")
    assert w.recv()[0][3] == b"y"


def test_the_clients_behind_one_without_rights_are_served_in_their_order(server, admin, key):
    call = ("DQ.FETCH", key, "BLOCK", 5000)
    first = waiting(server, admin, call, "~*", "+@all")
    second = waiting(server, admin, call, "~*", "+@all", user="other")
    third = waiting(server, admin, call, "~*", "+@all", user="other")
    admin.ok("ACL", "SETUSER", "poor", "off")
    admin.ok("DQ.MSEND", key, 2, "x", "y")
    assert first.recv().startswith("NOPERM")
    assert [second.recv()[0][3], third.recv()[0][3]] == [b"x", b"y"]


def test_the_default_user_counts_like_any_other(make_server, key):
    server = make_server()
    with server.wire() as w:
        w.ok("ACL", "SETUSER", "admin", "on", ">secret", "~*", "+@all")
        w.ok("AUTH", "admin", "secret")
        blocked = server.wire()
        blocked.send("DQ.FETCH", key, "BLOCK", 5000)
        server.wait_blocked(1)
        w.ok("ACL", "SETUSER", "default", "resetkeys")
        w.ok("DQ.SEND", key, "x")
        assert blocked.recv().startswith("NOPERM")
        w.ok("ACL", "SETUSER", "default", "~*")
