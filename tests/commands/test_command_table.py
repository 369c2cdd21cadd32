"""The reply of COMMAND about the module: flags, arity, keys and documentation."""

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


def test_the_server_lists_exactly_the_documented_commands(w):
    names = {n.decode().upper() for n in w.ok("COMMAND", "LIST", "FILTERBY", "MODULE", "dq")}
    assert {f"DQ.{v}" for v in ALL} <= names
    assert names - {f"DQ.{v}" for v in ALL} <= {"DQ.OP", "DQ.OPS"}, "what is not in the contract is internal"


@pytest.mark.parametrize("verb", ALL)
def test_each_command_has_the_right_flags(w, verb):
    flags = command_info(w, verb)["flags"]
    assert (b"write" in flags) == (verb in WRITES)
    assert (b"readonly" in flags) == (verb not in WRITES)
    assert (b"blocking" in flags) == (verb in BLOCKS)
    if verb in ADDS:
        assert b"denyoom" in flags
    if verb in DRAINS or verb not in WRITES:
        assert b"denyoom" not in flags
    assert not flags & {b"admin", b"noscript", b"no_multi"}


@pytest.mark.parametrize("verb", ["OP", "OPS"])
def test_the_internal_commands_have_the_flags_write_and_admin(w, verb):
    flags = command_info(w, verb)["flags"]
    assert {b"write", b"admin"} <= flags


def test_the_internal_command_for_several_queues_names_all_keys(w):
    assert w.ok("COMMAND", "GETKEYS", "DQ.OPS", "a", "1", "b", "2", "a", "3") == [b"a", b"b", b"a"]


@pytest.mark.parametrize("call, keys", KEYS, ids=lambda v: " ".join(map(str, v)))
def test_getkeys_finds_the_keys_of_every_call(w, call, keys):
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
def test_each_command_is_documented_in_command_docs(w, verb):
    [name, doc] = w.ok("COMMAND", "DOCS", f"dq.{verb.lower()}")
    doc = dict(zip(doc[::2], doc[1::2]))
    assert name == f"dq.{verb.lower()}".encode()
    assert len(doc[b"summary"]) > 10
    assert doc[b"module"] == b"dq"
    for field in (b"since", b"complexity", b"group"):
        assert doc.get(field), field
    assert doc[b"arguments"]


ARITY = dict(
    CREATE=-2, ALTER=-4, SEND=-3, MSEND=-4, GROUPPUSH=-6, FETCH=-2, MFETCH=-3, ACK=-3, ACKSEND=-6, NACK=-3, TOUCH=-4, TICK=-1, GET=3,
    LIST=-3, FIND=-3, ROUTE=4, PARTITIONS=3, NFETCH=-2, NINFO=2, PEEK=-2, LEN=-2, INFO=2, GROUPS=-2, BATCHES=-2, CHILDREN=-3, LIMITS=-2, CONSUMERS=2, EXPLAIN=3, WAIT=4, CANCEL=-3, RESCHEDULE=5, UPDATE=4, SIGNAL=-3,
    REDRIVE=-3, PURGE=-2, PAUSE=-2, RESUME=-2, GROUPSET=-3, LIMIT=-3, SCHEDULE=-7, UNSCHEDULE=3, SCHEDULES=-2,
)  # fmt: skip


@pytest.mark.parametrize("verb", ALL)
def test_arity_is_never_stricter_than_the_grammar(w, verb):
    """The arity is fixed where the grammar has a fixed number of arguments."""
    arity = command_info(w, verb)["arity"]
    want = ARITY[verb]
    if want > 0:
        assert arity == want
    else:
        assert want <= arity < 0


def test_module_list_shows_the_module_once(w):
    modules = [dict(zip(m[::2], m[1::2])) for m in w.ok("MODULE", "LIST")]
    # Newer servers list parts of their own there too: lua, vectorset.
    assert [m[b"name"] for m in modules].count(b"dq") == 1


def test_the_module_cannot_be_unloaded_while_it_has_queues(w):
    w.ok("DQ.SEND", "k", "x")
    assert isinstance(w.call("MODULE", "UNLOAD", "dq"), Error)
    assert w.ok("DQ.LEN", "k") == 1


def test_commands_are_case_insensitive(w):
    for name in map("".join, itertools.product("Dd", "Qq", ["."], ["SEND", "send"])):
        w.ok(name, "k", "x")
    assert w.ok("dq.LEN", "k") == 8
