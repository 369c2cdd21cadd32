"""Bad calls of the basic verbs: each gives an error that names the bad word, and changes nothing.

The verbs and options of groups, records, inspection and schedules are in test_errors_groups.py.
"""

import pytest

from tests.harness.replies import digest
from tests.harness.wire import Error

TOP = 2**53
LONG = "x" * 1025

# Values that are no integer in the range of a time or a count.
NO_MS = ["", "x", "-1", "1.5", " 1", "1 ", "0x1", "1e3", "+1", str(TOP), str(2**63), str(2**64), "nan", "inf", b"1\0"]
NO_POSITIVE = NO_MS + ["0"]


def per_value(option, values, word=None):
    return [((option, v), word or option) for v in values]


QUEUE_OPTIONS = [
    *per_value("LEASE", NO_POSITIVE),
    *per_value("RETRIES", ["", "x", "-2", "1.5", str(2**63)]),
    *per_value("MAXBACKOFF", NO_MS),
    *per_value("JITTER", ["", "x", "-1", "101", "1.5"]),
    *per_value("TTL", NO_MS),
    *per_value("RETAIN", NO_MS),
    *per_value("RETAINCOUNT", ["", "x", "-1"]),
    *per_value("DEADRETAIN", NO_MS),
    *per_value("DEADCOUNT", ["", "x", "-1"]),
    *per_value("DEDUP", NO_MS),
    *per_value("MAXLEN", ["", "x", "-1"]),
    *per_value("MAXBYTES", ["", "x", "-1"]),
    *per_value("MAXRUNNING", ["", "x", "-1"]),
    *per_value("GROUPCONCURRENCY", ["", "x", "-1", "0"]),
    *per_value("ONRETRY", ["", "CONTINUE", "x"]),
    *per_value("ONDEAD", ["", "SKIP", "x"]),
    *[(("BACKOFF", kind, v), "BACKOFF") for kind in ("FIXED", "LINEAR", "EXP") for v in NO_MS],
    (("BACKOFF", "CUBIC", 5), "BACKOFF"),
    (("BACKOFF", "FIXED"), "BACKOFF"),
    (("BACKOFF",), "BACKOFF"),
    (("LEASE",), "LEASE"),
    (("RATE", 5), "RATE"),
    (("RATE", 5, "PER"), "PER|RATE"),
    (("RATE", 5, "EACH", 5), "RATE|EACH|PER"),
    (("RATE", -1, "PER", 5), "RATE"),
    (("RATE", "x", "PER", 5), "RATE"),
    *[(("RATE", 5, "PER", v), "PER|RATE") for v in NO_POSITIVE],
    (("BREAKER",), "BREAKER"),
    (("BREAKER", 5), "BREAKER|PER"),
    (("BREAKER", 5, "PER", 5), "BREAKER|OPEN"),
    (("BREAKER", 5, "OPEN", 5, "PER", 5), "BREAKER|PER"),
    (("BREAKER", -1, "PER", 5, "OPEN", 5), "BREAKER"),
    (("BREAKER", 1001, "PER", 5, "OPEN", 5), "BREAKER"),
    (("BREAKER", 5, "PER", 5, "OPEN", 5, "MAX", 4), "MAX"),
    (("BREAKER", 0, "BREAKER", 0), "BREAKER"),
    *[(("BREAKER", 5, "PER", v, "OPEN", 5), "PER") for v in NO_POSITIVE],
    *[(("BREAKER", 5, "PER", 5, "OPEN", v), "OPEN") for v in NO_POSITIVE],
    *[(("BREAKER", 5, "PER", 5, "OPEN", 5, "MAX", v), "MAX") for v in NO_POSITIVE],
    (("LEASE", 5, "LEASE", 5), "LEASE"),
    (("LEASE", 5, "lease", 6), "LEASE"),
    (("TTL", 5, "RETRIES", 1, "TTL", 5), "TTL"),
    (("NONSENSE", 5), "NONSENSE"),
    (("LEASE", 5, "NONSENSE"), "NONSENSE"),
    (("DELAY", 5), "DELAY"),
]
CREATE_ONLY = [
    (("CLOCK",), "CLOCK"),
    (("CLOCK", "WALL"), "CLOCK"),
    (("CLOCK", "MANUAL", -1), "CLOCK|-1"),
    (("CLOCK", "MANUAL", str(TOP)), f"CLOCK|{TOP}"),
    (("CLOCK", "SERVER", "CLOCK", "SERVER"), "CLOCK"),
    (("CLOCK", "SERVER", 5), "CLOCK|5"),
]
MESSAGE_OPTIONS = [
    *per_value("DELAY", NO_MS),
    *per_value("AT", NO_MS),
    *per_value("PRIORITY", ["", "x", "-129", "128", "1.5"]),
    *per_value("LEASE", NO_POSITIVE),
    *per_value("RETRIES", ["", "x", "-2"]),
    *per_value("TTL", NO_MS),
    *per_value("EXPIREAT", NO_MS),
    *per_value("RETAIN", NO_MS),
    *per_value("MAXWAIT", NO_MS),
    *per_value("MAXTIMEOUTS", NO_MS),
    *per_value("ERRORS", ["", "x", "-1", "101", "1.5"]),
    (("MAXWAIT", 5), "MAXWAIT"),
    (("IFGROUP",), "IFGROUP"),
    (("GROUP", "g", "IFGROUP", "IFGROUP"), "IFGROUP"),
    (("TTL", 5, "EXPIREAT", 5), "TTL|EXPIREAT"),
    (("EXPIREAT", 5, "EXPIREAT", 5), "EXPIREAT"),
    *per_value("TYPE", ["", LONG]),
    *per_value("GROUP", ["", LONG]),
    (("GROUP", "g", "SCORE", "nan"), "SCORE"),
    (("GROUP", "g", "SCORE", "inf"), "SCORE"),
    (("GROUP", "g", "SCORE", "-inf"), "SCORE"),
    (("GROUP", "g", "SCORE", "1e999"), "SCORE"),
    (("GROUP", "g", "SCORE", "x"), "SCORE"),
    (("GROUP", "g", "SCORE", ""), "SCORE"),
    (("SCORE", 5), "SCORE"),
    (("BACKOFF", "CUBIC", 5), "BACKOFF"),
    (("BACKOFF", "EXP", -1), "BACKOFF"),
    (("HEADERS",), "HEADERS"),
    (("HEADERS", "x"), "HEADERS"),
    (("HEADERS", -1), "HEADERS"),
    (("HEADERS", 2, "a", "b", "c"), "HEADERS"),
    (("HEADERS", 10**18, "a", "b"), "HEADERS"),
    (("HEADERS", 2**63 - 1, "a", "b"), "HEADERS"),
    (("DELAY", 5, "AT", 5), "DELAY|AT"),
    (("AT", 5, "DELAY", 5), "DELAY|AT"),
    (("DELAY", 5, "DELAY", 5), "DELAY"),
    (("TYPE", "a", "TYPE", "a"), "TYPE"),
    (("DELAY",), "DELAY"),
    (("NONSENSE",), "NONSENSE"),
    (("COUNT", 5), "COUNT"),
    (("",), ""),
]
SEND_ONLY = [
    *per_value("ID", ["", LONG]),
    (("REPLACE",), "REPLACE|ID"),
    (("ID", "new", "REPLACE", "REPLACE"), "REPLACE"),
    (("ID", "new", "ID", "new"), "ID"),
]
FETCH_COMMON = [
    *per_value("COUNT", ["", "x", "0", "-1", "10001", str(2**63)]),
    *per_value("BLOCK", NO_MS),
    *per_value("LEASE", NO_POSITIVE),
    *per_value("CONSUMER", ["", LONG]),
    *per_value("PERGROUP", ["", "x", "0", "-1"]),
    *per_value("MAXBYTES", NO_POSITIVE),
    (("NOACK", "BIND"), "NOACK|BIND"),
    (("BIND", "NOACK"), "NOACK|BIND"),
    (("NOACK", "LEASE", 5), "NOACK|LEASE"),
    (("LEASE", 5, "NOACK"), "NOACK|LEASE"),
    (("COUNT", 1, "COUNT", 1), "COUNT"),
    (("BIND", "BIND"), "BIND"),
    (("WITHMETA", "withmeta"), "WITHMETA"),
    (("COUNT",), "COUNT"),
    (("NONSENSE",), "NONSENSE"),
    (("DELAY", 5), "DELAY"),
]
FETCH_ONLY = [
    *per_value("GROUP", ["", LONG]),
    (("GROUP", "g", "PERGROUP", 2), "GROUP|PERGROUP"),
    (("ACK",), "ACK"),
    (("ACK", 0), "ACK"),
    (("ACK", -1), "ACK"),
    (("ACK", "x"), "ACK"),
    (("ACK", 2, 5), "ACK"),
    (("ACK", 1, "x"), "ACK|x"),
    (("ACK", 1, "1.5"), "ACK|1.5"),
    (("ACK", 2**62, 5), "ACK"),
    (("ACK", 1, 5, "ACK", 1, 5), "ACK"),
    (("RESULTS", 1, "a"), "RESULTS|ACK"),
    (("ACK", 1, 5, "RESULTS"), "RESULTS"),
    (("ACK", 1, 5, "RESULTS", 0), "RESULTS"),
    (("ACK", 1, 5, "RESULTS", 2, "a"), "RESULTS"),
    (("ACK", 1, 5, "RESULTS", 2, "a", "b"), "RESULTS"),
    (("ACK", 1, 5, "RESULTS", 1, "a", "RESULTS", 1, "a"), "RESULTS"),
]
CURRENT = "<receipt>"

