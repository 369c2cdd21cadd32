#!/usr/bin/env python3
"""Counts the instructions of commands, of the server and its modules together; needs valgrind, and some minutes.

    benches/instructions.py [--rows REGEX] [--module PATH] [--redis-server PATH] [--generator PATH]

Instructions do not show what waiting for memory costs, but they are the same on a busy machine and on a quiet one.
`make bench-instructions` builds what it needs and runs it. `make bench` copies the last table into the page it writes.
"""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import Bench, parser
from generator import Generator
from report import Row, summary, targets
from server import Server
from throughput import ALL, COSTLESS, GOES_ON, LOGGED, OVER_GROUPS, PLAIN
from workloads import prepare_millions

MESSAGES = 20_000
BACKLOG = 100_000
"""This number is used instead of a million, because filling takes ten times as long under valgrind."""
WORKLOADS = {workload.name: workload for workload in ALL}
FEW_GROUPS = [pair for pair in OVER_GROUPS if not pair.ours.endswith("1000000")]
"""The comparisons whose groups are not more than the messages of the backlog."""
TOTAL = re.compile(r"^totals: (\d+)", re.MULTILINE)


@dataclass
class Fewer(Bench):
    """A benchmark with smaller backlogs."""

    def scaled(self, count):
        return min(count, BACKLOG)


class Counter:
    """A server under callgrind, whose instructions are counted during `count`."""

    def __init__(self, bench, aof):
        self._out = Path(tempfile.mkdtemp(prefix="dq-count-"))
        under = ["valgrind", "--tool=callgrind", "--quiet", "--instr-atstart=no"]
        under.append(f"--callgrind-out-file={self._out}/count")
        self.server = Server(bench.binary, [bench.module], aof=aof, under=under)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.__exit__()
        shutil.rmtree(self._out, ignore_errors=True)

    def count(self, work):
        """Calls `work`. Returns how many instructions the server took meanwhile, and what `work` returned."""
        self._tell("--instr=on")
        done = work()
        self._tell("--instr=off")
        self._tell("--dump=now")
        (dump,) = self._out.glob("count.*")
        found = TOTAL.search(dump.read_text())
        dump.unlink()
        return int(found[1]), done

    def _tell(self, what):
        subprocess.run(["callgrind_control", what, str(self.server.pid)], check=True, capture_output=True)


def measure(bench, comparisons, aof):
    """Returns the instructions a message of each workload, by its name."""
    names = {name for pair in comparisons for name in pair.names()}
    workloads = [workload for name, workload in WORKLOADS.items() if name in names]
    counts = {}
    with Counter(bench, aof) as counter:
        if any(workload.database == 1 for workload in workloads):
            prepare_millions(bench, counter.server)
        for workload in workloads:
            bench.say(f"{workload.title}{', with AOF' if aof else ''}")
            counts[workload.name] = _measure(bench, counter, workload)
    return counts


def _measure(bench, counter, workload):
    server, steps = counter.server, workload.steps
    if workload.prepare is not None:
        steps = workload.prepare(bench, server, MESSAGES) or steps
    commands = MESSAGES // workload.batch
    instructions, done = counter.count(
        lambda: bench.generator.run(server, steps, commands, db=workload.database),
    )
    if workload.database == 0:
        server.empty()
    return instructions / (done.taken if workload.takes() else MESSAGES)


def rows(section, comparisons, counts):
    """Yields the comparisons as rows."""
    for pair in comparisons:
        common = counts[pair.without] if pair.without else 0
        ours, peer = counts[pair.ours] - common, counts[pair.peer] - common
        yield Row(
            section,
            pair.title(WORKLOADS, pair.ours),
            f"{ours:,.0f}",
            f"{peer:,.0f}  {pair.title(WORKLOADS, pair.peer)}",
            ours / peer,
            # A sorted set mostly waits for memory, which instructions do not show: the limit does not apply.
            at_most=None if pair.peer == "zadd" else pair.at_most,
        )


def main():
    chosen = parser(__doc__.splitlines()[0]).parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("counting instructions needs valgrind: apt-get install valgrind")
    bench = Fewer(
        binary=chosen.redis_server,
        module=chosen.module.resolve(),
        generator=Generator(chosen.generator.resolve()),
        rounds=1,
        quick=False,
        rows=re.compile(chosen.rows),
    )
    found = []
    for kind, section, comparisons, aof in (
        ("command", "Instructions a message", [*PLAIN, GOES_ON, *COSTLESS], False),
        ("groups", "Instructions a message, over groups", FEW_GROUPS, False),
        ("aof", "Instructions a message, with AOF everysec", LOGGED, True),
    ):
        wanted = [pair for pair in comparisons if bench.wanted(f"{kind}-{pair.ours}", f"{kind}-{pair.peer}")]
        if wanted:
            found += rows(section, wanted, measure(bench, wanted, aof))
    text = f"{targets(found)}\n\n{summary(found)}\n"
    print(f"\n{text}")


if __name__ == "__main__":
    main()
