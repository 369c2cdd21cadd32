"""Bad calls of all verbs: each gives an error that names the bad word, and changes nothing; a missing key stays missing.

The calls follow from COMMAND DOCS, so that a new option is in them; CASES has the rest.
"""

import pytest

from tests.harness.verbs import BASE, KEYLESS, commands
from tests.harness.wire import Error

K, LONG, NOTE = "full", "x" * 1025, "x" * 65537
BAD_NUMBERS = ["", "x", "1.5", " 1", str(2**63), "nan", b"1\0"]
# Options that may be given several times.
REPEATED = {("LIMIT", "RATE"), ("ACKSEND", "NEXT"), ("ACKSEND", "SIGNAL")}
# Their last words are ids or keys, or their number is fixed.
PLAIN = {"CANCEL", "TICK", "RESCHEDULE"}

# `$` is the receipt of a running message, and a word in braces is long. After -- are words of which the error has one, and
# after == is the error.
CASES = """
ALTER CLOCK MANUAL == CLOCK can only be set by DQ.CREATE
ALTER DELAY 5 -- DELAY
ALTER LEASE 5 lease 6 -- LEASE
ALTER LEASE 0 -- LEASE
ALTER RETRIES -2 -- RETRIES
ALTER JITTER 101 -- JITTER
ALTER TTL -1 -- TTL
ALTER TTL 9007199254740992 -- TTL
ALTER BACKOFF FIXED -- BACKOFF
ALTER BACKOFF CUBIC 5 -- BACKOFF
ALTER ONRETRY CONTINUE -- ONRETRY
ALTER ONDEAD SKIP -- ONDEAD
ALTER SENDS 1 -- SENDS
ALTER ERRORS 101 -- ERRORS
ALTER PER 5 == unknown option 'PER'
ALTER BREAKER 5 PER 5 MAX 5 OPEN 5 == BREAKER needs OPEN
ALTER OPEN 5 == unknown option 'OPEN'
ALTER GROUPCONCURRENCY 0 -- GROUPCONCURRENCY
ALTER RATE 5 == RATE needs PER
ALTER RATE 5 EACH 5 == RATE needs PER
ALTER RATE 5 PER 0 == PER must be an integer from 1 to 9007199254740991, not '0'
ALTER BREAKER 5 PER 5 == BREAKER needs OPEN
ALTER BREAKER 5 OPEN 5 PER 5 -- PER
ALTER BREAKER 1001 PER 5 OPEN 5 == BREAKER must be an integer from 0 to 1000, not '1001'
ALTER BREAKER 5 PER 5 OPEN 5 MAX 4 == MAX of BREAKER is below OPEN
ALTER DEADTO full -- another
ALTER EVENTS full -- another itself
ALTER FAIR SIZE -- FAIR
SEND p TYPE {1025} == TYPE must be 1 to 1024 bytes long, not 1025
SEND p GROUP {1025} == GROUP must be 1 to 1024 bytes long, not 1025
SEND p ID {1025} == ID must be 1 to 1024 bytes long, not 1025
SEND p PRIORITY 128 -- PRIORITY
SEND p ERRORS 101 -- ERRORS
SEND p HEADERS 2 a b c -- HEADERS
SEND p HEADERS 9223372036854775807 a b -- HEADERS
SEND p SCORE 5 == SCORE needs GROUP
SEND p GROUP g SCORE nan -- SCORE
SEND p GROUP g SCORE -inf -- SCORE
SEND p GROUP g SCORE 1e999 -- SCORE
SEND p DELAY 5 AT 5 == DELAY and AT exclude each other
SEND p TTL 5 EXPIREAT 5 -- EXPIREAT
SEND p REPLACE == REPLACE needs an id
SEND p MAXWAIT 5 -- REPLACE
SEND p IFGROUP -- GROUP
SEND p ID i RERUN -- REPLACE
SEND p FOR 5 -- FOR
SEND p PARK FOR 0 -- FOR
SEND p BATCH b AFTER b -- batch
SEND p ONFAIL GO -- AFTER
SEND p COUNT 5 == unknown option 'COUNT'
MSEND 0 p == numpayloads must be an integer from 1 to 9007199254740991, not '0'
MSEND 3 p == numpayloads is followed by fewer values than it says
MSEND 9223372036854775807 p -- 9223372036854775807
MSEND 1 p p == unknown option 'p'
MSEND 1 p ID a == unknown option 'ID'
MSEND 1 p REPLACE == unknown option 'REPLACE'
MSEND 1 p RERUN -- RERUN
MSEND 1 p MAXWAIT 5 -- MAXWAIT
FETCH COUNT 10001 -- COUNT
FETCH COUNT 0 -- COUNT
FETCH CONSUMER {1025} -- CONSUMER
FETCH NOACK BIND == NOACK and BIND exclude each other
FETCH LEASE 5 NOACK == NOACK and LEASE exclude each other
FETCH GROUP g PERGROUP 2 == GROUP and PERGROUP exclude each other
FETCH TOKEN t == TOKEN needs CONSUMER
FETCH CONSUMER c TOKEN {65} -- TOKEN
FETCH CONSUMER c TOKEN t NOACK -- TOKEN
FETCH CONSUMER c TOKEN t COUNT 1001 == COUNT is at most 1000 with TOKEN
MFETCH CONSUMER c TOKEN t COUNT 1001 -- COUNT
FETCH GRACE 5 == GRACE needs BIND
FETCH ACK 0 -- ACK
FETCH ACK 2 5 == ACK is followed by fewer values than it says
FETCH ACK 1 x == receipt must be an integer, not 'x'
FETCH ACK 4611686018427387904 5 -- ACK
FETCH RESULTS 1 a == RESULTS needs ACK
FETCH RESULTS 1 a ACK 2 7 8 == RESULTS must have as many texts as ACK has receipts, 2, not 1
FETCH ACK 1789012345678901 == ACK must be followed by the number of receipts, not 1789012345678901; for one receipt it is ACK 1 1789012345678901
FETCH ACK 1 5 RESULTS 2 a b -- RESULTS
FETCH ACK 1 5 ACK 1 5 -- ACK
FETCH DELAY 5 -- DELAY
MFETCH GROUP g == unknown option 'GROUP'
MFETCH ACK 1 5 == unknown option 'ACK'
ACKSEND x NEXT d p == receipt must be an integer, not 'x'
ACKSEND $ RESULT r ID a == unknown option 'ID'
ACKSEND $ NEXT d p COUNT 5 == unknown option 'COUNT'
ACKSEND $ NEXT d p NEXT d == payload needs a value
ACKSEND $ NEXT d p NEXT == NEXT needs a value
ACKSEND $ NEXT d p DELAY 5 AT 5 NEXT d p -- AT
ACKSEND $ NEXT d p GROUP g NEXT d p SCORE 1 == SCORE needs GROUP
ACKSEND $ NEXT d p REPLACE == REPLACE needs an id
ACKSEND $ NEXT d p ID {1025} -- ID
ACKSEND $ SIGNAL full job -- SIGNAL
ACK $ x == unknown option 'x'
ACK $ RESULT a b -- b
ACK RESULT x == receipt must be an integer, not 'RESULT'
NACK $ NONSENSE == unknown option 'NONSENSE'
NACK $ SILENT FATAL == SILENT and FATAL exclude each other
NACK $ FATAL DELAY 5 == DELAY and FATAL exclude each other
NACK $ NOTE {65537} == NOTE must be at most 65536 bytes long, not 65537
NACK $ PAUSE 5 == PAUSE must be GROUP or QUEUE, not '5'
NACK $ PAUSE QUEUE 0 == PAUSE must be an integer from 1 to 9007199254740991, not '0'
NACK $ PARK -- SILENT
NACK $ SILENT FOR 5 -- PARK
NACK $ SILENT DELAY 5 PARK -- PARK
NACK SILENT == receipt must be an integer, not 'SILENT'
TOUCH 5 $ NOTE {65537} -- NOTE
TOUCH 0 $ == ms must be an integer from 1 to 9007199254740991, not '0'
TOUCH 5 $ x == unknown option 'x'
TICK ADVANCE 5 -- MANUAL
TICK TO 9007199254740991 -- MANUAL
LEN pending == state must be delayed, ready, blocked, retry, running, finished, dead, cancelled or held, not 'pending'
PEEK COUNT 10001 == COUNT must be an integer from 1 to 10000, not '10001'
RESCHEDULE ready IN 5 == unknown option 'IN'
RESCHEDULE ready DELAY -1 -- DELAY
RESCHEDULE ready AT x -- AT
SIGNAL ready DATA {65537} -- DATA
PURGE STATE nosuch == STATE must be delayed, ready, blocked, retry, running, finished, dead, cancelled or held, not 'nosuch'
PURGE ready STATE ready -- STATE
PAUSE FOR 0 == FOR must be an integer from 1 to 9007199254740991, not '0'
PAUSE GROUP {1025} -- GROUP
RESUME FOR 5 == unknown option 'FOR'
GROUPPUSH {"g":1} GROUPBY 0 -- GROUPBY arguments
GROUPPUSH {"g":1} GROUPBY 1 nope -- nope
GROUPPUSH {"g":1} GROUPBY 5 g == GROUPBY is followed by fewer values than it says
GROUPPUSH {"g":1} GROUPBY 1 g GROUP x == unknown option 'GROUP'
GROUPPUSH {"g":1} GROUPBY 1 g ID x IDPATH g == IDPATH and ID exclude each other
GROUPPUSH {"g":1} GROUPBY 1 g SCOREPATH g SCORE 1 == SCOREPATH and SCORE exclude each other
GROUPPUSH {"g":1} GROUPBY 1 g ATPATH g DELAY 1 == ATPATH and DELAY exclude each other
GROUPPUSH {"g":1} GROUPBY 1 g REPLACE == REPLACE needs an id
GROUPPUSH {"g":1} IDPATH g -- GROUPBY arguments
GROUPPUSH {"g":"x"} GROUPBY 1 g SCOREPATH g == SCOREPATH: value at path 'g' must be a finite number
GROUPPUSH {"g":"x"} GROUPBY 1 g ATPATH g == ATPATH: value at path 'g' must be an integer from 0 to 9007199254740991
GROUPPUSH { GROUPBY 1 g -- byte position column JSON
GROUPSET {1025} WEIGHT 1 -- group
GROUPSET g WEIGHT 0 == WEIGHT must be an integer from 1 to 9007199254740991, not '0'
GROUPSET g CONCURRENCY -1 -- CONCURRENCY
GROUPSET g RATE 1 == RATE needs PER
GROUPSET g PER 5 == unknown option 'PER'
GROUPS STATE waiting == STATE must be ready, running, blocked, paused or held, not 'waiting'
GROUPS COUNT 0 -- COUNT
GROUPS CURSOR nonsense! -- CURSOR
LIST nosuch -- nosuch
LIST ready COUNT 10001 -- COUNT
LIST ready CURSOR nonsense! == CURSOR must be 0 or one that DQ.LIST has answered, not 'nonsense!'
FIND ready DO REDRIVE == DO REDRIVE needs the state dead, not ready
FIND dead DO x -- DO
FIND dead PARENT k -- PARENT
FIND dead HEADER f -- HEADER
FIND dead DO PURGE IDS == IDS and DO exclude each other
FIND dead ID {1025} == ID must be at most 1024 bytes long, not 1025
WAIT a -1 == ms must be an integer from 0 to 9007199254740991, not '-1'
WAIT a 9007199254740992 -- ms
REDRIVE SOME == unknown option 'SOME'
REDRIVE ALL COUNT 10001 -- COUNT
REDRIVE ALL IDS 1 a == unknown option 'IDS'
REDRIVE IDS 2 a == IDS is followed by fewer values than it says
REDRIVE IDS 1 a b == unknown option 'b'
BATCHES CURSOR nonsense! -- CURSOR
CHILDREN p CURSOR 7 == CURSOR must be 0 or one that DQ.CHILDREN has answered, not '7'
LIMIT a WEIGHT == WEIGHT needs CONCURRENCY or RATE
LIMIT a CONCURRENCY 1 CONCURRENCY 1 == CONCURRENCY is given twice
LIMIT a* RATE 1 PER 1 RATE 1 PER 1 RATE 1 PER 1 RATE 1 PER 1 RATE 1 PER 1 == RATE may be given at most 4 times
SEND p LIMITS 2 a -- LIMITS
SEND p LIMITS 2 a a -- a
SEND p LIMITS 1 a* -- LIMITS
SEND p LIMITS 9 a b c d e f g h i -- LIMITS
SCHEDULE s EVERY 10 -- PAYLOAD arguments
SCHEDULE s PAYLOAD x TIMES 5 -- EVERY
SCHEDULE s EVERY 0 PAYLOAD x == EVERY must be an integer from 1 to 9007199254740991, not '0'
SCHEDULE s EVERY 10 CRON @daily PAYLOAD x == CRON and EVERY exclude each other
SCHEDULE s EVERY 10 TZ UTC PAYLOAD x == TZ and EVERY exclude each other
SCHEDULE s CRON @daily START 5 PAYLOAD x == START and CRON exclude each other
SCHEDULE s CRON nonsense PAYLOAD x -- CRON
SCHEDULE s CRON @dailyy PAYLOAD x == unknown cron expression '@dailyy'
SCHEDULE s EVERY 9007199254740991 PAYLOAD x == START must be 0 to 9007199254740991 ms
SCHEDULE s EVERY 10 PAYLOAD x SCORE 1 == SCORE needs GROUP
SCHEDULE s EVERY 10 PAYLOAD x MISSED x == MISSED must be SKIP, ONCE or ALL, not 'x'
SCHEDULE s EVERY 10 PAYLOAD x OVERLAP x == OVERLAP must be QUEUE or SKIP, not 'x'
SCHEDULE s CRON @daily TZ Mars/Olympus PAYLOAD x == unknown time zone 'Mars/Olympus'
SCHEDULE s EVERY 10 PAYLOAD x ID i == unknown option 'ID'
SCHEDULE s EVERY 10 PAYLOAD x DELAY 5 -- DELAY
SCHEDULE s EVERY 10 PAYLOAD x EXPIREAT 5 -- EXPIREAT
SCHEDULE s EVERY 10 PAYLOAD x MAXWAIT 5 -- MAXWAIT
SCHEDULE s EVERY 10 PAYLOAD x RERUN -- RERUN
SCHEDULE s EVERY 10 PAYLOAD x TIMES 0 == TIMES must be an integer from 1 to 9007199254740991, not '0'
SCHEDULE {1025} EVERY 10 PAYLOAD x -- name
SCHEDULES x -- x
SCHEDULES PAUSE -- name
SCHEDULES RESUME s t -- t
SCHEDULE s EVERY 5 PAYLOAD x CHILDREN 1 -- CHILDREN
SEND x CHILDREN -1 -- CHILDREN
SEND x PARENT k -- PARENT
SEND x ONDEAD GO -- PARENT
SEND x ID me PARENT full me -- PARENT
CONSUMERS x -- x arguments
EXPLAIN a b -- b arguments
GET a b -- b arguments
INFO a -- a arguments
"""


