"""python -m tests.effects.cost: the processor time of the server for an ACK with one INCRBY, beside the two commands.

An ACK with APPLY of one INCRBY should cost no more than 1.3 times an ACK and an INCRBY, sent one at a time as workers do.
A pipeline shares what the server spends on reading requests and writing replies: --pipeline 100 shows what is left without
it. With --other the ACK without APPLY is measured on another build of the module, too: they should differ by less than one
part in a hundred. Processor time depends on what else the machine does; --instructions counts instructions instead, under
valgrind. The exit status is 1 if a limit is passed.
"""

import argparse
import os
import re
import subprocess
import sys

from tests.harness.server import Server, engine
from tests.harness.wire import encode

FILLED = 100
LIMIT, SAME = 1.3, 0.01
TOTAL = re.compile(r"^totals: (\d+)", re.MULTILINE)


class Counted(Server):
    """A server under callgrind, whose instructions are counted while `count` runs."""

    def launch(self) -> int:
        words = ["valgrind", "--tool=callgrind", "--quiet", "--instr-atstart=no", f"--callgrind-out-file={self.dir}/count"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([*words, engine(), str(self._write_conf())], **quiet)
        return self.process.pid

    def count(self, work) -> float:
        self.tell("--instr=on")
        work()
        self.tell("--instr=off")
        self.tell("--dump=now")
        [dump] = self.dir.glob("count.*")
        found = TOTAL.search(dump.read_text())
        dump.unlink()
        return float(found[1])

    def tell(self, what):
        subprocess.run(["callgrind_control", what, str(self.pid)], check=True, capture_output=True)


class Timed(Server):
    """A server whose processor time is measured while `count` runs, in microseconds."""

    def count(self, work) -> float:
        before = self.cpu_seconds()
        work()
        return (self.cpu_seconds() - before) * 1e6


def commands(wire, kind, count) -> list:
    """The commands to measure."""
    if kind == "INCRBY":
        return [("INCRBY", "n", 1)] * count
    for _ in range(count // FILLED):
        wire.send_many([("DQ.SEND", "q", "x")] * FILLED)
        for _ in range(FILLED):
            wire.recv()
    receipts = []
    while len(receipts) < count:
        receipts += [message[1] for message in wire.ok("DQ.FETCH", "q", "COUNT", 10_000, "LEASE", 10**9)]
    more = ("APPLY", 1, "INCRBY", "n", 1) if kind == "both" else ()
    return [("DQ.ACK", "q", receipt, *more) for receipt in receipts]


def cost(server, kind, count, pipeline) -> float:
    """The cost of one command, of which so many are sent at a time."""
    with server.wire(timeout=300) as wire:
        wire.ok("FLUSHALL")
        all = commands(wire, kind, count)
        parts = [b"".join(map(encode, all[at : at + pipeline])) for at in range(0, count, pipeline)]

        def work():
            for part in parts:
                wire.sock.sendall(part)
                for _ in range(pipeline):
                    wire.recv()

        return server.count(work) / count


def measure(modules, kinds, count, rounds, conf, pipeline=1, instructions=False) -> dict:
    """The least cost of each kind on each module over some rounds, in which they take turns."""
    servers, least = {}, {}
    before = os.environ.get("DQ_MODULE")
    try:
        for module in modules:
            if module:
                os.environ["DQ_MODULE"] = module
            servers[module] = (Counted if instructions else Timed)(**conf).start(300)
        for _ in range(rounds):
            for module, server in servers.items():
                for kind in kinds if module == modules[0] else ["ACK"]:
                    took = cost(server, kind, count, pipeline)
                    least[module, kind] = min(took, least.get((module, kind), float("inf")))
        return least
    finally:
        if before:
            os.environ["DQ_MODULE"] = before
        for server in servers.values():
            server.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.effects.cost", description=__doc__)
    parser.add_argument("--count", type=int, help="commands of each kind and round (20000, or 5000 with --instructions)")
    parser.add_argument("--pipeline", type=int, default=1, help="commands that are sent at a time (default %(default)s)")
    parser.add_argument("--rounds", type=int, help="(9, or 1 with --instructions)")
    parser.add_argument("--other", help="another build of the module, for the ACK without APPLY")
    parser.add_argument("--instructions", action="store_true", help="count instructions, under valgrind")
    args = parser.parse_args()
    count = args.count or (5_000 if args.instructions else 20_000)
    rounds = args.rounds or (1 if args.instructions else 9)
    unit, bad = "instructions" if args.instructions else "us", 0
    for name, conf in (("without a log", {}), ("with a log, everysec", {"appendonly": "yes", "appendfsync": "everysec"})):
        modules = [os.environ.get("DQ_MODULE"), *([args.other] if args.other else [])]
        least = measure(modules, ["ACK", "INCRBY", "both"], count, rounds, conf, args.pipeline, args.instructions)
        ack, alone, both = (least[modules[0], kind] for kind in ("ACK", "INCRBY", "both"))
        ratio = both / (ack + alone)
        print(f"{name}, {unit}: ACK {ack:.2f}, INCRBY {alone:.2f}, ACK with INCRBY {both:.2f}: {ratio:.2f} times", flush=True)
        bad += ratio > LIMIT
        if args.other:
            change = ack / least[args.other, "ACK"] - 1
            print(f"{name}, {unit}: ACK without APPLY {ack:.2f} and {least[args.other, 'ACK']:.2f}: {change:+.1%}", flush=True)
            bad += abs(change) > SAME
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
