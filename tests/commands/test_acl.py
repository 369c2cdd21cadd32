"""The rights that each verb needs: a table of all verbs checked by ACL DRYRUN, and users who have only some rights.

`%R~` lets a user see what is in a queue, `%W~` lets a user change it. A verb that returns messages needs the first,
a verb that changes the queue needs the second.
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


def lacking(call, keys):
    """The rules of users who have everything that a call needs but one right."""
    needs, verb = NEEDS[call[0]], f"dq.{call[0].lower()}"
    yield "~*", "+@all", f"-{verb}"
    for key in set(keys):
        rest = ["+@all", "~other", *(f"~{other}" for other in set(keys) - {key})]
        yield *rest, f"(+get ~{key})"
        for right in needs:
            yield *rest, *(f"%{other}~{key}" for other in "RW" if other != right)
        if needs and len(set(keys)) > 1:
            yield *rest, f"(+{verb} ~{key})"


@pytest.mark.parametrize("call, keys", CALLS)
def test_a_call_without_one_of_its_rights_is_refused_and_does_nothing(server, call, keys):
    admin, w = server.wire(2), server.wire(2)
    admin.ok("FLUSHALL")
    for key in set(keys):
        admin.ok("DQ.MSEND", key, 2, "x", "y")
        admin.ok("DQ.SEND", key, "x", "ID", "id", "CHILDREN", 9, "PARK")
    before = admin.ok("DEBUG", "DIGEST")
    for rules in lacking(call, keys):
        admin.ok("ACL", "SETUSER", "limited", "reset", "on", ">secret", *rules)
        w.ok("AUTH", "limited", "secret")
        for way, run in WAYS.items():
            reply = run(w, (f"DQ.{call[0]}", *call[1:]))
            refused = isinstance(reply, Error) and re.match("NOPERM|EXECABORT|ERR The user executing the script", reply)
            assert refused, (rules, way, reply)
        assert admin.ok("DEBUG", "DIGEST") == before, rules


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
