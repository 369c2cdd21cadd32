"""Several servers together: a primary with its replica, a three-node cluster."""

from tests.harness.replies import digest
from tests.harness.server import Server, wait_for
from tests.harness.wire import Error

SLOTS = 16384


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
        """Waits until the replica has applied all that the primary has written."""

        def same():
            p = self.primary.info("replication")
            r = self.replica.info("replication")
            return r.get("master_link_status") == "up" and p["master_repl_offset"] == r["slave_repl_offset"]

        wait_for(same, timeout, "the replica to catch up")

    def assert_same(self, *keys) -> None:
        """Waits for the replica, then compares each key's digest on both."""
        self.wait_sync()
        p, r = self.primary.client(), self.replica.client()
        for key in keys:
            on_primary = digest(p, key)
            assert on_primary == digest(r, key), f"{key} differs between primary and replica"
            assert set(on_primary) != {ord("0")}, f"{key} is missing"

    def promote(self) -> None:
        """Makes the replica a primary of its own."""
        with self.replica.wire() as r:
            r.ok("REPLICAOF", "NO", "ONE")

    def close(self, check_log: bool = True) -> None:
        self.replica.close(check_log)
        self.primary.close(check_log)


class Cluster:
    """Three nodes without replicas, all slots served, about 5,460 each."""

    def __init__(self, **conf):
        self.nodes = [
            Server(
                cluster_enabled="yes",
                cluster_node_timeout="2000",
                cluster_allow_replica_migration="no",
                **conf,
            )
            for _ in range(3)
        ]

    def start(self) -> "Cluster":
        for node in self.nodes:
            node.start()
        step = -(-SLOTS // 3)
        for i, node in enumerate(self.nodes):
            with node.wire() as w:
                w.ok("CLUSTER", "ADDSLOTSRANGE", i * step, min((i + 1) * step, SLOTS) - 1)
                w.ok("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        with self.nodes[0].wire() as w:
            for node in self.nodes[1:]:
                w.ok("CLUSTER", "MEET", "127.0.0.1", node.port)
        wait_for(self._ready, 30, "the cluster")
        return self

    def _ready(self) -> bool:
        for node in self.nodes:
            with node.wire() as w:
                info = w.call("CLUSTER", "INFO").decode()
            if "cluster_state:ok" not in info or "cluster_known_nodes:3" not in info:
                return False
        return True

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
        for node in self.nodes:
            node.close(check_log)
