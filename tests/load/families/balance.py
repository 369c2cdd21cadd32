"""Computes how evenly groups spread over the partitions and nodes of a family; no server is asked."""

import math
import random
import zlib
from dataclasses import dataclass
from statistics import NormalDist

from tests.torture.family_actors import routing


@dataclass
class Balance:
    """The busiest node beside an even share."""

    partitions: int
    nodes: int
    # Groups of the busiest node, as a multiple of an even share.
    groups: float
    # The share that fair dice would give.
    chance: float
    # The share by partitions alone: their number on the node, regardless of the groups.
    own: float


def balance(partitions: int, nodes: int, names: list) -> Balance:
    """Spreads these groups over nodes that hold even ranges of slots, as redis-cli --cluster create makes them."""
    owner = [routing.slot(str(tag)) * nodes // routing.SLOTS for tag in routing.tags(partitions)]
    of_node = [0] * nodes
    for name in names:
        of_node[owner[zlib.crc32(name) * partitions >> 32]] += 1
    share = len(names) / nodes
    most = max(owner.count(node) for node in range(nodes))
    return Balance(partitions, nodes, max(of_node) / share, chance(nodes, len(names)), most / (partitions / nodes))


def chance(nodes: int, groups: int) -> float:
    """The expected load of the busiest of several nodes, as a multiple of an even share, if dice choose the node."""
    deviation = math.sqrt((nodes - 1) / groups)
    return 1 + deviation * NormalDist().inv_cdf((nodes - 0.375) / (nodes + 0.25))


def names(kind: str, count: int) -> list:
    """Returns `count` names of groups: random ones, or numbered ones as programs give them."""
    dice = random.Random(7)
    if kind == "random":
        return [f"{dice.getrandbits(128):032x}".encode() for _ in range(count)]
    return [f"customer-{n}".encode() for n in range(count)]