def words(text) -> list:
    return ["x" * int(word[1:-1]) if word[0] == "{" and word[1:-1].isdigit() else word for word in text.split()]


def base(verb, key) -> list:
    """A good call of the verb."""
    return [f"DQ.{verb}", *(key if word == "k" else word for word in BASE[verb])]


def good(argument) -> list:
    """Values that this argument of COMMAND DOCS may have."""
    own = [argument[b"token"].decode()] if b"token" in argument else []
    inner = [one for one in argument.get(b"arguments", [])]
    match argument[b"type"]:
        case b"pure-token":
            return own
        case b"oneof":
            return own + good(inner[0])
        case b"block":
            return own + [word for one in inner if b"optional" not in one.get(b"flags", []) for word in good(one)]
    return own + ["5"]


def options(arguments):
    """All options in these arguments of COMMAND DOCS: those that begin with a token."""
    for argument in arguments:
        inner = argument.get(b"arguments", [])
        if b"token" in argument:
            yield argument
        elif argument[b"type"] == b"block" and inner and b"token" in inner[0] and b"optional" in argument.get(b"flags", []):
            yield inner[0] | {b"whole": good(argument)}
        else:
            yield from options(inner)


def from_docs(wire):
    """(verb, bad words after a good call, names of which the error has one)"""
    for verb in set(commands(wire)) - PLAIN:
        [doc] = wire.ok("COMMAND", "DOCS", f"dq.{verb}").values()
        for option in options(doc[b"arguments"]):
            name = option[b"token"].decode()
            whole = option.get(b"whole", good(option))
            if option[b"type"] != b"pure-token":
                yield verb, [name], [name, "SYNTAX"]
            if option[b"type"] == b"integer":
                for value in BAD_NUMBERS:
                    yield verb, [name, value], [name]
            if (verb, name) not in REPEATED:
                yield verb, [*whole, *whole], [name, "UNKNOWN", "EXCLUDE", "NEEDS"]
        yield verb, ["NONSENSE"], ["NONSENSE", "ARGUMENTS", "RECEIPT", "ID"]