K = "full"
CASES = [
    *[(("DQ.CREATE", "new", *a), w) for a, w in QUEUE_OPTIONS + CREATE_ONLY],
    *[(("DQ.ALTER", K, *a), w) for a, w in QUEUE_OPTIONS if len(a) > 1],
    *[(("DQ.ALTER", K, "LEASE", 9, *a), w) for a, w in QUEUE_OPTIONS if "LEASE" not in a],
    (("DQ.ALTER", K, "CLOCK", "MANUAL"), "CLOCK"),
    (("DQ.ALTER", K, "CLOCK", "SERVER"), "CLOCK"),
    *[(("DQ.SEND", K, "p", *a), w) for a, w in MESSAGE_OPTIONS + SEND_ONLY],
    *[(("DQ.SEND", "new", "p", *a), w) for a, w in MESSAGE_OPTIONS + SEND_ONLY],
    *[(("DQ.MSEND", K, 2, "p", "p", *a), w) for a, w in MESSAGE_OPTIONS],
    *[(("DQ.MSEND", K, n, "p", "p"), "") for n in ("", "x", "0", "-1", "3", "1.5", 2**31, 2**63 - 1)],
    (("DQ.MSEND", K, 1, "p", "p"), "p"),
    (("DQ.MSEND", K, 1, "p", "ID", "a"), "ID"),
    (("DQ.MSEND", K, 1, "p", "REPLACE"), "REPLACE"),
    *[(("DQ.FETCH", K, *a), w) for a, w in FETCH_COMMON + FETCH_ONLY],
    *[(("DQ.MFETCH", 1, K, *a), w) for a, w in FETCH_COMMON],
    (("DQ.MFETCH", 1, K, "GROUP", "g"), "GROUP"),
    (("DQ.MFETCH", 1, K, "ACK", 1, 5), "ACK"),
    (("DQ.MFETCH", 1, K, "RESULTS", 1, "a"), "RESULTS"),
    *[(("DQ.MFETCH", n, K), "") for n in ("", "x", "0", "-1", "2", "1.5", 2**31, 2**63 - 1)],
    *[(("DQ.ACK", K, CURRENT, v), "") for v in ("", "x", "1.5", " 1", str(2**63), "RESULT")],
    (("DQ.ACK", K, "RESULT", "x"), ""),
    (("DQ.ACK", K, CURRENT, "RESULT"), "RESULT"),
    (("DQ.ACK", K, CURRENT, "RESULT", "a", "RESULT", "b"), "RESULT"),
    (("DQ.ACK", K, CURRENT, "RESULT", "a", "b"), ""),
    *[(("DQ.NACK", K, CURRENT, v), "") for v in ("", "x", "1.5", "NONSENSE")],
    *[(("DQ.NACK", K, CURRENT, "DELAY", v), "DELAY") for v in NO_MS],
    *[
        (("DQ.NACK", K, CURRENT, *a), w)
        for a, w in [
            (("DELAY",), "DELAY"),
            (("ERROR",), "ERROR"),
            (("SILENT", "FATAL"), "SILENT|FATAL"),
            (("FATAL", "SILENT"), "SILENT|FATAL"),
            (("NOTE",), "NOTE"),
            (("NOTE", "x" * 65537), "NOTE"),
            (("NOTE", "a", "NOTE", "b"), "NOTE"),
            (("PAUSE",), "PAUSE"),
            (("PAUSE", 5), "PAUSE"),
            (("PAUSE", "GROUP"), "PAUSE"),
            (("PAUSE", "QUEUE", 0), "PAUSE"),
            (("PAUSE", "QUEUE", 5, "PAUSE", "GROUP", 5), "PAUSE"),
            (("FATAL", "DELAY", 5), "FATAL|DELAY"),
            (("SILENT", "SILENT"), "SILENT"),
            (("ERROR", "a", "ERROR", "b"), "ERROR"),
            (("ERROR", "a", "b"), ""),
        ]
    ],
    (("DQ.NACK", K, "SILENT"), ""),
    *[(("DQ.TOUCH", K, v, CURRENT), "") for v in NO_POSITIVE],
    *[(("DQ.TOUCH", K, 5, CURRENT, v), "") for v in ("", "x", "1.5")],
    (("DQ.TOUCH", K, 5, CURRENT, "NOTE"), "NOTE"),
    (("DQ.TOUCH", K, 5, CURRENT, "NOTE", "x" * 65537), "NOTE"),
    (("DQ.TOUCH", K, 5, CURRENT, "NOTE", "a", "NOTE", "b"), "NOTE"),
    *[(("DQ.TICK", "manual", how, v), how) for how in ("ADVANCE", "TO") for v in NO_MS],
    (("DQ.TICK", "manual", "TO", 9), "TO|9"),
    (("DQ.TICK", K, "ADVANCE", 5), ""),
    (("DQ.TICK", K, "TO", TOP - 1), ""),
    (("DQ.TICK", "new", "ADVANCE", 5), ""),
    *[(("DQ.LEN", K, v), "") for v in ("", "x", "pending")],
    *[(("DQ.PEEK", K, "COUNT", v), "COUNT") for v in ("", "x", "0", "-1", "10001")],
    (("DQ.PEEK", K, "COUNT"), "COUNT"),
    (("DQ.PEEK", K, "NONSENSE"), "NONSENSE"),
    (("DQ.PEEK", K, "COUNT", 1, "COUNT", 1), "COUNT"),
    *[(("DQ.RESCHEDULE", K, "ready", how, v), how) for how in ("DELAY", "AT") for v in NO_MS],
    (("DQ.RESCHEDULE", K, "ready", "IN", 5), "IN"),
    *[(("DQ.PURGE", K, "STATE", v), "STATE") for v in ("", "x")],
    (("DQ.PURGE", K, "STATE"), "STATE"),
    (("DQ.PURGE", K, "GROUP", ""), "GROUP"),
    (("DQ.PURGE", K, "NONSENSE"), "NONSENSE"),
    (("DQ.PURGE", K, "STATE", "ready", "STATE", "ready"), "STATE"),
    *[(("DQ.PAUSE", K, "FOR", v), "FOR") for v in NO_POSITIVE],
    *[((f"DQ.{v}", K, "GROUP", x), "GROUP") for v in ("PAUSE", "RESUME") for x in ("", LONG)],
    (("DQ.PAUSE", K, "FOR"), "FOR"),
    (("DQ.PAUSE", K, "NONSENSE"), "NONSENSE"),
    (("DQ.PAUSE", K, "FOR", 5, "FOR", 5), "FOR"),
    (("DQ.PAUSE", "new", "FOR", 0), "FOR"),
    (("DQ.RESUME", K, "FOR", 5), "FOR"),
    (("DQ.ALTER", "new", "LEASE", 5), "no such queue"),
    (("DQ.INFO", "new"), "no such queue"),
    (("DQ.CREATE", K), "queue already exists"),
]

