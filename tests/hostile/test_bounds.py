"""The data that one call may leave behind, and the work that it may set off, are limited: texts of ACK and NACK, steps
of DQ.TICK and DQ.OP, names of consumers, and firings of schedules on a server without memory."""

import time

import pytest

from tests.harness.replies import Manual, Queue, as_map
from tests.harness.server import wait_for
from tests.harness.wire import Error

KIB64 = 64 * 1024


def log_entry(us: int, steps: int) -> bytes:
    """A log entry that only processes due events: its kind, the time in microseconds, the parts, their number."""
    number = b""
    while steps >= 0x80:
        number, steps = number + bytes([steps & 0x7F | 0x80]), steps >> 7
    return b"\x21" + us.to_bytes(7, "little") + b"\x01" + number + bytes([steps])


def fill(server):
    """Leaves the server no memory, from now on."""
    server.client().config_set("maxmemory", 1)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x" * KIB64, KIB64),
        ("x" * KIB64 + "y", KIB64),
        ("x" * (KIB64 - 1) + "ä", KIB64 - 1),
        ("x" * (KIB64 - 2) + "€uro", KIB64 - 2),
        ("x" * (KIB64 - 3) + "€uro", KIB64),
        ("x" * (KIB64 - 3) + "\N{GRINNING FACE}", KIB64 - 3),
        (b"\xff" * 70_000, KIB64),
        (b"\x80" * 70_000, KIB64),
    ],
)
def test_an_error_is_kept_up_to_64_kib_and_cut_behind_a_character(r, key, text, kept):
    q = Queue(r, key)
    q.send("a", "ID", "a")
    assert q.nack(q.one().receipt, "FATAL", "ERROR", text) == 1
    whole = text if isinstance(text, bytes) else text.encode()
    assert q.get("a")["error"] == whole[:kept]
    before = q.digest()
    r.execute_command("DEBUG", "RELOAD")
    assert q.digest() == before


def test_texts_add_little_without_memory(make_server):
    """Signals with long DATA are refused, and long errors are cut, also in a transaction and in a script."""
    server = make_server()
    w = server.wire()
    w.ok("DQ.CREATE", "q", "ERRORS", 100, "RETRIES", -1, "BACKOFF", "FIXED", 0)
    w.ok("DQ.SEND", "q", "x", "ID", "a", "PARK")
    w.ok("DQ.SEND", "q", "x", "ID", "b")
    fill(server)

    def in_multi(*call):
        # Without memory, the server itself refuses to queue anything.
        server.client().config_set("maxmemory", 0)
        w.ok("MULTI")
        w.ok(*call)
        fill(server)
        return w.ok("EXEC")[0]

    def in_lua(*call):
        return w.call("EVAL", "#!lua flags=allow-oom\nreturn redis.call(unpack(ARGV))", 1, "q", *call)

    text = "\u00e4" * 30_000
    before = w.ok("DEBUG", "DIGEST-VALUE", "q")
    for call in (w.call, in_multi, in_lua):
        reply = call("DQ.SIGNAL", "q", "a", "DATA", "x" * 257)
        assert isinstance(reply, Error) and "OOM" in reply
    assert w.ok("DEBUG", "DIGEST-VALUE", "q") == before
    for call in (w.call, in_multi, in_lua):
        assert call("DQ.SIGNAL", "q", "b", "DATA", "x" * 256) == 1
        [[_, receipt, _, _]] = w.ok("DQ.FETCH", "q")
        assert call("DQ.NACK", "q", receipt, "ERROR", text) == 1
    b = Queue(server.client(), "q").get("b")
    assert b["error"] == text[:128].encode()
    assert [error[3] for error in b["errors"]] == [text[:128].encode()] * 3
    assert w.ok("MEMORY", "USAGE", "q") < 10_000


