"""One logical queue over the nodes of a Redis Cluster, growing and failing over while traffic flows.

A queue is one key, so it lives on one node. A queue that is too busy for one node is cut into a fixed number of
partitions, 64 here, each a queue of its own: `events:{00}` to `events:{63}`. Redis Cluster places a key by the
hash of what stands in braces, so the partitions spread over the slots, and what belongs to a partition
(`events:{07}:done`, say) stays beside it.

* A producer sends an event of a user to partition crc32(user) % 64. All events of a user meet in one partition,
  where their group keeps them in order. The number of partitions never changes, so neither does a user's
  partition.
* A consumer waits at all partitions at once, each with a blocked DQ.FETCH in a thread: no polling and nothing
  to configure. Consumers come and go as they like.
* To grow, add a node and move slots to it (`redis-cli --cluster reshard`). Queues move with their slots, with
  leases and receipts. Clients follow by the redirections of the cluster; nothing is drained. 64 partitions
  serve up to 64 nodes.

This script starts a cluster of its own (three primaries, and a replica of the first), sends and handles events,
and meanwhile moves slots between nodes, lets a consumer join and fails one node over:

    python3 -m venv .venv && .venv/bin/pip install 'redis>=5'
    .venv/bin/python cluster.py --module ../../target/release/libdq.so --seconds 20

It prints what it does and, at the end, events lost and order violations; exit code 1 if there are any.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
import zlib

import redis
from history import Journal, report
from local_cluster import LocalCluster
from redis.cluster import ClusterNode, RedisCluster
from redis.crc import key_slot
from redis.exceptions import RedisClusterException

PARTITIONS = [f"events:{{{number:02}}}" for number in range(64)]
LEASE_MS = 3000
# While slots move or a node fails over any command can fail. In redis-py 5 and 6 the second is no kind of the first.
PASSING = (redis.RedisError, RedisClusterException)
PRODUCERS = 2


def connect(ports):
    nodes = [ClusterNode("127.0.0.1", port) for port in ports]
    # A blocked FETCH needs a connection of its own, so up to one for each partition on a node.
    return RedisCluster(startup_nodes=nodes, decode_responses=True, protocol=3, max_connections=200)


def partition_of(user):
    # Not hash(): it differs from process to process. crc32 is the same in every language.
    return PARTITIONS[zlib.crc32(user.encode()) % len(PARTITIONS)]


def surely(client, *command):
    """The reply to a command that may be repeated: while slots move or a node fails over, any command can fail."""
    while True:
        try:
            return client.execute_command(*command)
        except PASSING:
            time.sleep(0.02)


def produce(options, ports, folder, changed, producer):
    """Sends events of this producer's users, numbered from 1 for each user, until the cluster has changed for the last time."""
    client, journal, dice = connect(ports), Journal(folder, f"producer-{producer}"), random.Random(producer)
    numbers = {f"user-{user}": 0 for user in range(producer, options.users, PRODUCERS)}
    end = time.monotonic() + options.seconds
    while time.monotonic() < end or not changed.is_set():
        user = dice.choice(list(numbers))
        numbers[user] += 1
        payload = f"{user} {numbers[user]}"
        # The ID makes the repetition harmless. The SCORE gives the place in the group: without it that is the time of
        # arrival, and the clocks of two nodes that follow each other as primary of the partition may differ.
        surely(client, "DQ.SEND", partition_of(user), payload, "ID", payload, "GROUP", user, "SCORE", numbers[user])
        journal.write("sent", user, numbers[user])
        time.sleep(PRODUCERS / options.rate)


def consume_partition(client, journal, dice, stopped, handler_ms, partition):
    while not stopped.is_set():
        try:
            batch = client.execute_command("DQ.FETCH", partition, "BLOCK", 1000)
        except PASSING:
            # The partition moves or its node hands over: ask again, wherever it is now.
            time.sleep(0.02)
            continue
        for _id, receipt, _attempt, payload in batch:
            user, number = payload.split()
            journal.write("begin", user, int(number))
            time.sleep(dice.uniform(0, 2 * handler_ms) / 1000)
            journal.write("done", user, int(number))
            # Acknowledging twice does nothing; not acknowledging would repeat the event.
            surely(client, "DQ.ACK", partition, receipt)


def consume(options, ports, folder, name):
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda _signal, _frame: stopped.set())
    client, journal, dice = connect(ports), Journal(folder, name), random.Random(name)
    threads = [
        threading.Thread(
            target=consume_partition, args=(client, journal, dice, stopped, options.handler_ms, partition)
        )
        for partition in PARTITIONS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def play(options, cluster, folder):
    ports = cluster.ports
    primaries, replica = ports[:3], ports[3]
    client = connect(ports)
    for partition in PARTITIONS:
        client.execute_command("DQ.CREATE", partition, "LEASE", LEASE_MS, "RETRIES", -1, "DEDUP", 60_000)
    started = time.monotonic()

    def tell(text):
        print(f"{time.monotonic() - started:5.1f} s  {text}", flush=True)

    def layout():
        owners = cluster.owners()
        homes = [owners.get(key_slot(partition.encode())) for partition in PARTITIONS]
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

    workers, moved, changed = [], 0, multiprocessing.Event()

    def join():
        name = f"worker-{len(workers)}"
        workers.append(multiprocessing.Process(target=consume, args=(options, ports, folder, name), name=name))
        workers[-1].start()

    producers = [
        multiprocessing.Process(target=produce, args=(options, ports, folder, changed, number))
        for number in range(PRODUCERS)
    ]
    try:
        tell(f"64 partitions: {layout()[1]}")
        for _ in range(2):
            join()
        for process in producers:
            process.start()
        time.sleep(options.seconds * 0.1)
        moved += reshard(primaries[0], primaries[2])
        join()
        tell("a consumer joined")
        moved += reshard(primaries[1], primaries[0])
        cluster.fail_over(replica)
        tell(f"node 0 failed over to its replica, node 3 ({layout()[1]})")
        moved += reshard(primaries[2], replica)
        changed.set()
        for process in producers:
            process.join()
        tell("all events sent")
        end = time.monotonic() + LEASE_MS / 1000 + 30
        while any(surely(client, "DQ.LEN", partition) for partition in PARTITIONS) and time.monotonic() < end:
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
