"""The cost of a message for the servers through a family, beside one through a plain queue.

Also whether the number of partitions matters.
"""

import re
import subprocess
import tempfile
import time
from pathlib import Path

from tests.harness.server import Server, engine, wait_for
from tests.harness.topology import Cluster
from tests.harness.wire import Wire
from tests.load.families.wires import FAMILY, idle_cpu, queues
from tests.torture.family_actors import routing

PAYLOAD = b"x" * 100
# The number of commands that are sent before a reply.
DEPTH = 64
# The largest number of partitions that is measured.
MOST = 1024


def rounds(homes: list, messages: int, count: int, crowd: dict | None = None) -> None:
    """Sends this number of messages to queues in rotation, then takes and finishes them, node by node.

    Messages are sent in a stream. They are taken `count` at a time, and each reply is awaited, as by a consumer. `crowd`
    has the connections of more consumers by the connection of their node: they take at the same time.
    """
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
        consumers = crowd[wire] if crowd else [wire]
        while left:
            # All consumers send before one of them reads, so that the server always has work.
            asking = consumers[: -(-left // count)]
            for consumer in asking:
                ask(consumer, homes, count)
            taken = [(consumer, *received(consumer, homes)) for consumer in asking]
            for consumer, key, receipts in taken:
                consumer.send("DQ.ACK", key, *receipts)
            for consumer, _, receipts in taken:
                assert consumer.recv() == len(receipts)
                left -= len(receipts)


def is_family(homes: list) -> bool:
    return homes[0][0].startswith(f"{FAMILY}:")


def ask(wire: Wire, homes: list, count: int) -> None:
    """Asks for up to this number of messages."""
    if is_family(homes):
        wire.send("DQ.NFETCH", FAMILY, "COUNT", count)
    else:
        wire.send("DQ.FETCH", homes[0][0], "COUNT", count)


def received(wire: Wire, homes: list) -> tuple:
    """The queue and the receipts of the delivery."""
    reply = wire.recv()
    assert isinstance(reply, list), reply
    key, messages = reply if is_family(homes) else (homes[0][0], reply)
    return key, [message[1] for message in messages]


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
        # Each server uses some processor time even when idle. More nodes use more of it, so it is not a cost of a
        # message.
        self.idle = idle_cpu(self.servers, 2) / 100

    def crowd(self, consumers: int) -> dict:
        """Returns `consumers` connections to each node, by the connection that sends to it."""
        ports = {wire: wire.sock.getpeername()[1] for _, wire in self.homes}
        return {wire: [Wire(port, protocol=2) for _ in range(consumers)] for wire, port in ports.items()}

    def us_a_message(self, messages: int, count: int, crowd: dict | None = None) -> float:
        """Processor time of all servers for each message, in us, less their idle time."""
        before, began = sum(server.cpu_seconds() for server in self.servers), time.monotonic()
        rounds(self.homes, messages, count, crowd)
        took, lasted = sum(server.cpu_seconds() for server in self.servers) - before, time.monotonic() - began
        return (took - self.idle * lasted) / messages * 1e6

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
        """The instructions that the server runs during `work`."""
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
    """Instructions of an NFETCH, of one without a message, and of a second without commands while a client waits."""
    server = Counted().start(timeout=120)
    try:
        wire = server.wire(protocol=2, timeout=120)
        keys = [f"{FAMILY}:{{{n}}}" for n in range(partitions)]
        # The first operations of a queue are not counted, and none of the queues is emptied.
        left = -(-(counted + MOST) // MOST) + 1
        for _ in range(left * MOST // partitions):
            wire.send_many([("DQ.SEND", key, PAYLOAD) for key in keys])
            [wire.recv() for _ in keys]

        def ask(count):
            def work():
                # The messages are taken one by one, as by a consumer.
                for _ in range(count):
                    wire.ok("DQ.NFETCH", FAMILY, "NOACK")

            return work

        ask(MOST)()
        gives = server.count(ask(counted)) / counted
        while wire.ok("DQ.NFETCH", FAMILY, "NOACK"):
            pass
        nothing = server.count(ask(counted)) / counted
        # Adds a delayed message to each queue, due far in the future.
        for key in keys:
            wire.ok("DQ.SEND", key, PAYLOAD, "DELAY", 86_400_000)
        waiting = server.wire(protocol=2)
        waiting.send("DQ.NFETCH", FAMILY, "BLOCK", 0)
        server.wait_blocked(1)
        slices = server.count(lambda: time.sleep(idle)) / idle
        return {"gives": gives, "nothing": nothing, "idle": slices}
    finally:
        server.close()


def of_a_message(partitions: int, messages: int, count: int) -> float:
    """Instructions of the one node of a cluster for each message of a family; without partitions, of a plain queue."""
    server = Counted(cluster_enabled="yes").start(timeout=120)
    try:
        wire = server.wire(protocol=2, timeout=120)
        wire.ok("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_for(lambda: b"cluster_state:ok" in wire.ok("CLUSTER", "INFO"), 60, "the cluster")
        homes = [(key, wire) for key in routing.queues(FAMILY, partitions)] if partitions else [("plain", wire)]
        # The first operations of a server and its queues are not counted.
        rounds(homes, messages, count)
        return server.count(lambda: rounds(homes, messages, count)) / messages
    finally:
        server.close()
