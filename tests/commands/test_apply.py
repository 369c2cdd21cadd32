"""ACK ... APPLY: effects on Redis keys in the log entry of the ACK, all or nothing, and nothing from a stale receipt."""

import pytest

from tests.harness.replies import Manual, Queue, msgs
from tests.harness.server import wait_for
from tests.harness.wire import NULL_ARRAY, Error

ALL = [
    ("SET k:set v", b"OK"),
    ("SET k:px v PX 60000", b"OK"),
    ("DEL k:old", 1),
    ("INCRBY k:n 5", 5),
    ("HSET k:h f v", 1),
    ("HDEL k:h gone", 0),
    ("HINCRBY k:h n -3", -3),
    ("SADD k:s a", 1),
    ("SREM k:s b", 0),
    ("ZADD k:z 1.5 a", 1),
    ("ZINCRBY k:z 2 b", 2.0),
    ("ZREM k:z c", 0),
    ("LPUSH k:l a", 1),
    ("RPUSH k:l b", 2),
    ("PEXPIRE k:n 60000", 1),
]


def running(r, key, *options):
    """A queue with a message that runs: (queue, receipt)."""
    q = Manual(r, key, "RETAIN", 1000, *options)
    q.send("x", "ID", "a")
    return q, q.one().receipt


def apply(*effects):
    """The words of APPLY."""
    return ["APPLY", len(effects), *(word for effect in effects for word in effect.split())]


@pytest.mark.parametrize("protocol", [2, 3])
def test_each_effect_replies_what_the_plain_command_replies(r, key, protocol):
    q, receipt = running(r, key)
    r.set("k:old", "x")
    *applied, id = q.do("ACK", receipt, *apply(*(effect for effect, _ in ALL), "XADD k:x 2 a 1 b 2 MAXLEN 5"), "RESULT", "done")
    assert applied == [b"2" if (wanted == 2.0 and protocol == 2 and effect.startswith("ZINCR")) else wanted for effect, wanted in ALL]
    assert r.xrange("k:x") == [(id, {b"a": b"1", b"b": b"2"})]
    assert (q.get("a")["state"], q.get("a")["result"]) == (b"finished", b"done")
    assert (r.get("k:set"), r.exists("k:old"), r.hgetall("k:h")) == (b"v", 0, {b"f": b"v", b"n": b"-3"})
    assert 50_000 < r.pttl("k:px") <= 60_000 and 50_000 < r.pttl("k:n") <= 60_000
    assert r.zrange("k:z", 0, -1, withscores=True) in ([(b"a", 1.5), (b"b", 2.0)], [[b"a", 1.5], [b"b", 2.0]])
    assert r.lrange("k:l", 0, -1) == [b"a", b"b"]


@pytest.mark.parametrize(
    "given, gone", [(dict(stale=1), "stale"), (dict(key="missing"), "no queue"), (dict(late=1), "the lease has ended")]
)
def test_a_stale_receipt_writes_nothing(server, r, key, given, gone):
    q, receipt = running(r, key)
    if "late" in given:
        q.advance(10**9)
    target = Queue(r, b"none") if "key" in given else q
    assert target.do("ACK", receipt + given.get("stale", 0), *apply("SET k v", "INCRBY n 1")) is None, gone
    assert r.exists("k", "n", "none") == 0
    with server.wire(2) as wire:
        assert wire.ok("DQ.ACK", key, 0, "APPLY", 1, "DEL", "k") == NULL_ARRAY


def test_conditions_that_do_not_hold_leave_the_message_running(r, key):
    q, receipt = running(r, key)
    r.set("balance", "5")
    r.rpush("list", "x")
    for words, number in [
        (["IF", 1, "MISSING", "balance"], 1),
        (["IF", 2, "EXISTS", "balance", "EXISTS", "none"], 2),
        (["IF", 3, "EXISTS", "balance", "MISSING", "none", "EQUALS", "balance", "6"], 3),
        (["IF", 1, "EQUALS", "list", "x"], 1),
        (["IF", 1, "EQUALS", "none", ""], 1),
    ]:
        before = q.digest()
        assert q.fails("ACK", receipt, *words, *apply("INCRBY balance -5")).startswith(f"CONDITION {number}")
        assert (q.digest(), r.get("balance"), q.state("a")) == (before, b"5", "running")
    done = q.do("ACK", receipt, *apply("INCRBY balance -5"), "IF", 2, "EQUALS", "balance", 5, "MISSING", "none")
    assert (done, r.get("balance"), q.state("a")) == ([0], b"0", "finished")


