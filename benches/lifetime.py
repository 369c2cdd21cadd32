"""Server CPU over more than one command: the whole life of a delayed message, and a small against a huge backlog."""

import time
from statistics import median

from bench import median_ratio
from generator import Step
from lua_design import LuaDesign
from report import Row
from workloads import FETCH_1_ACK_1, FETCH_10_ACK_10, FIRST, HOURS, MILLION, fill

LIVES = 100_000
LONGEST_DELAY = 1.5
DELAY = "DELAY {rand:500:1500}"


def whole_life(bench):
    """Send with a delay, fall due, fetch, acknowledge: rows of how many times less CPU than the Lua design takes."""
    if not bench.wanted("life"):
        return []
    lua, single, tens, least = [], [], [], []
    with bench.server_with_floor() as server:
        for number in range(bench.rounds):
            bench.say(f"whole life of a message: round {number + 1} of {bench.rounds}")
            lua.append(_lua_life(bench, server))
            single.append(_life(bench, server, Step(f"DQ.SEND q {{payload}} {DELAY}"), FETCH_1_ACK_1, 1))
            tens.append(_life(bench, server, Step(f"DQ.MSEND q 10 {{payload:10}} {DELAY}"), FETCH_10_ACK_10, 10))
            least.append(_least_life(bench, server))
    rows = []
    for what, ours, at_least in (
        ("send, fall due, fetch, ack: one by one", single, 10),
        ("send, fall due, fetch, ack: in tens", tens, 20),
        ("the least of a module: keep in order, give", least, None),
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


def _least_life(bench, server):
    lives = bench.scaled(LIVES)
    before = server.cpu()
    fill(bench, server, "FLOOR.LATER o {rand:500:1500} {payload}", lives)
    done = bench.generator.run(server, [Step(FIRST, "receipts")], lives)
    return _finish(server, before, done, lives)


def _finish(server, before, done, lives):
    micros = (server.cpu() - before) * 1e6 / lives
    if done.taken < 0.99 * lives:
        raise RuntimeError(f"only {done.taken} of {lives} messages came out")
    server.empty()
    return micros


SMALL = 10_000
HUGE = 10_000_000

# Each cycle leaves the backlog as long as it was.
CYCLES = [
    (
        "SEND, FETCH, ACK",
        1,
        [Step("DQ.SEND KEY {payload}"), Step("DQ.FETCH KEY", "receipts"), Step("DQ.ACK KEY {taken}")],
    ),
    (
        "MSEND 10, FETCH COUNT 10 ACK 10",
        10,
        [Step("DQ.MSEND KEY 10 {payload:10}"), Step("DQ.FETCH KEY COUNT 10 [ ACK {count} {taken} ]", "receipts")],
    ),
    (
        "SEND with a delay, CANCEL",
        1,
        [Step(f"DQ.SEND KEY {{payload}} DELAY {HOURS}", "bulk"), Step("DQ.CANCEL KEY {taken}")],
    ),
]


def backlog(bench):
    """The same work beside 10,000 and beside 10,000,000 messages, half of them ready, half delayed."""
    if not bench.wanted("backlog"):
        return []
    cpu = {}
    with bench.server() as server:
        bench.say("backlog: sending ten million messages")
        for key, size in (("small", min(SMALL, bench.scaled(HUGE))), ("huge", bench.scaled(HUGE))):
            for due in ("", f" DELAY {HOURS}"):
                fill(bench, server, f"DQ.MSEND {key} 100 {{payload:100}}{due}", size // 2, batch=100, pipeline=8)
        for number in range(bench.rounds):
            bench.say(f"backlog: round {number + 1} of {bench.rounds}")
            for what, batch, steps in CYCLES:
                for key in ("small", "huge"):
                    own = [Step(step.template.replace("KEY", key), step.take) for step in steps]
                    done = bench.generator.run(server, own, bench.scaled(MILLION // 5) // batch)
                    cpu.setdefault((what, key), []).append(done.server_us / done.taken)
    return [
        Row(
            "10,000,000 messages in the queue against 10,000, server CPU a message",
            what,
            f"{median(cpu[what, 'huge']):.2f} us",
            f"{median(cpu[what, 'small']):.2f} us  with 10,000",
            median_ratio(cpu[what, "huge"], cpu[what, "small"]),
            at_most=1.3,
        )
        for what, _, _ in CYCLES
    ]