@pytest.fixture
def wire(server):
    """`full`: a queue with a message in several states; `s`: a string."""
    w = server.wire(3)
    w.ok("DQ.CREATE", K, "LEASE", 600000, "RETAIN", 600000)
    for id in ("running", "dead", "retry", "ready"):
        w.ok("DQ.SEND", K, id, "ID", id)
    first, dead, retry = w.ok("DQ.FETCH", K, "COUNT", 3)
    w.ok("DQ.NACK", K, dead[1], "FATAL")
    w.ok("DQ.NACK", K, retry[1], "DELAY", 600000)
    w.ok("DQ.SEND", K, "d", "ID", "delayed", "DELAY", 600000)
    w.ok("SET", "s", "text")
    w.receipt = first[1]
    w.digests = lambda: w.ok("DEBUG", "DIGEST-VALUE", K, "s") + [w.ok("DBSIZE")]
    return w


def must_fail(wire, call, named):
    before = wire.digests()
    reply = wire.call(*call)
    assert isinstance(reply, Error), f"{call} gave {reply!r}"
    assert wire.digests() == before, f"{call} failed ({reply}) but changed something"
    assert "\r" not in reply and "\n" not in reply
    assert any(word.upper() in reply.upper() for word in named), f"{call}: {reply!r} names none of {named}"
    return reply


