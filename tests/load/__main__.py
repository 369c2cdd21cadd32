"""python -m tests.load: runs operations on millions of messages at once, and PINGs the server every millisecond
meanwhile.

Prints two tables. The first: the longest wait with nothing going on and the longest wait meanwhile, how long a
processor was absent during each, for whatever program (tests/harness/absence.py), and by how much
the longest wait without such absences exceeds the same of the idle server. The exit status is 1
where that is beyond the limit in more than half of the rounds. The rows of batches and FIND also
say how much processor time the server took for the longest of their commands.

The second: how late messages are that somebody waits for, at the median and at most, as the server
counts it. The exit status is 1, too, where the median, less twice what this machine is late by
itself, is beyond the same limit in more than half of the rounds.
"""

import argparse
import sys
from statistics import median_low

from tests.load.lateness import Lateness
from tests.load.searches import Searches
from tests.load.stalls import Stalls

HEAD = (
    f"{'':<36}{'messages':>10}{'seconds':>9}{'PINGs':>8}"
    f"{'idle':>8}{'absent':>8}{'own':>7}{'p99':>8}{'longest':>9}{'absent':>8}{'own':>7}{'beyond idle':>13}"
)


LATENESS_HEAD = f"{'':<36}{'messages':>10}{'p50':>9}{'p99':>9}{'longest':>9}{'machine':>9}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__.splitlines()[0])
    parser.add_argument("--due", type=int, default=2_000_000, help="messages due at once (default %(default)s)")
    parser.add_argument("--big", type=int, default=5_000_000, help="messages of the queue that goes (%(default)s)")
    parser.add_argument("--bulk", type=int, default=1_000_000, help="messages removed in slices (%(default)s)")
    parser.add_argument("--crowd", type=int, default=10_000, help="consumers that wait at once (%(default)s)")
    parser.add_argument("--queues", type=int, default=10_000, help="queues due at once (%(default)s)")
    parser.add_argument("--batch", type=int, default=1_000_000, help="members of a batch (%(default)s)")
    parser.add_argument("--found", type=int, default=10_000_000, help="messages that FIND goes over (%(default)s)")
    parser.add_argument("--idle", type=float, default=3, help="seconds watched before each (%(default)s)")
    parser.add_argument("--waited", type=int, default=200, help="messages whose lateness is looked at (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is done (%(default)s)")
    parser.add_argument("--searches", action="store_true", help="only batches, FIND and the lateness")
    parser.add_argument("--slices", action="store_true", help="only what is done in slices while its client waits")
    parser.add_argument("--limit", type=float, default=5, help="ms beyond idle that are too many (%(default)s)")
    args = parser.parse_args()
    found = {}
    with Stalls(args.due, args.big, args.idle, args.crowd, args.bulk, args.queues) as stalls:
        info = stalls.client.info("server")
        print(f"server {info.get('valkey_version') or info['redis_version']}; waits in ms\n{HEAD}", flush=True)
        searches = Searches(stalls, args.batch, args.found)
        for _ in range(args.rounds):
            for row in () if args.searches else stalls.rows_in_slices() if args.slices else stalls.rows():
                found.setdefault(row.name, []).append(row.beyond)
                show(row)
            for row, longest in () if args.slices else searches.rows():
                found.setdefault(row.name, []).append(row.beyond)
                show(row)
                print(f"    {longest.name}: at most {longest.ms:.2f} ms of processor time", flush=True)
    if not args.slices:
        with Lateness() as lateness:
            print(f"\nhow late, in ms\n{LATENESS_HEAD}", flush=True)
            for _ in range(args.rounds):
                for row in lateness.rows(args.waited):
                    found.setdefault(row.name, []).append(row.beyond)
                    print(f"{row.name:<36}{row.messages:>10,}{row.p50:>9}{row.p99:>9}{row.longest:>9}{row.noise:>9.2f}", flush=True)
    late = {name: median_low(beyond) for name, beyond in found.items() if median_low(beyond) > args.limit}
    for name, beyond in late.items():
        print(f"{name}: {beyond:.1f} ms beyond idle at the median, the limit is {args.limit:g}")
    return 1 if late else 0


def show(row) -> None:
    print(
        f"{row.name:<36}{row.messages:>10,}{row.seconds:>9.1f}{row.busy.count:>8}"
        f"{row.idle.longest:>8.2f}{row.idle.absent:>8.2f}{row.idle.own:>7.2f}{row.busy.p99:>8.2f}"
        f"{row.busy.longest:>9.2f}{row.busy.absent:>8.2f}{row.busy.own:>7.2f}{row.beyond:>13.2f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
