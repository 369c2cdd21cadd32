"""The figures of `dq import`, in a short form: no kill loses or doubles a job, and nothing is early."""

from pathlib import Path

import pytest

from tests.takeover.figures import VERSION, kills, lateness, throughput
from tests.takeover.peers import Bullmq, bullmq

pytest_plugins = ["tests.harness.cli_fixtures", "tests.takeover.conftest"]


@pytest.fixture(scope="module")
def old():
    return Bullmq(bullmq(VERSION))


def test_jobs_move_in_bounded_memory_and_in_time(move, old):
    old.run(move.old.port, "many", 20_000, 3_600_000)
    assert throughput(move, "bullmq", "mails", 20_000)["MB"] < 100
    move.old.client().flushall()
    assert lateness(move, old, 200)["early"] == 0


def test_kills_lose_and_double_nothing(old, program, tmp_path):
    found = kills(old, program, Path(tmp_path), 6)
    assert (found["lost"], found["twice"], found["early"]) == (0, 0, 0), found
