"""Measures server CPU over several commands: a delayed message's whole life, and a small against a huge backlog."""

import time
from dataclasses import dataclass
from statistics import median

from bench import median_ratio
from generator import Step
from lua_design import LuaDesign
from report import Row
from workloads import FETCH_1_ACK_1, FETCH_10_ACK_10, HOURS, MILLION, fill

LIVES = 100_000
SHORTEST_DELAY, LONGEST_DELAY = 0.5, 1.5
DELAY = "{rand:500:1500}"


def whole_life(bench):
    """Measures a message that is sent with a delay, falls due, is fetched and acked.

    Returns rows that say how many times less CPU that takes than in the Lua design.
    """
    if not bench.wanted("life"):
        return []
    lua, single, tens = [], [], []
    with bench.server() as server:
        for number in range(bench.rounds):
            bench.say(f"whole life of a message: round {number + 1} of {bench.rounds}")
            lua.append(_lua_life(bench, server))
            single.append(_life(bench, server, Step(f"DQ.SEND q {{payload}} DELAY {DELAY}"), FETCH_1_ACK_1, 1))
            tens.append(_life(bench, server, Step(f"DQ.MSEND q 10 {{payload:10}} DELAY {DELAY}"), FETCH_10_ACK_10, 10))
    rows = []
    for what, ours, at_least in (
        ("send, fall due, fetch, ack: one by one", single, 10),
        ("send, fall due, fetch, ack: in tens", tens, 20),
    ):
        rows.append(
            Row(
                "Whole life of a delayed message, server CPU",
                what,
                f"{median(ours):.2f} us",
                f"{median(lua):.2f} us  Lua design, one by one",
                median_ratio(lua, ours),
                "times less",
                at_least=at_least,
            )
        )
    return rows


def _lua_life(bench, server):
    lives = bench.scaled(LIVES)
    design = LuaDesign(server)
    before = server.cpu()
    bench.generator.run(server, design.send, lives)
    design.promote()
    done = bench.generator.run(server, design.fetch_ack, lives)
    return _finish(server, before, done, lives)


def _life(bench, server, send, consume, batch):
    lives = bench.scaled(LIVES)
    before = server.cpu()
    bench.generator.run(server, [send], lives // batch)
    time.sleep(LONGEST_DELAY + 0.05)
    done = bench.generator.run(server, consume, lives // batch)
    return _finish(server, before, done, lives)


def _finish(server, before, done, lives):
    micros = (server.cpu() - before) * 1e6 / lives
    if done.taken < 0.99 * lives:
        raise RuntimeError(f"only {done.taken} of {lives} messages came out")
    server.empty()
    return micros


SMALL = 10_000
HUGE = 10_000_000


@dataclass
class Cycle:
    """Commands that leave the backlog as long as it was. `KEY` in them stands for the key.

    `at_most` is the limit of CPU with ten million messages divided by CPU with ten thousand, or None for a peer.
    """

    title: str
    steps: list[Step]
    batch: int = 1
    at_most: float | None = None


OURS = [
    Cycle(
        "SEND, FETCH, ACK",
        [Step("DQ.SEND KEY {payload}"), Step("DQ.FETCH KEY", "receipts"), Step("DQ.ACK KEY {taken}")],
        at_most=1.3,
    ),
    Cycle(
        "MSEND 10, FETCH COUNT 10 ACK 10",
        [Step("DQ.MSEND KEY 10 {payload:10}"), Step("DQ.FETCH KEY COUNT 10 [ ACK {count} {taken} ]", "receipts")],
        batch=10,
        at_most=1.3,
    ),
    Cycle(
        "SEND with a delay, CANCEL",
        [Step(f"DQ.SEND KEY {{payload}} DELAY {HOURS}", "bulk"), Step("DQ.CANCEL KEY {taken}")],
        at_most=1.3,
    ),
]

# The cost of keeping millions of entries in order of time in a sorted set, where only the insertion is at a random place.
IN_ORDER = [Cycle("sorted set: ZADD, ZPOPMIN", [Step(f"ZADD z:KEY {HOURS} {{uuid}}"), Step("ZPOPMIN z:KEY")])]


def backlog(bench):
    """Measures the same work in a queue of 10,000 and of 10,000,000 messages, half of them ready, half delayed."""
    if not bench.wanted("backlog"):
        return []
    cycles = [*OURS, *IN_ORDER]
    cpu = {}
    with bench.server() as server:
        bench.say("backlog: sending ten million messages, and half as many to the peer")
        for key, size in (("small", min(SMALL, bench.scaled(HUGE))), ("huge", bench.scaled(HUGE))):
            for due in ("", f" DELAY {HOURS}"):
                fill(bench, server, f"DQ.MSEND {key} 100 {{payload:100}}{due}", size // 2, batch=100, pipeline=8)
            for cycle in IN_ORDER:
                fill(bench, server, cycle.steps[0].template.replace("KEY", key), size // 2)
        for number in range(bench.rounds):
            bench.say(f"backlog: round {number + 1} of {bench.rounds}")
            for cycle in cycles:
                for key in ("small", "huge"):
                    own = [Step(step.template.replace("KEY", key), step.take) for step in cycle.steps]
                    messages = bench.scaled(MILLION // 5)
                    done = bench.generator.run(server, own, messages // cycle.batch)
                    cpu.setdefault((cycle.title, key), []).append(done.server_us / (done.taken or messages))
    return [
        Row(
            "10,000,000 messages in the queue against 10,000, server CPU a message",
            cycle.title,
            f"{median(cpu[cycle.title, 'huge']):.2f} us",
            f"{median(cpu[cycle.title, 'small']):.2f} us  with 10,000",
            median_ratio(cpu[cycle.title, "huge"], cpu[cycle.title, "small"]),
            at_most=cycle.at_most,
        )
        for cycle in cycles
    ]
