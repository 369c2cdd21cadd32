"""The log: one entry for each operation, none for a command that changes nothing, and the state after the end of the
log is lost.
"""

import os

import pytest

from tests.harness.aof import commands, increments
from tests.harness.job_traffic import JobTraffic
from tests.harness.replies import Queue, digest, msgs
from tests.harness.server import wait_for

AOF = {"appendonly": "yes"}


def test_a_torn_log_loses_only_its_last_entry(make_server):
    server = make_server(**AOF)
    for cut in (1, 7, 20):
        q = Queue(server.client(), f"q{cut}")
        for n in range(10):
            q.send(n, "ID", n)
        server.kill9()
        [path] = increments(server)
        os.truncate(path, path.stat().st_size - cut)
        server.start()
        q = Queue(server.client(), f"q{cut}")
        assert q.len() == 9
        q.send("after", "ID", "after")
        server.restart(crash=True)
        q = Queue(server.client(), f"q{cut}")
        assert q.payloads("COUNT", 20) == [b"%d" % n for n in range(9)] + [b"after"]


@pytest.mark.slow
def test_a_torn_log_of_jobs_holds_whole_operations(make_server):
    """Events, letters to the queue of DEADTO, children, signals and reruns: one operation changes several keys, or none.

    `python -m tests.torture --fault jobs-torn-tail` cuts at every byte.
    """
    server = make_server(**AOF, **{"auto-aof-rewrite-percentage": 0})
    traffic = JobTraffic(server.client(), 5)
    [path] = increments(server)
    traffic.run(150)
    states = [(path.stat().st_size, traffic.held())]
    while len(states) < 12:
        before = len(commands(server))
        traffic.run(1)
        assert len(commands(server)) <= before + 1
        if path.stat().st_size > states[-1][0]:
            states.append((path.stat().st_size, traffic.held()))
    whole = path.read_bytes()
    server.kill9()
    for (begin, state), (end, _) in zip(states, states[1:]):
        for size in (begin + 1, (begin + end) // 2, end - 1):
            path.write_bytes(whole[:size])
            server.start()
            traffic.go_to(server.client())
            assert traffic.held() == state, size
            server.kill9()
    path.write_bytes(whole)
    server.start()


FAR = 600_000


def run(q, *options) -> int:
    """Sends a message and begins it. Returns its receipt."""
    q.send("x", "ID", "a", *options)
    return q.one("LEASE", FAR).receipt


def end_of_a_batch(q, *_):
    receipt = run(q, "BATCH", "b")
    q.send("all", "AFTER", "b")
    return ("ACK", receipt), (b"q",)


def acksend(q, *_):
    return ("ACKSEND", run(q), "NEXT", "d", "p" * 40, "NEXT", "e", "p" * 40, "NEXT", "q", "p" * 40), (b"q", b"d", b"e")


def acksend_to_itself(q, *_):
    return ("ACKSEND", run(q), "NEXT", "q", "1", "NEXT", "q", "3"), (b"q",)


def acksend_with_a_signal(q, d, _):
    d.send("y", "ID", "waits", "PARK")
    return ("ACKSEND", run(q), "SIGNAL", "d", "waits", "done"), (b"q", b"d")


def first_child(q, d, _):
    d.send("x", "ID", "p", "CHILDREN", 2)
    return ("SEND", "x", "PARENT", "d", "p"), (b"q", b"d")


def later_child(q, *_):
    first, _ = first_child(q, *_)
    q.do(*first)
    return first, (b"q",)


def end_of_a_child(q, d, _):
    d.send("x", "ID", "p", "CHILDREN", 1)
    return ("ACK", run(q, "PARENT", "d", "p")), (b"q", b"d")


def death(q, *_):
    q.do("CREATE", "RETRIES", 0, "DEADTO", "d")
    return ("NACK", run(q)), (b"q", b"d", b"q")


def limit(q, *_):
    for _ in range(2):
        q.send("x", "LIMITS", 1, "api")
    return ("LIMIT", "api", "CONCURRENCY", 1), (b"q",)


def signal(q, *_):
    q.send("x", "ID", "a", "PARK")
    return ("SIGNAL", "a"), (b"q",)


def rerun(q, *_):
    run(q)
    return ("SEND", "x", "ID", "a", "REPLACE", "RERUN"), (b"q",)


def park(q, *_):
    return ("NACK", run(q), "SILENT", "PARK"), (b"q",)


def effects(q, *_):
    return ("ACK", run(q), "APPLY", 2, "INCRBY", "d", 1, "RPUSH", "e", "x"), (b"q", b"d", b"e")


def effects_of_a_fetch(q, *_):
    return ("FETCH", "CONSUMER", "w", "TOKEN", "t", "ACK", 1, run(q), "APPLY", 1, "XADD", "d", 1, "f", "v"), (b"q", b"d", b"q")


def effects_of_an_acksend(q, *_):
    return ("ACKSEND", run(q), "APPLY", 1, "SET", "d", "v", "PX", FAR, "NEXT", "e", "p"), (b"q", b"e", b"d")


OPERATIONS = (
    *(end_of_a_batch, acksend, acksend_to_itself, acksend_with_a_signal, first_child, later_child, end_of_a_child, death),
    *(limit, signal, rerun, park, effects, effects_of_a_fetch, effects_of_an_acksend),
)


@pytest.mark.parametrize("prepare", OPERATIONS)
def test_an_operation_is_one_entry_and_a_torn_log_has_all_of_it_or_nothing(make_server, prepare):
    server = make_server(**AOF, **{"auto-aof-rewrite-percentage": 0})

    def held() -> list:
        return [digest(server.client(), key) for key in "qde"]

    call, keys = prepare(*(Queue(server.client(), key) for key in "qde"))
    [path] = increments(server)
    entries, begin, before = len(commands(server)), path.stat().st_size, held()
    Queue(server.client(), "q").do(*call)
    [entry] = commands(server)[entries:]
    assert (entry[0].upper(), *entry[1::2]) == (b"DQ.OPS", *keys) if len(keys) > 1 else entry[1] == b"q"
    after, whole = held(), path.read_bytes()
    for size in (begin + 1, (begin + len(whole)) // 2, len(whole) - 1, len(whole)):
        server.kill9()
        path.write_bytes(whole[:size])
        server.start()
        assert held() == (after if size == len(whole) else before), size
    assert after != before


def test_the_ack_of_a_fetch_that_must_wait_behind_others_is_in_the_log(make_server):
    server = make_server(**AOF)
    client = server.client()
    client.config_set("dq.tick-budget-us", 10)
    receipt = run(Queue(client, "q"))
    waiting = [server.wire(3) for _ in range(40)]
    for wire in waiting:
        wire.send("DQ.FETCH", "q", "BLOCK", 20_000)
    wait_for(lambda: client.info("clients")["blocked_clients"] == len(waiting), 20, "the clients to wait")
    with server.wire(3) as wire:
        # The first FETCH uses up the time in which the clients that wait are served.
        wire.send_many([("DQ.MSEND", "q", 45, *("y" * 45)), ("DQ.FETCH", "q"), ("DQ.FETCH", "q", "ACK", 1, receipt, "BLOCK", 20_000)])
        assert len(wire.recv()) == 45 and wire.recv() and wire.recv()
    assert Queue(client, "q").get("a") is None
    server.restart(crash=True)
    assert Queue(server.client(), "q").get("a") is None


@pytest.mark.parametrize("how", ["transaction", "script"])
def test_an_operation_on_several_queues_is_replicated_with_its_transaction(replica_pair, how):
    client = replica_pair.primary.client()
    receipt = run(Queue(client, "q"))
    if how == "transaction":
        pipe = client.pipeline()
        pipe.execute_command("DQ.SEND", "e", "x")
        pipe.execute_command("DQ.ACKSEND", "q", receipt, "NEXT", "d", "p", "NEXT", "e", "p")
        pipe.execute()
    else:
        script = "return redis.call('DQ.ACKSEND', KEYS[1], ARGV[1], 'NEXT', KEYS[2], 'p', 'NEXT', KEYS[3], 'p')"
        assert len(client.eval(script, 3, *"qde", receipt)) == 2
    replica_pair.assert_same(*"qde")


def test_what_time_ends_in_one_queue_and_changes_in_others_is_in_the_log(make_server):
    """More than one slice of the timer."""
    server = make_server(**AOF)
    p, c, s = (Queue(server.client(), key) for key in "pcs")
    p.send("x", "ID", "p", "CHILDREN", 300)
    c.do("CREATE", "TTL", 50)
    for n in range(300):
        c.send(n, "PARENT", "p", "p", "ONDEAD", "GO")
    s.do("CREATE", "RETRIES", 0, "LEASE", 50, "DEADTO", "d")
    s.do("MSEND", 300, *range(300))
    s.do("FETCH", "COUNT", 200)
    s.do("FETCH", "COUNT", 100, "NOACK")
    wait_for(lambda: p.state("p") == "ready" and Queue(s.client, "d").len() == 200, 20, "the parent and the letters")
    before = [digest(server.client(), key) for key in "pcsd"]
    server.restart(crash=True)
    assert [digest(server.client(), key) for key in "pcsd"] == before


def records(server, work):
    """The commands that `work` appends to the AOF."""
    before = len(commands(server))
    work()
    return [c[0].upper() for c in commands(server)[before:]]


def test_one_operation_is_one_log_entry(make_server):
    server = make_server(**AOF)
    c = server.client()
    q = Queue(c, "q")
    m = {}

    def fetch(*options):
        m["receipts"] = [x.receipt for x in q.fetch(*options)]

    work = {
        "create": lambda: q.do("CREATE", "RETRIES", 5, "LEASE", 60000),
        "send": lambda: q.send("x", "ID", "a", "DELAY", 5000, "TYPE", "t"),
        "msend": lambda: q.do("MSEND", 100, *range(100)),
        "fetch": lambda: fetch("COUNT", 50, "CONSUMER", "c"),
        "ack": lambda: q.ack(*m["receipts"][:10]),
        "nack": lambda: q.nack(*m["receipts"][10:20]),
        "touch": lambda: q.touch(70000, *m["receipts"][20:30]),
        "fetch and ack": lambda: q.fetch("COUNT", 5, "ACK", 3, *m["receipts"][20:23]),
        "noack": lambda: q.fetch("NOACK", "COUNT", 3),
        "cancel": lambda: q.do("CANCEL", "a"),
        "mfetch": lambda: c.execute_command("DQ.MFETCH", 2, "nothing", "q"),
        "alter": lambda: q.do("ALTER", "LEASE", 50000),
        "pause": lambda: q.do("PAUSE", "FOR", 60000),
        "resume": lambda: q.do("RESUME"),
        "fatal": lambda: q.nack(m["receipts"][40], "FATAL"),
        "redrive": lambda: q.do("REDRIVE", "ALL"),
        "purge": lambda: q.do("PURGE"),
    }
    for name, do in work.items():
        # In the millisecond of the change before, some commands are replicated verbatim.
        verbatim = {"ack": b"DQ.ACK", "fetch": b"DQ.FETCH", "fetch and ack": b"DQ.FETCH", "noack": b"DQ.FETCH"}
        assert records(server, do) in ([b"DQ.OP"], [verbatim.get(name)]), name


def test_an_operation_without_effect_writes_no_log_entry(make_server):
    server = make_server(**AOF)
    q = Queue(server.client(), "q")
    q.send("x", "ID", "a")
    q.one("LEASE", 60000)

    def nothing():
        q.fetch()
        q.ack(5)
        q.nack(5)
        assert q.do("ACKSEND", 5, "NEXT", "d", "1") is None
        assert q.do("SIGNAL", "nobody") == 0
        q.touch(5, 5)
        q.do("CANCEL", "unknown")
        q.do("UPDATE", "unknown", "x")
        q.get("a")
        q.info()
        q.peek()
        q.fails("SEND", "x", "DELAY", "soon")

    assert records(server, nothing) == []


def test_deliveries_to_waiters_and_timers_write_no_transaction(make_server):
    server = make_server(**AOF)
    q = Queue(server.client(), "q")
    q.do("CREATE", "LEASE", 60_000, "RETRIES", 1, "TTL", 60_000)
    waiters = [server.wire() for _ in range(4)]
    for n, w in enumerate(waiters):
        w.send("DQ.FETCH", "q", "BLOCK", 0)
        # Commands on several connections at once may be read in any order.
        server.wait_blocked(n + 1)
    sent = records(server, lambda: q.send("now"))
    assert sent[0] in (b"DQ.OP", b"DQ.SEND") and sent[1:] in ([b"DQ.OP"], [b"DQ.OP"] * 2)
    [m] = msgs(waiters[0].recv())
    assert q.ack(m.receipt) == 1
    q.do("ALTER", "LEASE", 30)
    q.do("MSEND", 3, *"abc", "DELAY", 40)
    for w in waiters[1:]:
        assert msgs(w.recv())
    wait_for(lambda: q.len("running") == 0, 20, "the leases' end")
    # Several waiters of one queue, one of another, and a FETCH behind them, all read at once.
    for name in "pr":
        Queue(server.client(), name).do("CREATE")
    waiters = [server.wire() for _ in range(4)]
    for n, w in enumerate(waiters):
        w.send("DQ.FETCH", "prrr"[n : n + 1], "BLOCK", 0)
    server.wait_blocked(4)
    # All waiters are served in one slice, even on a busy machine.
    server.client().config_set("dq.tick-budget-us", 1_000_000)
    with server.wire() as w:
        w.send_many([("DQ.MSEND", "r", 4, *"abcd"), ("DQ.SEND", "p", "a"), ("DQ.FETCH", "r"), ("DQ.FETCH", "p")])
        assert [len(w.recv()) for _ in range(4)][2:] == [1, 0]
    assert all(msgs(w.recv()) for w in waiters)
    assert {c[0].upper() for c in commands(server)} <= {b"DQ.OP", b"DQ.ACK", b"DQ.SEND", b"DQ.FETCH"}


def test_a_transaction_of_a_client_is_logged_as_one(make_server):
    server = make_server(**AOF)
    c = server.client()

    def transaction():
        with c.pipeline(transaction=True) as pipe:
            pipe.execute_command("DQ.SEND", "a", "x")
            pipe.execute_command("DQ.SEND", "b", "x")
            pipe.execute()

    assert records(server, transaction) == [b"MULTI", b"DQ.OP", b"DQ.OP", b"EXEC"]


def test_receipts_grow_over_a_crash_that_lost_the_last_writes(make_server):
    server = make_server(**AOF)
    q = Queue(server.client(), "q")
    q.do("MSEND", 20, *range(20))
    size = increments(server)[0].stat().st_size
    lost = [m.receipt for m in q.fetch("COUNT", 20)]
    server.kill9()
    os.truncate(increments(server)[0], size)
    server.start()
    q = Queue(server.client(), "q")
    assert q.ack(*lost) == 0
    again = [m.receipt for m in q.fetch("COUNT", 20)]
    assert len(again) == 20 and again[0] > lost[-1]
    assert q.ack(*lost) == 0