ARITY = {
    "CREATE": 1, "ALTER": 3, "SEND": 2, "MSEND": 3, "FETCH": 1, "MFETCH": 2, "ACK": 2, "NACK": 2, "TOUCH": 3,
    "GET": 2, "LEN": 1, "PEEK": 1, "INFO": 1, "CANCEL": 2, "RESCHEDULE": 4, "UPDATE": 3, "PURGE": 1, "PAUSE": 1,
    "RESUME": 1,
}  # fmt: skip
AT_MOST = {"GET": 2, "LEN": 2, "INFO": 1, "UPDATE": 3, "RESCHEDULE": 4}

# For each verb a good call on a key of another type.
WRONG_TYPE = [
    ("DQ.CREATE", "s"), ("DQ.ALTER", "s", "LEASE", 5), ("DQ.SEND", "s", "p"), ("DQ.MSEND", "s", 1, "p"),
    ("DQ.FETCH", "s"), ("DQ.FETCH", "s", "BLOCK", 0), ("DQ.MFETCH", 2, K, "s"), ("DQ.MFETCH", 2, "s", K, "BLOCK", 0),
    ("DQ.ACK", "s", 1), ("DQ.NACK", "s", 1), ("DQ.TOUCH", "s", 5, 1), ("DQ.TICK", "s"), ("DQ.TICK", K, "s"),
    ("DQ.TICK", "s", "ADVANCE", 5), ("DQ.GET", "s", "a"), ("DQ.LEN", "s"), ("DQ.PEEK", "s"), ("DQ.INFO", "s"),
    ("DQ.CANCEL", "s", "a"), ("DQ.RESCHEDULE", "s", "a", "DELAY", 5), ("DQ.UPDATE", "s", "a", "p"),
    ("DQ.PURGE", "s"), ("DQ.PAUSE", "s"), ("DQ.RESUME", "s"),
]  # fmt: skip


