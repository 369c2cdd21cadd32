"""Cost does not depend on the number of groups, on their length, or on how many are blocked.

It is measured in processor time of the server. The bounds are ratios between two queues on the same server in the same
test, wide enough for the effect of caches and far below the cost of a scan.
"""

import pytest

from tests.harness.replies import Queue, msgs
from tests.harness.wire import Error

pytestmark = pytest.mark.slow

# A scan of the large side would cost 100 to 1,000 times the small one.
RATIO = 12
ROUNDS = 3


def pipeline(server, commands):
    """Runs the commands in chunks; returns the replies."""
    out = []
    with server.wire() as w:
        for i in range(0, len(commands), 1000):
            chunk = commands[i : i + 1000]
            w.send_many(chunk)
            out += [w.recv() for _ in chunk]
    return out


def cost(server, commands):
    """Processor seconds of the server for these commands."""
    began = server.cpu_seconds()
    replies = pipeline(server, commands)
    assert not [reply for reply in replies if isinstance(reply, Error)]
    return server.cpu_seconds() - began


def least_cost(server, commands):
    """Processor seconds for one of these commands, which change nothing: the least of several rounds."""
    return min(cost(server, commands) for _ in range(ROUNDS)) / len(commands)


def loop_cost(server, key, n=1000):
    """Processor seconds for n times FETCH with ACK: the least of several rounds, as other programs disturb the caches."""
    return min(loop(server, key, n) for _ in range(ROUNDS))


def loop(server, key, n):
    with server.wire() as w:
        (m,) = msgs(w.ok("DQ.FETCH", key))
        began = server.cpu_seconds()
        for _ in range(n):
            (m,) = msgs(w.ok("DQ.FETCH", key, "ACK", 1, m.receipt))
        took = server.cpu_seconds() - began
        w.ok("DQ.NACK", key, m.receipt, "SILENT")
    return took


def sends(key, n, groups):
    return [("DQ.SEND", key, "x", "GROUP", f"g{i % groups}") for i in range(n)]


def test_cost_does_not_depend_on_the_number_of_groups(server, r3):
    few = cost(server, sends("few", 30_000, 10))
    many = cost(server, sends("many", 30_000, 30_000))
    assert many < few * RATIO
    assert loop_cost(server, "many") < loop_cost(server, "few") * RATIO


def test_cost_does_not_depend_on_the_length_of_a_group(server, r3):
    pipeline(server, sends("long", 50_000, 1))
    pipeline(server, sends("short", 5_000, 1))
    assert loop_cost(server, "long") < loop_cost(server, "short") * RATIO


def test_blocked_groups_do_not_make_a_fetch_expensive(server, r3):
    q = Queue(r3, "held")
    q.do("CREATE", "BACKOFF", "FIXED", 10**9)
    pipeline(server, [("DQ.SEND", "held", "x", "GROUP", f"h{i // 2}") for i in range(20_000)])
    while held := q.fetch("COUNT", 1000):
        q.nack(*[m.receipt for m in held])
    assert q.len("retry") == 10_000 and q.len("blocked") == 10_000
    pipeline(server, sends("held", 4000, 1))
    pipeline(server, sends("alone", 4000, 1))
    assert loop_cost(server, "held") < loop_cost(server, "alone") * RATIO


def test_a_long_group_does_not_delay_small_ones(server, r3):
    pipeline(server, [("DQ.SEND", "mix", "x", "GROUP", "big") for _ in range(30_000)])
    pipeline(server, [("DQ.SEND", "mix", f"s{i}", "GROUP", f"s{i}") for i in range(1000)])
    q = Queue(r3, "mix")
    seen = []
    while len(seen) < 1001:
        got = q.fetch("COUNT", 50)
        seen += [m.payload for m in got]
        q.ack(*[m.receipt for m in got])
    # The long group had about one message in each fetch, the small groups had the rest.
    assert sum(p != b"x" for p in seen) >= 1001 - 1001 // 50 - 2


def test_empty_groups_use_no_memory(server, r3):
    q = Queue(r3, "mem")
    q.do("CREATE")
    pipeline(server, sends("mem", 200, 200))
    q.ack(*[m.receipt for m in q.fetch("COUNT", 10000)])
    start = r3.execute_command("MEMORY", "USAGE", "mem", "SAMPLES", 0)
    for i in range(10):
        pipeline(server, [("DQ.SEND", "mem", "x", "GROUP", f"round{i}:{j}") for j in range(2000)])
        while got := q.fetch("COUNT", 10000):
            q.ack(*[m.receipt for m in got])
    assert q.info()["groups"] == 0
    grown = r3.execute_command("MEMORY", "USAGE", "mem", "SAMPLES", 0) - start
    # After 20,000 groups, spare capacity may remain, but nothing for each group.
    assert grown < 20_000 * 40, grown


def test_the_cost_of_explain_and_groups_does_not_depend_on_the_queue(server, r3):
    pipeline(server, sends("many", 30_000, 15_000))
    pipeline(server, sends("few", 100, 10))
    q = Queue(r3, "many")
    _, ids = q.do("LIST", "ready", "COUNT", 200, "IDS")
    big = least_cost(server, [("DQ.EXPLAIN", "many", id) for id in ids])
    _, ids = Queue(r3, "few").do("LIST", "ready", "COUNT", 100, "IDS")
    small = least_cost(server, [("DQ.EXPLAIN", "few", id) for id in ids])
    assert big < small * RATIO
    big = least_cost(server, [("DQ.GROUPS", "many")] * 200)
    small = least_cost(server, [("DQ.GROUPS", "few")] * 200)
    assert big < small * RATIO
