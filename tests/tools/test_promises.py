"""docs/promises.md names the conditions of every promise, and tests that exist."""

import ast
import re

import pytest

from tests.harness.server import ROOT

PAGE = (ROOT / "docs/promises.md").read_text()
PROMISES = dict(re.findall(r"^### ([1-7])\. .*?\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL))
LINK = re.compile(r"\[(\w+)\]\((\.\./tests/[\w/]+\.py)\)")


def part(number, name):
    """The paragraph of a promise that begins with this word."""
    found = re.search(rf"^\*{name}:\* (.*?)(?:\n\n|\Z)", PROMISES[number], re.MULTILINE | re.DOTALL)
    assert found, f"promise {number} has no {name.lower()}"
    return found[1]


def functions(file):
    """Name -> arguments of the functions of a file."""
    nodes = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
    return {node.name: [one.arg for one in node.args.args] for node in nodes}


def rules():
    """The names of all violations that the checker searches for."""
    found = {}
    for name in ("check", "durable", "flows", "stops", "jobs/rules", "jobs/kin"):
        found |= functions(ROOT / f"tests/checker/{name}.py")
    return {name for name, arguments in found.items() if arguments == ["view"] and name[0] != "_"}


def test_there_are_seven_promises():
    assert sorted(PROMISES) == list("1234567")


@pytest.mark.parametrize("number", "1234567")
def test_every_promise_names_tests_that_exist(number):
    assert part(number, "Conditions")
    links = LINK.findall(part(number, "Tests"))
    assert len(links) >= 3
    for name, target in links:
        file = (ROOT / "docs" / target).resolve()
        assert file.exists(), f"{target}: no such file"
        assert name.startswith("test_") and name in functions(file), f"{name}: no such test in {target}"


@pytest.mark.parametrize("number", "1234567")
def test_every_rule_that_is_named_exists_in_the_checker(number):
    named = set(re.findall(r"`(\w+)`", part(number, "Tests")))
    assert named <= rules(), named - rules()


def test_every_rule_of_the_checker_is_named_by_a_promise():
    named = {rule for number in PROMISES for rule in re.findall(r"`(\w+)`", part(number, "Tests"))}
    assert rules() <= named, rules() - named
