"""The rights that each verb needs: a table of all verbs checked by ACL DRYRUN, and users who have only some rights.

`%R~` lets a user see what is in a queue, `%W~` lets a user change it. A verb that returns messages needs the first,
a verb that changes the queue needs the second. Commands of the server that move or replace a queue need theirs.
"""

import re
import time

import pytest

from tests.harness.verbs import ALL, BLOCKS, KEYLESS, KEYS, WRITES
from tests.harness.wire import Error

NEEDS = (
    dict.fromkeys("GET LIST PEEK INFO GROUPS BATCHES CHILDREN LIMITS CONSUMERS EXPLAIN SCHEDULES WAIT".split(), "R")
    | dict.fromkeys("FETCH MFETCH FIND".split(), "RW")
    | dict.fromkeys(
        "CREATE ALTER SEND MSEND GROUPPUSH ACK ACKSEND NACK TOUCH TICK CANCEL RESCHEDULE UPDATE SIGNAL REDRIVE PURGE PAUSE RESUME "
        "GROUPSET LIMIT SCHEDULE UNSCHEDULE".split(),
        "W",
    )
    # LEN returns no messages, so it needs no right to read, like LLEN.
    | {"LEN": ""}
)

CALLS = [pytest.param(call, keys, id=" ".join(map(str, call))) for call, keys in KEYS]


@pytest.fixture
def dry_run(server):
    """Whether a user with these rules may make a call."""
    w = server.wire(2)

    def run(call, *rules) -> bool:
        w.ok("ACL", "SETUSER", "limited", "reset", "on", *rules)
        reply = w.ok("ACL", "DRYRUN", "limited", f"DQ.{call[0]}", *call[1:])
        return reply == b"OK"

    yield run
    w.ok("ACL", "DELUSER", "limited")


@pytest.fixture
def has_categories(server):
    """Only for engines where the commands of modules belong to categories at all."""
    [info] = server.wire(2).ok("COMMAND", "INFO", "dq.len")
    if not info[6]:
        pytest.skip("commands of modules have no categories on this engine")


def test_the_table_of_rights_has_every_verb(server):
    verbs = server.wire(2).ok("COMMAND", "LIST", "FILTERBY", "PATTERN", "dq.*")
    assert {f"dq.{verb.lower()}".encode() for verb in (*NEEDS, *KEYLESS, "OP", "OPS")} == {verb.lower() for verb in verbs}


@pytest.mark.parametrize("call, keys", CALLS)
@pytest.mark.parametrize("rights", ["R", "W", "RW"])
def test_a_call_needs_its_rights_on_every_one_of_its_keys(dry_run, call, keys, rights):
    enough = set(NEEDS[call[0]]) <= set(rights)
    assert dry_run(call, f"%{rights}~*", "+@all") == enough
    # One key without rights is enough for a refusal.
    assert dry_run(call, *(f"%{rights}~{key}" for key in keys), "+@all") == enough
    for missing in keys:
        if any(key == missing for key in keys if keys.count(key) > 1):
            continue
        rest = [f"%{rights}~{key}" for key in keys if key != missing]
        assert not dry_run(call, *rest, "+@all")


@pytest.mark.parametrize("call, keys", CALLS)
def test_rights_of_two_selectors_do_not_add_up(dry_run, call, keys):
    """One selector must allow the whole call. A right to read in one and a right to write in another are not enough."""
    verb = f"+dq.{call[0].lower()}"
    apart = dry_run(call, f"({verb} %R~*)", f"({verb} %W~*)")
    assert apart == (len(NEEDS[call[0]]) < 2)
    assert dry_run(call, "(+get ~*)", f"({verb} %RW~*)")


@pytest.mark.parametrize("call, keys", CALLS)
def test_no_script_admin_or_dangerous_rights_are_needed(dry_run, call, keys):
    """No client needs rights to run scripts or to harm the server, and each verb can be denied."""
    assert dry_run(call, "~*", "+@all", "-@scripting", "-@dangerous", "-@admin")
    assert not dry_run(call, "~*", "+@all", f"-dq.{call[0].lower()}")
    assert not dry_run(call, "~*", "-@all")


@pytest.mark.parametrize("call, keys", CALLS)
def test_each_verb_is_in_the_categories_read_write_and_blocking_where_it_belongs(dry_run, has_categories, call, keys):
    verb = call[0]
    assert dry_run(call, "~*", "+@read") == (verb not in WRITES)
    assert dry_run(call, "~*", "+@write") == (verb in WRITES)
    assert dry_run(call, "~*", "+@blocking") == (verb in BLOCKS)


def as_script(call):
    return "EVAL", "return redis.pcall(unpack(ARGV))", 0, *call


def in_transaction(w, call):
    w.ok("MULTI")
    w.call(*call)
    reply = w.call("EXEC")
    return reply[0] if isinstance(reply, list) else reply


