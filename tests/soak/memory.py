"""The memory that the allocator has given out, and the memory that the module reports for its queues."""

import time
from dataclasses import dataclass

from tests.soak.actors import QUEUES

MIB = 1 << 20


@dataclass
class Sample:
    """The memory at one moment without traffic; bytes."""

    seconds: float
    records: int
    allocated: int
    told: int
    resident: int
    fragmentation: float
    defragmented: int

    @property
    def beside(self) -> int:
        """Bytes that the server has allocated beyond MEMORY USAGE, for itself."""
        return self.allocated - self.told

    @property
    def each(self) -> float:
        """Bytes of one record by MEMORY USAGE."""
        return self.told / self.records


@dataclass
class Removal:
    """The memory of one queue that was deleted; bytes."""

    queue: str
    records: int
    told: int
    freed: int

    def __str__(self) -> str:
        return (
            f"{self.queue}: {self.records:,} records, MEMORY USAGE {self.told / MIB:.2f} MiB,"
            f" freed {self.freed / MIB:.2f} MiB ({self.told / self.freed - 1:+.1%})"
        )


class Memory:
    """Measures against the server in its state at the creation of this object: with a connection, and empty."""

    def __init__(self, server):
        self.client = server.client(socket_timeout=600)
        self.began = time.monotonic()
        self.base = self._settled()

    def sample(self) -> Sample:
        """The sizes of now, once the buffers of the connections have shrunk."""
        used = self._settled()
        memory, stats = self.client.info("memory"), self.client.info("stats")
        return Sample(
            time.monotonic() - self.began,
            sum(self._records(key) for key in QUEUES),
            used - self.base,
            sum(self.client.memory_usage(key, samples=0) or 0 for key in QUEUES),
            memory["used_memory_rss"],
            memory["allocator_frag_ratio"],
            stats["active_defrag_hits"],
        )

    def beyond(self) -> int:
        """Bytes allocated now beyond those at the start."""
        return self._settled() - self.base

    def take_away(self):
        """Deletes queue by queue; yields for each the reported memory and the memory that was freed."""
        for key in QUEUES:
            records, told, before = self._records(key), self.client.memory_usage(key, samples=0), self.beyond()
            self.client.delete(key)
            freed = before - self.beyond()
            yield Removal(key.decode(), records, told, freed)

    def _records(self, key) -> int:
        ended = ("finished", "cancelled", "dead")
        return sum(self.client.execute_command("DQ.LEN", key, *state) for state in [(), *((one,) for one in ended)])

    def _settled(self) -> int:
        # Work that ends by itself, the server's own buffers included, has ended when three looks in a row agree.
        seen = []
        for _ in range(40):
            seen.append(self.client.info("memory")["used_memory"])
            if len(seen) >= 3 and max(seen[-3:]) - min(seen[-3:]) < 64 << 10:
                break
            time.sleep(0.5)
        return seen[-1]