def all_calls(wire):
    yield from ((base(verb, K) + bad, named) for verb, bad, named in from_docs(wire))
    for line in CASES.strip().splitlines():
        call, _, exact = line.partition(" == ")
        call, _, named = call.partition(" -- ")
        verb, *rest = words(call)
        key = [1, K] if verb == "MFETCH" else [K]
        yield [f"DQ.{verb}", *key, *(wire.receipt if word == "$" else word for word in rest)], [exact] if exact else named.split()
    yield ["DQ.ACKSEND", K, wire.receipt, *["NEXT", "d", "p"] * 129], ["NEXT may be given 128 times at most"]
    yield ["DQ.ACKSEND", K, wire.receipt, "APPLY", 1, "DEL", "x"], ["NEXT or SIGNAL is missing"]
    yield ["DQ.MFETCH", 0, K], ["numkeys must be an integer from 1"]
    yield ["DQ.MFETCH", 2, K], ["numkeys is followed by fewer values than it says"]
    yield ["DQ.SCHEDULE", K, "s", "CRON", "*/90 * * * *", "PAYLOAD", "x"], ["the step 90 is greater than 59"]
    for cron in ("", b"0 0 * * \xff"):
        yield ["DQ.SCHEDULE", K, "s", "CRON", cron, "PAYLOAD", "x"], ["CRON"]
    yield ["DQ.CREATE", "new", "CLOCK", "MANUAL", -1], ["CLOCK"]
    yield ["DQ.CREATE", "new", "CLOCK", "WALL"], ["CLOCK"]
    yield ["DQ.CREATE", "new", "CLOCK", "SERVER", 5], ["5"]
    yield ["DQ.INFO", "new"], ["no such queue"]
    yield ["DQ.ALTER", "new", "LEASE", 5], ["no such queue"]


