"""python -m tests.load.families: the spread of families, their cost, and the effect of moves on consumers.

Each part prints a table, and what is beyond its limit. The exit status is 1 if anything is. Wall-clock times need a
quiet machine; instructions and the spread do not.
"""

import argparse
import shutil
import sys
from statistics import median

from tests.harness.topology import Cluster
from tests.load.families.balance import balance, names
from tests.load.families.cost import Setting, instructions, of_a_message
from tests.load.families.moves import moves
from tests.load.families.wires import Crowd, idle_cpu, queues, used_memory


def main(words=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load.families", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(PARTS), action="append", help="only this part; may be given several times")
    parser.add_argument("--groups", type=int, default=100_000, help="groups that are spread (%(default)s)")
    parser.add_argument("--consumers", type=int, default=1000, help="that wait at each node (%(default)s)")
    parser.add_argument("--partitions", type=int, default=1024, help="of the family that they wait for (%(default)s)")
    parser.add_argument("--nodes", type=int, default=6, help="over which it lies (%(default)s)")
    parser.add_argument("--messages", type=int, default=2000, help="that wake a consumer each (%(default)s)")
    parser.add_argument("--rate", type=float, default=100, help="of these messages, a second (%(default)s)")
    parser.add_argument("--counted", type=int, default=4096, help="messages whose instructions are counted (%(default)s)")
    parser.add_argument("--worked", type=int, default=40_000, help="messages whose processor time is taken (%(default)s)")
    parser.add_argument("--rounds", type=int, default=4, help="of those with the same servers (%(default)s)")
    parser.add_argument("--starts", type=int, default=3, help="of servers for that (%(default)s)")
    parser.add_argument("--moved", type=int, default=20, help="moves of a partition (%(default)s)")
    parser.add_argument("--idle", type=float, default=5, help="seconds in which nothing is asked (%(default)s)")
    args = parser.parse_args(words)
    beyond = []
    for part in args.only or PARTS:
        print(f"\n== {part}", flush=True)
        beyond += PARTS[part](args)
    for text in beyond:
        print(f"beyond its limit: {text}")
    return 1 if beyond else 0


def spread(args):
    """Groups over nodes that hold even ranges of slots."""
    print(f"{'groups':<10}{'partitions':>11}{'nodes':>7}{'busiest node':>14}{'by chance':>11}{'of partitions':>15}")
    for kind in ("random", "numbered"):
        some = names(kind, args.groups)
        for partitions, nodes in [(64, 2), (64, 4), (64, 8), *((1024, n) for n in (2, 4, 6, 8, 16, 32, 48, 64))]:
            row = balance(partitions, nodes, some)
            print(f"{kind:<10}{partitions:>11,}{nodes:>7}{row.groups:>14.3f}{row.chance:>11.3f}{row.own:>15.3f}")
            # Few groups for each node differ by chance, and some numbers of nodes cannot have equal shares.
            if row.groups > max(1.05, row.own * (2 * row.chance - 1)):
                yield f"{kind} groups, {partitions} partitions, {nodes} nodes: {row.groups:.3f} of an even share"


def crowd(args):
    """Consumers that wait at all nodes for all partitions."""
    cluster = Cluster(nodes=args.nodes, maxclients="20000").start()
    try:
        homes = queues(cluster, args.partitions)
        still = idle_cpu(cluster.nodes, args.idle)
        before = [used_memory(node) for node in cluster.nodes]
        people = Crowd(cluster, args.consumers)
        waiting = [int(node.info("clients")["blocked_clients"]) for node in cluster.nodes]
        idle = idle_cpu(cluster.nodes, args.idle)
        # The server frees the buffers of clients that have been idle for some seconds.
        memory = max(used_memory(node) - was for node, was in zip(cluster.nodes, before)) / args.consumers
        took, pings = people.wake_ups(homes, args.messages, args.rate)
        people.close()
    finally:
        cluster.close()
    p99, ping = (times[len(times) * 99 // 100] * 1000 for times in (took, pings))
    print(f"{args.consumers:,} consumers, {args.partitions:,} partitions, {args.nodes} nodes")
    print(f"waiting connections of the busiest node        {max(waiting):,}")
    print(f"memory of the server for each of them          {memory:,.0f} bytes")
    print(f"from SEND until a consumer has it, p50 and p99 {median(took) * 1000:.2f} ms, {p99:.2f} ms")
    print(f"a PING meanwhile, p50 and p99                  {median(pings) * 1000:.2f} ms, {ping:.2f} ms")
    print(f"idle processor of all nodes, before and with   {still:.2f} %, {idle:.2f} % of one")
    if max(waiting) > args.consumers:
        yield f"{max(waiting)} waiting connections at a node"
    if p99 - ping >= 5:
        yield f"{p99:.2f} ms until a consumer is awake"


def counted(args):
    """Instructions by the number of partitions."""
    if shutil.which("valgrind") is None:
        print("counting instructions needs valgrind")
        return
    rows = {partitions: instructions(partitions, args.counted, args.idle) for partitions in (1, 64, 1024)}
    print(f"{'partitions':>10}{'NFETCH':>10}{'that gives nothing':>20}{'idle, a second':>16}")
    for partitions, row in rows.items():
        print(f"{partitions:>10,}{row['gives']:>10,.0f}{row['nothing']:>20,.0f}{row['idle']:>16,.0f}")
    for what in ("gives", "nothing", "idle"):
        counts = [row[what] for row in rows.values()]
        if max(counts) > 1.05 * counts[0]:
            yield f"instructions ({what}) grow by {max(counts) / counts[0] - 1:.1%} with the number of partitions"
    print(f"\n{'taken at once':>13}{'of a queue':>12}{'of a family':>13}{'ratio':>7}   instructions of a message")
    for count in (1, 10):
        plain, family = (of_a_message(partitions, args.counted, count) for partitions in (0, 64))
        print(f"{count:>13}{plain:>12,.0f}{family:>13,.0f}{family / plain:>7.2f}")
        if family > 1.1 * plain:
            yield f"a message taken {count} at once: {family / plain:.2f} of the instructions of a queue"


# The number of messages that are taken at once, the number of consumers of a node, and the part of the work that is
# measured: all of them take about the same time, and each of 64 partitions holds hundreds of messages.
SHAPES = [(1, 1, 0.5), (1, 64, 1), (10, 64, 4)]


def processor(args):
    """Processor time of the servers for each message: SEND, FETCH or NFETCH, and ACK."""
    found = {}
    # A server is as fast as its memory happens to lie. So there are several of each.
    for _ in range(args.starts):
        for row, took in once(args):
            found.setdefault(row, []).append(took)
    print(f"{'us a message':<22}{'consumers':>11}{'taken at once':>15}{'median':>8}{'least':>8}{'of a queue':>12}{'a second':>10}")
    for (name, count, many), costs in sorted(found.items(), key=lambda row: row[0][1:]):
        # Any disturbance makes a run longer, so the shortest run is the nearest to the cost of the work itself.
        cost, plain = min(costs), min(found["a queue, cluster", count, many])
        print(
            f"{name:<22}{many:>11}{count:>15}{median(costs):>8.2f}{cost:>8.2f}{cost / plain:>12.2f}{1e6 / cost:>10,.0f}"
        )
        # One consumer leaves the server idle most of the time. The cost of waking up differs from run to run.
        if name.startswith("a family") and many > 1 and cost > 1.1 * plain:
            yield f"{name}, {many} consumers, {count} at once: {cost / plain:.2f} of the processor time of a queue"


def once(args):
    """The rows of the table with one cost each, several times, of servers that are started for it."""
    settings = [
        Setting("a queue, no cluster", 0, 0),
        Setting("a queue, cluster", 1, 0),
        *(Setting(f"a family, {nodes} nodes", nodes, 64) for nodes in (1, 2, 4)),
    ]
    try:
        crowds = {(setting, many): setting.crowd(many) for setting in settings for _, many, _ in SHAPES}
        for setting in settings:
            setting.us_a_message(args.worked // 4, 1)
        for _ in range(args.rounds):
            for count, many, share in SHAPES:
                for setting in settings:
                    took = setting.us_a_message(int(args.worked * share), count, crowds[setting, many])
                    yield (setting.name, count, many), took
    finally:
        for setting in settings:
            setting.close()


def moved(args):
    """Moves of a partition, seen by its consumers."""
    rows = moves(args.moved)
    gaps, still = sorted(row.gap for row in rows), sorted(row.still for row in rows)
    print(f"{len(rows)} moves of a partition; longest time without a delivery, in ms, of a message every 2 ms")
    print(f"while it moves: median {median(gaps):.1f}, longest {gaps[-1]:.1f}")
    print(f"without a move: median {median(still):.1f}, longest {still[-1]:.1f}")
    if median(gaps) >= 100:
        yield f"nothing came for {median(gaps):.0f} ms"


PARTS = {"spread": spread, "crowd": crowd, "instructions": counted, "processor": processor, "moves": moved}

if __name__ == "__main__":
    sys.exit(main())