@pytest.fixture
def wire(server):
    """`full`: a queue with a message in several states; `manual`: at time 10; `s`: a string."""
    w = server.wire()
    w.ok("DQ.CREATE", K, "LEASE", 600000, "RETAIN", 600000)
    for id in ("running", "dead", "retry", "ready"):
        w.ok("DQ.SEND", K, id, "ID", id)
    first, dead, retry = w.ok("DQ.FETCH", K, "COUNT", 3)
    w.ok("DQ.NACK", K, dead[1], "FATAL")
    w.ok("DQ.NACK", K, retry[1], "DELAY", 600000)
    w.ok("DQ.SEND", K, "d", "ID", "delayed", "DELAY", 600000)
    w.ok("DQ.CREATE", "manual", "CLOCK", "MANUAL", 10)
    w.ok("SET", "s", "text")
    w.receipt = first[1]
    w.digests = lambda: w.ok("DEBUG", "DIGEST-VALUE", K, "manual", "s", "new") + [w.ok("DBSIZE")]
    return w


def must_fail(wire, call):
    call = [wire.receipt if a is CURRENT else a for a in call]
    before = wire.digests()
    reply = wire.call(*call)
    assert isinstance(reply, Error), f"{call} gave {reply!r}"
    assert wire.digests() == before, f"{call} failed ({reply}) but changed something"
    assert "\r" not in reply and "\n" not in reply
    return reply


