"""Measures the end of the last of very many children: the delay until their parent is due, and the cost of that
call.
"""

from statistics import median

from generator import Step
from report import Row
from workloads import MILLION, fill

from tests.harness.replies import Queue

SECTION = "The last of a million children of one parent ends"
KEPT = 600_000
"""How long the last child is kept after its end, in ms, so that its end can be read."""


def children(bench):
    """Returns rows of when the parent is due after its last child has ended, and how long that ack takes."""
    if not bench.wanted("children"):
        return []
    after, took = [], []
    with bench.server() as server:
        for number in range(bench.rounds):
            bench.say(f"children: round {number + 1} of {bench.rounds}")
            waited, micros = _last_end(bench, server, bench.scaled(MILLION))
            after.append(waited)
            took.append(micros / 1000)
    return [
        Row(SECTION, "the parent is due after that, ms", f"{max(after)} ms at most", "", max(after), "ms", at_most=0),
        Row(SECTION, "the ack of the last child", f"{median(took):.2f} ms", "", median(took), "ms", at_most=2),
    ]


def _last_end(bench, server, count):
    """Returns how many ms after the end of its last child the parent is due, and how many us that ack took."""
    server.empty()
    do = server.client.execute_command
    do("DQ.SEND", "parents", "x", "ID", "p", "CHILDREN", count)
    fill(bench, server, "DQ.SEND q {payload} PARENT parents p", count)
    most = (count - 1) // 100
    bench.generator.run(server, [Step("DQ.FETCH q COUNT 100", "receipts"), Step("DQ.ACK q {taken}")], most, pipeline=1)
    do("DQ.ALTER", "q", "RETAIN", KEPT)
    do("CONFIG", "SET", "slowlog-log-slower-than", 0)
    children = Queue(server.client, "q")
    while do("DQ.LEN", "q", "ready") or do("DQ.LEN", "q", "running"):
        [(last, receipt, *_)] = do("DQ.FETCH", "q")
        if not do("DQ.LEN", "parents", "held"):
            raise RuntimeError("the parent is due too early")
        do("DQ.ACK", "q", receipt)
        micros = next(entry["duration"] for entry in server.client.slowlog_get(5) if b"DQ.ACK" in entry["command"])
    do("CONFIG", "SET", "slowlog-log-slower-than", 10_000)
    ended = children.get(last.decode())["finished-at"]
    return Queue(server.client, "parents").get("p")["due-at"] - ended, micros