def test_long_results_are_refused_without_memory_and_short_ones_are_not(make_server):
    server = make_server()
    w = server.wire()
    w.ok("DQ.CREATE", "q", "RETAIN", 600_000)
    w.ok("DQ.MSEND", "q", 6, *range(6))
    a, b, c, d, e, f = [receipt for _, receipt, _, _ in w.ok("DQ.FETCH", "q", "COUNT", 6)]
    fill(server)
    long, short = "x" * (KIB64 + 1), "x" * KIB64
    before = w.ok("DEBUG", "DIGEST-VALUE", "q")
    for call in (
        ("DQ.ACK", "q", a, "RESULT", long),
        ("DQ.FETCH", "q", "ACK", 2, a, b, "RESULTS", 2, short, long),
        ("DQ.FETCH", "q", "BLOCK", 1, "ACK", 1, a, "RESULTS", 1, long),
        ("DQ.ACKSEND", "q", a, "RESULT", long, "NEXT", "q", "x"),
        ("DQ.ACKSEND", "q", a, "RESULT", short, "NEXT", "q", "x"),
    ):
        reply = w.call(*call)
        assert isinstance(reply, Error) and reply.startswith("OOM "), call
        assert w.ok("DEBUG", "DIGEST-VALUE", "q") == before
    assert w.ok("DQ.ACK", "q", a, "RESULT", short) == 1
    assert w.ok("DQ.FETCH", "q", "ACK", 2, b, c, "RESULTS", 2, short, "y") == []
    assert w.ok("DQ.ACK", "q", d) == 1
    assert w.ok("DQ.NACK", "q", e, "ERROR", "x" * 1_000_000) == 1
    server.client().config_set("maxmemory", 0)
    assert w.ok("DQ.ACK", "q", f, "RESULT", long) == 1
    assert w.ok("DQ.LEN", "q", "finished") == 5


def test_a_result_is_at_most_as_long_as_a_payload(make_server, key):
    q = Queue(make_server(**{"dq.max-payload": 100_000}).client(), key)
    q.do("CREATE", "RETAIN", 60_000)
    q.do("MSEND", 3, *"abc")
    a, b, c = [m.receipt for m in q.fetch("COUNT", 3)]
    for call in (
        ("ACK", a, "RESULT", "x" * 100_001),
        ("FETCH", "ACK", 2, a, b, "RESULTS", 2, "", "x" * 100_001),
        ("ACKSEND", a, "RESULT", "x" * 100_001, "NEXT", key, "x"),
    ):
        assert q.fails(*call) == "a result must be at most 100000 bytes long (dq.max-payload), not 100001"
    assert q.do("ACK", a, "RESULT", "x" * 100_000) == 1
    assert q.len() == 2


def test_a_tick_does_at_most_100_000_steps(server, key):
    q = Queue(server.client(socket_timeout=60), key)
    # The timer does not run between the commands of a transaction, and each command at most 512 steps.
    with q.client.pipeline(transaction=True) as pipe:
        for _ in range(13):
            pipe.execute_command("DQ.MSEND", key, 10_000, *["x"] * 10_000, "DELAY", 1)
        pipe.execute_command("DEBUG", "SLEEP", 0.01)
        pipe.execute_command("DQ.TICK", key)
        ticked = pipe.execute()[-1]
    assert as_map(ticked)["due"] == 100_000
    wait_for(lambda: q.len("ready") == 130_000, 30, "the rest")


def test_a_log_entry_of_too_many_steps_is_refused(make_server):
    # The last entry moves the clock of the server.
    q = Queue(make_server().client(), "q")
    far = 4_000_000_000_000
    q.do("SCHEDULE", "s", "EVERY", 1, "START", far, "PAYLOAD", "x")
    before = q.digest()
    for steps in (100_001, 2**32, 2**63, 2**64 - 1):
        error = q.fails("OP", log_entry((far + 600_000) * 1000, steps))
        assert error == f"the log entry names {steps} due events, and a slice takes at most 100000"
        assert q.digest() == before
    # Each of these steps is a fire.
    assert q.do("OP", log_entry((far + 600_000) * 1000, 100_000)) in (b"OK", "OK")
    assert q.len() == 100_000


def test_a_log_with_an_entry_of_any_number_of_steps_is_loaded(make_server):
    """The log is damaged, or from a primary that is not one's own."""
    server = make_server(appendonly="yes", aof_use_rdb_preamble="no")
    far = 4_000_000_000_000
    Queue(server.client(), "q").do("SCHEDULE", "s", "EVERY", 1, "START", far, "PAYLOAD", "x")
    server.stop()
    entry = log_entry((far + 600_000) * 1000, 2**64 - 1)
    (log,) = (server.dir / "appendonlydir").glob("*.incr.aof")
    with log.open("ab") as file:
        file.write(b"*3\r\n$5\r\nDQ.OP\r\n$1\r\nq\r\n$%d\r\n%s\r\n" % (len(entry), entry))
    server.start()
    assert Queue(server.client(), "q").len() == 100_000
    assert "a log entry could not be applied: DQ.TICK 'q': only 100000 of" in server.log()