def test_a_condition_leaves_a_number_stored_as_a_number(r, key):
    q, receipt = running(r, key)
    r.set("n", 7)
    assert q.do("ACK", receipt, *apply("SET done 1"), "IF", 1, "EQUALS", "n", 7) == [b"OK"]
    assert r.object("ENCODING", "n") == b"int"


def test_a_repeated_token_tells_the_same_and_applies_nothing_again(server, r, key):
    q, receipt = running(r, key)
    words = ["FETCH", "CONSUMER", "w", "TOKEN", "t", "ACK", 1, receipt, *apply("INCRBY n 1", "ZINCRBY z 1.5 m", "XADD x 1 f v")]
    applied, given = q.do(*words)
    assert (applied[:2], given, r.get("n")) == ([1, 1.5], [], b"1")
    assert q.do(*words) == [applied, []]
    q.send("y", "ID", "b")
    again, [message] = q.do(*words)
    assert again == applied
    receipt = message[b"receipt"] if isinstance(message, dict) else msgs([message])[0].receipt
    assert q.do(*words)[0] == applied, "while the message runs"
    q.ack(receipt)
    # A FETCH without a token and a reload leave it.
    q.fetch("CONSUMER", "w")
    r.execute_command("DEBUG", "RELOAD")
    assert q.do(*words) == [applied, []]
    assert (r.get("n"), r.xlen("x")) == (b"1", 1)
    q.send("z", "ID", "c")
    receipt = q.one("CONSUMER", "w").receipt
    assert q.do(*words[:4], "u", "ACK", 1, receipt, *apply("INCRBY n 1")) == [[2], []]
    # The token before it is forgotten, and its receipt stale.
    assert q.do(*words) == [None, []]
    assert r.get("n") == b"2"


