"""DQ.GROUPPUSH reads group, id, score and due time from a JSON payload."""

import json
import random

import pytest

from tests.harness.replies import Queue
from tests.harness.scene import START, Scene, text

# An order event as examples/order_events has it.
ORDER = (
    b'{"reqId":"0a7c458c-d619-af31-3ffb-f499995eacd5","user_id":1002,"order_id":2302393013,'
    b'"data":{"status":1},"q_time":1563978617}'
)


def push(q, doc, *options):
    return text(q.do("GROUPPUSH", doc, *options))


def group_of(q, doc, *paths):
    return push(q, doc, "GROUPBY", len(paths), *paths)[0]


def test_group_id_and_score_are_read_from_the_payload(r, key):
    q = Scene(r, key)
    got = push(q, ORDER, "GROUPBY", 2, "user_id", "order_id", "IDPATH", "reqId", "SCOREPATH", "q_time")
    assert got == ["1002_2302393013", "0a7c458c-d619-af31-3ffb-f499995eacd5"]
    row = q.row(got[1])
    assert row["group"] == "1002_2302393013"
    assert row["score"] == 1563978617.0
    assert row["payload"] == ORDER.decode()
    assert row["state"] == "ready"


def test_a_taken_id_replies_null_and_adds_nothing(r, key):
    q = Scene(r, key)
    options = ("GROUPBY", 1, "user_id", "IDPATH", "reqId")
    assert push(q, ORDER, *options)[0] == "1002"
    assert push(q, ORDER, *options) is None
    assert q.len() == 1
    assert q.info()["duplicates"] == 1


def test_without_idpath_an_id_is_generated(r, key):
    q = Scene(r, key)
    _, a = push(q, ORDER, "GROUPBY", 1, "user_id")
    _, b = push(q, ORDER, "GROUPBY", 1, "user_id")
    assert a != b and len(a) == 36 and a[14] == "7"


def test_events_sent_out_of_order_are_delivered_by_their_own_time(r, key):
    q = Scene(r, key)
    times = list(range(50))
    random.Random(5).shuffle(times)
    for t in times:
        doc = json.dumps({"user": t % 3, "t": t})
        push(q, doc, "GROUPBY", 1, "user", "SCOREPATH", "t")
    order = {0: [], 1: [], 2: []}
    while got := q.fetch("COUNT", 10):
        for m in got:
            doc = json.loads(m.payload)
            order[doc["user"]].append(doc["t"])
        q.ack(*[m.receipt for m in got])
    assert all(seen == sorted(seen) for seen in order.values())


@pytest.mark.parametrize(
    "doc,paths,group",
    [
        ('{"a":1}', ["a"], "1"),
        ('{"a":"x","b":"y"}', ["b", "a"], "y_x"),
        ('{"a":"x"}', ["a", "a", "a"], "x_x_x"),
        ('{"a":true,"b":false}', ["a", "b"], "true_false"),
        ('{"a":18446744073709551615}', ["a"], "18446744073709551615"),
        ('{"a":123456789012345678901234567890}', ["a"], "123456789012345678901234567890"),
        ('{"a":2302393013}', ["a"], "2302393013"),
        ('{"a":-0}', ["a"], "-0"),
        ('{"a":1.50}', ["a"], "1.50"),
        ('{"a":1E400}', ["a"], "1E400"),
        ('{"a":1e2}', ["a"], "1e2"),
        ('{"a":0.1000000000000000055511151231257827}', ["a"], "0.1000000000000000055511151231257827"),
        ('{"a":{"b":{"c":"deep"}}}', ["/a/b/c"], "deep"),
        ('{"a":[10,{"b":20}]}', ["/a/0", "/a/1/b"], "10_20"),
        ('{"a/b":1,"m~n":2}', ["/a~1b", "/m~0n"], "1_2"),
        ('{"a/b":1}', ["a/b"], "1"),
        ('{"":"empty name"}', ["/"], "empty name"),
        ('{"~1":"tilde"}', ["/~01"], "tilde"),
        ('{"a":1,"a":2}', ["a"], "2"),
        ('{"o":{"k":1},"o":{"k":2}}', ["/o/k"], "2"),
        ('{"a":"\\u00e9\\n\\"\\\\"}', ["a"], 'é\n"\\'),
        ('{"a":"\\ud83d\\ude00"}', ["a"], "😀"),
        ('{"\\u0061":"escaped name"}', ["a"], "escaped name"),
        ('{"名":"値"}', ["名"], "値"),
        (' \t\r\n{ "a" : 1 , "b" : [ ] } \n', ["a"], "1"),
        ('{"a":"_","b":""}', ["a", "b"], "__"),
        ('{"1":"n","a":{"0":"object"}}', ["/1", "/a/0"], "n_object"),
    ],
)
def test_a_group_is_the_text_of_the_values_at_its_paths(r, key, doc, paths, group):
    q = Scene(r, key)
    assert group_of(q, doc, *paths) == group
    (m,) = q.fetch("GROUP", group.encode())
    assert m.payload == doc.encode()


