"""python -m tests.soak: mixed traffic by many processes for a long time, with measurements of the memory in between.

Every so often all of them stop, and one line is printed: the records there are, what the allocator
has given out since the beginning, what MEMORY USAGE says, the difference, bytes a record, the
resident size and the fragmentation. At the end the queues are deleted one by one, and what the
allocator gets back is compared with MEMORY USAGE. The exit status is 1 where that differs by more
than a twentieth, where the difference in between is more than that and what the server itself may
need, where a record takes more at the end than in the middle of the run, or where more than that is
left when the queues are deleted.
"""

import argparse
import multiprocessing
import sys
import time
from statistics import mean

import redis

from tests.harness.server import Server
from tests.soak.actors import ACTORS, create, play
from tests.soak.memory import MIB, Memory
from tests.soak.pauses import Pauses

MOST_OFF = 0.05
MOST_GROWTH = 0.05
# The memory that the server itself may have come to need meanwhile: tables of clients and of keys, the slow log.
MOST_LEFT = 2 * MIB
# Eager enough to have work in a soak of minutes.
DEFRAG = {
    "active-defrag-ignore-bytes": "1mb",
    "active-defrag-threshold-lower": "1",
    "active-defrag-cycle-min": "5",
    "activedefrag": "yes",
}
HEAD = (
    f"{'seconds':>8}{'records':>10}{'allocated':>12}{'MEMORY USAGE':>14}{'beside':>10}{'a record':>10}{'resident':>10}"
    f"{'fragmented':>12}{'moved':>9}"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1800, help="(default %(default)s)")
    parser.add_argument("--samples", type=int, default=20, help="how often memory is looked at (%(default)s)")
    parser.add_argument("--messages", type=int, default=50_000, help="the most in each of four queues (%(default)s)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="where the random numbers start")
    args = parser.parse_args()
    server = Server(appendonly="yes", auto_aof_rewrite_min_size="256mb").start()
    try:
        faults = soak(server, args)
    finally:
        server.close()
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def soak(server, args) -> list:
    """Runs the soak and prints its table. Returns the errors in words."""
    pauses = Pauses()
    client = server.client(socket_timeout=600)
    info = client.info("server")
    engine = f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"
    print(f"{engine}, {client.info('memory')['mem_allocator']}, seed {args.seed}; active defrag {defrag(client)}")
    processes = start(server, pauses, args.seed)
    try:
        pauses.pause(len(processes))
        memory = Memory(server)
        create(client, args.messages)
        print(HEAD, flush=True)
        samples = []
        for _ in range(args.samples):
            pauses.resume()
            time.sleep(args.seconds / args.samples)
            pauses.pause(len(processes))
            dead = [process.name for process in processes if not process.is_alive()]
            assert not dead, f"these ended too soon: {dead}"
            samples.append(memory.sample())
            show(samples[-1])
        removals = list(memory.take_away())
        for removal in removals:
            print(removal)
        left = memory.beyond()
    finally:
        pauses.end()
        for process in processes:
            process.join(5)
            process.kill()
    growth = grown(samples)
    print(f"a record grew by {growth:+.1%} from the middle third to the last; {left / MIB:.2f} MiB left at the end")
    return verdict(samples, removals, growth, left)


def start(server, pauses, seed) -> list:
    context = multiprocessing.get_context("fork")
    processes = []
    for n, kind in enumerate(ACTORS):
        process = context.Process(
            target=play, args=(kind, server.port, pauses, seed + n), name=f"{kind.__name__} {n}", daemon=True
        )
        process.start()
        processes.append(process)
    return processes


def defrag(client) -> str:
    """Turns active defragmentation on, where this server's allocator can do it."""
    try:
        for name, value in DEFRAG.items():
            client.config_set(name, value)
    except redis.ResponseError:
        return "not supported here"
    return "on"


def grown(samples) -> float:
    """The share by which a record's bytes in the last third of the samples exceed those in the middle third."""
    third = max(1, len(samples) // 3)
    middle, last = samples[-2 * third : -third] or samples[:1], samples[-third:]
    return mean(s.each for s in last) / mean(s.each for s in middle) - 1


def verdict(samples, removals, growth, left) -> list:
    faults = [
        f"after {s.seconds:.0f} s {s.beside / MIB:+.1f} MiB are beside what MEMORY USAGE says"
        for s in samples
        if abs(s.beside) > MOST_LEFT + MOST_OFF * s.told
    ]
    told, freed = sum(r.told for r in removals), sum(r.freed for r in removals)
    if abs(told - freed) > MOST_OFF * freed:
        faults.append(f"MEMORY USAGE said {told / MIB:.2f} MiB, and {freed / MIB:.2f} MiB came back")
    if growth > MOST_GROWTH:
        faults.append(f"a record takes {growth:.1%} more at the end than in the middle")
    if left > MOST_LEFT:
        faults.append(f"{left / MIB:.1f} MiB are left after all queues were deleted")
    return faults


def show(s) -> None:
    print(
        f"{s.seconds:>8.0f}{s.records:>10,}{s.allocated / MIB:>9.2f} MiB{s.told / MIB:>10.2f} MiB{s.beside / MIB:>+6.2f} MiB"
        f"{s.each:>10.1f}{s.resident / MIB:>6.0f} MiB{s.fragmentation:>12.2f}{s.defragmented:>9}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
