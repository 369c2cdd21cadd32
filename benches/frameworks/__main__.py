"""Runs the frameworks on both of their transports and prints one table.

Each pair is measured in one run, on one server process after the other. The aims are printed beside the figures.
"""

import argparse
import math
import multiprocessing
import os
import platform
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from benches.frameworks.contenders import PAIRS, Laravel
from benches.frameworks.measures import MEASURES, Size
from benches.frameworks.sides import Side, measured, say


@dataclass(frozen=True)
class Row:
    """A row of the table. `holds` says whether our figure, beside the stock one, meets the aim."""

    key: str
    title: str
    form: str
    aim: str = ""
    holds: Callable[[float, float], bool] = lambda ours, stock: True


ROWS = [
    Row("kills", "workers killed (SIGKILL) at their work", "{:.0f}"),
    Row("cut", "runs that a kill cut off", "{:.0f}"),
    Row("lost", "tasks lost", "{:.0f}", "0", lambda ours, stock: ours == 0),
    Row("after_ack", "tasks run again after their ack", "{:.0f}", "0", lambda ours, stock: ours == 0),
    Row("again_p50", "a killed worker's task runs again after, p50", "{:.1f} s"),
    Row("again_max", "the same, at most", "{:.1f} s"),
    Row("late_p50", "lateness of etas, p50", "{:.1f} ms"),
    Row("late_p99", "lateness of etas, p99", "{:.1f} ms", "< 20 ms", lambda ours, stock: ours < 20),
    Row("late_missing", "etas that did not come", "{:.0f}", "0", lambda ours, stock: ours == 0),
    Row("memory", "growth of a worker by 100,000 etas", "{:.1f} MB", "< 5 MB", lambda ours, stock: ours < 5),
    Row("cpu", "server CPU a task, sent and done", "{:.0f} us", "half", lambda ours, stock: ours <= stock / 2),
    Row("jobs", "tasks a second of a worker process", "{:.0f}", "not less", lambda ours, stock: ours >= stock * 0.97),
    Row("woken_p50", "woken from two queues, p50", "{:.1f} ms"),
    Row("woken_max", "woken from two queues, at most", "{:.1f} ms", "< 5 ms", lambda ours, stock: ours < 5),
]


def table(ours: Side, stock: Side) -> tuple[list[str], bool]:
    """Returns the lines of a table, and whether our side meets all of its aims."""
    lines = [
        f"| | {ours.name} | {stock.name} | aim | |",
        "|---|---|---|---|---|",
        f"| settings | {ours.settings} | {stock.settings} | | |",
    ]
    met = True
    for row in ROWS:
        if row.key not in ours.rows and row.key not in stock.rows:
            continue
        mine, other = ours.rows.get(row.key, math.nan), stock.rows.get(row.key, math.nan)
        holds = row.holds(mine, other)
        met = met and holds
        verdict = ("PASS" if holds else "FAIL") if row.aim else ""
        lines.append(f"| {row.title} | {_shown(row, mine)} | {_shown(row, other)} | {row.aim} | {verdict} |")
    return lines, met


def _shown(row: Row, value: float) -> str:
    return "-" if math.isnan(value) else row.form.format(value)


def main() -> int:
    options = argparse.ArgumentParser(prog="benches.frameworks", description=__doc__)
    options.add_argument("--framework", action="append", choices=list(PAIRS), help="default: all that are installed")
    options.add_argument("--measure", action="append", choices=list(MEASURES), help="default: all")
    options.add_argument("--kills", type=int, help="default: 300 of Celery, 200 of Laravel, 100 of Dramatiq")
    options.add_argument("--smoke", action="store_true", help="a fiftieth of it: shows that it works")
    options.add_argument("--strict", action="store_true", help="end with 1 if an aim is missed")
    given = options.parse_args()
    size = Size(50) if given.smoke else Size(kills=given.kills)
    lines, met = [], True
    for framework in given.framework or PAIRS:
        ours, stock = PAIRS[framework]
        if issubclass(ours, Laravel) and not Laravel.is_there():
            say("Laravel's packages are not installed: left out")
            continue
        # A process of its own for each side, because the frameworks keep connections of an application.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as process:
            sides = [
                process.submit(measured, kind, given.measure or list(MEASURES), size).result() for kind in (ours, stock)
            ]
        rows, holds = table(*sides)
        lines += [*rows, ""]
        met = met and holds
    redis = os.environ.get("REDIS_SERVER", "redis-server")
    print(*lines, f"Python {platform.python_version()}, {platform.system()} {platform.release()}, {redis}", sep="\n")
    return 0 if met or not given.strict else 1


if __name__ == "__main__":
    sys.exit(main())