@pytest.mark.parametrize(
    "doc,paths,names",
    [
        ('{"a":1}', ["b"], "b"),
        ('{"a":1}', ["a", "/x/y"], "/x/y"),
        ('{"a":{"b":1}}', ["a"], "a"),
        ('{"a":[1]}', ["a"], "a"),
        ('{"a":null}', ["a"], "a"),
        ('{"a":[1,2]}', ["/a/2"], "/a/2"),
        ('{"a":[1,2]}', ["/a/-"], "/a/-"),
        ('{"a":[1,2]}', ["/a/01"], "/a/01"),
        ('{"a":[1,2]}', ["/a/x"], "/a/x"),
        ('{"a":1}', ["/a/b"], "/a/b"),
        ('{"a":1}', ["/a~2"], "/a~2"),
        ('{"a":1,"a":null}', ["a"], "a"),
    ],
)
def test_a_path_without_a_value_is_an_error_that_names_it(server, r3, key, doc, paths, names):
    q = Scene(r3, key)
    before = q.digest()
    assert names in q.fails("GROUPPUSH", doc, "GROUPBY", len(paths), *paths)
    assert q.digest() == before


@pytest.mark.parametrize(
    "doc",
    [
        b"",
        b" ",
        b"{",
        b"{]",
        b'{"a":1',
        b'{"a":1}}',
        b'{"a":1} x',
        b'{"a":1,}',
        b"{'a':1}",
        b'{"a":01}',
        b'{"a":+1}',
        b'{"a":.5}',
        b'{"a":NaN}',
        b'{"a":"\x01"}',
        b'{"a":"\\x"}',
        b'{"a":"\\ud800"}',
        b'{"a":1,"b":"\xff"}',
        b"\xff\xfe",
        b'[{"a":1}]',
        b'"a"',
        b"1",
        b"null",
        b'{"a":1}\x00',
        b'{"a":tru}',
        b"\xef\xbb\xbf" + b'{"a":1}',
    ],
)
def test_bad_json_is_an_error_and_adds_nothing(r3, key, doc):
    q = Scene(r3, key)
    before = q.digest()
    q.fails("GROUPPUSH", doc, "GROUPBY", 1, "a")
    assert q.digest() == before
    missing = Queue(r3, key + b":none")
    missing.fails("GROUPPUSH", doc, "GROUPBY", 1, "a")
    assert r3.exists(missing.key) == 0


def test_an_empty_group_is_an_error(r3, key):
    q = Scene(r3, key)
    q.fails("GROUPPUSH", '{"a":""}', "GROUPBY", 1, "a")
    assert q.len() == 0


def test_the_error_for_bad_json_names_the_position(r3, key):
    error = Scene(r3, key).fails("GROUPPUSH", '{"a":1,\n "b":oops}', "GROUPBY", 1, "a")
    assert any(c.isdigit() for c in error), error


def nested(depth, inner="1"):
    return '{"a":1,"deep":' + "[" * (depth - 1) + inner + "]" * (depth - 1) + "}"


def test_128_levels_of_nesting_are_the_maximum(r3, key):
    q = Scene(r3, key)
    assert group_of(q, nested(128), "a") == "1"
    q.fails("GROUPPUSH", nested(129), "GROUPBY", 1, "a")
    for depth in (10_000, 1_000_000):
        q.fails("GROUPPUSH", nested(depth), "GROUPBY", 1, "a")
        q.fails("GROUPPUSH", '{"a":1,"d":' + '{"x":' * depth, "GROUPBY", 1, "a")
    assert q.len() == 1


def test_scorepath_sets_the_score(r, key):
    q = Scene(r, key)
    for value, score in (("1.5", 1.5), ("-3", -3.0), ("1e3", 1000.0), ("0", 0.0)):
        _, id = push(q, '{"g":1,"s":%s}' % value, "GROUPBY", 1, "g", "SCOREPATH", "s")
        assert q.row(id)["score"] == score


@pytest.mark.parametrize("value", ['"12"', "true", "null", "[1]", "{}", "1e999"])
def test_scorepath_must_be_a_finite_number(r3, key, value):
    q = Scene(r3, key)
    error = q.fails("GROUPPUSH", '{"g":1,"when":%s}' % value, "GROUPBY", 1, "g", "SCOREPATH", "when")
    assert "when" in error
    assert q.len() == 0


def test_atpath_sets_the_due_time(r, key):
    q = Scene(r, key)
    _, id = push(q, '{"g":1,"at":%d}' % (START + 50), "GROUPBY", 1, "g", "ATPATH", "at")
    row = q.row(id)
    assert (row["state"], row["due-at"], row["score"]) == ("delayed", START + 50, START + 50)
    _, id = push(q, '{"g":1,"at":5}', "GROUPBY", 1, "g", "ATPATH", "at")
    assert q.row(id)["state"] == "ready"


