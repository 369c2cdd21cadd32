"""The program `dq-worker`: runs the tasks of a module, in one process or several.

    dq-worker shop.tasks:tasks --processes 4 --concurrency 8

SIGTERM and SIGINT end it gracefully, as `Worker` says. A second signal ends it at once.
"""

import argparse
import sys
from collections.abc import Sequence

from dqueue.program.supervisor import Supervisor
from dqueue.program.work import UNUSABLE, Unusable, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program with these arguments, or those of the command line. Returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _options().parse_args(words)
    try:
        if options.is_child or (options.processes == 1 and not options.reload):
            return run(options)
        return Supervisor(words, options).run()
    except Unusable as error:
        print(f"dq-worker: {error}", file=sys.stderr)
        return UNUSABLE


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dq-worker",
        description="Runs the tasks of a module until SIGTERM or SIGINT.",
        epilog="Exit codes: 0 after a signal, 1 after an error, 2 if the target or an option cannot be used.",
    )
    add = parser.add_argument
    add("target", help="module:name of a Tasks or a Worker, of either kind: shop.tasks:tasks")
    add("--processes", type=int, default=1, metavar="N", help="number of processes (1)")
    add("--concurrency", type=int, metavar="N", help="threads of a process (8), or tasks at a time with asyncio (100)")
    add("--lease", type=int, metavar="MS", help="after a crash others get the messages in this time (30000)")
    add("--grace", type=int, metavar="MS", help="how long tasks may go on after a signal (20000)")
    add("--time-limit", type=int, metavar="MS", help="a task that takes longer is delivered again (no limit)")
    add("--reload", action="store_true", help="start anew when a Python file changes; needs dq-queue[reload]")
    add("--watch", action="append", metavar="DIR", help="what --reload looks at (the directory of --path)")
    add("--path", default=".", metavar="DIR", help="where the module is (the current directory)")
    add("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    add("--log-format", default="text", choices=["text", "json"])
    add("--is-child", action="store_true", help=argparse.SUPPRESS)
    return parser
