#!/usr/bin/env python3
"""Measures the module and its peers in one run, and prints one table of all of them.

    benches/run.py [--quick] [--rows REGEX] [--rounds N] [--module PATH] [--redis-server PATH]
                   [--generator PATH] [--write FILE]

`make bench` builds what it needs and runs it. Rows are named `command-NAME`, `groups-NAME`, `aof-NAME` (see
workloads.py for the names), `life`, `backlog`, `memory`, `batch`, `rdb`, `children`, `stall-alone`, `stall-waiting`,
`stall-draining`, `lateness-50`, `lateness-4`, `idle`, and of many queues `queues-1000`, `queues-10000`, `queues-steady`,
`queues-schedules`, `queues-every`, `queues-bind` and `queues-tenant`. A missed target is a finding, not a failure: the
exit code is 0.
"""

import os
import re
from pathlib import Path

from bench import Bench, parser
from children import children
from document import document
from footprint import members, memory, snapshot
from generator import Generator
from lifetime import backlog, whole_life
from many_queues import many_queues
from report import summary, targets
from server import CLIENT_CORE
from throughput import Throughput
from timeliness import idle, lateness, stall


def options():
    known = parser(__doc__.splitlines()[0])
    known.add_argument("--quick", action="store_true", help="do a hundredth of everything: a smoke test")
    known.add_argument("--rounds", type=int, help="how often each row is measured (5; quick: 1)")
    known.add_argument("--write", type=Path, metavar="FILE", help="also write the tables as a Markdown page")
    return known.parse_args()


def main():
    chosen = options()
    # This process leaves the core of the server to the server.
    os.sched_setaffinity(0, {CLIENT_CORE})
    bench = Bench(
        binary=chosen.redis_server,
        module=chosen.module.resolve(),
        built=chosen.built,
        generator=Generator(chosen.generator.resolve()),
        rounds=chosen.rounds or (1 if chosen.quick else 5),
        quick=chosen.quick,
        rows=re.compile(chosen.rows),
    )
    bench.look_around()
    throughput = Throughput(bench)
    with bench.by_host:
        rows = throughput.measure()
        for part in (whole_life, backlog, memory, members, snapshot, children, stall, lateness, many_queues, idle):
            rows += part(bench)
    if not rows:
        raise SystemExit(f"no row matches {chosen.rows.pattern}")

    details = throughput.details()
    if details:
        print(f"\n{details}")
    print(f"\n{targets(rows)}\n\n{summary(rows)}")
    if bench.disturbance():
        print(f"\n{bench.disturbance()}")
    if chosen.quick:
        print("\nA quick run shows that everything works; its figures mean nothing.")
    if chosen.write:
        chosen.write.write_text(document(bench, rows, chosen.write))


if __name__ == "__main__":
    main()
