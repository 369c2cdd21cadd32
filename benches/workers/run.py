#!/usr/bin/env python3
"""Measures one worker process of each contender, and prints what a user would see: jobs a second, cost and lateness.

    benches/workers/run.py [--smoke] [--rounds N] [--only REGEX] [--module PATH] [--write FILE]

`make bench-workers` builds and installs what it needs and runs it. The server has one core, and the worker another. A
contender that is not installed is left out, and a line says so. A missed target is a finding, not a failure.
"""

import argparse
import os
import re
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
# Servers and tables are those of the other benchmarks.
sys.path[:0] = [str(HERE), str(HERE.parent)]

from contenders import CONTENDERS, PLACE, ROOT  # noqa: E402
from measure import Late, Speed, latency, lateness, speed  # noqa: E402
from page import page  # noqa: E402
from section import replace  # noqa: E402
from server import CLIENT_CORE, SERVER_CORE, Server  # noqa: E402

HANDLERS = {"empty": {}, "1 ms": {"sleep_ms": 1}, "1 KB": {"size": 1024}}
"""The work of the handlers, or the kind of payload."""


@dataclass
class Result:
    """The figures of one contender, as medians of all rounds."""

    speeds: dict = field(default_factory=dict)
    """By handler and concurrency."""
    latency: Late | None = None
    lateness: Late | None = None


def options():
    known = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known.add_argument("--smoke", action="store_true", help="a few jobs each: shows that everything works")
    known.add_argument("--rounds", type=int, default=3, help="how often everything is measured (3; smoke: 1)")
    known.add_argument("--only", type=re.compile, default="", metavar="REGEX", help="contenders, as in 'Python: RQ'")
    known.add_argument("--handlers", type=re.compile, default="", metavar="REGEX", help="of: empty, 1 ms, 1 KB")
    known.add_argument("--seconds", type=float, default=1.5, help="about how long one measurement takes (1.5)")
    known.add_argument("--module", type=Path, default=ROOT / "target/release/libdq.so")
    known.add_argument("--redis-server", default=os.environ.get("REDIS_SERVER") or "redis-server")
    known.add_argument("--note", default="", metavar="TEXT", help="a sentence for the page, such as what else ran")
    known.add_argument("--write", type=Path, metavar="FILE", help="also write the section into a page")
    return known.parse_args()


def wanted(chosen):
    for contender in CONTENDERS:
        if not re.search(chosen.only, f"{contender.language}: {contender.name}"):
            continue
        if contender.is_there():
            yield contender
        else:
            say(f"{contender.language}: {contender.name} is not installed, and left out")


def measured(server, contender, chosen):
    """Returns the figures of one round: speeds, latency, lateness."""
    speeds = {}
    for handler, work in HANDLERS.items():
        for concurrency in contender.speeds:
            if not re.search(chosen.handlers, handler):
                continue
            if chosen.smoke and (handler, concurrency) != ("empty", 1):
                continue
            speeds[handler, concurrency] = speed(
                server,
                contender,
                concurrency,
                jobs(contender, handler, concurrency, chosen),
                **work,
            )
    concurrency = 10 if 10 in contender.speeds else 1
    number, seconds, starting = (20, 0.5, 0) if chosen.smoke else (300, 3, 2)
    return (
        speeds,
        latency(server, contender, concurrency, number, starting),
        lateness(server, contender, concurrency, number, seconds, starting),
    )


def jobs(contender, handler, concurrency, chosen):
    """Returns how many jobs are sent for a measurement."""
    if chosen.smoke:
        return 20
    at_most = 1000 * concurrency if handler == "1 ms" else float("inf")
    return max(10, int(min(contender.speeds[concurrency], at_most) * chosen.seconds))


def middle(kind, values):
    """Returns the median of each figure of several rounds."""
    return kind(**{name: median(getattr(one, name) for one in values) for name in kind.__dataclass_fields__})


def say(text):
    print(f"[{time.monotonic() - START:5.0f} s] {text}", file=sys.stderr, flush=True)


START = time.monotonic()


def main():
    chosen = options()
    rounds = 1 if chosen.smoke else chosen.rounds
    os.sched_setaffinity(0, {CLIENT_CORE})
    if (PLACE / "node").is_dir():
        for script in (HERE / "node").glob("*.mjs"):
            shutil.copy(script, PLACE / "node")
    contenders = list(wanted(chosen))
    found = {contender: [] for contender in contenders}
    for number in range(rounds):
        for contender in contenders:
            say(f"round {number + 1}: {contender.language}: {contender.name}")
            with Server(chosen.redis_server, [chosen.module.resolve()]) as server:
                found[contender].append(measured(server, contender, chosen))
                version = server.version()
    results = {}
    for contender, all in found.items():
        speeds, latencies, latenesses = zip(*all)
        results[contender] = Result(
            {cell: middle(Speed, [one[cell] for one in speeds]) for cell in speeds[0]},
            middle(Late, latencies),
            middle(Late, latenesses),
        )
    text = page(
        results,
        HANDLERS,
        rounds,
        version,
        chosen.note and f" {chosen.note}",
        (SERVER_CORE, CLIENT_CORE),
    )
    print(text)
    if chosen.write:
        replace(chosen.write, text)


if __name__ == "__main__":
    main()
