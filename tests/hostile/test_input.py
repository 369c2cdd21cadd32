"""Hostile input never crashes the server: odd bytes in every argument, huge arguments, and corrupt RESTORE payloads."""

import random
import time

import pytest
import redis

from tests.harness.replies import Queue, msgs
from tests.harness.traffic import Traffic, exercise, rich
from tests.harness.verbs import KEYS
from tests.harness.wire import Error

NASTY = [
    b"", b"\0", b"a\0b", b"%n%s%n%s%n", b"%99999999d", b"\r\n+OK\r\n", b"-ERR x\r\n$5\r\n", b"\xff\xfe\xc0\x80", b"\xed\xa0\x80",
    b"-1", b"0", b"9223372036854775807", b"-9223372036854775808", b"18446744073709551615", b"18446744073709551616",
    b"9007199254740992", b"1e999", b"nan", b"-inf", b"0x10", b" 1", b"1" * 400, b"{" * 200, b"[" * 10000,
    b"COUNT", b"REPLACE", b"BLOCK", b"*", b"x" * 1_000_000,
]  # fmt: skip


def survives(w, call):
    """The call gets one well-formed reply and the connection works after it."""
    reply = w.call(*call)
    if isinstance(reply, Error):
        assert "\r" not in reply and "\n" not in reply
        assert len(reply) < 4096, "an error does not echo a huge argument"
    assert w.ok("ECHO", "step") == b"step"
    return reply


@pytest.mark.parametrize("call, _", KEYS, ids=lambda v: " ".join(map(str, v)) if v else None)
def test_odd_bytes_in_any_argument_give_one_well_formed_reply(server, call, _):
    """Each argument in turn is replaced by each odd value; calls that could block run in MULTI."""
    w = server.wire(2)
    rich(server.client(), "k")
    for place in range(1, len(call)):
        for value in NASTY:
            args = list(call)
            args[place] = value
            if "BLOCK" in args[:-1] or args[0] == "WAIT" or value == b"BLOCK":
                w.ok("MULTI")
                w.call("DQ." + args[0], *args[1:])
                survives(w, ("EXEC",))
            else:
                survives(w, ("DQ." + args[0], *args[1:]))
    assert server.alive()


@pytest.mark.parametrize("verb", ["SEND", "MSEND", "FETCH", "CREATE", "NACK", "SCHEDULE", "GROUPPUSH", "LIST"])
def test_option_words_in_random_order_give_one_well_formed_reply(server, verb):
    """A grammar fuzzer: real option words with odd values, doubled, cut short, in any order."""
    rng = random.Random(verb)
    w = server.wire(2)
    rich(server.client(), "k")
    words = (
        "ID REPLACE DELAY AT GROUP SCORE PRIORITY LEASE RETRIES BACKOFF FIXED LINEAR EXP TTL TYPE HEADERS COUNT "
        "CONSUMER PERGROUP MAXBYTES ACK BIND NOACK WITHMETA RATE PER CLOCK MANUAL ERROR SILENT FATAL GROUPBY IDPATH "
        "SCOREPATH ATPATH CRON EVERY START PAYLOAD TZ MISSED OVERLAP CURSOR IDS dead ready "
        "NOTE PAUSE QUEUE RESULTS RETAIN EXPIREAT MAXWAIT IFGROUP MAXTIMEOUTS ERRORS"
    ).split()
    for _ in range(1500):
        args = [rng.choice(words) if rng.random() < 0.6 else rng.choice(NASTY[:-1]) for _ in range(rng.randrange(9))]
        args = [a for a in args if a != b"BLOCK"]
        survives(w, (f"DQ.{verb}", "k", *args))
    assert w.call("DEL", "k") in (0, 1)
    assert server.alive()


def test_calls_with_a_huge_number_of_arguments_work(server, key):
    w = server.wire(2)
    assert w.ok("DQ.ACK", key, *range(1, 300001)) == 0
    assert w.ok("DQ.CANCEL", key, *range(100000)) == [None] * 100000
    assert len(w.ok("DQ.MSEND", key, 100000, *["x"] * 100000)) == 100000
    assert w.ok("DQ.SEND", key, "x", "HEADERS", 20000, *range(40000))
    assert isinstance(w.call("DQ.SEND", key, "x", *["ID", "a"] * 50000), Error)


def test_huge_names_are_refused_and_huge_payloads_are_not(server, key):
    w = server.wire(2)
    big = b"n" * 1_000_000
    for option in ("ID", "TYPE", "GROUP"):
        assert isinstance(survives(w, ("DQ.SEND", key, "x", option, big)), Error)
    assert isinstance(survives(w, ("DQ.FETCH", key, "CONSUMER", big)), Error)
    assert w.ok("DQ.SEND", big, "a queue with a long name")
    assert w.ok("DQ.SEND", key, big * 20, "ID", "a")
    assert w.ok("DQ.FETCH", key)[0][3] == big * 20