def test_an_operation_of_several_entries_with_a_bad_one_does_nothing(replica_pair):
    primary, replica = replica_pair.primary, replica_pair.replica
    w = primary.wire()
    w.ok("DQ.MSEND", "q", 3, *"abc")
    now = int(time.time() * 1_000_000)
    good = log_entry(now + 1_000_000, 0)
    before = w.ok("DEBUG", "DIGEST-VALUE", "q")
    for bad in (b"", b"x", b"\xff" * 20, log_entry(now, 100_001)):
        for call in (("DQ.OP", "q", good, bad, good), ("DQ.OPS", "q", good, "q", bad)):
            assert isinstance(w.call(*call), Error)
            assert w.ok("DEBUG", "DIGEST-VALUE", "q") == before
    w.ok("SET", "other", "x")
    assert w.call("DQ.OPS", "q", good, "other", good).startswith("WRONGTYPE")
    assert w.ok("DEBUG", "DIGEST-VALUE", "q") == before
    # An entry that can be read and not applied: primary and replica continue with the next one.
    assert isinstance(w.call("DQ.OP", "q", log_entry(now, 50), good), Error)
    w.ok("WAIT", 1, 5000)
    assert w.ok("DEBUG", "DIGEST-VALUE", "q") == replica.wire().ok("DEBUG", "DIGEST-VALUE", "q")


def test_names_of_consumers_do_not_fill_the_memory(make_server):
    server = make_server()
    w = server.wire()
    w.ok("DQ.SEND", "q", "x")
    [[_, receipt, _, _]] = w.ok("DQ.FETCH", "q", "CONSUMER", "busy")
    before = server.client().info("memory")["used_memory"]
    fill(server)
    client = server.client()
    for batch in range(20):
        with client.pipeline(transaction=False) as pipe:
            for n in range(1000):
                pipe.execute_command("DQ.FETCH", "q", "CONSUMER", f"{batch * 1000 + n:01024}")
            pipe.execute()
    client.config_set("maxmemory", 0)
    assert client.info("memory")["used_memory"] - before < 6_000_000
    names = [as_map(one)["name"] for one in client.execute_command("DQ.CONSUMERS", "q")]
    assert len(names) <= 1025 and names[-1] == b"busy" and f"{19_999:01024}".encode() in names
    assert w.ok("DQ.ACK", "q", receipt) == 1


def skipped(server) -> int:
    return int(server.client().info("dq")["dq_skipped_fires"])


def test_schedules_do_not_fire_without_memory(make_server):
    server = make_server(appendonly="yes")
    client = server.client()
    q = Queue(client, "q")
    q.do("SCHEDULE", "fast", "EVERY", 5, "PAYLOAD", "x" * 10_000)
    q.do("SCHEDULE", "slow", "EVERY", 200, "PAYLOAD", "x")
    q.do("SEND", "leased", "ID", "leased", "LEASE", 100)
    wait_for(lambda: q.len() > 5, 10, "a firing")
    fill(server)
    sent = q.info()["sent"]
    begun = skipped(server)
    wait_for(lambda: skipped(server) > begun + 200, 20, "skipped firings")
    client.execute_command("DQ.TICK", "q")
    client.execute_command("DQ.TICK")
    assert q.info()["sent"] == sent
    # All other work continues.
    while True:
        got = q.fetch("COUNT", 100, "BLOCK", 100)
        if not got:
            break
        q.ack(*[m.receipt for m in got])
    assert q.len() == 0
    client.config_set("maxmemory", 0)
    wait_for(lambda: q.len() > 5, 10, "firings again")
    q.do("UNSCHEDULE", "fast")
    q.do("UNSCHEDULE", "slow")
    digest, count = q.digest(), skipped(server)
    server.restart(crash=True)
    assert Queue(server.client(), "q").digest() == digest
    assert skipped(server) == count


def test_a_manual_clock_passes_schedules_without_memory(make_server):
    server = make_server()
    q = Manual(server.client(), "q")
    q.do("SCHEDULE", "s", "EVERY", 10, "PAYLOAD", "x")
    q.send("late", "DELAY", 55)
    assert q.advance(20)["fired"] == 2
    fill(server)
    done = q.advance(40)
    assert (done["fired"], done["due"], q.len()) == (0, 1, 3)
    assert skipped(server) == 4
    server.client().config_set("maxmemory", 0)
    assert q.advance(10)["fired"] == 1
