"""Several servers together: a primary with its replica, and a cluster."""

import subprocess
from pathlib import Path

from tests.harness.bus import Bus
from tests.harness.replies import digest
from tests.harness.server import Server, engine, wait_for
from tests.harness.wire import Error

SLOTS = 16384


def wait_replicated(primary: Server, replica: Server, timeout: float = 20) -> None:
    """Waits until the replica has applied all writes of the primary. WAIT knows only the writes of its connection."""

    def same():
        p = primary.info("replication")
        r = replica.info("replication")
        return r.get("master_link_status") == "up" and p["master_repl_offset"] == r["slave_repl_offset"]

    wait_for(same, timeout, "the replica to catch up")


class Pair:
    """A primary and its replica. After a promotion `heal` gives the roles back."""

    def __init__(self, **conf):
        self.conf = conf
        self.primary = Server(**conf)
        self.replica = Server(**conf)

    def start(self) -> "Pair":
        self.primary.start()
        self.replica.start()
        self.heal()
        return self

    @classmethod
    def of(cls, primary: Server, replica: Server) -> "Pair":
        """Two servers that run, the second one as the replica of the first. The data of the first one stays."""
        pair = cls.__new__(cls)
        pair.conf, pair.primary, pair.replica = {}, primary, replica
        with replica.wire() as r:
            r.ok("REPLICAOF", "127.0.0.1", primary.port)
        pair.wait_link()
        return pair

    def heal(self) -> None:
        """Restores the original roles, with both servers alive and empty and the link up."""
        for server in (self.primary, self.replica):
            if not server.alive():
                server.start()
            server.resume()
        with self.primary.wire() as p, self.replica.wire() as r:
            if self.role(self.primary) != "master":
                p.ok("REPLICAOF", "NO", "ONE")
            p.ok("CLIENT", "UNPAUSE")
            p.ok("FLUSHALL")
            if self.role(self.replica) != "slave" or self.replica.info("replication")["master_port"] != str(self.primary.port):
                r.ok("REPLICAOF", "127.0.0.1", self.primary.port)
        self.wait_link()
        self.wait_sync()

    @staticmethod
    def role(server: Server) -> str:
        return server.info("replication")["role"]

    def wait_link(self, timeout: float = 20) -> None:
        """Waits until the link from the replica to the primary is up."""

        def up():
            info = self.replica.info("replication")
            return info.get("master_link_status") == "up" and info.get("master_sync_in_progress") == "0"

        wait_for(up, timeout, "the replication link")

    def wait_sync(self, timeout: float = 20) -> None:
        """Waits until the replica has applied all writes of the primary."""
        wait_replicated(self.primary, self.replica, timeout)

    def assert_same(self, *keys) -> None:
        """Compares each key's digest on both, at a moment at which the replica has all that the primary has done to the key."""
        p, r = self.primary.client(), self.replica.client()
        for key in keys:
            on_primary = None
            # The timer of the primary may act at any moment, and the replica has that a moment later.
            while on_primary != (now := digest(p, key)):
                on_primary = now
                self.wait_sync()
                on_replica = digest(r, key)
            assert on_primary == on_replica, f"{key} differs between primary and replica"
            assert set(on_primary) != {ord("0")}, f"{key} is missing"

    def promote(self) -> None:
        """Makes the replica an independent primary."""
        with self.replica.wire() as r:
            r.ok("REPLICAOF", "NO", "ONE")

    def close(self, check_log: bool = True) -> None:
        self.replica.close(check_log)
        self.primary.close(check_log)


