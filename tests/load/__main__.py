"""python -m tests.load: does something to millions of messages at once and PINGs the server every millisecond meanwhile.

Prints one table: the longest wait with nothing going on, the longest wait meanwhile, and the
difference. The exit status is 1 where a difference exceeds the limit in every round: what the
module does, it does each time; what the machine does, it does once.
"""

import argparse
import sys

from tests.load.stalls import Stalls

HEAD = f"{'':<36}{'messages':>10}{'seconds':>9}{'PINGs':>8}{'idle':>8}{'p99':>8}{'longest':>9}{'beyond idle':>13}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__.splitlines()[0])
    parser.add_argument("--due", type=int, default=2_000_000, help="messages due at once (default %(default)s)")
    parser.add_argument("--big", type=int, default=5_000_000, help="messages of the queue that goes (%(default)s)")
    parser.add_argument("--crowd", type=int, default=10_000, help="consumers that wait at once (%(default)s)")
    parser.add_argument("--idle", type=float, default=3, help="seconds watched before each (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is done (%(default)s)")
    parser.add_argument("--limit", type=float, default=5, help="ms beyond idle that are too many (%(default)s)")
    args = parser.parse_args()
    least = {}
    with Stalls(args.due, args.big, args.idle, args.crowd) as stalls:
        info = stalls.client.info("server")
        print(f"server {info.get('valkey_version') or info['redis_version']}; waits in ms\n{HEAD}", flush=True)
        for _ in range(args.rounds):
            for row in stalls.rows():
                least[row.name] = min(row.beyond, least.get(row.name, row.beyond))
                show(row)
    late = [name for name, beyond in least.items() if beyond > args.limit]
    for name in late:
        print(f"{name}: {least[name]:.1f} ms beyond idle at best, the limit is {args.limit:g}")
    return 1 if late else 0


def show(row) -> None:
    print(
        f"{row.name:<36}{row.messages:>10,}{row.seconds:>9.1f}{row.busy.count:>8}"
        f"{row.idle.longest:>8.2f}{row.busy.p99:>8.2f}{row.busy.longest:>9.2f}{row.beyond:>13.2f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
