"""What the server knows about the commands: flags, arity, keys, documentation, access rights."""

import itertools

import pytest

from tests.harness.verbs import ADDS, ALL, BLOCKS, DRAINS, KEYS, WRITES
from tests.harness.wire import Error


@pytest.fixture
def w(server):
    return server.wire(2)


def command_info(w, verb):
    [info] = w.ok("COMMAND", "INFO", f"dq.{verb.lower()}")
    assert info, f"no command dq.{verb}"
    return {"arity": info[1], "flags": set(info[2]), "first": info[3], "last": info[4], "step": info[5]}


def test_the_list_of_commands_is_the_contract(w):
    names = {n.decode().upper() for n in w.ok("COMMAND", "LIST", "FILTERBY", "MODULE", "dq")}
    assert {f"DQ.{v}" for v in ALL} <= names
    assert names - {f"DQ.{v}" for v in ALL} <= {"DQ.OP"}, "what is not in the contract is internal"


@pytest.mark.parametrize("verb", ALL)
def test_flags(w, verb):
    flags = command_info(w, verb)["flags"]
    assert (b"write" in flags) == (verb in WRITES)
    assert (b"readonly" in flags) == (verb not in WRITES)
    assert (b"blocking" in flags) == (verb in BLOCKS)
    if verb in ADDS:
        assert b"denyoom" in flags
    if verb in DRAINS or verb not in WRITES:
        assert b"denyoom" not in flags
    assert not flags & {b"admin", b"noscript", b"no_multi"}


def test_the_internal_command_is_for_administrators(w):
    flags = command_info(w, "OP")["flags"]
    assert {b"write", b"admin"} <= flags


@pytest.mark.parametrize("call, keys", KEYS, ids=lambda v: " ".join(map(str, v)))
def test_getkeys(w, call, keys):
    assert w.ok("COMMAND", "GETKEYS", f"DQ.{call[0]}", *call[1:]) == [k.encode() for k in keys]


def test_getkeysandflags_tell_reads_from_writes(w):
    for call, _ in KEYS:
        for _, flags in w.ok("COMMAND", "GETKEYSANDFLAGS", f"DQ.{call[0]}", *call[1:]):
            if call[0] in WRITES:
                assert set(flags) & {b"RW", b"OW", b"RM"}, call
            else:
                assert b"RO" in flags, call
                assert b"access" in flags or call[0] not in ("GET", "LIST", "PEEK", "WAIT"), call


@pytest.mark.parametrize("verb", ALL)
def test_docs(w, verb):
    [name, doc] = w.ok("COMMAND", "DOCS", f"dq.{verb.lower()}")
    doc = dict(zip(doc[::2], doc[1::2]))
    assert name == f"dq.{verb.lower()}".encode()
    assert len(doc[b"summary"]) > 10
    assert doc[b"module"] == b"dq"
    for field in (b"since", b"complexity", b"group"):
        assert doc.get(field), field
    assert doc[b"arguments"]


ARITY = dict(
    CREATE=-2, ALTER=-4, SEND=-3, MSEND=-4, GROUPPUSH=-6, FETCH=-2, MFETCH=-3, ACK=-3, NACK=-3, TOUCH=-4, TICK=-1, GET=3,
    LIST=-3, PEEK=-2, LEN=-2, INFO=2, GROUPS=-2, CONSUMERS=2, EXPLAIN=3, WAIT=4, CANCEL=-3, RESCHEDULE=5, UPDATE=4,
    REDRIVE=-3, PURGE=-2, PAUSE=-2, RESUME=-2, GROUPSET=-3, SCHEDULE=-7, UNSCHEDULE=3, SCHEDULES=2,
)  # fmt: skip


@pytest.mark.parametrize("verb", ALL)
def test_arity(w, verb):
    """Never stricter than the grammar; fixed where the grammar is."""
    arity = command_info(w, verb)["arity"]
    want = ARITY[verb]
    if want > 0:
        assert arity == want
    else:
        assert want <= arity < 0


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


