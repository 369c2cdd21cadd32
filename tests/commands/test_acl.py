"""What rights each verb asks for: the whole table, by ACL DRYRUN.

`%R~` lets a user see what is in a queue, `%W~` change it; a verb that gives what is in a queue to
its caller needs the first, one that changes it the second.
"""

import pytest

from tests.harness.verbs import BLOCKS, KEYS, READS, WRITES
from tests.harness.wire import Error

NEEDS = (
    dict.fromkeys("GET LIST PEEK INFO GROUPS CONSUMERS EXPLAIN SCHEDULES WAIT".split(), "R")
    | dict.fromkeys("FETCH MFETCH".split(), "RW")
    | dict.fromkeys(
        "CREATE ALTER SEND MSEND GROUPPUSH ACK NACK TOUCH TICK CANCEL RESCHEDULE UPDATE REDRIVE PURGE PAUSE RESUME "
        "GROUPSET SCHEDULE UNSCHEDULE".split(),
        "W",
    )
    # A length is no content, as with LLEN.
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


def test_the_table_has_every_verb():
    assert set(NEEDS) == set(READS) | set(WRITES) | {"WAIT"}


@pytest.mark.parametrize("call, keys", CALLS)
@pytest.mark.parametrize("rights", ["R", "W", "RW"])
def test_key_rights(dry_run, call, keys, rights):
    enough = set(NEEDS[call[0]]) <= set(rights)
    assert dry_run(call, f"%{rights}~*", "+@all") == enough
    # On each of its keys: one that is out of reach is enough to refuse.
    assert dry_run(call, *(f"%{rights}~{key}" for key in keys), "+@all") == enough
    for missing in keys:
        if any(key == missing for key in keys if keys.count(key) > 1):
            continue
        rest = [f"%{rights}~{key}" for key in keys if key != missing]
        assert not dry_run(call, *rest, "+@all")


@pytest.mark.parametrize("call, keys", CALLS)
def test_rights_do_not_add_up_over_selectors(dry_run, call, keys):
    """One selector must allow the whole call: to read in one and to write in another is not to do both."""
    verb = f"+dq.{call[0].lower()}"
    apart = dry_run(call, f"({verb} %R~*)", f"({verb} %W~*)")
    assert apart == (len(NEEDS[call[0]]) < 2)
    assert dry_run(call, "(+get ~*)", f"({verb} %RW~*)")


@pytest.mark.parametrize("call, keys", CALLS)
def test_no_other_rights_are_needed(dry_run, call, keys):
    """No client needs scripts, nor anything that can harm the server; and each verb can be taken away."""
    assert dry_run(call, "~*", "+@all", "-@scripting", "-@dangerous", "-@admin")
    assert not dry_run(call, "~*", "+@all", f"-dq.{call[0].lower()}")
    assert not dry_run(call, "~*", "-@all")


@pytest.mark.parametrize("call, keys", CALLS)
def test_categories(dry_run, has_categories, call, keys):
    verb = call[0]
    assert dry_run(call, "~*", "+@read") == (verb not in WRITES)
    assert dry_run(call, "~*", "+@write") == (verb in WRITES)
    assert dry_run(call, "~*", "+@blocking") == (verb in BLOCKS)


def test_a_limited_user_is_refused_for_real_too(server):
    """DRYRUN is what the server says of itself: once, what it does."""
    admin, w = server.wire(2), server.wire(2)
    admin.ok("ACL", "SETUSER", "limited", "reset", "on", ">secret", "%R~k", "+@all")
    try:
        w.ok("AUTH", "limited", "secret")
        for call, keys in KEYS:
            if keys == ["k"] and call[0] != "WAIT":
                refused = w.call(f"DQ.{call[0]}", *call[1:])
                denied = isinstance(refused, Error) and refused.startswith("NOPERM")
                assert denied == ("W" in NEEDS[call[0]]), call
        assert admin.ok("DQ.LEN", "k") == 0
    finally:
        admin.ok("ACL", "DELUSER", "limited")


def test_the_internal_command_takes_no_nonsense(server):
    w = server.wire(2)
    w.ok("DQ.SEND", "k", "x")
    for record in (b"", b"x", b"\x20", b"\xff" * 64):
        assert isinstance(w.call("DQ.OP", "k", record), Error)
    assert w.ok("DQ.LEN", "k") == 1


def test_the_internal_command_can_be_taken_away(dry_run):
    """Its records could do what no command can. (Engines without categories for modules know it by name only.)"""
    assert not dry_run(("OP", "k", "x"), "~*", "+@all", "-dq.op")
    assert not dry_run(("OP", "k", "x"), "~*", "+@write", "-@admin")


def test_the_internal_command_is_dangerous(dry_run, has_categories):
    for category in ("@dangerous", "@admin"):
        assert not dry_run(("OP", "k", "x"), "~*", "+@all", f"-{category}")
