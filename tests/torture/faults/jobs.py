"""The faults of other rows, with jobs: DEADTO, the event stream, children, signals, reruns and named limits."""

from tests.harness.job_traffic import JobTraffic
from tests.torture.faults import cluster, disk, process, replicas, tail
from tests.torture.jobs import JOBS


class Kill9(process.Kill9):
    """SIGKILL under appendfsync always. No answered command is lost, and the log gives the same stream."""

    workloads = (JOBS,)


class Power(disk.PowerEverysec):
    """Power loss. Lost changes of a job are lost in the stream, at its parent and in its letter, too."""

    workloads = (JOBS,)


class TornTail(tail.TornTail):
    """The log of such jobs is cut at every byte of its last entries, which hold changes of several keys each."""

    workloads = (JOBS,)
    length = 240
    cut_keys = JobTraffic.keys

    def traffic(self, client, seed) -> JobTraffic:
        return JobTraffic(client, seed)


class Reload(process.Reload):
    """DEBUG RELOAD and DEBUG LOADAOF."""

    workloads = (JOBS,)


class Rewrite(process.RewriteNoPreamble):
    """The log is written anew as commands, the event stream with the rest."""

    workloads = (JOBS,)


class Failover(replicas.Failover):
    """The roles go back and forth, and both servers have the same stream."""

    workloads = (JOBS,)


class MaxMemory(disk.MaxMemory):
    """Memory is full. Commands without a message still add to the stream, because it is bounded."""

    workloads = (JOBS,)


class Promotion(replicas.Promotion):
    """The primary dies, and its replica continues with the part of the stream, parents and dead letters that has
    arrived.
    """

    workloads = (JOBS,)


class SlotMigration(cluster.SlotMigration):
    """The queues, the stream and the letters move together."""

    workloads = (JOBS,)
