"""How the cost of a command grows with each size that a client chooses, against what docs/commands.md says (Costs).

    python -m tests.load.costs [--rows REGEX]

Each row measures a command at a size and at eight times that size: three doublings. A cost that the page calls linear
may grow eightfold, and one that does not depend on the size, hardly. Caches and tables grow, too, so three times that is
allowed. The processor time of the server counts, and the least of several, so other programs hardly matter. The program
fails if a row grows faster.
"""

import argparse
import json
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.harness.wire import Error
from tests.load.server import TimedServer

FAR = 86_400_000
TIMES = 7
# A row that grows too fast is measured again: other programs may have had the caches. What grows by itself does so again.
REPEATS = 3
GROWN = 8
CALLS = count()
# In a command these stand for the dump of the queue, for the receipt of a message that was just fetched, and for a number
# that differs in each call.
DUMP, RECEIPT, ROUND = object(), object(), object()
# The part that does not depend on the size: to read a command and to reply.
FLOOR_US = 40


@dataclass
class Cost:
    """How the cost of a command grows with a size: as the size (1), or not at all (0)."""

    # The first column of the table on the page.
    chosen: str
    name: str
    command: Callable
    size: int
    grows: int = 1
    before: Callable = lambda n: []

    @property
    def title(self) -> str:
        return f"{self.chosen}: {self.name}"


def each(*words):
    """The command with `{}` replaced by each number below the size."""
    return lambda n: [[str(word).replace("{}", str(i)) for word in words] for i in range(n)]


def many(n, *options):
    """The commands that send n messages."""
    return [["DQ.MSEND", "q", min(n - at, 1000), *["x"] * min(n - at, 1000), *options] for at in range(0, n, 1000)]


def one(*words):
    return lambda n: list(words)


def patterns(make):
    return lambda n: [["DQ.LIMIT", "q", make(i), "CONCURRENCY", 5] for i in range(1, n + 1)]


def counted(n):
    """The commands after which the window of a limit has counted deliveries in n milliseconds."""
    begin = [["DQ.CREATE", "q", "CLOCK", "MANUAL"], ["DQ.LIMIT", "q", "l", "RATE", FAR, "PER", FAR, "WEIGHT"]]
    one = [["DQ.SEND", "q", "x", "LIMITS", 1, "l"], ["DQ.FETCH", "q", "NOACK"], ["DQ.TICK", "q", "ADVANCE", 1]]
    return [*begin, *one * n]


def a(n):
    return "a" * n


def eight_names(n):
    """A SEND with eight names of 1 KB. They are others in each call, because a queue remembers the last ones."""
    return ["DQ.SEND", "q", "x", "LIMITS", 8, *(f"{a(500)}b{a(500)}{i}{next(CALLS):07}" for i in range(8))]


def fields(n):
    return json.dumps({f"k{i}": 1 for i in range(n)})


def pushed(make, paths):
    return lambda n: ["DQ.GROUPPUSH", "q", make(n), "GROUPBY", len(paths(n)), *paths(n)]


SENT = ["DQ.SEND", "q", "x", "ID", "m", "PARK"]

BYTES = "payload, headers, RESULT, ERROR, NOTE, DATA"
MANY = "messages, receipts, ids, keys or COUNT of one command"
JSON = "JSON of GROUPPUSH, its paths"
NAMES = "names of LIMITS"
PATTERNS = "patterns of DQ.LIMIT"
SET = "DQ.LIMIT with a pattern"
OTHERS = "groups, rules of limits, batches, children, schedules of a queue"
WAITING = "messages that wait for a limit, a batch, children or a signal"
FIND = "patterns of DQ.FIND"
CRON = "cron rules"
LOAD = "RESTORE, restart, full synchronisation"
ALTER = "options of DQ.ALTER"
WINDOWS = "deliveries that a RATE of DQ.LIMIT counts"
MEMORY = "MEMORY USAGE and INFO dq"
SLICES = "messages of DQ.PURGE and DQ.REDRIVE"
DUE = "due events"