def test_a_user_of_two_verbs_and_one_pattern_can_do_just_that(server):
    w = user(server, "~orders:*", "+dq.fetch", "+dq.ack")
    assert w.ok("DQ.FETCH", "orders:1") == []
    assert w.ok("DQ.FETCH", "orders:1", "BLOCK", 1) == []
    assert w.ok("DQ.ACK", "orders:1", 5) == 0
    assert not allowed(w.call("DQ.FETCH", "other"))
    assert not allowed(w.call("DQ.ACK", "other", 5))
    for verb in set(ALL) - {"FETCH", "ACK"}:
        call = next(c for c, _ in KEYS if c[0] == verb)
        assert not allowed(w.call(f"DQ.{verb}", *["orders:1" if a == "k" else a for a in call[1:]])), verb


def test_every_key_of_a_call_is_checked(server):
    w = user(server, "~orders:*", "+dq.mfetch", "+dq.tick")
    assert not allowed(w.call("DQ.MFETCH", 2, "orders:1", "other"))
    assert not allowed(w.call("DQ.MFETCH", 2, "other", "orders:1"))
    assert allowed(w.call("DQ.MFETCH", 2, "orders:1", "orders:2"))
    assert not allowed(w.call("DQ.TICK", "orders:1", "other"))
    assert not allowed(w.call("DQ.TICK", "orders:1", "ADVANCE"))
    assert allowed(w.call("DQ.TICK", "orders:1", "ADVANCE", 5))
    assert not allowed(w.call("DQ.TICK", "other", "ADVANCE", 5))


@pytest.mark.parametrize("call, keys", KEYS, ids=lambda v: " ".join(map(str, v)))
def test_dry_runs(server, call, keys):
    """Read-only key rights open the reading verbs and no writing one; full rights open all."""
    admin = server.wire(2)
    args = [f"DQ.{call[0]}", *call[1:]]
    for rule, ok in (("~*", True), ("%R~*", call[0] not in WRITES), ("~nothing:*", False)):
        admin.ok("ACL", "SETUSER", "limited", "reset", "on", rule, f"+dq.{call[0].lower()}")
        reply = admin.call("ACL", "DRYRUN", "limited", *args)
        assert (reply == b"OK") == ok, (rule, reply)


def test_no_script_rights_are_needed(server):
    w = user(server, "~*", *[f"+dq.{v.lower()}" for v in ALL])
    w.ok("DQ.SEND", "k", "x")
    [[_, receipt, _, _]] = w.ok("DQ.FETCH", "k", "BLOCK", 5)
    assert w.ok("DQ.ACK", "k", receipt) == 1


def test_the_category_is_there_where_the_engine_has_custom_ones(w):
    version = next(line for line in w.ok("INFO", "server").decode().splitlines() if line.startswith("redis_version")).split(
        ":"
    )[1]
    if tuple(map(int, version.split(".")[:2])) < (7, 4):
        pytest.skip("no custom categories on this engine")
    assert b"dq" in w.ok("ACL", "CAT")
    names = {n.lower() for n in w.ok("ACL", "CAT", "dq")}
    assert {f"dq.{v.lower()}".encode() for v in ALL} <= names


def test_module_list(w):
    modules = [dict(zip(m[::2], m[1::2])) for m in w.ok("MODULE", "LIST")]
    # Newer servers list parts of their own there, too: lua, vectorset.
    assert [m[b"name"] for m in modules].count(b"dq") == 1


def test_the_module_does_not_unload_under_its_queues(w):
    w.ok("DQ.SEND", "k", "x")
    assert isinstance(w.call("MODULE", "UNLOAD", "dq"), Error)
    assert w.ok("DQ.LEN", "k") == 1


def test_commands_are_case_insensitive(w):
    for name in map("".join, itertools.product("Dd", "Qq", ["."], ["SEND", "send"])):
        w.ok(name, "k", "x")
    assert w.ok("dq.LEN", "k") == 8
