"""python -m tests.checker --seconds 60: a longer run, with a table at the end."""

import argparse
import sys
import time

from tests.checker.run import run
from tests.harness.server import Server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.checker", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="how long producers and chaos go on")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="a failing run prints its own")
    parser.add_argument("--producers", type=int, default=3)
    parser.add_argument("--consumers", type=int, default=6)
    parser.add_argument("--reload", type=float, default=0, metavar="S", help="DEBUG RELOAD every S seconds")
    args = parser.parse_args()
    server = Server(appendonly="yes").start()
    try:
        client = server.client()
        done = [0]

        def fault(elapsed):
            if args.reload and elapsed > (done[0] + 1) * args.reload:
                client.execute_command("DEBUG", "RELOAD")
                done[0] += 1

        history, found = run(server, args.seconds, args.producers, args.consumers, args.seed, fault=fault)
    finally:
        server.close()
    print(f"seed        {args.seed}")
    print(f"sent        {len(history.sends)}")
    print(f"delivered   {len(history.deliveries)}")
    print(f"finished    {len(history.final['finished'])}")
    print(f"dead        {len(history.final['dead'])}")
    print(f"handed on   {sum(bool(send.parent) for send in history.sends)}")
    print(f"held        {sum(bool(send.after) for send in history.sends)}")
    print(f"pauses      {sum(verdict.pause is not None for verdict in history.verdicts)}")
    print(f"breakers    {len({(sight.group, sight.until) for sight in history.sights})} times open")
    print(f"reloads     {done[0]}")
    print(f"lost FETCH answers  {history.lost_fetches}")
    print(f"violations  {len(found)}")
    for line in found[:50]:
        print(f"  {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
