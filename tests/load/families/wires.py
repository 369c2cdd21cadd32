"""Connections that wait in NFETCH at the nodes of a cluster, and the commands to them."""

import selectors
import time

from tests.harness.server import Server, wait_for
from tests.harness.topology import Cluster
from tests.harness.wire import Wire, encode
from tests.load.large_queues import raise_limit
from tests.torture.family_actors import routing

FAMILY = "load"
ASK = encode(["DQ.NFETCH", FAMILY, "BLOCK", 0])


class Crowd:
    """Consumers, each with one waiting connection to each node."""

    def __init__(self, cluster: Cluster, consumers: int):
        raise_limit(2 * consumers * len(cluster.nodes) + 1000)
        self.selector = selectors.DefaultSelector()
        self.wires = []
        for node in cluster.nodes:
            for _ in range(consumers):
                wire = Wire(node.port, protocol=2, timeout=60)
                wire.sock.sendall(ASK)
                self.selector.register(wire.sock, selectors.EVENT_READ, wire)
                self.wires.append(wire)
        for node in cluster.nodes:
            node.wait_blocked(consumers, timeout=120)

    def close(self) -> None:
        for wire in self.wires:
            wire.close()
        self.selector.close()

    def wake_ups(self, homes: list, messages: int, rate: float) -> tuple:
        """Sends messages to random queues, at an even rate. Returns the seconds until a consumer had each of them.

        A PING to the node goes before it, to show how fast the machine is then: its seconds come second. `homes` are
        the queues, each with the connection to its node.
        """
        took, pings, due = [], [], time.perf_counter()
        for n in range(messages):
            key, wire = homes[n * 7919 % len(homes)]
            due = max(due + 1 / rate, time.perf_counter())
            time.sleep(max(0.0, due - time.perf_counter()))
            began = time.perf_counter()
            wire.call("PING")
            pings.append(time.perf_counter() - began)
            began = time.perf_counter()
            wire.sock.sendall(encode(["DQ.SEND", key, "x" * 100]))
            [(found, _)] = self.selector.select(timeout=10)[:1]
            took.append(time.perf_counter() - began)
            wire.recv()
            waiting = found.data
            given, [[_, receipt, *_]] = waiting.recv()
            assert given == key.encode()
            waiting.sock.sendall(encode(["DQ.ACK", given, receipt]) + ASK)
            assert waiting.recv() == 1
        return sorted(took), sorted(pings)


def queues(cluster: Cluster, partitions: int) -> list:
    """Makes the queues of the family. Returns the name of each with a connection to its node."""
    wires = [node.wire(protocol=2, timeout=60) for node in cluster.nodes]
    homes = []
    for key in routing.queues(FAMILY, partitions):
        slot = routing.slot(key[len(FAMILY) + 2 : -1])
        wire = wires[slot // -(-routing.SLOTS // len(wires))]
        wire.ok("DQ.CREATE", key)
        homes.append((key, wire))
    return homes


def idle_cpu(servers: list, seconds: float) -> float:
    """The part of one processor that these servers use together while they get no commands, in percent."""
    before = sum(server.cpu_seconds() for server in servers)
    time.sleep(seconds)
    return (sum(server.cpu_seconds() for server in servers) - before) / seconds * 100


def used_memory(server: Server) -> int:
    """The used bytes, after freed memory has been returned."""
    wait_for(lambda: int(server.info("memory")["lazyfree_pending_objects"]) == 0, what="the freeing")
    return int(server.info("memory")["used_memory"])