COSTS = [
    Cost(BYTES, "SEND, payload", lambda n: ["DQ.SEND", "q", a(n)], 64_000),
    Cost(BYTES, "SEND, headers", lambda n: ["DQ.SEND", "q", "x", "HEADERS", n, *(f"h{i}" for i in range(2 * n))], 16),
    Cost(BYTES, "GET, payload", one("DQ.GET", "q", "m"), 64_000, 1, lambda n: [["DQ.SEND", "q", a(n), "ID", "m"]]),
    Cost(BYTES, "SIGNAL", lambda n: ["DQ.SIGNAL", "q", "m", "DATA", a(n)], 8_000, 1, one(SENT)),
    Cost(MANY, "MSEND", lambda n: ["DQ.MSEND", "q", n, *["x"] * n], 250),
    Cost(MANY, "FETCH", lambda n: ["DQ.FETCH", "q", "COUNT", n], 250, 1, lambda n: many(TIMES * n)),
    Cost(MANY, "MFETCH, keys", lambda n: ["DQ.MFETCH", n, *(f"q{i}" for i in range(n))], 60),
    Cost(MANY, "ACK, stale receipts", lambda n: ["DQ.ACK", "q", *range(1, n + 1)], 250, 1, one(SENT)),
    Cost(MANY, "CANCEL, ids", lambda n: ["DQ.CANCEL", "q", *(f"i{i}" for i in range(n))], 250, 1, one(SENT)),
    Cost(
        MANY,
        "ACKSEND, messages that follow",
        lambda n: ["DQ.ACKSEND", "q", RECEIPT, *["NEXT", "r", "x"] * n],
        15,
        1,
        lambda n: many(TIMES),
    ),
    Cost(MANY, "LIST", lambda n: ["DQ.LIST", "q", "ready", "COUNT", n], 250, 1, many),
    Cost(JSON, "bytes", pushed(lambda n: json.dumps({"x": a(n), "a": 1}), lambda n: ["a"]), 16_000),
    Cost(JSON, "depth", pushed(lambda n: '{"x":' + "[" * n + "]" * n + ',"a":1}', lambda n: ["a"]), 15),
    Cost(JSON, "escapes", pushed(lambda n: '{"x":"' + "\\u00e4\\n" * n + '","a":1}', lambda n: ["a"]), 4_000),
    Cost(
        JSON,
        "a field that comes again",
        pushed(
            lambda n: '{"a":{"k0":1},' + '"a":{},' * n + f'"a":{fields(n // 16)}}}',
            lambda n: [f"/a/k{i}" for i in range(n // 16)],
        ),
        1_000,
    ),
    Cost(JSON, "paths", pushed(fields, lambda n: [f"k{i}" for i in range(n)]), 60),
    Cost(NAMES, "bytes", lambda n: ["DQ.SEND", "q", "x", "LIMITS", 1, a(n)], 128),
    Cost(NAMES, "names", lambda n: ["DQ.SEND", "q", "x", "LIMITS", n, *(f"n{i}" for i in range(n))], 1),
    Cost(PATTERNS, "text behind the star", eight_names, 120, 0, patterns(lambda i: f"*{a(i)}c")),
    Cost(PATTERNS, "text before the star", eight_names, 120, 0, patterns(lambda i: f"{a(i)}*c")),
    Cost(PATTERNS, "text on both sides", eight_names, 120, 0, patterns(lambda i: f"{a(i // 2)}*{a(i // 2)}c")),
    Cost(PATTERNS, "text between two stars", eight_names, 120, 1, patterns(lambda i: f"*x{i}*")),
    Cost(
        PATTERNS,
        "several stars, all found but the last",
        eight_names,
        120,
        1,
        patterns(lambda i: f"*{a(i % 9)}*ab{a(i % 31)}*{i}*"),
    ),
    Cost(
        PATTERNS,
        "several stars, all found but the last, behind many beginnings",
        eight_names,
        120,
        1,
        patterns(lambda i: f"{a(i % 500)}*a*aa*aaa*{i}*"),
    ),
    Cost(
        PATTERNS,
        "parts that end in each other",
        eight_names,
        2,
        1,
        patterns(lambda i: f"*{a(i)}*c*"),
    ),
    Cost(PATTERNS, "stars", eight_names, 30, 1, lambda n: [["DQ.LIMIT", "q", "*a" * n + "*c*", "CONCURRENCY", 5]]),
    Cost(SET, "names", one("DQ.LIMIT", "q", "n*", "CONCURRENCY", 5), 1000, 1, each("DQ.LIMIT", "q", "n{}", "CONCURRENCY", 5)),
    Cost(SET, "patterns", one("DQ.LIMIT", "q", "n*", "CONCURRENCY", 5), 120, 1, patterns(lambda i: f"*x{i}*{i}")),
    Cost(
        OTHERS, "SEND, rules", one("DQ.SEND", "q", "x", "LIMITS", 1, "n"), 1000, 0, each("DQ.LIMIT", "q", "n{}", "CONCURRENCY", 5)
    ),
    Cost(OTHERS, "SEND, groups", one("DQ.SEND", "q", "x", "GROUP", "g"), 1000, 0, each("DQ.SEND", "q", "x", "GROUP", "g{}")),
    Cost(OTHERS, "SEND, batches", one("DQ.SEND", "q", "x", "AFTER", "b0"), 1000, 0, each("DQ.SEND", "q", "x", "BATCH", "b{}")),
    Cost(
        OTHERS,
        "SEND, children",
        one("DQ.SEND", "q", "x", "PARENT", "q", "p"),
        1000,
        0,
        lambda n: [["DQ.SEND", "q", "x", "ID", "p", "CHILDREN", FAR], *many(n, "PARENT", "q", "p")],
    ),
    Cost(
        OTHERS,
        "SCHEDULE, schedules",
        one("DQ.SCHEDULE", "q", "s", "EVERY", FAR, "PAYLOAD", "x"),
        1000,
        0,
        each("DQ.SCHEDULE", "q", "s{}", "EVERY", FAR, "PAYLOAD", "x"),
    ),
    Cost(
        OTHERS,
        "FETCH, held groups",
        one("DQ.FETCH", "q"),
        1000,
        0,
        lambda n: [*each("DQ.SEND", "q", "x", "GROUP", "g{}")(n), ["DQ.FETCH", "q", "COUNT", n]],
    ),
    Cost(
        OTHERS,
        "EXPLAIN, a long group",
        one("DQ.EXPLAIN", "q", "last"),
        1000,
        0,
        lambda n: [*many(n, "GROUP", "g"), ["DQ.SEND", "q", "x", "GROUP", "g", "ID", "last"]],
    ),
    Cost(OTHERS, "INFO, groups", one("DQ.INFO", "q"), 1000, 0, each("DQ.SEND", "q", "x", "GROUP", "g{}")),
    Cost(
        WAITING,
        "FETCH, one full limit",
        one("DQ.FETCH", "q"),
        1000,
        0,
        lambda n: [["DQ.LIMIT", "q", "full", "CONCURRENCY", 1], *many(n, "LIMITS", 1, "full"), ["DQ.FETCH", "q"]],
    ),
    Cost(
        WAITING,
        "FETCH, groups at a full limit",
        one("DQ.FETCH", "q"),
        1000,
        0,
        lambda n: [
            ["DQ.LIMIT", "q", "full", "CONCURRENCY", 1],
            *each("DQ.SEND", "q", "x", "GROUP", "g{}", "LIMITS", 1, "full")(n),
            ["DQ.FETCH", "q"],
        ],
    ),
    Cost(
        WAITING,
        "FETCH, full limits",
        one("DQ.FETCH", "q"),
        1000,
        0,
        lambda n: [
            ["DQ.LIMIT", "q", "n*", "CONCURRENCY", 1],
            *each("DQ.MSEND", "q", 2, "x", "y", "LIMITS", 1, "n{}")(n),
            ["DQ.FETCH", "q", "COUNT", n],
        ],
    ),
    Cost(WAITING, "PURGE of a group, parked", one("DQ.PURGE", "q", "GROUP", "g"), 1000, 0, lambda n: many(n, "PARK")),
    Cost(WAITING, "FETCH, parked", one("DQ.FETCH", "q"), 1000, 0, lambda n: many(n, "PARK")),
    Cost(
        WAITING,
        "FETCH, held by a batch",
        one("DQ.FETCH", "q"),
        1000,
        0,
        lambda n: [["DQ.SEND", "q", "x", "BATCH", "b", "DELAY", FAR], *many(n, "AFTER", "b")],
    ),
    Cost(FIND, "stars", lambda n: ["DQ.FIND", "q", "ready", "PAYLOAD", "*a" * n + "*b"], 16, 1, one(["DQ.SEND", "q", a(4000)])),
    Cost(FIND, "text", one("DQ.FIND", "q", "ready", "PAYLOAD", "*a*[ab]a*a*b"), 6_000, 1, lambda n: [["DQ.SEND", "q", a(n)]]),
    Cost(FIND, "part", lambda n: ["DQ.FIND", "q", "ready", "PAYLOAD", f"*{'[ab]' * n}c*"], 30, 1, one(["DQ.SEND", "q", a(4000)])),
    Cost(
        CRON, "hardly ever fires", lambda n: ["DQ.SCHEDULE", "q", "s", "CRON", "0 0 29 2 " + ",".join("1" * n), "PAYLOAD", "x"], 8
    ),
    Cost(
        LOAD,
        "names and patterns",
        one("RESTORE", "r", 0, DUMP, "REPLACE"),
        125,
        1,
        lambda n: [
            *patterns(lambda i: f"*{a(i % 50)}b{i:04}")(n),
            *each("DQ.LIMIT", "q", a(50) + "{}", "CONCURRENCY", 5)(20 * n),
        ],
    ),
    Cost(ALTER, "TTL", one("DQ.ALTER", "q", "TTL", ROUND), 1000, 1, lambda n: [["DQ.CREATE", "q", "CLOCK", "MANUAL"], *many(n)]),
    Cost(
        ALTER,
        "GROUPCONCURRENCY",
        one("DQ.ALTER", "q", "GROUPCONCURRENCY", ROUND),
        1000,
        1,
        each("DQ.SEND", "q", "x", "GROUP", "g{}"),
    ),
    Cost(ALTER, "another", one("DQ.ALTER", "q", "MAXRUNNING", ROUND), 1000, 0, each("DQ.SEND", "q", "x", "GROUP", "g{}")),
    Cost(WINDOWS, "COST of all", one("DQ.SEND", "q", "x", "LIMITS", 1, "l", "COST", FAR), 1000, 1, counted),
    Cost(WINDOWS, "COST of 1", one("DQ.SEND", "q", "x", "LIMITS", 1, "l"), 1000, 0, counted),
    Cost(
        SLICES,
        "PURGE of a group",
        one("DQ.PURGE", "q", "GROUP", ROUND),
        500,
        1,
        lambda n: [command for i in range(1, TIMES + 1) for command in many(n, "GROUP", i)],
    ),
    Cost(
        SLICES,
        "REDRIVE",
        lambda n: ["DQ.REDRIVE", "q", "ALL", "COUNT", n],
        500,
        1,
        lambda n: [["DQ.CREATE", "q", "CLOCK", "MANUAL"], *many(TIMES * n, "TTL", 1), ["DQ.TICK", "q", "ADVANCE", FAR]],
    ),
    Cost(MEMORY, "groups with settings", one("INFO", "dq"), 1000, 1, each("DQ.GROUPSET", "q", "g{}", "WEIGHT", 2)),
    Cost(MEMORY, "messages", one("INFO", "dq"), 1000, 0, many),
    Cost(
        DUE,
        "TICK, dead letters",
        one("DQ.TICK", "q", "ADVANCE", 1000),
        500,
        1,
        lambda n: [
            ["DQ.CREATE", "q", "CLOCK", "MANUAL", "DEADTO", "dead"],
            *(m for i in range(TIMES) for m in many(n, "TTL", 500 + 1000 * i)),
        ],
    ),
    Cost(
        DUE,
        "TICK",
        one("DQ.TICK", "q", "ADVANCE", 1000),
        500,
        1,
        lambda n: [["DQ.CREATE", "q", "CLOCK", "MANUAL"], *(m for i in range(TIMES) for m in many(n, "DELAY", 500 + 1000 * i))],
    ),
]


class Costs:
    """The rows, measured on one server."""

    def __init__(self, costs):
        self.costs = costs

    def rows(self):
        """Each row as it is measured: its title, both times in us, and whether it grows no faster than it may."""
        with closing(TimedServer().start()) as server, server.wire(2, timeout=60) as wire:
            for cost in self.costs:
                for _ in range(REPEATS):
                    small, large = (least(server, wire, cost, cost.size * times) for times in (1, GROWN))
                    is_good = large <= 3 * max(small, FLOOR_US) * GROWN**cost.grows
                    if is_good:
                        break
                yield cost.title, small, large, is_good


def least(server, wire, cost, n) -> int:
    """The least time in us that the server takes for a call with this size."""
    wire.ok("FLUSHALL")
    before = cost.before(n)
    for at in range(0, len(before), 500):
        some = before[at : at + 500]
        wire.send_many(some)
        replies = [wire.recv() for _ in some]
        wrong = [reply for reply in replies if isinstance(reply, Error)]
        assert not wrong, (cost.title, wrong[0])
    taken = []
    for i in range(TIMES):
        stands_for = {ROUND: lambda i=i: i + 1, RECEIPT: lambda: wire.ok("DQ.FETCH", "q")[0][1], DUMP: lambda: wire.ok("DUMP", "q")}
        command = [stands_for[word]() if word in stands_for else word for word in cost.command(n)]
        cpu = cpu_us(server)
        wire.ok(*command)
        taken.append(cpu_us(server) - cpu)
    return min(taken)


def cpu_us(server) -> int:
    """The processor time of the server's main thread so far."""
    return int(Path(f"/proc/{server.pid}/task/{server.pid}/schedstat").read_text().split()[0]) // 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="", help="a regular expression of the rows to measure")
    wanted = re.compile(parser.parse_args().rows)
    failed = False
    for title, small, large, is_good in Costs([cost for cost in COSTS if wanted.search(cost.title)]).rows():
        failed |= not is_good
        print(f"{small:8,} us {large:8,} us  {title}{'' if is_good else '   GROWS FASTER THAN THE PAGE SAYS'}", flush=True)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