@pytest.mark.parametrize("value", ['"5"', "1.5", "-1", "9007199254740992", "true", "1e30", "null"])
def test_atpath_must_be_a_time(r3, key, value):
    q = Scene(r3, key)
    error = q.fails("GROUPPUSH", '{"g":1,"when":%s}' % value, "GROUPBY", 1, "g", "ATPATH", "when")
    assert "when" in error
    assert q.len() == 0


@pytest.mark.parametrize("value,id", [('"x"', "x"), ("17", "17"), ("true", "true"), ("1.0", "1.0")])
def test_idpath_sets_the_id(r, key, value, id):
    q = Scene(r, key)
    assert push(q, '{"g":1,"id":%s}' % value, "GROUPBY", 1, "g", "IDPATH", "/id") == ["1", id]


@pytest.mark.parametrize("value", ['""', "null", "[]", "{}", '"' + "x" * 1025 + '"'])
def test_idpath_must_be_a_valid_id(r3, key, value):
    q = Scene(r3, key)
    q.fails("GROUPPUSH", '{"g":1,"id":%s}' % value, "GROUPBY", 1, "g", "IDPATH", "id")
    assert q.len() == 0


def test_a_group_longer_than_1024_bytes_is_an_error(r3, key):
    q = Scene(r3, key)
    doc = json.dumps({"a": "x" * 600, "b": "y" * 423})
    assert len(group_of(q, doc, "a", "b")) == 1024
    q.fails("GROUPPUSH", json.dumps({"a": "x" * 600, "b": "y" * 424}), "GROUPBY", 2, "a", "b")


def test_grouppush_takes_the_options_of_send(r, key):
    q = Scene(r, key)
    got = push(
        q, '{"g":7}', "PRIORITY", 3, "GROUPBY", 1, "g", "DELAY", 20, "ID", "mine", "SCORE", 4, "LEASE", 99,
        "RETRIES", 1, "BACKOFF", "EXP", 5, "TTL", 1000, "TYPE", "t", "HEADERS", 1, "h", "v",
    )  # fmt: skip
    assert got == ["7", "mine"]
    row = q.row("mine")
    assert (row["priority"], row["score"], row["due-at"], row["type"]) == (3, 4.0, START + 20, "t")
    assert row["headers"] == {"h": "v"}
    assert row["retries-left"] == 1


def test_replace_works_with_idpath(r, key):
    q = Scene(r, key)
    options = ("GROUPBY", 1, "g", "IDPATH", "id", "REPLACE")
    assert push(q, '{"g":1,"id":"a","v":1}', *options) == ["1", "a"]
    assert push(q, '{"g":2,"id":"a","v":2}', *options) == ["2", "a"]
    assert q.len() == 1
    assert q.row("a")["group"] == "2"
    q.one()
    assert push(q, '{"g":3,"id":"a","v":3}', *options) is None


def test_paths_and_values_can_be_option_words(r, key):
    q = Scene(r, key)
    doc = '{"GROUPBY":"ID","REPLACE":"DELAY"}'
    assert push(q, doc, "GROUPBY", 2, "GROUPBY", "REPLACE", "IDPATH", "REPLACE") == ["ID_DELAY", "DELAY"]


def test_grouppush_creates_a_missing_queue_and_obeys_maxlen(r3, key):
    q = Queue(r3, key)
    assert q.do("GROUPPUSH", '{"a":1}', "GROUPBY", 1, "a")[0] == b"1"
    q.do("ALTER", "MAXLEN", 1)
    assert q.fails("GROUPPUSH", '{"a":1}', "GROUPBY", 1, "a").startswith("QUEUEFULL")


def test_a_mutated_document_is_accepted_or_refused(r3, key):
    """Each mutation is accepted or refused, and accepted ones are valid JSON for Python's parser too."""
    q = Scene(r3, key)
    rng = random.Random(2024)
    base = bytearray(ORDER)
    taken = 0
    for _ in range(1500):
        doc = bytearray(base)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(doc))
            kind = rng.random()
            if kind < 0.4:
                doc[at] = rng.randrange(256)
            elif kind < 0.7:
                del doc[at]
            else:
                doc.insert(at, rng.choice(b'{}[]",:0\\u\x00\xff 9e-'))
        before = q.len()
        try:
            reply = q.do("GROUPPUSH", bytes(doc), "GROUPBY", 2, "user_id", "/data/status", "SCOREPATH", "q_time")
        except Exception as error:
            assert "Connection" not in type(error).__name__, bytes(doc)
            assert q.len() == before
            continue
        taken += 1
        parsed = json.loads(bytes(doc).decode())
        assert isinstance(parsed, dict) and "user_id" in parsed
        (m,) = q.fetch("GROUP", reply[0])
        assert m.payload == bytes(doc)
        q.ack(m.receipt)
    assert taken > 50
