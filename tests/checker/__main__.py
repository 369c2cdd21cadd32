"""python -m tests.checker --seconds 60: a longer run of groups and then one of jobs, with a table each."""

import argparse
import sys
import time
from contextlib import contextmanager

from tests.checker.jobs.run import PATIENCE, PATIENCE_AFTER_START
from tests.checker.jobs.run import run as run_jobs
from tests.checker.run import run
from tests.harness.server import Server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.checker", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="how long each run and its chaos go on")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="a failing run prints its own")
    parser.add_argument("--producers", type=int, default=3)
    parser.add_argument("--consumers", type=int, default=6)
    parser.add_argument("--reload", type=float, default=0, metavar="S", help="DEBUG RELOAD every S seconds")
    parser.add_argument("--only", choices=("groups", "jobs"), help="one of the two runs")
    args = parser.parse_args()
    runs = [run_of for name, run_of in (("groups", groups), ("jobs", jobs)) if args.only in (None, name)]
    print(f"{'seed':<14}{args.seed}")
    return max([run_of(args) for run_of in runs])


class Reloads:
    """DEBUG RELOAD every so many seconds."""

    def __init__(self, server, every):
        self.client, self.every, self.done = server.client(), every, 0

    def __call__(self, elapsed) -> None:
        if self.every and elapsed > (self.done + 1) * self.every:
            self.client.execute_command("DEBUG", "RELOAD")
            self.done += 1


def groups(args) -> int:
    """Groups, retries, breakers, batches: the verbs that need no other queue."""
    with reloaded_server(args) as (server, reloads):
        history, found = run(server, args.seconds, args.producers, args.consumers, args.seed, fault=reloads)
    figures = {
        "sent": len(history.sends),
        "delivered": len(history.deliveries),
        "finished": len(history.final["finished"]),
        "dead": len(history.final["dead"]),
        "handed on": sum(bool(send.parent) for send in history.sends),
        "held": sum(bool(send.after) for send in history.sends),
        "pauses": sum(verdict.pause is not None for verdict in history.verdicts),
        "open breakers": len({(sight.group, sight.until) for sight in history.sights}),
        "lost replies": history.lost_fetches,
        "reloads": reloads.done,
    }
    return report("groups", figures, found)


def jobs(args) -> int:
    """Jobs that die, wait for others, run once more and share limits."""
    patience = PATIENCE_AFTER_START if args.reload else PATIENCE
    with reloaded_server(args) as (server, reloads):
        record, found = run_jobs(
            server, args.seconds, args.producers, args.consumers, args.seed, patience=patience, fault=reloads
        )  # fmt: skip
    figures = {
        "sent": len(record.sends),
        "delivered": len(record.got),
        "events": len(record.events),
        "signals": len(record.signals),
        "parents": len(record.counts),
        "dead": len(record.letters),
        "reloads": reloads.done,
    }
    return report("jobs", figures, found)


@contextmanager
def reloaded_server(args):
    """A server, and the reloads that a run may make on it."""
    server = Server(appendonly="yes").start()
    try:
        yield server, Reloads(server, args.reload)
    finally:
        server.close()


def report(name, figures, found) -> int:
    """Prints the figures of a run and its violations. Returns the exit code."""
    print(name)
    for label, figure in (figures | {"violations": len(found)}).items():
        print(f"{label:<14}{figure}")
    for line in found[:50]:
        print(f"  {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