class Cluster:
    """Nodes of a cluster, all slots served, each an equal part. The first `replicas` nodes have a replica each.

    With `bus` the nodes talk to each other through proxies that can be switched off.
    """

    def __init__(self, nodes=3, replicas=0, bus: Bus | None = None, **conf):
        self.bus = bus
        self.conf = dict(cluster_enabled="yes", cluster_node_timeout="2000", cluster_allow_replica_migration="no", **conf)
        self.nodes = [self._make() for _ in range(nodes)]
        self.replicas = [self._make() for _ in range(replicas)]

    def _make(self) -> Server:
        server = Server(**self.conf)
        if self.bus:
            server.conf |= self.bus.node(server.port)
        return server

    def start(self) -> "Cluster":
        for node in self.nodes + self.replicas:
            node.start()
        step = -(-SLOTS // len(self.nodes))
        for i, node in enumerate(self.nodes):
            with node.wire() as w:
                w.ok("CLUSTER", "ADDSLOTSRANGE", i * step, min((i + 1) * step, SLOTS) - 1)
        # Each node has its own epoch, so that none of them has to give way to another.
        for i, node in enumerate(self.nodes + self.replicas):
            with node.wire() as w:
                w.ok("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for node in self.nodes[1:] + self.replicas:
            self.meet(node)
        wait_for(self.is_ready, 30, "the cluster")
        for replica, node in zip(self.replicas, self.nodes):
            self.follow(replica, node)
        return self

    def meet(self, node: Server) -> None:
        """Introduces another node to the first one."""
        with self.nodes[0].wire() as w:
            bus_port = node.conf.get("cluster-announce-bus-port", node.port + 10_000)
            w.ok("CLUSTER", "MEET", "127.0.0.1", node.port, bus_port)

    def follow(self, replica: Server, node: Server) -> None:
        """Makes a node the replica of another one, and waits until it has all data."""

        def accepted():
            with replica.wire() as w:
                return not isinstance(w.call("CLUSTER", "REPLICATE", self.node_id(node)), Error)

        # The replica must have heard of the other one first.
        wait_for(accepted, 30, "the replica to know its primary")
        wait_for(lambda: replica.info("replication").get("master_link_status") == "up", 30, "the replica")

    def is_ready(self) -> bool:
        """Whether all nodes that are alive know each other, and serve."""
        alive = [node for node in self.nodes + self.replicas if node.alive()]
        for node in alive:
            with node.wire() as w:
                info = w.call("CLUSTER", "INFO").decode()
            if "cluster_state:ok" not in info or f"cluster_known_nodes:{len(self.nodes + self.replicas)}\r" not in info:
                return False
        return True

    def add_node(self) -> Server:
        """Starts a node without slots that the others know."""
        node = self._make().start()
        self.nodes.append(node)
        self.meet(node)
        wait_for(self.is_ready, 30, "the new node")
        return node

    def reshard(self, source: Server, target: Server, slots: int, *options) -> None:
        """Moves this number of slots with their keys, by redis-cli."""
        # redis-cli refuses if not all nodes know of the last move or election yet.
        wait_for(self.agrees, 30, "the nodes to agree")
        self.redis_cli(
            "reshard", f"127.0.0.1:{source.port}", "--cluster-from", self.node_id(source).decode(),
            "--cluster-to", self.node_id(target).decode(), "--cluster-slots", str(slots), *options,
        )  # fmt: skip

    @staticmethod
    def redis_cli(*words) -> str:
        """The output of redis-cli --cluster, of the engine under test if that has one."""
        beside = Path(engine()).with_name("redis-cli")
        command = [str(beside) if beside.exists() else "redis-cli", "--cluster", *words, "--cluster-yes"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-1000:]}"
        return done.stdout

    def agrees(self) -> bool:
        """Whether all nodes that are alive see the same owners of the slots."""
        return len({self.owners_seen_by(node) for node in self.nodes + self.replicas if node.alive()}) == 1

    def owners_seen_by(self, node: Server) -> tuple:
        """The primaries with their slots."""
        with node.wire() as w:
            lines = w.ok("CLUSTER", "NODES").decode().splitlines()
        words = (line.split() for line in lines)
        return tuple(sorted((one[0], *one[8:]) for one in words if len(one) > 8))

    def slot(self, key) -> int:
        with self.nodes[0].wire() as w:
            return w.ok("CLUSTER", "KEYSLOT", key)

    def owner(self, key) -> Server:
        """The node that serves the key now."""
        for node in self.nodes:
            with node.wire() as w:
                reply = w.call("TYPE", key)
            if not isinstance(reply, Error):
                return node
        raise AssertionError(f"no node serves {key}")

    def node_id(self, node: Server) -> bytes:
        with node.wire() as w:
            return w.ok("CLUSTER", "MYID")

    def move_slot(self, slot: int, source: Server, target: Server) -> None:
        """Moves one slot with its keys, as redis-cli --cluster reshard does."""
        with source.wire() as s, target.wire() as t:
            sid, tid = self.node_id(source), self.node_id(target)
            t.ok("CLUSTER", "SETSLOT", slot, "IMPORTING", sid)
            s.ok("CLUSTER", "SETSLOT", slot, "MIGRATING", tid)
            while keys := s.ok("CLUSTER", "GETKEYSINSLOT", slot, 100):
                s.ok("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            t.ok("CLUSTER", "SETSLOT", slot, "NODE", tid)
            s.ok("CLUSTER", "SETSLOT", slot, "NODE", tid)
        for node in self.nodes:
            if node not in (source, target):
                with node.wire() as w:
                    w.ok("CLUSTER", "SETSLOT", slot, "NODE", tid)

    def flush(self) -> None:
        for node in self.nodes:
            with node.wire() as w:
                w.ok("FLUSHALL")

    def close(self, check_log: bool = True) -> None:
        for node in self.nodes + self.replicas:
            node.close(check_log)
        if self.bus:
            self.bus.close()
