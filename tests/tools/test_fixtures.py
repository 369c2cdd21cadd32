"""Fixtures that several test modules share."""

import collections
import pathlib
import re

HARNESS = pathlib.Path(__file__).parents[1] / "harness"


def test_no_two_shared_fixtures_have_one_name():
    """pytest knows the fixtures of all plugins in one space: modules that are collected later would get the wrong one."""
    found = re.compile(r"^@pytest\.fixture.*\ndef (\w+)", re.MULTILINE)
    names = collections.Counter(name for path in HARNESS.glob("*_fixtures.py") for name in found.findall(path.read_text()))
    assert names["web"] and names["site"]
    assert [name for name, count in names.items() if count > 1] == []