# DRYRUN only says what would be allowed. Here the commands are run, in each way in which a client can run them.
WAYS = {
    "plain": lambda w, call: w.call(*call),
    "script": lambda w, call: w.call(*as_script(call)),
    "transaction": in_transaction,
    "script in a transaction": lambda w, call: in_transaction(w, as_script(call)),
}


def lacking(verb, needs):
    """The rules of users who have everything that a call needs but one right. `needs` has the rights to each key."""
    yield "~*", "+@all", f"-{verb}"
    for key, rights in needs.items():
        rest = ["+@all", "~other", *(f"~{other}" for other in set(needs) - {key})]
        yield *rest, f"(+get ~{key})"
        for right in rights:
            yield *rest, *(f"%{other}~{key}" for other in "RW" if other != right)
        if rights and len(needs) > 1:
            yield *rest, f"(+{verb} ~{key})"


def assert_refused_and_nothing_done(server, call, needs, before):
    """Runs a call in each way as each user who lacks one right to it."""
    admin, w = server.wire(2), server.wire(2)
    for rules in lacking(call[0].lower(), needs):
        admin.ok("ACL", "SETUSER", "limited", "reset", "on", ">secret", *rules)
        w.ok("AUTH", "limited", "secret")
        for way, run in WAYS.items():
            reply = run(w, call)
            refused = isinstance(reply, Error) and re.match("NOPERM|EXECABORT|ERR The user executing the script", reply)
            assert refused, (rules, way, reply)
        assert admin.ok("DEBUG", "DIGEST") == before, rules


def fill(admin, keys):
    admin.ok("FLUSHALL")
    for key in set(keys):
        admin.ok("DQ.MSEND", key, 2, "x", "y")
        admin.ok("DQ.SEND", key, "x", "ID", "id", "CHILDREN", 9, "PARK")


@pytest.mark.parametrize("call, keys", CALLS)
def test_a_call_without_one_of_its_rights_is_refused_and_does_nothing(server, call, keys):
    admin = server.wire(2)
    fill(admin, keys)
    before = admin.ok("DEBUG", "DIGEST")
    assert_refused_and_nothing_done(server, (f"DQ.{call[0]}", *call[1:]), dict.fromkeys(keys, NEEDS[call[0]]), before)


# Commands of the server that read, move, replace or remove a queue, with the rights that they need to each key. A command
# that stores its result puts it in the place of the queue.
MOVES = [
    (("COPY", "k", "d"), {"k": "R", "d": "W"}),
    (("COPY", "k", "d", "REPLACE"), {"k": "R", "d": "W"}),
    (("RENAME", "k", "d"), {"k": "RW", "d": "W"}),
    (("RENAMENX", "k", "new"), {"k": "RW", "new": "W"}),
    (("MOVE", "k", 1), {"k": "RW"}),
    (("RESTORE", "k", 0, "a dump", "REPLACE"), {"k": "W"}),
    (("DUMP", "k"), {"k": "R"}),
    (("DEL", "k"), {"k": "W"}),
    (("UNLINK", "k"), {"k": "W"}),
    (("EXPIRE", "k", 100), {"k": "W"}),
    (("SET", "k", "x"), {"k": "W"}),
    (("SORT", "list", "STORE", "k"), {"list": "R", "k": "W"}),
    (("ZRANGESTORE", "k", "set", 0, -1), {"set": "R", "k": "W"}),
    (("ZUNIONSTORE", "k", 1, "set"), {"set": "R", "k": "W"}),
    (("GEOSEARCHSTORE", "k", "geo", "FROMLONLAT", 0, 0, "BYRADIUS", 9, "m"), {"geo": "R", "k": "W"}),
    (("BITOP", "NOT", "k", "text"), {"text": "R", "k": "W"}),
]


@pytest.mark.parametrize("call, needs", [pytest.param(*one, id=" ".join(map(str, one[0]))) for one in MOVES])
def test_a_command_of_the_server_without_a_right_to_a_queue_is_refused_and_does_nothing(server, call, needs):
    admin = server.wire(2)
    fill(admin, ["k", "d"])
    for other in (("RPUSH", "list", 1), ("ZADD", "set", 1, "x"), ("GEOADD", "geo", 0, 0, "x"), ("SET", "text", "x")):
        admin.ok(*other)
    before = admin.ok("DEBUG", "DIGEST")
    call = [admin.ok("DUMP", "d") if word == "a dump" else word for word in call]
    assert_refused_and_nothing_done(server, call, needs, before)
    # With all of them it is done, so nothing else was the reason.
    rules = [f"%{rights}~{key}" for key, rights in needs.items()]
    admin.ok("ACL", "SETUSER", "limited", "reset", "on", ">secret", "+@all", *rules)
    w = server.wire(2)
    w.ok("AUTH", "limited", "secret")
    assert not isinstance(w.call(*call), Error)


def test_the_internal_command_refuses_bad_records(server):
    w = server.wire(2)
    w.ok("DQ.SEND", "k", "x")
    for record in (b"", b"x", b"\x20", b"\xff" * 64):
        assert isinstance(w.call("DQ.OP", "k", record), Error)
    assert w.ok("DQ.LEN", "k") == 1


