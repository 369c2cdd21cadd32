"""The queue's slot moves between the nodes of a cluster, with leases and blocked consumers."""

from tests.harness.server import Server
from tests.harness.topology import Cluster
from tests.torture.target import Target


class SlotMigration(Target):
    """The whole queue is moved by MIGRATE; clients follow by MOVED and ASK."""

    pause = 1.5
    conf = {"appendonly": "yes"}

    def open(self) -> None:
        self.cluster = Cluster(**self.settings).start()
        self.slot = self.cluster.slot(self.key)
        self.owner = self.cluster.owner(self.key)

    @property
    def ports(self) -> list:
        return [node.port for node in self.cluster.nodes]

    def primary(self) -> Server:
        return self.owner

    def inject(self) -> None:
        target = self.rng.choice([node for node in self.cluster.nodes if node is not self.owner])
        self.cluster.move_slot(self.slot, self.owner, target)
        self.owner = target

    def finish(self) -> None:
        for node in self.cluster.nodes:
            self.listen(node)

    def close(self) -> None:
        self.cluster.close()
