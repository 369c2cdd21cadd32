"""python -m tests.torture.losses --faults 500: a table of the losses of each setting."""

import argparse
import sys
import time

from tests.torture.losses.books import Outcome
from tests.torture.losses.price import Price, price
from tests.torture.losses.rows import BY_NAME, ROWS, Row
from tests.torture.losses.run import run

HEADER = ("faults", "sends", "lost", "in faults", "oldest", "acks", "undone", "sends/s", "ms", "seconds")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.losses", description=__doc__)
    parser.add_argument("--faults", type=int, default=500, help="for each row (default %(default)s)")
    parser.add_argument("--sends", type=int, default=0, help="go on with a row until so many were confirmed")
    parser.add_argument("--minutes", type=float, default=60, help="the most for a row (default %(default)s)")
    parser.add_argument("--lanes", type=int, default=1, help="sets of servers at a time, which share the faults")
    parser.add_argument("--price", action="store_true", help="only what a confirmed send costs, without faults")
    parser.add_argument("--row", action="append", choices=BY_NAME, help="only this one; may be given several times")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="where the random numbers start")
    args = parser.parse_args()
    rows = [BY_NAME[name] for name in args.row] if args.row else ROWS
    print(f"seed {args.seed}", flush=True)
    print(f"{'row':<30}" + "".join(f"{name:>10}" for name in HEADER), flush=True)
    failed = 0
    for row in rows:
        outcome = Outcome(row.name) if args.price else run(row, args.faults, args.sends, args.minutes * 60, args.seed, args.lanes)
        show(outcome, price(row) if args.price else None)
        failed += is_wrong(row, outcome)
    return 1 if failed else 0


def is_wrong(row: Row, outcome: Outcome) -> bool:
    """Whether a row that loses nothing has lost something."""
    return not row.loses and bool(outcome.lost or outcome.undone)


def show(outcome: Outcome, cost: Price | None) -> None:
    oldest = f"{outcome.longest:.2f} s" if outcome.lost else "-"
    numbers = (outcome.faults, outcome.sends, outcome.lost, outcome.rounds, oldest, outcome.acks, outcome.undone)
    costs = (f"{cost.rate:.0f}", f"{cost.alone:.2f}") if cost else ("-", "-")
    cells = (*numbers, *costs, f"{outcome.seconds:.0f}")
    print(f"{outcome.name:<30}" + "".join(f"{cell:>10}" for cell in cells), flush=True)


if __name__ == "__main__":
    sys.exit(main())
