"""python -m tests.effects.faults --cuts 1000 --failovers 200: whether counters are the acknowledged messages after a fault.

Each acknowledgement counts itself in several keys by APPLY. A log is torn at every byte of its last entries, with and
without a preamble, and a server starts from what is left. Then primaries are killed under traffic and their replicas take
over. After each fault all counters must be what the queue says of its messages. The exit status is 1 if one was not.
"""

import argparse
import os
import random
import shutil
import sys
import threading
import time

from tests.harness.aof import increments
from tests.harness.replies import as_map, as_maps
from tests.harness.server import Server, engine
from tests.harness.topology import Pair, wait_replicated
from tests.harness.wire import Error

FAR = 2**50
AOF = {"appendonly": "yes", "appendfsync": "no", "auto-aof-rewrite-percentage": "0"}
LEASE = 60
"""In ms: short, so that some workers come too late."""


def apply(id) -> list:
    """The words by which the acknowledgement of a message counts itself."""
    effects = [("INCRBY", "n", 1), ("HINCRBY", "h", id, 1), ("RPUSH", "l", id), ("XADD", "s", 1, "id", id), ("ZINCRBY", "z", 1, id)]
    return ["APPLY", len(effects), *(word for effect in effects for word in effect)]


def wrong(client) -> str:
    """The counters that are not the acknowledged messages, in words; empty if all are."""
    if not client.exists("q"):
        return ""
    acked = as_map(client.execute_command("DQ.INFO", "q"))["acked"]
    counts = {"n": int(client.get("n") or 0), "h": client.hlen("h"), "l": client.llen("l"), "s": client.xlen("s"), "z": client.zcard("z")}
    ids, cursor = set(), None
    while cursor != b"0":
        cursor, rows = client.execute_command("DQ.LIST", "q", "finished", "CURSOR", cursor or 0, "COUNT", 10_000)
        ids |= {row["id"] for row in as_maps(rows)}
    counted = client.hgetall("h")
    if set(counts.values()) != {acked} or set(counted) != ids or set(counted.values()) - {b"1"}:
        return f"{acked} acked, {len(ids)} finished, and {counts}"
    return ""


class Worker:
    """Takes messages and acknowledges them in each way, some too late, with a stale receipt or a condition that does not
    hold.
    """

    def __init__(self, wire, seed):
        self.wire, self.rng, self.n, self.name = wire, random.Random(seed), 0, f"w{seed}"

    def step(self):
        rng = self.rng
        self.wire.ok("DQ.SEND", "q", "x")
        messages = self.wire.ok("DQ.FETCH", "q", "LEASE", LEASE, "CONSUMER", self.name)
        while messages:
            id, receipt = messages[0][:2]
            messages = []
            if rng.random() < 0.02:
                time.sleep(LEASE * 1.5 / 1000)
            if rng.random() < 0.1:
                self.wire.call("DQ.ACK", "q", receipt, *apply(id), "IF", 1, "MISSING", "q")
            match rng.randrange(4):
                case 0:
                    self.n += 1
                    options = ("LEASE", LEASE, "CONSUMER", self.name, "TOKEN", self.n)
                    reply = self.wire.call("DQ.FETCH", "q", *options, "ACK", 1, receipt, *apply(id))
                    messages = reply[1] if isinstance(reply, list) else []
                case 1:
                    reply = self.wire.call("DQ.ACKSEND", "q", receipt, *apply(id), "NEXT", "q", "y")
                case _:
                    reply = self.wire.call("DQ.ACK", "q", receipt, *apply(id))
            assert not isinstance(reply, Error), reply
            if rng.random() < 0.1:
                reply = self.wire.call("DQ.ACK", "q", receipt, *apply(id))
                assert reply is None, f"a stale receipt: {reply}"


def create(wire):
    wire.ok("DQ.CREATE", "q", "RETRIES", -1, "RETAIN", FAR, "RETAINCOUNT", 0)


