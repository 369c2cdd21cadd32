"""What a message costs the servers through a family, beside one through a plain queue.

Also whether the number of partitions matters.
"""

import re
import subprocess
import tempfile
import time
from pathlib import Path

from tests.harness.server import Server, engine
from tests.harness.topology import Cluster
from tests.harness.wire import Wire
from tests.load.families.wires import FAMILY, queues

PAYLOAD = b"x" * 100
# Commands on their way at a time.
DEPTH = 64
# The largest number of partitions that is looked at.
MOST = 1024


def rounds(homes: list, messages: int) -> None:
    """Sends so many messages to queues in rotation, then takes and finishes them, node by node."""
    of_wire = {}
    for n in range(messages):
        key, wire = homes[n % len(homes)]
        of_wire.setdefault(wire, []).append(key)
    for wire, keys in of_wire.items():
        for at in range(0, len(keys), DEPTH):
            some = keys[at : at + DEPTH]
            wire.send_many([("DQ.SEND", key, PAYLOAD) for key in some])
            replies = [wire.recv() for _ in some]
            assert all(isinstance(reply, bytes) and len(reply) == 36 for reply in replies), replies[0]
        left = len(keys)
        while left:
            ask = min(left, DEPTH)
            given = taken(wire, homes, ask)
            assert len(given) == ask
            wire.send_many([("DQ.ACK", key, receipt) for key, receipt in given])
            assert [wire.recv() for _ in given] == [1] * ask
            left -= ask


def taken(wire: Wire, homes: list, count: int) -> list:
    """The queue and the receipt of so many messages, one in a reply."""
    if len(homes) == 1 and not homes[0][0].startswith(f"{FAMILY}:"):
        key = homes[0][0]
        wire.send_many([("DQ.FETCH", key)] * count)
        return [(key, wire.recv()[0][1]) for _ in range(count)]
    wire.send_many([("DQ.NFETCH", FAMILY)] * count)
    return [(reply[0], reply[1][0][1]) for reply in (wire.recv() for _ in range(count))]


class Setting:
    """Servers, and the queues that messages go to."""

    def __init__(self, name: str, nodes: int, partitions: int):
        """No partitions: a plain queue. No nodes: a server that is not in a cluster."""
        self.name = name
        self.cluster = Cluster(nodes=nodes).start() if nodes else None
        self.servers = self.cluster.nodes if self.cluster else [Server().start()]
        if partitions and self.cluster:
            self.homes = queues(self.cluster, partitions)
        else:
            wire = self.servers[0].wire(protocol=2)
            # A name whose slot is on the first node.
            wire.ok("DQ.CREATE", "plain:{3}")
            self.homes = [("plain:{3}", wire)]

    def us_a_message(self, messages: int) -> float:
        """Processor time of all servers for each message, in us."""
        before = sum(server.cpu_seconds() for server in self.servers)
        rounds(self.homes, messages)
        return (sum(server.cpu_seconds() for server in self.servers) - before) / messages * 1e6

    def close(self) -> None:
        for part in [self.cluster] if self.cluster else self.servers:
            part.close()


class Counted(Server):
    """A server under callgrind. `count` counts its instructions."""

    def launch(self) -> int:
        self.counts = Path(tempfile.mkdtemp(prefix="dq-count-"))
        self.process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--quiet", "--instr-atstart=no", f"--callgrind-out-file={self.counts}/count",
             engine(), str(self._write_conf())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return self.process.pid

    def count(self, work) -> int:
        """The instructions that the server takes while `work` runs."""
        self._tell("--instr=on")
        work()
        self._tell("--instr=off")
        self._tell("--dump=now")
        (dump,) = self.counts.glob("count.*")
        found = re.search(r"^totals: (\d+)", dump.read_text(), re.MULTILINE)
        dump.unlink()
        return int(found[1])

    def _tell(self, what: str) -> None:
        subprocess.run(["callgrind_control", what, str(self.pid)], check=True, capture_output=True)


def instructions(partitions: int, counted: int, idle: float) -> dict:
    """Instructions of an NFETCH, of one that gives nothing, and of a second without commands while a client waits."""
    server = Counted().start(timeout=120)
    try:
        wire = server.wire(protocol=2, timeout=120)
        keys = [f"{FAMILY}:{{{n}}}" for n in range(partitions)]
        # What a queue does the first time is not counted, and none of them is emptied.
        left = -(-(counted + MOST) // MOST) + 1
        for _ in range(left * MOST // partitions):
            wire.send_many([("DQ.SEND", key, PAYLOAD) for key in keys])
            [wire.recv() for _ in keys]

        def ask(count):
            def work():
                for at in range(0, count, DEPTH):
                    wire.send_many([("DQ.NFETCH", FAMILY, "NOACK")] * DEPTH)
                    [wire.recv() for _ in range(DEPTH)]

            return work

        ask(MOST)()
        gives = server.count(ask(counted)) / counted
        while wire.ok("DQ.NFETCH", FAMILY, "NOACK"):
            pass
        nothing = server.count(ask(counted)) / counted
        # A delayed message in each queue, far away.
        for key in keys:
            wire.ok("DQ.SEND", key, PAYLOAD, "DELAY", 86_400_000)
        waiting = server.wire(protocol=2)
        waiting.send("DQ.NFETCH", FAMILY, "BLOCK", 0)
        server.wait_blocked(1)
        slices = server.count(lambda: time.sleep(idle)) / idle
        return {"gives": gives, "nothing": nothing, "idle": slices}
    finally:
        server.close()
