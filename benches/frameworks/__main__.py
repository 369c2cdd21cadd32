"""Runs the frameworks on both of their transports and prints one table.

Each pair is measured in one run, on one server process after the other. The aims are printed beside the figures.
"""

import argparse
import json
import multiprocessing
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benches.frameworks.contenders import PAIRS, Laravel
from benches.frameworks.measures import MEASURES, Size
from benches.frameworks.one_side import Side, measured, say
from benches.frameworks.page import page, table
from benches.section import replace


def merged(path: Path | None, name: str, sides: list[Side]) -> list[Side]:
    """Adds the figures of earlier runs that are kept in the file, and adds the figures of this run to the file."""
    if path is None:
        return sides
    kept = json.loads(path.read_text()) if path.exists() else {}
    for side in sides:
        side.rows = {**kept.get(name, {}).get(side.name, {}), **side.rows}
    kept[name] = {side.name: side.rows for side in sides}
    path.write_text(json.dumps(kept, indent=1))
    return sides


def main() -> int:
    options = argparse.ArgumentParser(prog="benches.frameworks", description=__doc__)
    options.add_argument("--framework", action="append", choices=list(PAIRS), help="default: all that are installed")
    options.add_argument("--measure", action="append", choices=list(MEASURES), help="default: all")
    options.add_argument("--kills", type=int, help="default: 300 of Celery, 200 of Laravel, 100 and 10 of Dramatiq")
    options.add_argument("--smoke", action="store_true", help="a fiftieth of it: shows that it works")
    options.add_argument("--strict", action="store_true", help="end with 1 if an aim is missed")
    options.add_argument("--results", type=Path, metavar="FILE", help="JSON that keeps figures for a run of the rest")
    options.add_argument("--built", default="", metavar="TEXT", help="how the module was built, for the page")
    options.add_argument("--note", default="", metavar="TEXT", help="a sentence for the page, such as what else ran")
    options.add_argument("--write", type=Path, metavar="FILE", help="also write the section into a page")
    given = options.parse_args()
    size = Size(50) if given.smoke else Size(kills=given.kills)
    tables, met, server = [], True, ""
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
        lines, holds = table(*merged(given.results, framework, sides))
        tables.append(lines)
        server = sides[0].server
        met = met and holds
    built = f", the module by {given.built}" if given.built else ""
    text = page(tables, f"{server}, Python {platform.python_version()}{built}", given.note)
    print(text)
    if given.write:
        replace(given.write, text)
    return 0 if met or not given.strict else 1


if __name__ == "__main__":
    sys.exit(main())