def test_a_bad_call_is_an_error_that_names_the_word_and_changes_nothing(wire):
    wrong, count = [], 0
    for call, named in all_calls(wire):
        for key in (K, "missing"):
            count += 1
            there = [key if word == K else word for word in call]
            try:
                must_fail(wire, there, named if key == K else [*named, "no such queue", ""])
            except AssertionError as failure:
                wrong.append(str(failure).splitlines()[0][:300])
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong)
    assert wire.ok("DQ.ACK", K, wire.receipt) == 1


@pytest.mark.parametrize("verb", sorted(set(BASE) - set(KEYLESS)))
def test_a_key_of_another_type_is_refused_and_too_few_words_are(wire, verb):
    call = base(verb, "s")
    must_fail(wire, call, ["WRONGTYPE"])
    for n in range(1, len(call)):
        reply = wire.call(*call[:n])
        if n < abs(wire.ok("COMMAND", "INFO", call[0])[0][1]):
            assert reply.startswith("ERR wrong number of arguments")


def test_create_of_a_queue_that_exists_is_refused(wire):
    must_fail(wire, ("DQ.CREATE", K), ["queue already exists"])


def test_the_internal_command_refuses_calls_of_clients(wire):
    for args in ((K, "x"), (K, b"\0" * 40), ("new", b""), (K,)):
        must_fail(wire, ("DQ.OP", *args), [""])


