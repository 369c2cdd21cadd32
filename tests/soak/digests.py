"""python -m tests.soak.digests: random commands of all verbs, and whether all copies of the queues stay the same.

After each command the digests of all keys must equal those of a replica. Every few commands the primary or the replica
loads its data again, from a snapshot or from its log, and must have what it had. The exit status is 1 at the first
difference, with the last commands and the seed.
"""

import argparse
import collections
import sys
import time

from tests.harness.all_verbs import AllVerbs
from tests.harness.topology import Pair

AOF = {"appendonly": "yes", "appendfsync": "no"}
# How often the queues begin anew, in commands: what depends on a mixture of commands is found soonest in many short lives.
LIFE = 500


class Differs(AssertionError):
    """Two copies of a queue are not the same."""


def compare(clients: dict, traffic: AllVerbs, before: list, where: str) -> None:
    """Compares the digests on all servers with those of before."""
    for name, client in clients.items():
        wrong = [key for key, one, other in zip(traffic.keys, before, traffic.held(client), strict=True) if one != other]
        if wrong:
            raise Differs(f"{where}: {wrong} differ on the {name}")


def live(pair: Pair, seed: int, steps: int, at: dict | None = None) -> AllVerbs:
    """One life of the queues: `steps` random commands. `at` has what else happens before some of the steps."""
    client, replica = pair.primary.client(), pair.replica.client()
    clients = {"primary": client, "replica": replica}
    client.execute_command("FLUSHALL")
    traffic, last = AllVerbs(client, seed), collections.deque(maxlen=20)
    loads = [("primary", "RELOAD"), ("primary", "LOADAOF"), ("replica", "RELOAD")]
    try:
        for step in range(steps):
            if at and step in at:
                at[step]()
            traffic.step()
            last.append(traffic.last)
            if client.wait(1, 20_000) != 1:
                raise Differs(f"step {step}: the replica does not answer")
            before = traffic.held(client)
            compare(clients, traffic, before, f"step {step}")
            if traffic.rng.random() < 0.05:
                where, how = traffic.rng.choice(loads)
                clients[where].execute_command("DEBUG", how)
                last.append(("DEBUG", how, "on the", where))
                compare(clients, traffic, before, f"step {step}, after {how}")
    except Differs as difference:
        words = "\n".join(" ".join(map(str, command)) for command in last)
        raise Differs(f"seed {seed}, {difference}\n{words}") from None
    return traffic


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.digests", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="(default %(default)s)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="where the random numbers start")
    args = parser.parse_args()
    pair, end, seed, done = Pair(**AOF).start(), time.monotonic() + args.seconds, args.seed, 0
    try:
        while time.monotonic() < end:
            done += live(pair, seed, LIFE).done
            seed += 1
    except Differs as difference:
        print(difference)
        return 1
    finally:
        pair.close()
    print(f"{done} commands from seed {args.seed} on; all copies were the same after each of them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
