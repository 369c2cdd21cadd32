"""Finds the queue of a family to which a group belongs: pure functions, which every client of dq computes alike.

docs/families.md explains the rule. tests/conformance/routing.json has examples for every language.
"""

import binascii
import functools
import zlib
from dataclasses import dataclass

from dqueue.protocol.options import encode

SLOTS = 16_384
"""The number of hash slots of a Redis Cluster, and the largest number of partitions."""


def check_partitions(partitions: int) -> int:
    """Returns the number of partitions. Raises ValueError unless it is a power of two from 1 to 16,384."""
    if not 1 <= partitions <= SLOTS or partitions & (partitions - 1):
        raise ValueError(f"partitions must be a power of two from 1 to {SLOTS}, not {partitions}")
    return partitions


def slot(tag: str | bytes) -> int:
    """Returns the hash slot of a tag."""
    return binascii.crc_hqx(encode(tag), 0) % SLOTS


@functools.cache
def tags(partitions: int) -> tuple[int, ...]:
    """Returns the tag of each partition: the smallest integer whose slot lies in the slots of the partition."""
    size = SLOTS // check_partitions(partitions)
    found: dict[int, int] = {}
    tag = 0
    while len(found) < partitions:
        found.setdefault(slot(str(tag)) // size, tag)
        tag += 1
    return tuple(found[partition] for partition in range(partitions))


def partition(partitions: int, group: str | bytes) -> int:
    """Returns the number of the partition that a group belongs to."""
    return zlib.crc32(encode(group)) * check_partitions(partitions) >> 32


def route(family: str, partitions: int, group: str | bytes) -> str:
    """Returns the name of the queue that a group belongs to, as DQ.ROUTE does."""
    return f"{family}:{{{tags(partitions)[partition(partitions, group)]}}}"


def queues(family: str, partitions: int) -> list[str]:
    """Returns the names of all queues of a family, in the order of the partitions, as DQ.PARTITIONS does."""
    return [f"{family}:{{{tag}}}" for tag in tags(partitions)]


@dataclass(frozen=True, slots=True)
class Layout:
    """The queues of a family that may be growing. Raises ValueError for names and numbers that no family can have."""

    family: str
    partitions: int
    grown_from: int | None = None
    """Half of `partitions`, while groups may still have messages in the queues that they had before."""

    def __post_init__(self) -> None:
        check_partitions(self.partitions)
        if not self.family or "{" in self.family or "}" in self.family:
            raise ValueError(f"a family must have a name without braces, not {self.family!r}")
        if self.grown_from is not None and 2 * self.grown_from != self.partitions:
            raise ValueError(f"grown_from must be half of the {self.partitions} partitions, not {self.grown_from}")

    def homes(self, group: str) -> list[str]:
        """Returns the queue of a group and, if it had another one before the family has grown, that one."""
        counts = [self.partitions] if self.grown_from is None else [self.partitions, self.grown_from]
        return list(dict.fromkeys(route(self.family, count, group) for count in counts))

    def keys(self) -> list[str]:
        """Returns all queues, in order."""
        return queues(self.family, self.partitions)

    def is_moving(self, key: str, group: str) -> bool:
        """Whether a group had this queue before the family has grown, and has another one now."""
        return self.homes(group)[1:] == [key]

    def old_keys(self) -> list[str]:
        """Returns the queues that there were before the family has grown."""
        return [] if self.grown_from is None else queues(self.family, self.grown_from)
