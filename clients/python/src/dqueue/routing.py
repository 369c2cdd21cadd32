"""Which queue of a family a group belongs to: pure functions, which every client of dq computes alike.

docs/families.md explains the rule. tests/conformance/routing.json has examples for every language.
"""

import binascii
import functools
import zlib

from dqueue.options import encode

SLOTS = 16_384
"""The number of hash slots of a Redis Cluster, and the largest number of partitions."""


def check_partitions(partitions: int) -> int:
    """Returns the number of partitions. Raises ValueError unless it is a power of two from 1 to 16,384."""
    if not 1 <= partitions <= SLOTS or partitions & (partitions - 1):
        raise ValueError(f"partitions must be a power of two from 1 to {SLOTS}, not {partitions}")
    return partitions


def check_family(family: str) -> str:
    """Returns the name of a family. Raises ValueError if it is empty or has a brace."""
    if not family or "{" in family or "}" in family:
        raise ValueError(f"a family must have a name without braces, not {family!r}")
    return family


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