def test_commands_of_other_types_are_refused_on_a_queue(wire):
    for call in (("LPUSH", K, "x"), ("GET", K), ("XADD", K, "*", "a", "b"), ("ZADD", K, 1, "a")):
        must_fail(wire, call, ["WRONGTYPE"])


# The replies of the calls on a missing key. Those that are not here make it.
MISSING = {
    "ACK": 0, "NACK": 0, "TOUCH": 0, "SIGNAL": 0, "PURGE": 0, "REDRIVE": 0, "UNSCHEDULE": 0, "LEN": 0, "CANCEL": [None], "ACKSEND": None,
    "GET": None, "EXPLAIN": None, "WAIT": None, "UPDATE": 0, "RESCHEDULE": 0, "MFETCH": None, "NFETCH": None, "FETCH": [],
    "PEEK": [], "CONSUMERS": [], "SCHEDULES": [], "LIST": [b"0", []], "FIND": [b"0", []], "GROUPS": [b"0", []], "BATCHES": [b"0", []],
    "CHILDREN": [b"0", []], "LIMITS": [b"0", []], "RESUME": b"OK",
}  # fmt: skip
MAKES = {"CREATE", "SEND", "MSEND", "GROUPPUSH", "GROUPSET", "LIMIT", "PAUSE", "SCHEDULE"}


@pytest.mark.parametrize("verb", sorted(set(BASE) - set(KEYLESS) - {"ALTER", "INFO", "TICK"}))
def test_on_a_missing_key(wire, verb):
    reply = wire.ok(*base(verb, "new"))
    assert wire.ok("EXISTS", "new") == (verb in MAKES)
    if verb not in MAKES:
        assert reply == MISSING[verb]


HOSTILE = ["", "\x00", "%n%s%x", "\r\n+OK\r\n", "'\"", "x" * 70_000, "GROUP", "0", "-1", "9" * 400, "\ufeff", "{}"]


@pytest.mark.parametrize("verb", sorted(set(BASE) - {"TICK"}))
def test_any_word_in_any_place_gives_a_reply_or_a_clean_error(wire, verb):
    whole = base(verb, K)
    for at in range(2, len(whole) + 1):
        for bad in HOSTILE:
            call = [*whole[:at], bad, *whole[at + 1 :]]
            if verb == "WAIT" and call[3:] == ["0"]:
                continue  # Without a timeout it would rightly wait.
            reply = wire.call(*call)
            assert not isinstance(reply, Error) or not {"\r", "\n"} & set(reply)
    assert wire.call("PING") == b"PONG"
