"""A short form of `make hostile`, and that it sees what it looks for."""

import random
import time

import pytest

from tests.harness.server import ROOT
from tests.harness.verbs import WRITES
from tests.hostile import long


@pytest.mark.slow
@pytest.mark.parametrize("run, count", [(long.dumps, 3_000), (long.calls, 20_000), (long.entries, 5_000)])
def test_wrong_bytes_hold_the_server_for_no_longer_than_they_may(run, count):
    tried = long.Tried()
    try:
        run(tried, count, random.Random(1))
        assert tried.refused > count // 5 and tried.done > count // 10
        assert tried.report(run.__name__, count, time.monotonic() - 1)
    finally:
        tried.server.close()


def test_a_command_that_holds_the_server_is_told(capsys):
    tried = long.Tried()
    try:
        tried.replies([("EVAL", "for _ = 1, 1e8 do end", 0)])
        assert not tried.report("commands", 1, time.monotonic() - 1)
        assert "1 held the server" in capsys.readouterr().out
    finally:
        tried.server.close()


def test_the_fuzzer_of_the_arguments_runs_every_verb_that_writes():
    runs = (ROOT / "fuzz/src/twin.rs").read_text()
    assert [verb for verb in WRITES if f'b"{verb}"' not in runs] == []
