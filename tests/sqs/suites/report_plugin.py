"""A pytest plugin that writes the outcome of each test to a file, and leaves out those that are not in scope."""

import json
import os
from pathlib import Path

import pytest

results = {}


def outside(name: str, excluded: list) -> bool:
    return any(name.split("::")[-1].startswith(start) for start in excluded)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    excluded = json.loads(os.environ["SQS_EXCLUDED"])
    for item in items:
        if outside(item.nodeid, excluded):
            item.add_marker(pytest.mark.skip(reason="excluded"))
    if few := int(os.environ["SQS_FEW"]):
        inside = [item for item in items if not item.get_closest_marker("skip")]
        items[:] = inside[:: len(inside) // few][:few]


def pytest_runtest_logreport(report):
    if report.failed:
        results[report.nodeid] = "failed"
    elif report.skipped:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        results[report.nodeid] = "skipped: " + why.removeprefix("Skipped: ")
    elif report.when == "call":
        results.setdefault(report.nodeid, "passed")


def pytest_sessionfinish(session):
    # With xdist the reports of all come to the one that has no worker of its own.
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["SQS_REPORT"]).write_text(json.dumps(results))
