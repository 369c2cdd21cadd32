"""The programs behind `make load` and `make soak`, in seconds: they work; what they measure takes minutes and quiet."""

from argparse import Namespace

import pytest

from tests.load.stalls import Stalls
from tests.soak.__main__ import soak


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_everything_that_could_hold_the_server_is_done_and_measured():
    with Stalls(due=5000, big=5000, idle=0.1, crowd=100) as stalls:
        rows = list(stalls.rows())
    assert len({row.name for row in rows}) == len(rows) == 11
    assert all(row.idle.count and row.busy.count for row in rows)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_mixed_traffic_leaves_no_memory_behind(make_server, capsys):
    faults = soak(make_server(appendonly="yes"), Namespace(seconds=4, samples=2, messages=2000, seed=1))
    assert not [fault for fault in faults if "left" in fault], faults
    assert capsys.readouterr().out.count("MEMORY USAGE") == 5