def test_names_and_payloads_appear_in_no_log_and_no_info(server, key):
    w = server.wire(2)
    secret = b"%s%n-secret-%d"
    before = len(server.log())
    w.ok("DQ.SEND", secret, secret, "ID", secret, "TYPE", secret, "GROUP", secret)
    [[_, receipt, _, _]] = w.ok("DQ.FETCH", secret, "CONSUMER", secret)
    w.ok("DQ.NACK", secret, receipt, "ERROR", secret)
    assert b"-secret-" not in w.ok("INFO", "everything")
    assert "-secret-" not in server.log()[before:]


def mutate(rng, data: bytes) -> bytes:
    """The dump with some bytes flipped, cut, doubled or blown up; the last ten are version and checksum."""
    body = bytearray(data[:-10])
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at = rng.randrange(len(body))
        match rng.randrange(7):
            case 0:
                body[at] ^= 1 << rng.randrange(8)
            case 1:
                body[at] = rng.randrange(256)
            case 2:
                del body[at : at + rng.randrange(1, 20)]
            case 3:
                body[at:at] = rng.randbytes(rng.randrange(1, 20))
            case 4:
                body[at : at + 8] = b"\xff" * 8
            case 5:
                body[at:at] = body[at : at + rng.randrange(1, 60)]
            case 6:
                body[at : at + 9] = b"\x81" + (2 ** rng.randrange(20, 63)).to_bytes(8, "big")
        if not body:
            body = bytearray(b"\0")
    return bytes(body) + data[-10:]


@pytest.fixture
def unchecked(make_server):
    """A server that does not verify checksums, so that mutations reach the decoder."""
    server = make_server()
    client = server.client()
    client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
    return server, client


@pytest.mark.parametrize("clock", ["MANUAL", "SERVER"])
def test_corrupt_dumps_are_refused_or_harmless(unchecked, clock):
    server, client = unchecked
    q = rich(client, "q", clock)
    Traffic(client, q.key, 5).run(40)
    good = client.dump("q")
    rng = random.Random(clock)
    refused = 0
    for n in range(1500):
        bad = mutate(rng, good)
        try:
            client.restore("bad", 0, bad, replace=True)
        except redis.ResponseError as error:
            assert "Bad data format" in str(error) or "payload" in str(error), error
            refused += 1
            continue
        exercise(client, "bad", n)
        again = client.dump("bad")
        client.restore("again", 0, again, replace=True)
    assert refused > 300
    assert server.alive()
    client.delete("bad", "again")
    assert Queue(client, "q").len() == q.len() > 0


def test_every_truncated_dump_is_refused(unchecked):
    server, client = unchecked
    rich(client, "q")
    good = client.dump("q")
    for size in range(1, len(good) - 10):
        with pytest.raises(redis.ResponseError):
            client.restore("bad", 0, good[:size] + good[-10:])
    assert client.exists("bad") == 0
    assert server.alive()


def test_huge_counts_in_a_dump_cost_no_memory(unchecked):
    server, client = unchecked
    rich(client, "q")
    good = client.dump("q")
    client.execute_command("CONFIG", "RESETSTAT")
    rng = random.Random(1)
    for _ in range(300):
        body = bytearray(good[:-10])
        at = rng.randrange(10, len(body))
        body[at : at + 9] = b"\x81" + (2**60).to_bytes(8, "big")
        try:
            client.restore("bad", 0, bytes(body) + good[-10:], replace=True)
            client.delete("bad")
        except redis.ResponseError:
            pass
    assert client.info("memory")["used_memory_peak"] < 200_000_000
    assert server.alive()


def test_restored_queues_use_the_clock_of_this_server(r3, key):
    """After a restore of an old dump, messages that fell due meanwhile are delivered and leases that ended have ended."""
    q = Queue(r3, key)
    q.send("due", "DELAY", 20)
    q.send("leased", "PRIORITY", -1)
    q.one("LEASE", 20)
    dump = r3.dump(key)
    r3.delete(key)
    time.sleep(0.05)
    r3.restore(key, 0, dump)
    # Right after a standstill of the server, which a busy machine causes too, leases last some milliseconds longer.
    got = []
    while len(got) < 2:
        got += msgs(r3.execute_command("DQ.FETCH", key, "COUNT", 5, "BLOCK", 10_000))
    assert sorted((m.payload, m.attempt) for m in got) == [(b"due", 1), (b"leased", 2)]
