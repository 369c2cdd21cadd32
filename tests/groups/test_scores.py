"""SCORE and SCOREPATH: integers of 64 bits and doubles keep their exact order and come back as they were given."""

import itertools
import random

import pytest

from tests.harness.replies import Queue, as_map
from tests.harness.wire import Error

# The scores in their order. The texts are those of replies under RESP2.
SORTED = [
    "-1.5e300",
    "-9223372036854775808",
    "-9223372036854775807",
    "-9007199254740993",
    "-9007199254740992",
    "-0.5",
    "0",
    "0.1",
    "0.30000000000000004",
    "1563978617.123456",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9007199254740994",
    "1563978617123456789",
    "1563978617123456790",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551614",
    "18446744073709551615",
    "1e300",
]


def push(q, score, id, path=True):
    if path:
        q.do("GROUPPUSH", '{"u":7,"at":%s}' % score, "GROUPBY", 1, "u", "SCOREPATH", "at", "ID", id)
    else:
        q.do("SEND", id, "GROUP", 7, "SCORE", score, "ID", id)


@pytest.mark.parametrize("path", [False, True])
def test_scores_are_exact_in_order_and_in_replies(server, key, path):
    client = server.client(protocol=2)
    q = Queue(client, key)
    shuffled = random.Random(7).sample(SORTED, len(SORTED))
    for score in shuffled:
        push(q, score, score, path)
    for _ in range(2):
        for score in SORTED:
            shown = q.get(score)["score"].decode()
            assert shown == score
        rows = [as_map(row) for row in q.do("LIST", "ready", "COUNT", 100)[1]]
        assert {row["id"]: row["score"] for row in rows} == {s.encode(): s.encode() for s in SORTED}
        client.execute_command("DEBUG", "RELOAD")
    taken = q.fetch("GROUP", 7, "COUNT", 100, "WITHMETA")
    assert [m.id.decode() for m in taken] == SORTED
    assert [m.meta["score"].decode() for m in taken] == SORTED


def test_resp3_gives_integers_that_no_double_holds_as_integers(server, key):
    q = Queue(server.client(protocol=3), key)
    for score in (1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 2**63, 2**64 - 1, 2.5):
        q.do("SEND", "x", "GROUP", "g", "SCORE", score, "ID", f"{score}")
        shown = q.get(f"{score}")["score"]
        assert shown == score
        assert isinstance(shown, float) == (abs(score) <= 2**53)


INEXACT = ["18446744073709551616", "-9223372036854775809", "9007199254740993.5", "9007199254740993.0", "1e999", "1e-400"]


@pytest.mark.parametrize("score", INEXACT)
def test_what_would_be_rounded_is_an_error(server, key, score):
    w = server.wire()
    kept = "a number that is kept exactly: an integer from -2^63 to 2^64-1, or a double"
    reply = w.call("DQ.SEND", key, "x", "GROUP", "g", "SCORE", score)
    assert isinstance(reply, Error) and reply == f"ERR SCORE must be {kept}, not '{score}'"
    reply = w.call("DQ.GROUPPUSH", key, '{"u":7,"at":%s}' % score, "GROUPBY", 1, "u", "SCOREPATH", "at")
    assert isinstance(reply, Error) and reply == f"ERR SCOREPATH: value at path 'at' must be {kept}"
    assert w.ok("EXISTS", key) == 0


def test_a_schedule_and_a_redrive_keep_the_score(server, key):
    q = Queue(server.client(protocol=2), key)
    score = 2**63 + 1
    q.do("CREATE", "CLOCK", "MANUAL")
    q.do("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x", "GROUP", "g", "SCORE", score)
    q.do("TICK", "ADVANCE", 10)
    (message,) = q.fetch("WITHMETA")
    q.nack(message.receipt, "FATAL")
    q.do("REDRIVE", "ALL")
    (message,) = q.fetch("WITHMETA")
    assert message.meta["score"] == str(score).encode()


def test_all_pairs_of_near_scores(server, key):
    q = Queue(server.client(), key)
    near = [2**60 + n for n in range(-3, 4)] + [float(2**60)]
    for n, (a, b) in enumerate(itertools.permutations(near, 2)):
        group = f"g{n}"
        for score in (a, b):
            q.do("SEND", repr(score), "GROUP", group, "SCORE", repr(score))
        taken = q.fetch("GROUP", group, "COUNT", 2)
        assert [m.payload.decode() for m in taken] == [repr(s) for s in sorted((a, b))]