def torn(cuts, preamble, seed, steps=60) -> list:
    """Tears a log at each of its last bytes. Returns what was wrong."""
    conf = AOF | {"aof-use-rdb-preamble": preamble, "aof-load-truncated": "yes"}
    source, twin = Server(**conf).start(), Server(**conf)
    try:
        with source.wire() as wire:
            create(wire)
            worker = Worker(wire, seed)
            for _ in range(steps):
                worker.step()
            wire.ok("BGREWRITEAOF")
            while source.info("persistence")["aof_rewrite_in_progress"] != "0":
                time.sleep(0.01)
            begin, left = increments(source)[0].stat().st_size, steps
            while left > 0 or increments(source)[0].stat().st_size - begin < cuts:
                worker.step()
                left -= 1
        found = [text] if (text := wrong(source.client())) else []
        [log] = increments(source)
        whole, folder = log.stat().st_size, twin.dir / "appendonlydir"
        for size in range(whole - 1, whole - 1 - cuts, -1):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(source.dir / "appendonlydir", folder)
            os.truncate(folder / log.name, size)
            twin.start()
            if text := wrong(twin.client()):
                found.append(f"a log cut at byte {size} of {whole}, preamble {preamble}: {text}")
            twin.kill9()
        return found
    finally:
        source.close()
        twin.close()


def failovers(times, seed, workers=2) -> list:
    """Kills primaries under traffic, and lets their replicas take over. Returns what was wrong."""
    rng, found = random.Random(seed), []
    pair = Pair(**AOF).start()
    servers = [pair.primary, pair.replica]
    try:
        for number in range(times):
            primary, replica = servers
            if number % 10 == 0:
                with primary.wire() as wire:
                    wire.ok("FLUSHALL")
                    create(wire)
                # A queue that the replica has not got would be made by a SEND, and keep no records.
                wait_replicated(primary, replica)
            threads = [Traffic(primary, rng.randrange(2**31)) for _ in range(workers)]
            time.sleep(rng.uniform(0.1, 0.4))
            primary.process.kill()
            primary.process.wait()
            for thread in threads:
                thread.join()
                found += thread.errors
            with replica.wire() as wire:
                wire.ok("REPLICAOF", "NO", "ONE")
            if text := wrong(replica.client()):
                found.append(f"failover {number}: {text}")
            primary.drop_clients()
            primary.start()
            if text := wrong(primary.client()):
                found.append(f"restart {number}: {text}")
            Pair.of(replica, primary)
            servers.reverse()
        return found
    finally:
        for server in servers:
            server.close()


class Traffic(threading.Thread):
    """A worker until its server is gone."""

    def __init__(self, server, seed):
        super().__init__(daemon=True)
        self.server, self.seed, self.errors = server, seed, []
        self.start()

    def run(self):
        try:
            with self.server.wire() as wire:
                worker = Worker(wire, self.seed)
                while True:
                    worker.step()
        except OSError:
            pass
        except AssertionError as error:
            self.errors.append(str(error))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.effects.faults", description=__doc__)
    parser.add_argument("--cuts", type=int, default=1_000, help="for each of the two forms of the log (default %(default)s)")
    parser.add_argument("--failovers", type=int, default=200, help="how many (default %(default)s)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="where the random numbers start")
    args = parser.parse_args()
    bad = 0
    print(f"{engine()}, seed {args.seed}", flush=True)
    for name, run in (
        (f"{args.cuts} cuts, with a preamble", lambda: torn(args.cuts, "yes", args.seed)),
        (f"{args.cuts} cuts, without", lambda: torn(args.cuts, "no", args.seed)),
        (f"{args.failovers} failovers", lambda: failovers(args.failovers, args.seed)),
    ):
        began = time.monotonic()
        found = run()
        bad += len(found)
        print(f"{name:<32}{len(found):>6} differences {time.monotonic() - began:>8.0f} s", flush=True)
        for text in found[:10]:
            print(f"  {text}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