@pytest.mark.parametrize(
    "effects, error",
    [
        (["SET a v", "LPUSH string x"], "WRONGTYPE 2"),
        (["INCRBY list 1"], "WRONGTYPE 1"),
        (["SET a v", "DEL other:queue"], "WRONGTYPE 2"),
        (["PEXPIRE other:queue 5"], "WRONGTYPE 1"),
        (["INCRBY string 1"], "NOTNUMBER 1"),
        (["SET a v", "HINCRBY hash text 1"], "NOTNUMBER 2"),
        (["ZINCRBY zset -inf inf"], "NOTNUMBER 1"),
        (["INCRBY large 1"], "OVERFLOW 1"),
        (["HINCRBY hash small -1"], "OVERFLOW 1"),
        (["XADD stream 1 f v"], "OVERFLOW 1"),
        (["SET a v", "INCRBY string 1", "LPUSH string x"], None),
        (["SET a v", "LPUSH string x", "INCRBY large 1"], "WRONGTYPE 2"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_done(r, key, effects, error):
    q, receipt = running(r, key)
    r.set("string", "text")
    r.rpush("list", "x")
    r.set("large", 2**63 - 1)
    r.hset("hash", mapping={"text": "1.5", "small": -(2**63)})
    r.zadd("zset", {"inf": float("inf")})
    r.xadd("stream", {"f": "v"}, id=f"{2**64 - 1}-{2**64 - 1}")
    Queue(r, "other:queue").send("x")
    before = q.digest()
    said = q.fails("ACK", receipt, *apply(*effects))
    assert said.startswith(error or "APPLY 2 and 3 name the same key")
    assert (q.digest(), r.exists("a")) == (before, 0)


def test_keys_that_the_command_changes_anyway_are_refused(r, key):
    events, dead, parent = b"events", b"dead", b"parent"
    Queue(r, parent).send("p", "ID", "p", "CHILDREN", 1)
    q = Manual(r, key, "EVENTS", events, "DEADTO", dead)
    q.send("x", "PARENT", parent, "p")
    receipt = q.one().receipt
    for name in (key, events, dead, parent):
        said = q.fails("ACK", receipt, "APPLY", 2, "SET", "a", "v", "DEL", name)
        assert said == f"APPLY 2 names '{name.decode()}', which this command changes anyway"
    said = q.fails("ACKSEND", receipt, "APPLY", 1, "SET", "next", "v", "NEXT", "next", "p")
    assert said == "APPLY 1 names 'next', which this command changes anyway"
    assert r.exists("a", "next") == 0
    assert q.do("ACK", receipt, *apply("SET a v")) == [b"OK"]


def test_the_words_are_checked(r, key):
    q, receipt = running(r, key)
    for words, said in [
        (["ACK", receipt, receipt + 1, *apply("SET a v")], "APPLY"),
        (["FETCH", "ACK", 2, receipt, 5, *apply("SET a v")], "APPLY"),
        (["FETCH", *apply("SET a v")], "APPLY"),
        (["ACK", receipt, "IF", 1, "EXISTS", "a"], "IF"),
        (["ACK", receipt, "APPLY", 1, "GET", "a"], "'GET'"),
        (["ACK", receipt, "APPLY", 1, "EVAL", "a"], "'EVAL'"),
        (["ACKSEND", receipt, "NEXT", "d", "p", *apply("SET a v")], "'APPLY'"),
        (["ACK", receipt, *apply("SET a v", "SET a w")], "APPLY 1 and 2 name the same key"),
    ]:
        assert said in q.fails(*words)
    assert q.state("a") == "running"


def test_ack_send_applies_too(r, key):
    q, receipt = running(r, key)
    assert q.do("ACKSEND", receipt + 1, *apply("SET a v"), "NEXT", "dest", "p") is None
    assert q.fails("ACKSEND", receipt, *apply("INCRBY dest 1"), "NEXT", "dest", "p").startswith("APPLY 1 names")
    applied, ids = q.do("ACKSEND", receipt, "RESULT", "r", *apply("INCRBY n 2"), "NEXT", "dest", "p", "ID", "b", "NEXT", key, "q")
    assert (applied, ids[0], len(ids)) == ([2], b"b", 2)
    assert (q.state("a"), q.len(), Queue(r, "dest").len()) == ("finished", 1, 1)


def test_an_ack_send_that_is_refused_applies_nothing(r, key):
    q, receipt = running(r, key)
    full = Manual(r, b"full", "MAXLEN", 1)
    full.send("x")
    assert q.fails("ACKSEND", receipt, *apply("SET a v"), "NEXT", "full", "p").startswith("QUEUEFULL")
    assert (r.exists("a"), q.state("a")) == (0, "running")


def test_fetch_applies_and_takes_the_next(r, key):
    q, receipt = running(r, key)
    q.send("y", "ID", "b")
    applied, given = q.do("FETCH", "ACK", 1, receipt, "RESULTS", 1, "r", *apply("INCRBY n 1"))
    [message] = msgs(given)
    assert (applied, message.id, q.get("a")["result"], r.get("n")) == ([1], b"b", b"r", b"1")
    applied, given = q.do("FETCH", "ACK", 1, receipt, *apply("INCRBY n 1"))
    assert (applied, given, r.get("n")) == (None, [], b"1")
    q.send("z")
    assert q.fails("FETCH", "ACK", 1, message.receipt, *apply("INCRBY n 1"), "IF", 1, "EXISTS", "no").startswith("CONDITION 1")
    assert (q.len("ready"), q.state("b")) == (1, "running")


def test_a_waiting_fetch_applies_before_it_waits(server, r, key):
    q, receipt = running(r, key)
    with server.wire(3) as wire:
        wire.send("DQ.FETCH", key, "ACK", 1, receipt, "APPLY", 1, "INCRBY", "n", 1, "BLOCK", 20_000)
        wait_for(lambda: r.get("n") == b"1", 20, "the effect")
        q.send("y", "ID", "b")
        applied, given = wire.recv()
        assert (applied, len(given)) == ([1], 1)
        receipt = msgs(given)[0].receipt
        assert wire.ok("DQ.FETCH", key, "ACK", 1, receipt, "APPLY", 1, "INCRBY", "n", 1, "BLOCK", 1) == [[2], []]


def test_rights_are_those_of_the_plain_commands(server, r, key):
    q, receipt = running(r, key)
    r.execute_command("ACL", "SETUSER", "w", "reset", "on", ">p", "+dq.ack", "+incrby", "+exists", f"~{key.decode()}", "~n", "~m")
    try:
        with server.wire(3) as wire:
            wire.ok("AUTH", "w", "p")
            for words, said in [
                (("SET", "n", "v"), "NOPERM 1"),
                (("INCRBY", "other", 1), "NOPERM"),
                (("INCRBY", "n", 1, "IF", 1, "EQUALS", "m", 1), "NOPERM IF 1"),
            ]:
                reply = wire.call("DQ.ACK", key, receipt, "APPLY", 1, *words)
                assert isinstance(reply, Error) and str(reply).startswith(said), reply
            # Rights come before the receipt.
            assert str(wire.call("DQ.ACK", key, 0, "APPLY", 1, "SET", "n", "v")).startswith("NOPERM 1")
            assert wire.ok("DQ.ACK", key, receipt, "APPLY", 1, "INCRBY", "n", 1, "IF", 1, "MISSING", "m") == [1]
    finally:
        r.execute_command("ACL", "DELUSER", "w")


def test_selectors_count_as_a_whole(server, r, key):
    q, receipt = running(r, key)
    r.execute_command("ACL", "SETUSER", "w", "reset", "on", ">p", f"(+dq.ack ~{key.decode()} ~n)", "(+incrby ~m)")
    try:
        with server.wire(3) as wire:
            wire.ok("AUTH", "w", "p")
            assert str(wire.call("DQ.ACK", key, receipt, "APPLY", 1, "INCRBY", "n", 1)).startswith("NOPERM 1")
    finally:
        r.execute_command("ACL", "DELUSER", "w")


def test_full_memory_refuses_what_adds(r, key):
    q, receipt = running(r, key)
    r.set("old", "x")
    limit = r.config_get("maxmemory")["maxmemory"]
    r.config_set("maxmemory", 1)
    try:
        assert q.fails("ACK", receipt, *apply("DEL old", "INCRBY n 1")).startswith("command not allowed when used memory")
        assert q.do("ACK", receipt, *apply("DEL old")) == [1]
    finally:
        r.config_set("maxmemory", limit)


def test_it_is_refused_in_blocks_where_a_torn_log_could_lose_more(server, r, key):
    q, receipt = running(r, key)
    is_sure = "valkey_version" in r.info("server") and tuple(map(int, r.info("server")["valkey_version"].split(".")[:2])) >= (9, 1)
    script = "return redis.call('DQ.ACK', KEYS[1], ARGV[1], 'APPLY', '1', 'INCRBY', KEYS[2], '1')"
    if is_sure:
        assert r.eval(script, 2, key, "n", receipt) == [1]
        return
    with pytest.raises(Exception, match="APPLY cannot be used in MULTI or a script"):
        r.eval(script, 2, key, "n", receipt)
    pipe = r.pipeline()
    pipe.execute_command("DQ.ACK", key, receipt, *apply("INCRBY n 1"))
    with pytest.raises(Exception, match="APPLY cannot be used in MULTI or a script"):
        pipe.execute()
    assert (r.exists("n"), q.state("a")) == (0, "running")


def test_all_keys_are_named_with_their_access(server):
    with server.wire(3) as wire:
        words = ["ACK", 1, "APPLY", 3, "SET", "a", "v", "LPUSH", "b", "x", "DEL", "c", "IF", 2, "EQUALS", "d", "1", "MISSING", "e"]
        for verb, rest in [("ACK", words[1:]), ("FETCH", ["ACK", *words[:1][:0], 1, *words[1:]])]:
            keys = dict(wire.ok("COMMAND", "GETKEYSANDFLAGS", f"DQ.{verb}", "q", *rest))
            flags = {key: set(flags) for key, flags in keys.items()}
            assert list(keys) == [b"q", b"a", b"b", b"c", b"d", b"e"]
            assert {b"RW", b"update"} <= flags[b"a"] and {b"RW", b"insert"} <= flags[b"b"] and b"delete" in flags[b"c"]
            assert {b"RO", b"access"} <= flags[b"d"] and flags[b"e"] == {b"RO"}
        keys = wire.ok("COMMAND", "GETKEYS", "DQ.ACKSEND", "q", 1, "APPLY", 1, "SET", "a", "v", "NEXT", "d", "p", "PARENT", "e", "id")
        assert keys == [b"q", b"a", b"d", b"e"]


def test_other_clients_see_the_changes_as_those_of_plain_commands(server, r, key):
    q, receipt = running(r, key)
    r.config_set("notify-keyspace-events", "KEA")
    seen = server.client(protocol=2).pubsub()
    seen.psubscribe("__keyspace@0__:n", "__keyspace@0__:l")
    watching = r.pipeline()
    watching.watch("n")
    watching.multi()
    watching.set("other", "x")
    with server.wire(3) as waiting:
        waiting.send("BLPOP", "l", 20)
        wait_for(lambda: r.info("clients")["blocked_clients"] == 1, 20, "the client to wait")
        assert q.do("ACK", receipt, *apply("INCRBY n 1", "RPUSH l x")) == [1, 1]
        assert waiting.recv() == [b"l", b"x"]
    with pytest.raises(Exception, match="Watched"):
        watching.execute()
    heard = []
    wait_for(lambda: heard.append(seen.get_message(timeout=1)) or len([m for m in heard if m and m["type"] == "pmessage"]) >= 2, 20, "events")
    assert {m["data"] for m in heard if m and m["type"] == "pmessage"} >= {b"incrby", b"rpush"}
    r.config_set("notify-keyspace-events", "")