def test_a_bad_call_is_an_error_and_changes_nothing(wire):
    wrong = []
    for call, word in CASES:
        try:
            error = must_fail(wire, call)
            words = word.upper().split("|")
            if not error.startswith("ERR ") or not any(w in error.upper() for w in words):
                wrong.append(f"{call}: {error!r} does not name {word!r}")
        except AssertionError as failure:
            wrong.append(str(failure).splitlines()[0])
    assert not wrong, f"{len(wrong)} of {len(CASES)}:\n" + "\n".join(w[:300] for w in wrong)


@pytest.mark.parametrize("call", WRONG_TYPE, ids=lambda c: " ".join(map(str, c)))
def test_every_verb_refuses_a_key_of_another_type(wire, call):
    assert must_fail(wire, call).startswith("WRONGTYPE ")


@pytest.mark.parametrize("verb", ARITY)
def test_too_few_or_too_many_arguments_are_refused(wire, verb):
    for n in range(ARITY[verb]):
        assert must_fail(wire, (f"DQ.{verb}", *[K, "1", "1", "1"][:n])).startswith("ERR wrong number of arguments")
    if verb in AT_MOST:
        extra = {"LEN": "ready", "GET": "a"}.get(verb, "DELAY")
        call = [f"DQ.{verb}", K, *[extra] * AT_MOST[verb]]
        assert must_fail(wire, call).startswith("ERR ")


def test_the_internal_command_refuses_calls_of_clients(wire):
    for args in ((K, "x"), (K, b"\0" * 40), ("new", b""), (K,)):
        must_fail(wire, ("DQ.OP", *args))


def test_commands_of_other_types_are_refused_on_a_queue(wire):
    for call in (("LPUSH", K, "x"), ("GET", K), ("XADD", K, "*", "a", "b"), ("ZADD", K, 1, "a")):
        assert must_fail(wire, call).startswith("WRONGTYPE")


def test_all_bad_calls_together_change_nothing(server, wire):
    client = server.client()
    before = digest(client, K)
    for call, _ in CASES:
        wire.call(*[wire.receipt if a is CURRENT else a for a in call])
    assert digest(client, K) == before
    assert wire.ok("DQ.ACK", K, wire.receipt) == 1
