"""A family over a cluster: slots move, nodes come, die and are cut off, and the partitions double."""

import time

from tests.checker.history import clock
from tests.checker.run import end_state
from tests.harness.bus import Bus
from tests.harness.server import Server, wait_for
from tests.harness.topology import Cluster, Pair
from tests.harness.wire import Error
from tests.torture import family_actors
from tests.torture.family_actors import Family, connect
from tests.torture.target import Target
from tests.torture.workload import FAR, RETRIES, Workload

PARTITIONS = 16


class OverNodes(Target):
    """A family over three nodes, as the Python package uses it."""

    workloads = (Workload(name="family", produce=family_actors.produce, consume=family_actors.consume),)
    conf = {"appendonly": "yes"}
    replicas = 0

    def __init__(self, seed: int):
        super().__init__(seed)
        self.key = f"torture-{seed}"
        self.partitions = PARTITIONS

    def open(self) -> None:
        self.cluster = Cluster(nodes=3, replicas=self.replicas, **self.settings).start()

    @property
    def ports(self) -> list:
        return [node.port for node in self.cluster.nodes]

    def primary(self) -> Server:
        return self.cluster.nodes[0]

    def create(self) -> None:
        self.client = connect(self.ports)
        self.set_partitions(self.partitions)

    def set_partitions(self, partitions: int, before: int = 0) -> None:
        """Makes the queues, then informs the producers."""
        self.family = Family(self.key, partitions, self.client, grown_from=before or None)
        self.family.ensure(retries=RETRIES, retain=FAR, retain_count=0, dedup=FAR, backoff=("FIXED", 20))
        told = self.journals / "partitions.new"
        told.write_text(f"{partitions} {before}")
        told.rename(self.journals / "partitions")
        self.partitions = partitions

    def end_state(self, workload) -> dict:
        state = {"final": {}, "attempts": {}, "dead": {}}
        for queue in self.family.queues():
            one = end_state(self.client, queue.key)
            for name, ids in one["final"].items():
                state["final"].setdefault(name, []).extend(ids)
            state["attempts"] |= one["attempts"]
            state["dead"] |= one["dead"]
        return state

    def finish(self) -> None:
        for node in self.cluster.nodes + self.cluster.replicas:
            self.listen(node)

    def close(self) -> None:
        self.cluster.close()


class Resharded(OverNodes):
    """redis-cli moves slots with their queues from one node to another; or the engine itself does it, if it can."""

    pause = 1.0
    slots = 150

    def inject(self) -> None:
        source, target = self.rng.sample(self.cluster.nodes, 2)
        if self.rng.random() < 0.5 or not self.moved_whole(source, target):
            self.cluster.reshard(source, target, self.slots)

    def moved_whole(self, source: Server, target: Server) -> bool:
        """Whether the engine moves slots in one piece, and has moved that of a queue so."""
        keys = [queue.key for queue in self.family.queues()]
        of_source = [key for key in keys if self.cluster.owner(key) is source]
        if not of_source:
            return False
        key = self.rng.choice(of_source)
        slot = self.cluster.slot(key)
        with source.wire() as s, target.wire() as t:
            id = self.cluster.node_id(target)
            calls = (
                # Valkey 9, and Redis 8.4.
                (s, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", id),
                (t, "CLUSTER", "MIGRATION", "IMPORT", slot, slot),
            )
            if all(isinstance(wire.call(*words), Error) for wire, *words in calls):
                return False
            wait_for(lambda: not isinstance(t.call("TYPE", key), Error), 30, "the slot to move")
        return True


class NodeAdded(OverNodes):
    """A node is added, and gets slots from all others. Consumers must wait at it within a second."""

    pause = 2.0
    slots = 150

    def inject(self) -> None:
        node = self.cluster.add_node()
        for source in self.cluster.nodes[:3]:
            self.cluster.reshard(source, node, self.slots)
        moved = clock()
        wait_for(lambda: int(node.info("clients")["blocked_clients"]) > 0, 30, "a consumer at the new node")
        took = clock() - moved
        if took > 1_000:
            self.differences.append(f"nobody waited at the new node for {took:.0f} ms")


class Killed(OverNodes):
    """A primary dies, and the cluster elects its replica. Writes that the replica had not got yet are lost, as Redis
    documents.
    """

    pause = 3.0
    replicas = 3
    # Replication runs milliseconds behind; on a busy machine more.
    reach = 1_000.0

    def inject(self) -> None:
        at = self.rng.randrange(3)
        primary, replica = self.cluster.nodes[at], self.cluster.replicas[at]
        wait_for(self.cluster.agrees, 30, "the nodes to agree")
        begin = clock()
        self.strike(primary)
        wait_for(lambda: Pair.role(replica) == "master", 60, "the election")
        self.lose(begin - self.reach, clock(), part=True)
        self.cluster.nodes[at], self.cluster.replicas[at] = replica, primary
        self.relieve(primary)
        wait_for(lambda: _is_linked(primary), 60, "the old primary to follow")
        wait_for(self.cluster.is_ready, 60, "the cluster")

    def strike(self, primary: Server) -> None:
        primary.kill9()

    def relieve(self, primary: Server) -> None:
        primary.start()


def _is_linked(server: Server) -> bool:
    try:
        return server.info("replication").get("master_link_status") == "up"
    except OSError:
        return False


class CutOff(Killed):
    """The nodes cannot hear a primary, which clients still reach. The others elect its replica."""

    def open(self) -> None:
        self.bus = Bus()
        self.cluster = Cluster(nodes=3, replicas=self.replicas, bus=self.bus, **self.settings).start()

    def strike(self, primary: Server) -> None:
        self.bus.cut_off(primary.conf)

    def relieve(self, primary: Server) -> None:
        self.bus.heal()

    def lose(self, begin: float, end: float, split: bool = False, part: bool = False) -> None:
        # Until it knows that it is cut off, the old primary serves its clients.
        super().lose(begin, end, split=True)


class FailedOver(OverNodes):
    """CLUSTER FAILOVER hands a node over to its replica: nothing may be lost at all."""

    pause = 2.0
    replicas = 3

    def inject(self) -> None:
        at = self.rng.randrange(3)
        primary, replica = self.cluster.nodes[at], self.cluster.replicas[at]
        wait_for(self.cluster.agrees, 30, "the nodes to agree")
        while Pair.role(replica) != "master":
            with replica.wire() as w:
                w.call("CLUSTER", "FAILOVER")
            time.sleep(0.3)
        self.cluster.nodes[at], self.cluster.replicas[at] = replica, primary
        wait_for(lambda: _is_linked(primary), 60, "the old primary to follow")


class Doubled(OverNodes):
    """The partitions double, and the queues that there were give up the groups that belong elsewhere."""

    pause = 2.0

    def __init__(self, seed: int):
        super().__init__(seed)
        self.partitions = 4

    def inject(self) -> None:
        if self.partitions < 1024:
            self.set_partitions(2 * self.partitions, self.partitions)
            wait_for(lambda: self.family.moving() == 0, 60, "the old queues to give up the groups that have moved")

    def finish(self) -> None:
        super().finish()
        if self.family.moving():
            self.differences.append("groups have stayed in the queues that they had before")
