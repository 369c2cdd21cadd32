"""python -m tests.effects.peers --stops 20: one program on dq, on streams, on BullMQ and on Celery, and what its counter says.

Three workers take messages, work for 50 ms, add one to a counter in Redis and acknowledge, in one step where the queue has
such a step. Again and again one of them is stopped for longer than its lease, as by a pause of a virtual machine, while
the others go on. In the end every message was worked on, and the counter should be their number. The exit status is 1 if
dq's is not.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import redis

from tests.harness.optional import need
from tests.harness.server import ROOT, Server, wait_for
from tests.harness.wire import Wire

WORK = 0.05
"""How long a message is worked on, in seconds."""
WORKERS = 3
MODULES = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "node-client/node_modules"


class Dq:
    """DQ.ACK with APPLY."""

    name, lease = "dq, APPLY", 1.0
    stop = 1.6
    """How long a worker is stopped, in seconds, as `lease` is."""

    def __init__(self, server):
        self.server, self.port = server, server.port
        self.wire = server.wire()
        self.setup()

    def setup(self):
        self.wire.ok("DQ.CREATE", "q", "RETRIES", -1, "LEASE", int(self.lease * 1000))

    def send(self, id):
        self.wire.ok("DQ.SEND", "q", id)

    def command(self, name):
        return [sys.executable, "-m", "tests.effects.peers", "--worker", type(self).__name__, str(self.port), name]

    @classmethod
    def work(cls, wire, name):
        """Works for ever."""
        while True:
            for _, receipt, _, body in wire.ok("DQ.FETCH", "q", "BLOCK", 1000):
                time.sleep(WORK)
                wire.ok("DQ.ACK", "q", receipt, "APPLY", 2, "INCRBY", "count", 1, "SADD", "done", body)

    @staticmethod
    def version():
        return "this commit"


class Streams(Dq):
    """XREADGROUP, and a MULTI with the effects and XACK. XAUTOCLAIM takes what a worker has held for too long."""

    name = "streams, MULTI with XACK"

    def setup(self):
        self.wire.ok("XGROUP", "CREATE", "stream", "group", "$", "MKSTREAM")

    def send(self, id):
        self.wire.ok("XADD", "stream", "*", "id", id)

    @classmethod
    def work(cls, wire, name):
        while True:
            entries = wire.ok("XAUTOCLAIM", "stream", "group", name, int(cls.lease * 1000), "0", "COUNT", 1)[1]
            if not entries:
                read = wire.ok("XREADGROUP", "GROUP", "group", name, "COUNT", 1, "BLOCK", 200, "STREAMS", "stream", ">")
                entries = read[b"stream"] if read else []
            for entry, [_, id] in entries:
                time.sleep(WORK)
                wire.send_many([
                    ("MULTI",), ("INCRBY", "count", 1), ("SADD", "done", id), ("XACK", "stream", "group", entry), ("EXEC",)
                ])  # fmt: skip
                for _ in range(5):
                    wire.recv()

    def version(self):
        return f"Redis {self.server.info('server')['redis_version']}"


class BullMQ(Dq):
    """A processor that adds to the counter; BullMQ acknowledges when it returns."""

    name = "BullMQ"

    def setup(self):
        need((MODULES / "bullmq").exists(), "BullMQ")
        script = ["node", str(ROOT / "tests/effects/bullmq.cjs"), "send", str(self.port)]
        self.sender = subprocess.Popen(script, stdin=subprocess.PIPE, env=self.env(), text=True)

    def env(self):
        return os.environ | {"NODE_PATH": str(MODULES), "LEASE": str(int(self.lease * 1000)), "WORK": str(int(WORK * 1000))}

    def send(self, id):
        self.sender.stdin.write(f"{id}\n")
        self.sender.stdin.flush()

    def command(self, name):
        return ["node", str(ROOT / "tests/effects/bullmq.cjs"), "work", str(self.port)]

    def version(self):
        return f"BullMQ {json.loads((MODULES / 'bullmq/package.json').read_text())['version']}"


class Celery(Dq):
    """A task with acks_late over the Redis transport. By default that looks every hundred seconds for what was held too
    long, here every second.
    """

    name, lease, stop = "Celery, acks_late", 3.0, 6.0

    def setup(self):
        from tests.effects import celery_app

        self.app = celery_app.configure(self.port)

    def send(self, id):
        self.app.send_task("work", (id,))

    def command(self, name):
        return [sys.executable, "-m", "tests.effects.celery_app", str(self.port), name]

    def version(self):
        return f"Celery {version('celery')}, kombu {version('kombu')}"


SYSTEMS = {system.__name__.lower(): system for system in (Dq, Streams, BullMQ, Celery)}


def measure(system, stops, seed) -> tuple:
    """Stops workers so many times. Returns the number of messages, the counter, and the versions."""
    rng, server = random.Random(seed), Server().start()
    workers = []
    try:
        peer, client = SYSTEMS[system](server), server.client()
        env = peer.env() if isinstance(peer, BullMQ) else os.environ
        # A worker may have processes of its own, which are stopped with it.
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        workers = [subprocess.Popen(peer.command(f"w{n}"), cwd=ROOT, env=env, **quiet) for n in range(WORKERS)]
        sent = 0

        def send(seconds):
            nonlocal sent
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                sent += 1
                peer.send(f"m{sent}")
                # As fast as two workers can work.
                time.sleep(WORK / 2)

        send(0.1)
        wait_for(lambda: client.scard("done") > 0, 60, "the workers to begin")
        for _ in range(stops):
            send(0.5)
            worker = rng.choice(workers)
            os.killpg(worker.pid, signal.SIGSTOP)
            send(peer.stop + rng.random())
            os.killpg(worker.pid, signal.SIGCONT)
        wait_for(lambda: client.scard("done") == sent, 300, "all messages to be worked on")
        # A message that was taken twice comes to its end, too.
        time.sleep(2 + peer.lease)
        return sent, int(client.get("count")), peer.version()
    finally:
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        with contextlib.suppress(AttributeError, NameError):
            peer.sender.kill()
        server.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.effects.peers", description=__doc__)
    parser.add_argument("--stops", type=int, default=20, help="how often a worker is stopped (default %(default)s)")
    parser.add_argument("--system", action="append", choices=SYSTEMS, help="only this one; may be given several times")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="where the random numbers start")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        system, port, name = args.worker
        with Wire(int(port)) as wire, contextlib.suppress(OSError, redis.RedisError):
            SYSTEMS[system.lower()].work(wire, name)
        return 0
    print("| queue | stops | messages | counted | too many | version |\n|---|---|---|---|---|---|", flush=True)
    bad = 0
    for system in args.system or SYSTEMS:
        sent, counted, versions = measure(system, args.stops, args.seed)
        print(f"| {SYSTEMS[system].name} | {args.stops} | {sent} | {counted} | {counted - sent} | {versions} |", flush=True)
        bad += system == "dq" and counted != sent
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
