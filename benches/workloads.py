"""The commands that are measured, ours and the peers', with their preparation and the way in which messages are
counted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from generator import Step
from lua_design import LuaDesign

MILLION = 1_000_000
MANY_GROUPS = 100_000
HOURS = "{rand:3600000:7200000}"
"""A random delay or score of one to two hours: nothing falls due during the benchmark."""


@dataclass
class Workload:
    """Commands to measure.

    `prepare(bench, server, messages)` fills the keys, and returns the steps if they depend on the server.
    """

    name: str
    title: str
    steps: list[Step] = field(default_factory=list)
    messages: int = 300_000
    batch: int = 1
    prepare: Callable | None = None
    database: int = 0
    pipelines: tuple[int, ...] = (64, 16, 1)

    def takes(self):
        """Returns whether messages are counted by deliveries instead of by sends."""
        return any(step.take for step in self.steps)


def fill(bench, server, template, messages, batch=1, database=0, pipeline=64):
    """Sends `messages` messages without measuring it."""
    bench.generator.run(server, [Step(template)], messages // batch, pipeline=pipeline, db=database)


def fill_list(bench, server, messages):
    fill(bench, server, "LPUSH l {payload}", messages)


def fill_stream(bench, server, messages):
    fill(bench, server, "XADD x * f {payload}", messages)
    server.client.xgroup_create("x", "g", "0")


def fill_queue(bench, server, messages):
    fill(bench, server, "DQ.MSEND q 100 {payload:100}", messages + 99, batch=100, pipeline=8)


def lua_sends(bench, server, messages):
    return LuaDesign(server).send


def lua_ready(bench, server, messages):
    design = LuaDesign(server)
    bench.generator.run(server, design.send, messages)
    design.promote()
    return design.fetch_ack


def fill_beside(to_fetch):
    """Fills the queue with a million snoozed messages and 100,000 open breakers, and with messages that can be fetched."""

    def prepare(bench, server, messages):
        snoozed, broken = bench.scaled(MILLION), bench.scaled(MANY_GROUPS)
        fetch = Step("DQ.FETCH q COUNT 100", "receipts")
        server.client.execute_command("DQ.CREATE", "q", "RETRIES", -1, "BREAKER", 1, "PER", 1000, "OPEN", 7_200_000)
        fill_queue(bench, server, snoozed)
        bench.generator.run(server, [fetch, Step("DQ.NACK q {taken} SILENT DELAY 7200000")], snoozed // 100 + 1, pipeline=1)
        fill(bench, server, f"DQ.SEND q {{payload}} GROUP g{{seq:{broken}}}", broken)
        bench.generator.run(server, [fetch, Step("DQ.NACK q {taken} DELAY 7200000")], broken // 100 + 1, pipeline=1)
        counts = {name: server.client.execute_command("DQ.LEN", "q", name) for name in ("delayed", "blocked", "retry")}
        if counts["delayed"] < snoozed or counts["blocked"] + counts["retry"] < broken:
            raise RuntimeError(f"not what was to stand in the queue: {counts}")
        if to_fetch:
            fill_queue(bench, server, messages)

    return prepare


def fill_with_events(bench, server, messages):
    server.client.execute_command("DQ.CREATE", "q", "EVENTS", "events")
    fill_queue(bench, server, messages)


def fill_behind_limits(bench, server, messages):
    """Fills the queue with as many full limits as there may be groups, a message that waits for each, and messages
    that can be fetched.
    """
    limits = bench.scaled(MANY_GROUPS)
    server.client.execute_command("DQ.LIMIT", "q", "full-*", "CONCURRENCY", 1)
    for _ in ("one that runs", "one that waits"):
        fill(bench, server, f"DQ.SEND q {{payload}} LIMITS 1 full-{{seq:{limits}}}", limits)
        fill(bench, server, "DQ.FETCH q COUNT 100 LEASE 86400000", limits, batch=100, pipeline=1)
    if server.client.execute_command("DQ.LEN", "q", "running") != limits:
        raise RuntimeError("not every limit is full")
    fill_queue(bench, server, messages)


def group_options(groups):
    # Thousands of fetches are in flight. With fewer groups than that and one lease for each of them, most replies would
    # be empty.
    return ["GROUPCONCURRENCY", 100_000] if groups < 100_000 else []


def fill_groups(groups, to_fetch, *, at_random=False):
    def prepare(bench, server, messages):
        number = bench.scaled(groups)
        server.client.execute_command("DQ.CREATE", "q", *group_options(number))
        total = max(number, messages if to_fetch else 0)
        name = f"{{rand:0:{number - 1}}}" if at_random else f"{{seq:{number}}}"
        fill(bench, server, f"DQ.SEND q {{payload}} GROUP g{name}", total)

    return prepare


def fill_streams(streams):
    def prepare(bench, server, messages):
        number = bench.scaled(streams)
        fill(bench, server, f"XADD s{{seq:{number}}} * f {{payload}}", number)

    return prepare


def read_group(count, *, delete):
    steps = [
        Step(f"XREADGROUP GROUP g c{{conn}} COUNT {count} STREAMS x >", "entries"),
        Step("XACK x g {taken}"),
    ]
    return [*steps, Step("XDEL x {taken}")] if delete else steps


FETCH = [Step("DQ.FETCH q", "receipts")]
FETCH_ACK = [Step("DQ.FETCH q", "receipts"), Step("DQ.ACK q {taken}")]
FETCH_1_ACK_1 = [Step("DQ.FETCH q [ ACK {count} {taken} ]", "receipts")]
FETCH_10_ACK_10 = [Step("DQ.FETCH q COUNT 10 [ ACK {count} {taken} ]", "receipts")]

PEERS = [
    Workload("ping", "PING", [Step("PING")], messages=MILLION),
    Workload("set", "SET, new key", [Step("SET k:{uuid} {payload}")]),
    Workload("lpush", "LPUSH", [Step("LPUSH l {payload}")]),
    Workload("rpop", "RPOP", [Step("RPOP l")], prepare=fill_list),
    Workload("xadd", "XADD", [Step("XADD x * f {payload}")]),
    Workload("zadd", "ZADD, new member into 1M", [Step(f"ZADD z {HOURS} {{uuid}}")], messages=150_000, database=1),
    Workload("xread1", "XREADGROUP COUNT 1 + XACK", read_group(1, delete=False), 150_000, prepare=fill_stream),
    Workload(
        "xread1-xdel", "XREADGROUP COUNT 1 + XACK + XDEL", read_group(1, delete=True), 150_000, prepare=fill_stream
    ),
    Workload("xread10", "XREADGROUP COUNT 10 + XACK", read_group(10, delete=False), batch=10, prepare=fill_stream),
    Workload(
        "xread10-xdel", "XREADGROUP COUNT 10 + XACK + XDEL", read_group(10, delete=True), batch=10, prepare=fill_stream
    ),
    Workload("lua-send", "Lua design: send", [Step("EVALSHA")], 100_000, prepare=lua_sends),
    Workload("lua-fetch", "Lua design: fetch + GET + ack", [Step("EVALSHA", "bulk")], 100_000, prepare=lua_ready),
]

OURS = [
    Workload("send", "SEND, due now", [Step("DQ.SEND q {payload}")]),
    Workload(
        "send-delayed",
        "SEND, random delay into 1M delayed",
        [Step(f"DQ.SEND d {{payload}} DELAY {HOURS}")],
        messages=150_000,
        database=1,
    ),
    Workload("msend", "MSEND of 100", [Step("DQ.MSEND q 100 {payload:100}")], MILLION, batch=100),
    Workload("fetch-ack", "FETCH, ACK: two commands", FETCH_ACK, prepare=fill_queue),
    Workload("fetch1-ack1", "FETCH COUNT 1 ACK 1: one command", FETCH_1_ACK_1, prepare=fill_queue),
    Workload("fetch10-ack10", "FETCH COUNT 10 ACK 10: one command", FETCH_10_ACK_10, batch=10, prepare=fill_queue),
]

# The cost of a message that goes on to another step, in one command and in two.
GOING_ON = [
    Workload("fetch", "FETCH", FETCH, prepare=fill_queue, pipelines=(64,)),
    Workload(
        "acksend",
        "FETCH, ACKSEND",
        [*FETCH, Step("DQ.ACKSEND q {taken} NEXT q {payload}")],
        prepare=fill_queue,
        pipelines=(64,),
    ),
    Workload(
        "ack-send",
        "FETCH, ACK, SEND",
        [*FETCH_ACK, Step("DQ.SEND q {payload}")],
        prepare=fill_queue,
        pipelines=(64, 1),
    ),
]

# The commands of the rows above in a queue with EVENTS, and in queues in which very many other messages wait.
BESIDE = [
    Workload(
        "ack-send-events",
        "FETCH, ACK, SEND with EVENTS",
        [*FETCH_ACK, Step("DQ.SEND q {payload}")],
        prepare=fill_with_events,
        pipelines=(64, 1),
    ),
    Workload(
        "fetch-ack-limits",
        f"FETCH, ACK: two commands, beside {MANY_GROUPS:,} full limits",
        FETCH_ACK,
        prepare=fill_behind_limits,
        pipelines=(64,),
    ),
]
BESIDE += [
    Workload(
        f"{name}-beside",
        f"{title}, beside 1M snoozed and {MANY_GROUPS:,} open breakers",
        steps,
        prepare=fill_beside(to_fetch=name != "send"),
        pipelines=(64,),
    )
    for name, title, steps in (
        ("send", "SEND, due now", [Step("DQ.SEND q {payload}")]),
        ("fetch-ack", "FETCH, ACK: two commands", FETCH_ACK),
    )
]

GROUP_COUNTS = (1, 1_000, MANY_GROUPS, 1_000_000)

# The way in which users of streams keep the order of each group: they have one stream for each.
STREAMS = [
    Workload(
        f"xadd-streams-{streams}",
        f"XADD, {streams:,} stream{'s' * (streams > 1)}",
        [Step(f"XADD s{{rand:0:{streams - 1}}} * f {{payload}}")],
        prepare=fill_streams(streams),
        pipelines=(64,),
    )
    for streams in GROUP_COUNTS
]

GROUPED = [
    workload
    for groups in GROUP_COUNTS
    for workload in (
        Workload(
            f"send-groups-{groups}",
            f"SEND, {groups:,} group{'s' * (groups > 1)}",
            [Step(f"DQ.SEND q {{payload}} GROUP g{{rand:0:{groups - 1}}}")],
            prepare=fill_groups(groups, to_fetch=False),
            pipelines=(64,),
        ),
        Workload(
            f"fetch-ack-groups-{groups}",
            f"FETCH, ACK: two commands, {groups:,} group{'s' * (groups > 1)}",
            FETCH_ACK,
            prepare=fill_groups(groups, to_fetch=True),
            pipelines=(64,),
        ),
    )
]
# The rows above send to one group after the other, so that the data of a fetch is beside the data of the last one in
# memory. This one does not.
GROUPED.append(
    Workload(
        f"fetch-ack-random-groups-{MANY_GROUPS}",
        f"FETCH, ACK: two commands, {MANY_GROUPS:,} groups sent to at random",
        FETCH_ACK,
        prepare=fill_groups(MANY_GROUPS, to_fetch=True, at_random=True),
        pipelines=(64,),
    )
)


def prepare_millions(bench, server):
    """Fills database 1 for its workloads: a million members, a million delayed messages."""
    million = bench.scaled(MILLION)
    fill(bench, server, f"ZADD z {HOURS} {{uuid}}", million, database=1)
    fill(bench, server, f"DQ.SEND d {{payload}} DELAY {HOURS}", million, database=1)
