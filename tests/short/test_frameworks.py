"""The comparison of frameworks (`make bench-frameworks`): each measure works, and its verdict is right."""

import importlib.util
import os
import subprocess
import sys

import pytest

from benches.frameworks.contenders import Laravel
from benches.frameworks.task_log import Entry, judge
from tests.harness.optional import need
from tests.harness.server import ROOT


def entries(*lines):
    return [Entry(what, task, at, worker) for what, task, at, worker in lines]


def test_a_run_that_is_cut_off_counts_until_it_starts_again():
    verdict = judge(
        ["a", "b"],
        {"w1": 2.0},
        entries(
            ("start", "a", 1.0, "w1"),
            ("start", "b", 1.5, "w2"),
            ("end", "b", 2.5, "w2"),
            ("ack", "b", 2.6, "w2"),
            ("start", "a", 5.0, "w2"),
            ("end", "a", 6.0, "w2"),
            ("ack", "a", 6.1, "w2"),
        ),
    )
    assert (verdict.sent, verdict.lost, verdict.after_ack, verdict.cut) == (2, 0, 0, 1)
    assert verdict.again == [3.0]


def test_a_task_without_an_end_is_lost_and_a_start_after_the_ack_is_told():
    verdict = judge(
        ["a", "b"],
        {},
        entries(
            ("start", "a", 1.0, "w1"), ("end", "a", 2.0, "w1"), ("ack", "a", 2.1, "w1"), ("start", "a", 3.0, "w1")
        ),
    )
    assert (verdict.lost, verdict.after_ack) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["celery", "dramatiq", "laravel"])
def test_each_framework_is_measured_on_both_transports(framework):
    if framework == "laravel":
        need(Laravel.is_there(), "PHP with Laravel's packages")
    else:
        need(importlib.util.find_spec(framework), framework)
    words = ["-m", "benches.frameworks", "--smoke", "--framework", framework, "--measure", "speed"]
    words += ["--measure", "lateness"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("| ")]
    figures = {title.strip(): (ours.strip(), stock.strip()) for title, ours, stock, *_ in rows}
    assert figures["etas that did not come"] == ("0", "0")
    for title, of_both in figures.items():
        assert "-" not in of_both, title