def test_the_internal_command_can_be_denied(dry_run):
    """OP applies log entries, which could make changes that no command can. Engines without categories for modules
    know it by name only.
    """
    assert not dry_run(("OP", "k", "x"), "~*", "+@all", "-dq.op")
    assert not dry_run(("OP", "k", "x"), "~*", "+@write", "-@admin")


def test_log_entries_need_the_right_to_write_to_every_key(server):
    """An entry may name any key: an event stream, a queue of DEADTO, a parent."""
    admin = server.wire(2)
    admin.ok("DQ.SEND", "k", "x")
    entry = b"\x21" + int(time.time() * 1_000_000).to_bytes(7, "little") + b"\x01\x00"
    calls = ("DQ.OP", "k", entry), ("DQ.OPS", "k", entry)
    for rules, allowed in (
        (["~k", "+dq.op", "+dq.ops"], False),
        (["~*", "+dq.len", "(~k +dq.op +dq.ops)"], False),
        (["%W~*", "+dq.op", "+dq.ops"], True),
        (["~*", "+@all"], True),
    ):
        name = f"limited-{rules[0]}-{len(rules)}"
        admin.ok("ACL", "SETUSER", name, "reset", "on", ">secret", *rules)
        try:
            w = server.wire(2)
            w.ok("AUTH", name, "secret")
            for call in calls:
                reply = w.call(*call)
                assert reply == b"OK" if allowed else reply.startswith("NOPERM"), (rules, reply)
        finally:
            admin.ok("ACL", "DELUSER", name)


def test_the_internal_command_is_in_the_categories_dangerous_and_admin(dry_run, has_categories):
    for category in ("@dangerous", "@admin"):
        assert not dry_run(("OP", "k", "x"), "~*", "+@all", f"-{category}")


def user(server, *rules):
    """A connection with these rights alone."""
    admin = server.wire(2)
    admin.ok("ACL", "SETUSER", "limited", "reset", "on", ">secret", *rules)
    w = server.wire(2)
    w.ok("AUTH", "limited", "secret")
    return w


@pytest.fixture(autouse=True)
def no_users(server):
    yield
    with server.wire(2) as w:
        w.ok("ACL", "DELUSER", "limited")


def allowed(reply):
    return not (isinstance(reply, Error) and reply.startswith("NOPERM"))


def test_a_user_with_two_verbs_and_one_key_pattern_can_do_only_that(server):
    w = user(server, "~orders:*", "+dq.fetch", "+dq.ack")
    assert w.ok("DQ.FETCH", "orders:1") == []
    assert w.ok("DQ.FETCH", "orders:1", "BLOCK", 1) == []
    assert w.ok("DQ.ACK", "orders:1", 5) == 0
    assert not allowed(w.call("DQ.FETCH", "other"))
    assert not allowed(w.call("DQ.ACK", "other", 5))
    for verb in set(ALL) - {"FETCH", "ACK"} - set(KEYLESS):
        call = next(c for c, _ in KEYS if c[0] == verb)
        assert not allowed(w.call(f"DQ.{verb}", *["orders:1" if a == "k" else a for a in call[1:]])), verb


def test_a_user_needs_rights_on_every_key_of_a_call(server):
    w = user(server, "~orders:*", "+dq.mfetch", "+dq.tick")
    assert not allowed(w.call("DQ.MFETCH", 2, "orders:1", "other"))
    assert not allowed(w.call("DQ.MFETCH", 2, "other", "orders:1"))
    assert allowed(w.call("DQ.MFETCH", 2, "orders:1", "orders:2"))
    assert not allowed(w.call("DQ.TICK", "orders:1", "other"))
    assert not allowed(w.call("DQ.TICK", "orders:1", "ADVANCE"))
    assert allowed(w.call("DQ.TICK", "orders:1", "ADVANCE", 5))
    assert not allowed(w.call("DQ.TICK", "other", "ADVANCE", 5))


def test_no_script_rights_are_needed(server):
    w = user(server, "~*", *[f"+dq.{v.lower()}" for v in ALL])
    w.ok("DQ.SEND", "k", "x")
    [[_, receipt, _, _]] = w.ok("DQ.FETCH", "k", "BLOCK", 5)
    assert w.ok("DQ.ACK", "k", receipt) == 1


def test_the_category_dq_exists_on_engines_with_custom_categories(server):
    w = server.wire(2)
    version = next(line for line in w.ok("INFO", "server").decode().splitlines() if line.startswith("redis_version")).split(
        ":"
    )[1]
    if tuple(map(int, version.split(".")[:2])) < (7, 4):
        pytest.skip("no custom categories on this engine")
    assert b"dq" in w.ok("ACL", "CAT")
    names = {n.lower() for n in w.ok("ACL", "CAT", "dq")}
    assert {f"dq.{v.lower()}".encode() for v in ALL} <= names
