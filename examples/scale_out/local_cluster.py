"""Redis Cluster on this machine: real redis-server processes, driven by redis-cli as an operator would."""

import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path


def free_port():
    """A port nobody listens on, nor on its cluster bus port 10000 above; outgoing connections have higher ones."""
    while True:
        port = random.randrange(11_000, 22_000)
        with socket.socket() as probe, socket.socket() as bus:
            try:
                probe.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port


class LocalCluster:
    """Three primaries that share the slots, and a replica of the first one, each with the module loaded."""

    def __init__(self, server, cli, module):
        self.server, self.cli, self.module = server, cli, os.path.abspath(module)
        self.folder = tempfile.mkdtemp(prefix="dq-cluster-")
        self.ports, self.processes = [], []

    def __enter__(self):
        try:
            self.ports = [self._start_node() for _ in range(4)]
            *primaries, replica = self.ports
            addresses = [f"127.0.0.1:{port}" for port in primaries]
            self._cluster("create", *addresses, "--cluster-replicas", "0")
            self._until(lambda: all("cluster_state:ok" in self.call(port, "CLUSTER", "INFO") for port in primaries))
            self._cluster(
                "add-node",
                f"127.0.0.1:{replica}",
                addresses[0],
                "--cluster-slave",
                "--cluster-master-id",
                self.node_id(primaries[0]),
            )
            self._until(lambda: "master_link_status:up" in self.call(replica, "INFO", "replication"))
            self._until(lambda: all(f":{replica}@" in self.call(port, "CLUSTER", "NODES") for port in primaries))
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start_node(self):
        port = free_port()
        folder = os.path.join(self.folder, str(port))
        os.mkdir(folder)
        settings = {
            "port": port,
            "bind": "127.0.0.1",
            "dir": folder,
            "logfile": "redis.log",
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "cluster-enabled": "yes",
            "cluster-node-timeout": 3000,
            "repl-diskless-sync-delay": 0,
            "loadmodule": self.module,
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        self.processes.append(subprocess.Popen([self.server, *words], stdout=subprocess.DEVNULL))

        def answers():
            if self.processes[-1].poll() is not None:
                raise RuntimeError(f"{self.server} ended: {''.join(map(Path.read_text, Path(folder).glob('*.log')))}")
            return "PONG" in self.call(port, "PING")

        self._until(answers)
        return port

    def _until(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError("the cluster does not come to agree")
            time.sleep(0.05)

    def _cluster(self, *words):
        command = [self.cli, "--cluster", *words, "--cluster-yes"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")

    def call(self, port, *words):
        """The reply of one node to a command, as redis-cli prints it."""
        command = [self.cli, "-p", str(port), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()

    def node_id(self, port):
        return self.call(port, "CLUSTER", "MYID")

    def owners(self):
        """The port of the primary of each slot, as a dict."""
        owners = {}
        for line in self.call(self.ports[1], "CLUSTER", "NODES").splitlines():
            words = line.split()
            for part in words[8:]:
                # A part in brackets is a slot on the move, not one that is owned.
                if span := re.fullmatch(r"(\d+)(?:-(\d+))?", part):
                    first, last = int(span[1]), int(span[2] or span[1])
                    owners |= dict.fromkeys(range(first, last + 1), int(words[1].split("@")[0].split(":")[1]))
        return owners

    def reshard(self, source, target, slots):
        """Moves that many slots, with the keys in them, from one node to another."""
        # redis-cli refuses to move anything while gossip has not yet told all nodes of the last move or election.
        self._until(self._agreed)
        self._cluster(
            "reshard",
            f"127.0.0.1:{source}",
            "--cluster-from",
            self.node_id(source),
            "--cluster-to",
            self.node_id(target),
            "--cluster-slots",
            str(slots),
        )

    def _agreed(self):
        """Whether every node has the same picture of which node owns which slots."""
        pictures = {self._slots_as_seen_by(port) for port in self.ports}
        return len(pictures) == 1

    def _slots_as_seen_by(self, port):
        nodes = (line.split() for line in self.call(port, "CLUSTER", "NODES").splitlines())
        return tuple(sorted((words[0], *words[8:]) for words in nodes if len(words) > 8))

    def fail_over(self, replica):
        """Makes the replica the primary of its slots, in agreement with the old one: no acknowledged write is lost."""
        # A replica that gossip has not yet told of the last slot that its primary was given can take over without it, and
        # the slot then has no owner.
        self._until(self._agreed)
        # Nor may it know yet of a majority that can vote; the order is then given again.
        deadline = time.monotonic() + 30
        while "role:master" not in self.call(replica, "INFO", "replication"):
            if time.monotonic() > deadline:
                raise TimeoutError("the replica does not take over")
            self.call(replica, "CLUSTER", "FAILOVER")
            time.sleep(0.5)
