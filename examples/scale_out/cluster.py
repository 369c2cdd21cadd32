"""One logical queue over the nodes of a Redis Cluster, growing and failing over while traffic flows.

A queue is one key, so it lives on one node. A queue that is too busy for one node becomes a family: 64 queues here,
`events:{10}`, `events:{18}` and so on, whose names are chosen so that they spread evenly over the slots.

* A producer sends an event of a user to the user's group. The package finds the queue of the group, so all events of a
  user meet in one queue, where they keep their order.
* A consumer waits at all queues, with one connection for each node: no polling and nothing to configure. Consumers come
  and go as they like.
* To use more nodes, add one and move slots to it (`redis-cli --cluster reshard`). Queues move with their slots, with
  leases and receipts. Consumers follow, and nothing is drained.
* To use more nodes than there are partitions, double the partitions. Each group stays in its old queue as long as that
  has messages of it, and so keeps its order.

This script starts a cluster of its own (three primaries, and a replica of the first), sends and handles events, and
meanwhile moves slots between nodes, lets a consumer join, fails one node over and doubles the partitions:

    python3 -m venv .venv && .venv/bin/pip install ./clients/python      (Python 3.11 or newer)
    .venv/bin/python examples/scale_out/cluster.py --module target/release/libdq.so --seconds 20

It prints what it does and, at the end, events lost and order violations; exit code 1 if there are any.
"""

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time

from dqueue import Family, Worker, connect_cluster
from history import Journal, report
from local_cluster import LocalCluster

PARTITIONS = 64
LEASE_MS = 3000
PRODUCERS = 2


def family(ports, partitions=PARTITIONS, grown_from=None):
    client = connect_cluster(f"redis://127.0.0.1:{ports[0]}")
    # While slots move or a node fails over, a command can fail. A send repeats itself for half a minute.
    return Family("events", partitions, client, grown_from=grown_from, patience=30_000)


def produce(options, ports, folder, grown, changed, producer):
    """Sends events of this producer's users, numbered from 1 for each user, until the cluster has changed for the last time."""
    events, journal, dice = family(ports), Journal(folder, f"producer-{producer}"), random.Random(producer)
    numbers = {f"user-{user}": 0 for user in range(producer, options.users, PRODUCERS)}
    end = time.monotonic() + options.seconds
    while time.monotonic() < end or not changed.is_set():
        # All producers of a group must learn of it together. Here each group has only one.
        if grown.is_set() and events.layout.partitions == PARTITIONS:
            events = family(ports, 2 * PARTITIONS, grown_from=PARTITIONS)
        user = dice.choice(list(numbers))
        numbers[user] += 1
        payload = f"{user} {numbers[user]}"
        # The id makes a repetition harmless. The score gives the place in the group: without it that is the time of
        # arrival, and the clocks of two nodes that follow each other as primary of the partition may differ.
        events.send(payload, id=payload, group=user, score=numbers[user])
        journal.write("sent", user, numbers[user])
        time.sleep(PRODUCERS / options.rate)


def consume(options, ports, folder, name):
    journal, dice = Journal(folder, name), random.Random(name)
    # Workers are killed all the time here, which is no message's fault.
    worker = Worker(family(ports), concurrency=8, lease=LEASE_MS, consumer=name, lost_workers=0)

    @worker.handler()
    def handle(message):
        user, number = message.text.split()
        journal.write("begin", user, int(number))
        time.sleep(dice.uniform(0, 2 * options.handler_ms) / 1000)
        journal.write("done", user, int(number))

    worker.run()


def play(options, cluster, folder):
    ports = cluster.ports
    primaries, replica = ports[:3], ports[3]
    events = family(ports)
    settings = {"lease": LEASE_MS, "retries": -1, "dedup": 60_000}
    events.ensure(**settings)
    started = time.monotonic()

    def tell(text):
        print(f"{time.monotonic() - started:5.1f} s  {text}", flush=True)

    def layout():
        owners = cluster.owners()
        homes = [owners.get(events.client.keyslot(queue.key)) for queue in events.queues()]
        return homes, ", ".join(
            f"node {ports.index(port)}: {homes.count(port)}" for port in sorted(set(homes), key=ports.index)
        )

    def reshard(source, target):
        before, _ = layout()
        cluster.reshard(source, target, options.slots)
        after, text = layout()
        moved = sum(old != new for old, new in zip(before, after))
        tell(
            f"{options.slots} slots from node {ports.index(source)} to node {ports.index(target)}: "
            f"{moved} partitions moved ({text})"
        )
        return moved

    workers, moved = [], 0
    grown, changed = multiprocessing.Event(), multiprocessing.Event()

    def join():
        name = f"worker-{len(workers)}"
        workers.append(multiprocessing.Process(target=consume, args=(options, ports, folder, name), name=name))
        workers[-1].start()

    producers = [
        multiprocessing.Process(target=produce, args=(options, ports, folder, grown, changed, number))
        for number in range(PRODUCERS)
    ]
    try:
        tell(f"{PARTITIONS} partitions: {layout()[1]}")
        for _ in range(2):
            join()
        for process in producers:
            process.start()
        time.sleep(options.seconds * 0.1)
        moved += reshard(primaries[0], primaries[2])
        join()
        tell("a consumer joined")
        # The queues first, then the producers.
        events = family(ports, 2 * PARTITIONS, grown_from=PARTITIONS)
        events.ensure(**settings)
        grown.set()
        tell(f"{2 * PARTITIONS} partitions: {layout()[1]}")
        moved += reshard(primaries[1], primaries[0])
        cluster.fail_over(replica)
        tell(f"node 0 failed over to its replica, node 3 ({layout()[1]})")
        moved += reshard(primaries[2], replica)
        changed.set()
        for process in producers:
            process.join()
        tell("all events sent")
        end = time.monotonic() + LEASE_MS / 1000 + 30
        while (sum(queue.len() for queue in events.queues()) or events.moving()) and time.monotonic() < end:
            time.sleep(0.05)
        tell("all partitions empty")
    finally:
        for process in workers + producers:
            if process.is_alive():
                process.terminate()
        for process in workers + producers:
            process.join()
    failed = [process.name for process in workers + producers if process.exitcode != 0]
    print(f"partitions moved         {moved}")
    return 0 if report(folder) and moved and not failed else 1


def main():
    module = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../target/release/libdq.so")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default=module, help="the module's .so")
    parser.add_argument("--redis-server", default="redis-server")
    parser.add_argument("--redis-cli", default="redis-cli")
    parser.add_argument("--seconds", type=float, default=20, help="for how long events are sent, at least")
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--rate", type=float, default=300, help="events a second")
    parser.add_argument("--handler-ms", type=float, default=4)
    parser.add_argument("--slots", type=int, default=1000, help="how many slots each move takes")
    options = parser.parse_args()
    local = LocalCluster(options.redis_server, options.redis_cli, options.module)
    with local as cluster, tempfile.TemporaryDirectory() as folder:
        return play(options, cluster, folder)


if __name__ == "__main__":
    sys.exit(main())
