"""Bad calls of the verbs and options of groups, records, inspection and schedules; test_errors.py has the basic verbs.

Each must give the named error and leave the queue as it was. A missing key must stay missing.
"""

import re

import pytest

from tests.harness.scene import Scene
from tests.harness.wire import Error

NAME = "n" * 1024
LONG = "n" * 1025
JSON = '{"g":1,"id":"x","n":5}'
TOO_BIG = 2**53

# (command words after the key, what the error must match after ERR)
CALLS = [
    # SEND and its group options
    (("SEND", "p", "GROUP"), "GROUP"),
    (("SEND", "p", "GROUP", ""), "GROUP"),
    (("SEND", "p", "GROUP", LONG), "GROUP"),
    (("SEND", "p", "GROUP", "g", "GROUP", "h"), "GROUP"),
    (("SEND", "p", "SCORE", 1), "SCORE|GROUP"),
    (("SEND", "p", "GROUP", "g", "SCORE"), "SCORE"),
    (("SEND", "p", "GROUP", "g", "SCORE", "nan"), "SCORE"),
    (("SEND", "p", "GROUP", "g", "SCORE", "inf"), "SCORE"),
    (("SEND", "p", "GROUP", "g", "SCORE", "-inf"), "SCORE"),
    (("SEND", "p", "GROUP", "g", "SCORE", "1e999"), "SCORE"),
    (("SEND", "p", "GROUP", "g", "SCORE", ""), "SCORE"),
    (("SEND", "p", "GROUP", "g", "SCORE", "1x"), "SCORE"),
    (("SEND", "p", "GROUP", "g", "SCORE", " 1"), "SCORE"),
    (("SEND", "p", "GROUP", "g", "SCORE", 1, "SCORE", 2), "SCORE"),
    (("SEND", "p", "REPLACE"), "REPLACE"),
    (("MSEND", 1, "p", "SCORE", 1), "SCORE|GROUP"),
    (("MSEND", 1, "p", "REPLACE"), "REPLACE"),
    (("MSEND", 1, "p", "ID", "x"), "ID"),
    # FETCH and its group options
    (("FETCH", "GROUP"), "GROUP"),
    (("FETCH", "GROUP", ""), "GROUP"),
    (("FETCH", "GROUP", LONG), "GROUP"),
    (("FETCH", "PERGROUP", 0), "PERGROUP"),
    (("FETCH", "PERGROUP", -1), "PERGROUP"),
    (("FETCH", "PERGROUP", "x"), "PERGROUP"),
    (("FETCH", "PERGROUP"), "PERGROUP"),
    (("FETCH", "GROUP", "g", "PERGROUP", 2), "PERGROUP|GROUP"),
    (("FETCH", "GROUP", "g", "GROUP", "g"), "GROUP"),
    (("FETCH", "NOACK", "BIND"), "NOACK|BIND"),
    (("FETCH", "NOACK", "LEASE", 5), "NOACK|LEASE"),
    # CREATE and ALTER
    (("ALTER", "GROUPCONCURRENCY", 0), "GROUPCONCURRENCY"),
    (("ALTER", "GROUPCONCURRENCY", "x"), "GROUPCONCURRENCY"),
    (("ALTER", "ONRETRY", "WAIT"), "ONRETRY"),
    (("ALTER", "ONDEAD", "SKIP"), "ONDEAD"),
    (("ALTER", "ONRETRY"), "arguments"),
    (("ALTER", "RETAIN", -1), "RETAIN"),
    (("ALTER", "RETAIN", TOO_BIG), "RETAIN"),
    (("ALTER", "RETAINCOUNT", -1), "RETAINCOUNT"),
    (("ALTER", "DEADRETAIN", "1.5"), "DEADRETAIN"),
    (("ALTER", "DEADCOUNT", "x"), "DEADCOUNT"),
    (("ALTER", "DEDUP", -5), "DEDUP"),
    (("ALTER", "CLOCK", "SERVER"), "CLOCK"),
    (("ALTER", "RETAIN", 5, "RETAIN", 6), "RETAIN"),
    # GROUPPUSH (more in tests/groups/test_grouppush.py)
    (("GROUPPUSH", JSON, "GROUPBY", 0), "GROUPBY|arguments"),
    (("GROUPPUSH", JSON, "GROUPBY", 1, "nope"), "nope"),
    (("GROUPPUSH", JSON, "GROUPBY", 5, "g"), "GROUPBY"),
    (("GROUPPUSH", JSON, "IDPATH", "id"), "GROUPBY|arguments"),
    (("GROUPPUSH", JSON, "GROUPBY", 1, "g", "GROUP", "x"), "GROUP"),
    (("GROUPPUSH", JSON, "GROUPBY", 1, "g", "ID", "x", "IDPATH", "id"), "ID"),
    (("GROUPPUSH", JSON, "GROUPBY", 1, "g", "SCOREPATH", "id"), "id"),
    (("GROUPPUSH", JSON, "GROUPBY", 1, "g", "ATPATH", "id"), "id"),
    (("GROUPPUSH", "{", "GROUPBY", 1, "g"), r"\d"),
    # GROUPSET
    (("GROUPSET", ""), "group|GROUP"),
    (("GROUPSET", LONG, "WEIGHT", 1), "group|GROUP"),
    (("GROUPSET", "g", "WEIGHT", 0), "WEIGHT"),
    (("GROUPSET", "g", "WEIGHT", -1), "WEIGHT"),
    (("GROUPSET", "g", "WEIGHT"), "WEIGHT"),
    (("GROUPSET", "g", "CONCURRENCY", -1), "CONCURRENCY"),
    (("GROUPSET", "g", "RATE", 1), "RATE|PER"),
    (("GROUPSET", "g", "RATE", 1, "PER"), "PER"),
    (("GROUPSET", "g", "RATE", 1, "PER", 0), "PER"),
    (("GROUPSET", "g", "RATE", -1, "PER", 5), "RATE"),
    (("GROUPSET", "g", "PER", 5), "PER|RATE"),
    (("GROUPSET", "g", "WEIGHT", 1, "WEIGHT", 1), "WEIGHT"),
    (("GROUPSET", "g", "NOSUCH", 1), "NOSUCH"),
    # PAUSE and RESUME
    (("PAUSE", "GROUP"), "GROUP"),
    (("PAUSE", "GROUP", ""), "GROUP"),
    (("PAUSE", "GROUP", LONG), "GROUP"),
    (("PAUSE", "GROUP", "g", "FOR", 0), "FOR"),
    (("PAUSE", "FOR", -1), "FOR"),
    (("PAUSE", "FOR"), "FOR"),
    (("PAUSE", "NOSUCH"), "NOSUCH"),
    (("RESUME", "FOR", 5), "FOR"),
    (("RESUME", "GROUP", ""), "GROUP"),
    (("RESUME", "GROUP", "g", "GROUP", "g"), "GROUP"),
    # GROUPS
    (("GROUPS", "STATE", "waiting"), "STATE|waiting"),
    (("GROUPS", "STATE", "nosuch"), "STATE|nosuch"),
    (("GROUPS", "COUNT", 0), "COUNT"),
    (("GROUPS", "COUNT", 10001), "COUNT"),
    (("GROUPS", "CURSOR", "nonsense!"), "CURSOR|cursor"),
    (("GROUPS", "NOSUCH"), "NOSUCH"),
    # LIST
    (("LIST", "nosuch"), "nosuch|state"),
    (("LIST", ""), "state"),
    (("LIST", "ready", "COUNT", 0), "COUNT"),
    (("LIST", "ready", "COUNT", 10001), "COUNT"),
    (("LIST", "ready", "COUNT", "x"), "COUNT"),
    (("LIST", "ready", "CURSOR"), "CURSOR"),
    (("LIST", "ready", "CURSOR", "nonsense!"), "CURSOR|cursor"),
    (("LIST", "ready", "CURSOR", ""), "CURSOR|cursor"),
    (("LIST", "ready", "GROUP", ""), "GROUP"),
    (("LIST", "ready", "TYPE", ""), "TYPE"),
    (("LIST", "ready", "TYPE", LONG), "TYPE"),
    (("LIST", "ready", "IDS", "IDS"), "IDS"),
    (("LIST", "ready", "NOSUCH", "x"), "NOSUCH"),
    (("LEN", "nosuch"), "nosuch|state"),
    (("PEEK", "COUNT", 0), "COUNT"),
    (("PEEK", "COUNT", 10001), "COUNT"),
    # WAIT
    (("WAIT", "a", -1), "timeout|ms|WAIT"),
    (("WAIT", "a", "x"), "timeout|ms|WAIT"),
    (("WAIT", "a", TOO_BIG), "timeout|ms|WAIT"),
    # REDRIVE
    (("REDRIVE", "SOME"), "SOME"),
    (("REDRIVE", "ALL", "COUNT", 0), "COUNT"),
    (("REDRIVE", "ALL", "COUNT", 10001), "COUNT"),
    (("REDRIVE", "ALL", "COUNT"), "COUNT"),
    (("REDRIVE", "ALL", "IDS", 1, "a"), "IDS|ALL"),
    (("REDRIVE", "IDS", 0), "IDS"),
    (("REDRIVE", "IDS", 2, "a"), "IDS"),
    (("REDRIVE", "IDS", 1, "a", "b"), "."),
    (("REDRIVE", "IDS", -1, "a"), "IDS"),
    (("REDRIVE", "IDS", "x", "a"), "IDS"),
    # PURGE
    (("PURGE", "STATE"), "STATE"),
    (("PURGE", "STATE", "nosuch"), "STATE|nosuch"),
    (("PURGE", "GROUP", ""), "GROUP"),
    (("PURGE", "STATE", "dead", "STATE", "dead"), "STATE"),
    (("PURGE", "NOSUCH"), "NOSUCH"),
    # SCHEDULE
    (("SCHEDULE", "s", "PAYLOAD", "x"), "EVERY|CRON|arguments"),
    (("SCHEDULE", "s", "EVERY", 10), "PAYLOAD|arguments"),
    (("SCHEDULE", "s", "EVERY", 0, "PAYLOAD", "x"), "EVERY"),
    (("SCHEDULE", "s", "EVERY", -1, "PAYLOAD", "x"), "EVERY"),
    (("SCHEDULE", "s", "EVERY", TOO_BIG, "PAYLOAD", "x"), "EVERY"),
    (("SCHEDULE", "s", "EVERY", "x", "PAYLOAD", "x"), "EVERY"),
    (("SCHEDULE", "s", "EVERY", 10, "CRON", "@daily", "PAYLOAD", "x"), "CRON|EVERY"),
    (("SCHEDULE", "s", "EVERY", 10, "TZ", "UTC", "PAYLOAD", "x"), "TZ"),
    (("SCHEDULE", "s", "CRON", "@daily", "START", 5, "PAYLOAD", "x"), "START"),
    (("SCHEDULE", "s", "EVERY", 10, "START", -1, "PAYLOAD", "x"), "START"),
    (("SCHEDULE", "s", "CRON", "nonsense", "PAYLOAD", "x"), "CRON|cron"),
    (("SCHEDULE", "s", "CRON", "@daily", "TZ", "Mars/Olympus", "PAYLOAD", "x"), "TZ|zone"),
    (("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "ID", "i"), "ID"),
    (("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "REPLACE"), "REPLACE"),
    (("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "DELAY", 5), "DELAY"),
    (("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "AT", 5), "AT"),
    (("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "MISSED", "SOME"), "MISSED"),
    (("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "OVERLAP", "DROP"), "OVERLAP"),
    (("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "SCORE", 5), "SCORE|GROUP"),
    (("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "PAYLOAD", "y"), "PAYLOAD"),
    (("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "NOSUCH"), "NOSUCH"),
    (("SCHEDULE", "", "EVERY", 10, "PAYLOAD", "x"), "name"),
    (("SCHEDULE", "n" * 1001, "EVERY", 10, "PAYLOAD", "x"), "name"),
    # arity
    (("GROUPPUSH", JSON), "arguments|GROUPBY"),
    (("GROUPSET",), "arguments"),
    (("LIST",), "arguments"),
    (("EXPLAIN",), "arguments"),
    (("EXPLAIN", "a", "b"), "arguments|b"),
    (("WAIT", "a"), "arguments"),
    (("WAIT", "a", 5, 6), "arguments|6"),
    (("REDRIVE",), "arguments"),
    (("SCHEDULE", "s"), "arguments|EVERY|CRON|PAYLOAD"),
    (("UNSCHEDULE",), "arguments"),
    (("SCHEDULES", "x"), "arguments|x"),
    (("CONSUMERS", "x"), "arguments|x"),
]

IDS = [" ".join(str(w) if len(str(w)) < 20 else "LONG" for w in words) for words, _ in CALLS]


def call(wire, key, words):
    reply = wire.call(f"DQ.{words[0]}", key, *words[1:])
    assert isinstance(reply, Error), f"{words} gave {reply!r}"
    return reply


@pytest.mark.parametrize("words,pattern", CALLS, ids=IDS)
def test_the_error_names_the_bad_word_and_nothing_changes(server, r3, key, words, pattern):
    q = Scene(r3, key, "RETAIN", 1000)
    q.add("dead")
    q.nack(q.one().receipt, "FATAL")
    q.fill("g", "a", "b")
    before = q.digest()
    with server.wire() as wire:
        error = call(wire, key, words)
        assert error.startswith("ERR "), error
        assert re.search(pattern, error), error
        assert "\r" not in error and "\n" not in error
        # ALTER may name the missing key instead, but it must stay missing.
        call(wire, key + b":missing", words)
    assert q.digest() == before
    assert r3.exists(key + b":missing") == 0


VERBS = [
    ("GROUPPUSH", JSON, "GROUPBY", 1, "g"),
    ("GROUPSET", "g", "WEIGHT", 2),
    ("GROUPS",),
    ("LIST", "ready"),
    ("EXPLAIN", "a"),
    ("WAIT", "a", 1),
    ("REDRIVE", "ALL"),
    ("PURGE",),
    ("PAUSE", "GROUP", "g"),
    ("RESUME", "GROUP", "g"),
    ("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x"),
    ("UNSCHEDULE", "s"),
    ("SCHEDULES",),
    ("CONSUMERS",),
    ("PEEK",),
    ("FETCH", "GROUP", "g"),
]


@pytest.mark.parametrize("words", VERBS, ids=lambda w: w[0])
def test_a_key_of_another_type_is_refused(server, r3, key, words):
    r3.set(key, "text")
    with server.wire() as wire:
        assert call(wire, key, words).startswith("WRONGTYPE")
    assert r3.get(key) == b"text"


HOSTILE = ["", "\x00", "%n%s%x", "\r\n+OK\r\n", "'\"", "x" * 70_000, "GROUP", "0", "-1", "9" * 400, "\ufeff", "{}"]


@pytest.mark.parametrize("verb", sorted({words[0] for words in VERBS}))
def test_hostile_arguments_give_a_reply_or_an_error(server, r3, key, verb):
    """Any word in any position gives a reply or a clean error, and the server stays up."""
    words = next(w for w in VERBS if w[0] == verb)
    q = Scene(r3, key)
    q.fill("g", "a")
    with server.wire() as wire:
        for at in range(1, len(words) + 1):
            for bad in HOSTILE:
                args = list(words[1:])
                args[at - 1 : at] = [bad]
                if verb == "WAIT" and args == ["a", "0"]:
                    continue  # a message that is there, without a timeout: it would rightly wait
                reply = wire.call(f"DQ.{verb}", key, *args)
                if isinstance(reply, Error):
                    assert "\r" not in reply and "\n" not in reply
        assert wire.call("PING") == b"PONG"
    assert q.info()
