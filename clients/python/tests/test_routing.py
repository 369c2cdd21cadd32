"""The routing of families agrees with the examples that are there for every language."""

import json
import zlib

import pytest
from dqueue import routing

from tests.harness.server import ROOT

EXAMPLES = json.loads((ROOT / "tests/conformance/routing.json").read_text())


def test_tags_are_those_of_the_examples():
    for partitions, tags in EXAMPLES["tags"].items():
        assert list(routing.tags(int(partitions))) == tags
    for partitions, crc in EXAMPLES["tags_crc32"].items():
        assert zlib.crc32(",".join(map(str, routing.tags(int(partitions)))).encode()) == crc
    for example in EXAMPLES["slots"]:
        assert routing.slot(example["tag"]) == example["slot"]


@pytest.mark.parametrize("example", EXAMPLES["routes"], ids=lambda e: f"{e['group_hex'][:20]}-{e['partitions']}")
def test_groups_belong_to_the_queues_of_the_examples(example):
    group = bytes.fromhex(example["group_hex"])
    assert zlib.crc32(group) == example["crc32"]
    assert routing.partition(example["partitions"], group) == example["partition"]
    assert routing.route(example["family"], example["partitions"], group) == example["queue"]
    if "group" in example:
        assert routing.route(example["family"], example["partitions"], example["group"]) == example["queue"]


def test_when_partitions_double_one_half_is_the_queue_that_it_was():
    for partitions in (1, 2, 64, 8192):
        old, new = routing.tags(partitions), routing.tags(2 * partitions)
        assert all(tag in new[2 * i : 2 * i + 2] for i, tag in enumerate(old))


@pytest.mark.parametrize("partitions", [0, 3, -2, 16_383, 32_768])
def test_other_numbers_of_partitions_are_refused(partitions):
    with pytest.raises(ValueError, match="power of two"):
        routing.route("f", partitions, "g")
