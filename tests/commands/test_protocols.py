"""Each command with each of its options replies the same over RESP2 and RESP3, but for the types that RESP2 lacks.

All other tests run over one of the two: see `protocol` in tests/conftest.py.
"""

import re

import pytest

from tests.harness.server import wait_for
from tests.harness.verbs import commands, tokens
from tests.harness.wire import Error, NullArray, Status

STATES = "delayed ready blocked retry running finished dead cancelled held".split()
# Options of a message that all commands that send have.
MESSAGE = (
    "SCORE 1.5 PRIORITY -1 LEASE 5000 RETRIES 2 BACKOFF LINEAR 10 TTL 90000 TYPE t HEADERS 2 h v other w RETAIN 500 "
    "MAXTIMEOUTS 3 ERRORS 2 BATCH b LIMITS 2 api user-1 COST 2 IFGROUP"
)
HELD = "AFTER b ONFAIL GO PARK FOR 5000 BACKOFF FIXED 5"
BACKOFFS = "BACKOFF EXP 5"

# `$n` is the receipt of the n-th message of the last reply that had some.
CALLS = f"""
CREATE q LEASE 60000 RETRIES 2 BACKOFF FIXED 300 MAXBACKOFF 9000 JITTER 0 TTL 0 RETAIN 90000 RETAINCOUNT 50 DEADRETAIN 90000 DEADCOUNT 50 DEDUP 900 MAXLEN 1000 MAXBYTES 1000000 MAXRUNNING 900 RATE 5000 PER 1000 GROUPCONCURRENCY 2 ONRETRY SKIP ONDEAD BLOCK BREAKER 3 PER 5000 OPEN 5000 MAX 20000 SENDS ON FAIR COST MAXTIMEOUTS 9 ERRORS 3 DEADTO dead RETRIES REJECTED EXPIRED BATCH TIMEOUTS CHILDREN EVENTS stream EVENTSLEN 50 COMPRESS ON CLOCK MANUAL 1000
CREATE q
CREATE q NX LEASE 5
CREATE plain CLOCK MANUAL BACKOFF LINEAR 5
CREATE other CLOCK MANUAL BACKOFF EXP 5 EVENTS stream
INFO q
INFO plain
INFO missing
ALTER plain LEASE 50 RETRIES 2 BACKOFF FIXED 30 MAXBACKOFF 90 JITTER 0 TTL 9000 RETAIN 90000 RETAINCOUNT 50 DEADRETAIN 0 DEADCOUNT 50 DEDUP 900 MAXLEN 1000 MAXBYTES 100000 MAXRUNNING 900 RATE 500 PER 10 GROUPCONCURRENCY 2 ONRETRY BLOCK ONDEAD CONTINUE BREAKER 3 PER 50 OPEN 50 MAX 200 SENDS OFF FAIR TIME MAXTIMEOUTS 9 ERRORS 3 DEADTO dead RETRIES REJECTED EXPIRED BATCH TIMEOUTS CHILDREN EVENTS stream EVENTSLEN 50
ALTER plain BACKOFF LINEAR 5
ALTER plain BACKOFF EXP 5
SEND plain x
ALTER plain SENDS ON
LIMIT q api RATE 100 PER 60000 RATE 9 PER 1000 CONCURRENCY 50 WEIGHT
LIMIT q user-* CONCURRENCY 5
LIMITS q
SEND q first ID a GROUP g
SEND q again ID a
SEND q x ID full GROUP g {MESSAGE}
SEND q x ID held GROUP g {HELD}
SEND q x ID exponential {BACKOFFS} DELAY 60000
SEND q x ID replaced REPLACE DELAY 5000 MAXWAIT 6000
SEND q x ID once DEDUPID d 5000 DELAY 60000
SEND q x DEDUPID d 5000
SEND q x ID expires AT 50000 EXPIREAT 60000
SEND q x ID parent CHILDREN 2
SEND q x ID child PARENT q parent ONDEAD GO
SEND q x ID child-2 PARENT q parent ONDEAD DIE
CHILDREN q parent
CHILDREN q parent CURSOR 0 COUNT 1
CHILDREN q missing
MSEND q 2 x y GROUP g {MESSAGE}
MSEND q 1 x GROUP g {HELD} EXPIREAT 60000 DELAY 5
MSEND q 1 x AT 60000 {BACKOFFS} CHILDREN 1
MSEND q 1 x PARENT q parent ONDEAD DIE
MSEND q 1 x GROUP nobody IFGROUP
GROUPPUSH q {{"g":"h","i":"pushed","s":2.5,"at":1000}} GROUPBY 1 g IDPATH i SCOREPATH s ATPATH at
GROUPPUSH q {{"g":"h"}} GROUPBY 1 g ID push {MESSAGE}
GROUPPUSH q {{"g":"h"}} GROUPBY 1 g ID push {MESSAGE}
GROUPPUSH q {{"g":"h"}} GROUPBY 1 g ID push-2 REPLACE RERUN DEDUPID e 6 DELAY 5 MAXWAIT 6 {HELD}
GROUPPUSH q {{"g":"h"}} GROUPBY 1 g ID push-3 AT 5 {BACKOFFS} EXPIREAT 99000 CHILDREN 1
GROUPPUSH q {{"g":"h"}} GROUPBY 1 g PARENT q parent ONDEAD DIE
SCHEDULE q every EVERY 1000 START 5000 PAYLOAD p GROUP g {MESSAGE} MISSED ALL OVERLAP SKIP UNTIL 900000 TIMES 50 JITTER 10
SCHEDULE q cron CRON 0_4_*_*_* TZ Europe/Berlin PAYLOAD p GROUP g {HELD}
SCHEDULE q other EVERY 5000 PAYLOAD p {BACKOFFS}
SCHEDULES q
SCHEDULES q PAUSE other
SCHEDULES q RESUME other
UNSCHEDULE q cron
UNSCHEDULE q cron
GET q full
GET q held
GET q missing
EXPLAIN q held
EXPLAIN q full
EXPLAIN q missing
PEEK q
PEEK q COUNT 5
TICK q ADVANCE 10
TICK q TO 1020
TICK q plain
FETCH q COUNT 1 GROUP g LEASE 5000 CONSUMER c TOKEN t WITHMETA
FETCH q COUNT 1 GROUP g LEASE 5000 CONSUMER c TOKEN t WITHMETA
TOUCH q 5000 $0 NOTE half
SEND q later ID a GROUP g REPLACE RERUN
GET q a
NACK q $0 ERROR busy NOTE note DELAY 500
GET q a
FETCH q COUNT 3 PERGROUP 2 MAXBYTES 500 BIND GRACE 500 BLOCK 5
CONSUMERS q
GROUPS q
GROUPS q CURSOR 0 COUNT 1
ACK q $0 RESULT done COST 1
ACKSEND q $1 RESULT done NEXT q x ID next GROUP g {MESSAGE} NEXT q x ID next-2 REPLACE RERUN DEDUPID f 9 DELAY 5 MAXWAIT 6 GROUP g {HELD} NEXT q x AT 5 {BACKOFFS} EXPIREAT 99000 CHILDREN 1 NEXT q x PARENT q parent ONDEAD HOLD SIGNAL q held text SIGNAL q missing text
FETCH q COUNT 4 NOACK
SEND plain x ID four GROUP g
FETCH plain GROUP g
NACK plain $0 PAUSE GROUP 5
SEND plain x ID one
SEND plain x ID two
SEND plain x ID three
SEND plain x ID five TYPE t
FETCH plain COUNT 5
NACK plain $0 FATAL ERROR fatal
NACK plain $1 SILENT PARK FOR 500
NACK plain $2 SILENT PAUSE QUEUE 5
FETCH plain ACK 1 $3 RESULTS 1 kept
TICK plain ADVANCE 10
GET plain one
GET plain two
GET plain five
EXPLAIN plain one
EXPLAIN plain two
EXPLAIN plain three
EXPLAIN plain four
WAIT plain five 5
WAIT plain one 5
WAIT plain two 5
SIGNAL plain two DATA text
SIGNAL plain missing
GET plain two
REDRIVE plain IDS 2 one missing
REDRIVE plain ALL COUNT 5
MFETCH 2 missing plain COUNT 1 LEASE 5 CONSUMER c TOKEN t PERGROUP 1 MAXBYTES 5 BIND GRACE 5 WITHMETA BLOCK 5
MFETCH 1 plain NOACK
MFETCH 1 missing
BATCHES q
BATCHES q CURSOR 0 COUNT 1
LIMITS q CURSOR 0 COUNT 1
PAUSE q GROUP g FOR 500
RESUME q GROUP g
GROUPSET q g WEIGHT 2 CONCURRENCY 3 RATE 5 PER 60
GROUPS q COUNT 9
PAUSE q
INFO q
RESUME q
CANCEL q next missing
RESCHEDULE q exponential DELAY 5
RESCHEDULE q exponential AT 70000
UPDATE q exponential other
LEN q
FIND q delayed ID e* TYPE t GROUP g BATCH b PARENT q parent HEADER h v ERROR e PAYLOAD p SINCE 0 UNTIL 5000 REV CURSOR 0 COUNT 5 IDS
FIND q dead DO REDRIVE
FIND q held ID next* DO CANCEL
FIND q cancelled DO PURGE
LIST q ready CURSOR 0 COUNT 2 GROUP g TYPE t REV
LIST q ready IDS
ROUTE f 4 customer-42
PARTITIONS f 4
CREATE f:{{1}} CLOCK MANUAL
SEND f:{{1}} x ID one
SEND f:{{1}} x ID two
NFETCH f COUNT 1 LEASE 50000 CONSUMER c TOKEN t PERGROUP 1 MAXBYTES 500 BIND GRACE 500 BLOCK 5 WITHMETA
NFETCH f NOACK
NFETCH f
NINFO f
NINFO missing
PURGE q GROUP g
PURGE q STATE dead
PURGE q
"""
OF_STATES = [
    *(f"LIST q {state}" for state in STATES),
    *(f"FIND q {state}" for state in STATES),
    *(f"GROUPS q STATE {state}" for state in "ready running blocked paused held".split()),
    *(f"LEN q {state}" for state in STATES),
    *(f"PURGE plain {state}" for state in STATES),
]
# The calls that most servers refuse in MULTI and scripts.
EFFECTS = (
    "APPLY 15 SET k:{0}:s v PX 60000 DEL k:{0}:d INCRBY k:{0}:n 5 HSET k:{0}:h f v HDEL k:{0}:h g HINCRBY k:{0}:h n 2 SADD k:{0}:m a "
    "SREM k:{0}:m b ZADD k:{0}:z 1.5 a ZINCRBY k:{0}:z 2.5 b ZREM k:{0}:z c LPUSH k:{0}:l a RPUSH k:{0}:l b XADD k:{0}:x 1 f v MAXLEN 5 "
    "PEXPIRE k:{0}:n 60000 IF 3 EXISTS plain MISSING k:{0}:n EQUALS string text"
)
ALONE = f"""
MSEND e 3 x y z
FETCH e COUNT 3
ACK e $0 {EFFECTS.format(1)}
ACKSEND e $1 {EFFECTS.format(2)} NEXT e x
FETCH e ACK 1 $2 {EFFECTS.format(3)}
FETCH e ACK 1 $2 {EFFECTS.format(3)}
""".strip().splitlines()
SCRIPT = [*CALLS.strip().splitlines(), *OF_STATES]
# The ids that the server gives to messages and entries, and the receipts, differ from run to run.
GENERATED = re.compile(rb"[0-9]{13}-[0-9]+|[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
LEAST_RECEIPT = 10**14


def alone(wire, words):
    return wire.call(*words)


def in_a_transaction(wire, words):
    wire.ok("MULTI")
    wire.ok(*words)
    [reply] = wire.ok("EXEC")
    return reply


def in_a_script(wire, words):
    if "BIND" in words:
        # A script has no connection.
        at = words.index("BIND")
        words[at : at + 3] = []
    return wire.call("EVAL", "return redis.pcall(unpack(ARGV))", 0, *words)


def run(server, protocol, how=alone, script=None) -> list:
    """All replies of the script."""
    wire = server.wire(protocol)
    wire.ok("FLUSHALL")
    receipts, replies = [], []
    wire.ok("SET", "string", "text")
    for call in script or SCRIPT:
        words = [receipts[int(word[1:])] if word.startswith("$") else word.replace("_", " ") for word in call.split()]
        reply = how(wire, ["DQ." + words[0], *words[1:]])
        replies.append(reply)
        assert wire.ok("PING") == b"PONG", f"{call}: the next reply is that of the next command"
        if words[0] == "FETCH" and "APPLY" not in words and reply and not isinstance(reply, Error):
            receipts = [message[1] for message in reply]
    wire.ok("FLUSHALL")
    return replies


def as_resp2(reply):
    """A reply of RESP3 as RESP2 has it, as docs/commands.md says."""
    if isinstance(reply, bool):
        return int(reply)
    if isinstance(reply, float):
        return b"%.17g" % reply
    if isinstance(reply, dict):
        return [as_resp2(one) for pair in reply.items() for one in pair]
    if isinstance(reply, list):
        return [as_resp2(one) for one in reply]
    return reply


def comparable(reply):
    """A reply of RESP2 without what differs from run to run, and with one null."""
    if isinstance(reply, NullArray):
        return None
    if isinstance(reply, list):
        return [comparable(one) for one in reply]
    if isinstance(reply, int) and reply > LEAST_RECEIPT:
        return "a receipt"
    if isinstance(reply, bytes):
        return GENERATED.sub(b"an id", reply)
    return reply


def kinds(reply) -> set:
    """The types within a reply."""
    if isinstance(reply, dict):
        return {dict}.union(*(kinds(one) for one in reply.values()))
    if isinstance(reply, list):
        return {list}.union(*(kinds(one) for one in reply))
    return {type(reply)}


def test_every_reply_over_resp3_is_that_over_resp2_with_types(server):
    over2, over3 = run(server, 2, script=SCRIPT + ALONE), run(server, 3, script=SCRIPT + ALONE)
    for call, two, three in zip(SCRIPT + ALONE, over2, over3, strict=True):
        assert comparable(as_resp2(three)) == comparable(two), call
    assert kinds(over2) == {list, bytes, int, type(None), NullArray, Status, Error}
    assert kinds(over3) == {dict, list, bytes, int, float, bool, type(None), Status, Error}


@pytest.mark.parametrize("how", [in_a_transaction, in_a_script])
def test_every_reply_in_a_transaction_and_in_a_script_is_the_same(server, how):
    for call, plain, other in zip(SCRIPT, run(server, 2), run(server, 2, how), strict=True):
        assert comparable(other) == comparable(plain), call


# The calls of the script that are errors; all others must obey their options.
REFUSED = {"CREATE q", "INFO missing", "SEND plain x"}


def test_the_calls_of_the_script_are_not_refused(server):
    for call, reply in zip(SCRIPT, run(server, 3), strict=True):
        assert isinstance(reply, Error) == (call in REFUSED), (call, reply)


def test_the_script_has_every_option_of_every_command(server):
    wire = server.wire(3)
    for verb in commands(wire):
        [doc] = wire.ok("COMMAND", "DOCS", f"dq.{verb}").values()
        said = {word.upper() for call in SCRIPT + ALONE if call.split()[0] == verb for word in call.split()[1:]}
        assert said, f"no call of {verb}"
        missing = tokens(doc[b"arguments"]) - said
        assert not missing, f"no call of {verb} has {missing}"


WAITING = [
    (("FETCH", "q:{1}", "BLOCK", 20_000, "WITHMETA"), ("SEND", "q:{1}", "x", "ID", "b", "GROUP", "g", "SCORE", 1.5)),
    (("MFETCH", 1, "q:{1}", "BLOCK", 20_000, "WITHMETA"), ("SEND", "q:{1}", "x", "ID", "b", "HEADERS", 1, "h", "v")),
    (("NFETCH", "q", "BLOCK", 20_000, "WITHMETA"), ("SEND", "q:{1}", "x", "ID", "b", "PRIORITY", 3)),
    (("WAIT", "q:{1}", "a", 20_000), ("CANCEL", "q:{1}", "a")),
    (("WAIT", "q:{1}", "a", 20_000), ("PURGE", "q:{1}")),
]


@pytest.mark.parametrize("call, wake", WAITING, ids=lambda words: words[0])
def test_a_client_that_has_waited_gets_the_same_over_both(server, call, wake):
    def wait(protocol):
        r.flushall()
        r.execute_command("DQ.CREATE", "q:{1}", "CLOCK", "MANUAL", "RETAIN", 1000)
        r.execute_command("DQ.SEND", "q:{1}", "x", "ID", "a")
        r.execute_command("DQ.FETCH", "q:{1}")
        wire = server.wire(protocol)
        wire.send("DQ." + call[0], *call[1:])
        wait_for(lambda: r.info("clients")["blocked_clients"] == 1, 20, "the client to wait")
        r.execute_command("DQ." + wake[0], *wake[1:])
        return wire.recv()

    r = server.client()
    assert comparable(as_resp2(wait(3))) == comparable(wait(2))


@pytest.mark.parametrize("value, text", [(True, 1), (0.5, b"0.5"), ({b"a": None}, [b"a", None])])
def test_a_reply_of_the_wrong_type_would_be_seen(value, text):
    assert as_resp2(value) == text
