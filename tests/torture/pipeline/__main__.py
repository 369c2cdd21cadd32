"""python -m tests.torture.pipeline --failures 1000: dq and its peers, one table."""

import argparse
import sys
import time

from tests.torture.pipeline.pipelines import PIPELINES
from tests.torture.pipeline.run import Outcome, run

WRONG = ("doubled", "lost", "miscounted", "held", "stuck")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.pipeline", description=__doc__)
    parser.add_argument("--failures", type=int, default=1000, help="of the power (default %(default)s)")
    parser.add_argument("--only", action="append", choices=PIPELINES, help="this pipeline; may be given several times")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="where the random numbers start")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    header = ("failures", "torn", "bytes gone", "handed on", "finished", "released", *WRONG, "seconds")
    print(f"{'pipeline':<20}" + "".join(f"{name:>11}" for name in header), flush=True)
    outcomes = {}
    for name in args.only or PIPELINES:
        outcomes[name] = run(PIPELINES[name](), args.failures, args.seed)
        show(outcomes[name])
    for outcome in outcomes.values():
        for what, items in outcome.wrong.items():
            for number, why in list(items.items())[:3]:
                print(f"  {outcome.name}: {what}: item {number} {why}")
    # The peers are shown, not judged.
    return 1 if "dq" in outcomes and outcomes["dq"].wrong else 0


def show(outcome: Outcome) -> None:
    numbers = (outcome.failures, outcome.torn, outcome.gone, outcome.handed_on, outcome.finished, outcome.released)
    cells = [*numbers, *(outcome.count(what) for what in WRONG), f"{outcome.seconds:.0f}"]
    print(f"{outcome.name:<20}" + "".join(f"{cell:>11}" for cell in cells), flush=True)


if __name__ == "__main__":
    sys.exit(main())
