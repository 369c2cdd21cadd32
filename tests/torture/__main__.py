"""python -m tests.torture --seconds 600: every fault for its share of the time, and one table."""

import argparse
import sys
import time
import traceback

from tests.torture.faults import FAULTS
from tests.torture.run import Row, run

# How long a fault must last to show anything, in seconds.
LEAST = 4.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="for all faults together (default %(default)s)")
    parser.add_argument("--fault", action="append", choices=FAULTS, help="only this one; may be given several times")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="where the random numbers start")
    args = parser.parse_args()
    names = args.fault or list(FAULTS)
    # Starting, draining and looking afterwards take about half of the time.
    share = max(LEAST, args.seconds / len(names) * 0.6)
    print(f"seed {args.seed}, {share:.0f} s for each fault", flush=True)
    print(f"{'fault':<22}{'operations':>12}{'injected':>10}{'gone':>6}{'violations':>12}{'seconds':>9}", flush=True)
    rows = [one(name, share, args.seed) for name in names]
    bad = [row for row in rows if row.violations]
    total = Row("all", sum(r.operations for r in rows), sum(r.injected for r in rows), sum(r.gone for r in rows))
    total.violations, total.seconds = [v for r in bad for v in r.violations], sum(r.seconds for r in rows)
    show(total)
    for row in bad:
        print(f"\n{row.fault}: rerun with --fault {row.fault} --seed {args.seed} --seconds {share / 0.6:.0f}")
        for violation in row.violations[:20]:
            print(f"  {violation}")
    return 1 if bad else 0


def one(name: str, share: float, seed: int) -> Row:
    try:
        row = run(name, FAULTS[name](seed), share, seed)
    except Exception as error:
        # A server that died, hung or logged a crash: this counts as a violation.
        row = Row(name, 0, 0, 0, [f"the run failed: {error}", *traceback.format_exc().splitlines()])
    show(row)
    return row


def show(row: Row) -> None:
    print(
        f"{row.fault:<22}{row.operations:>12}{row.injected:>10}{row.gone:>6}{len(row.violations):>12}{row.seconds:>9.1f}", flush=True
    )


if __name__ == "__main__":
    sys.exit(main())
