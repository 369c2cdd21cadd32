"""The delay that consumers notice when a partition moves to another node, and when a node is added."""

import threading
import time
from dataclasses import dataclass

from tests.harness.server import Server
from tests.harness.topology import Cluster
from tests.torture.family_actors import Family, connect

EVERY = 0.002


@dataclass
class Move:
    """How long no message of a partition was delivered during its move, and the longest such time before the move,
    in ms.
    """

    gap: float
    still: float


class Stream:
    """A message every 2 ms to one queue of a family, and consumers that wait for them at all nodes."""

    def __init__(self, cluster: Cluster, consumers: int = 2):
        self.cluster = cluster
        ports = [node.port for node in cluster.nodes]
        self.families = [Family("moved", 16, connect(ports)) for _ in range(consumers + 1)]
        self.families[0].ensure(retries=-1)
        self.queue = self.families[0].queue("g")
        self.came, self.sent, self.is_over = [], 0, False
        self.threads = [threading.Thread(target=self._send)]
        self.threads += [threading.Thread(target=self._take, args=(family,)) for family in self.families[1:]]
        for thread in self.threads:
            thread.start()

    def _send(self) -> None:
        due = time.monotonic()
        while not self.is_over:
            due = max(due + EVERY, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
            self.queue.send("x")
            self.sent += 1

    def _take(self, family: Family) -> None:
        done = []
        while not self.is_over or len(self.came) < self.sent:
            done = family.fetch(block=500, ack=done, count=10)
            now = time.monotonic()
            self.came += [now] * len(done)
        family.ack(*done)

    def gap(self, since: float, until: float) -> float:
        """The longest time without a delivery in between, in ms."""
        times = sorted(at for at in [since, *self.came, until] if since <= at <= until)
        return max(b - a for a, b in zip(times, times[1:])) * 1000

    def owner(self) -> Server:
        return self.cluster.owner(self.queue.key)

    def move(self, target: Server) -> Move:
        """Moves the queue to another node."""
        source, slot = self.owner(), self.cluster.slot(self.queue.key)
        began = time.monotonic()
        time.sleep(0.7)
        moving = time.monotonic()
        self.cluster.move_slot(slot, source, target)
        time.sleep(0.7)
        return Move(self.gap(moving, time.monotonic()), self.gap(began, moving))

    def close(self) -> None:
        self.is_over = True
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive()
        for family in self.families:
            family.close()


def moves(count: int) -> list:
    """Moves one partition to and fro between three nodes."""
    cluster = Cluster(nodes=3).start()
    try:
        stream = Stream(cluster)
        found = []
        for n in range(count):
            others = [node for node in cluster.nodes if node is not stream.owner()]
            found.append(stream.move(others[n % 2]))
        stream.close()
        assert len(stream.came) >= stream.sent
        return found
    finally:
        cluster.close()
