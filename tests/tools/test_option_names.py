"""Every copy of the commands' options has all that COMMAND DOCS tells of: clients, `dq`, docs/commands.md and the words of
the fuzzer."""

import re

import pytest

from fuzz.dictionary import DICTIONARY, dictionary
from tests.harness.server import ROOT
from tests.harness.verbs import commands, options

# The files of each copy, and the commands whose options it must have (None: all). The PHP client has no copy: its options
# are the words of the commands.
COPIES = {
    "Python": ("clients/python/src/dqueue", "*.py", None),
    "Node": ("clients/node/src", "*.ts", None),
    "Go": ("clients/go", "*.go", None),
    "dq send": ("cli/src/command", "send.rs options.rs", ["SEND"]),
    "dq schedule": ("cli/src/command", "schedule.rs options.rs", ["SCHEDULE"]),
    "settings of dq": ("cli/src/model", "settings.rs", ["CREATE"]),
    "docs/commands.md": ("docs", "commands.md", None),
}
EFFECTS = set("APPLY IF EXISTS MISSING EQUALS SET PX DEL INCRBY HSET HDEL HINCRBY SADD SREM ZADD ZINCRBY ZREM LPUSH RPUSH XADD PEXPIRE".split())
# Options that a copy has in another form, or leaves out on purpose.
OTHERWISE = {
    # A call with effects goes through the client's method for any command: `do`.
    **dict.fromkeys(["Python", "Node", "Go"], EFFECTS),

    # Words that are no setting, and values of DEADTO and others: dq passes them on as they are typed.
    "settings of dq": set(
        "NX CLOCK SERVER MANUAL RETRIES REJECTED EXPIRED BATCH TIMEOUTS CHILDREN FIXED LINEAR EXP BLOCK SKIP CONTINUE ON OFF "
        "COUNT TIME COST".split()
    ),
    # The payload is an argument, and the values of options are the server's to judge.
    "dq schedule": {"PAYLOAD"},
}


def words(folder, names) -> set:
    """All words of the files, in the spelling of commands: max_timeouts, maxTimeouts and --max-timeouts are MAXTIMEOUTS."""
    paths = [path for name in names.split() for path in (ROOT / folder).rglob(name)]
    assert paths
    found = re.findall(r"[A-Za-z][\w-]*", "\n".join(path.read_text() for path in paths))
    return {re.sub("[-_]", "", word).upper() for word in found}


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_has_every_option(server, copy):
    folder, names, verbs = COPIES[copy]
    known = words(folder, names) | OTHERWISE.get(copy, set())
    wire = server.wire(3)
    missing = {verb: sorted(options(wire, verb) - known) for verb in verbs or commands(wire)}
    assert {verb: left for verb, left in missing.items() if left} == {}


def test_the_words_of_the_fuzzer_are_those_of_the_commands(server):
    assert DICTIONARY.read_text() == dictionary(server), "python fuzz/dictionary.py writes it"
