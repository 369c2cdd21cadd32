"""A few faults of each row of the losses; `make losses` does hundreds of them."""

import pytest

from tests.harness.server import Server
from tests.torture.losses.rows import BY_NAME, ROWS
from tests.torture.losses.run import run

FAULTS = 2


def need(row):
    """Skips a row that wants WAITAOF of a server that has none, or whose WAITAOF does not wait for the sync."""
    if row.confirm.words[:1] == ("WAITAOF",) or (row.durable and not row.durable.in_memory):
        server = Server().start()
        try:
            with server.wire() as wire:
                known = wire.ok("COMMAND", "INFO", "WAITAOF")
            is_valkey = "valkey_version" in server.info("server")
        finally:
            server.close()
        if not known or known[0] is None:
            pytest.skip("the server has no WAITAOF: it came with Redis 7.2")
        if is_valkey:
            pytest.skip("Valkey, up to 9.1 at least, answers WAITAOF before the sync under everysec")


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if not row.loses], ids=lambda row: row.name)
def test_nothing_is_lost_of_what_was_confirmed(row):
    need(row)
    outcome = run(row, FAULTS)
    assert (outcome.faults, outcome.lost, outcome.undone) == (FAULTS, 0, 0)
    assert outcome.sends > 0


@pytest.mark.slow
def test_several_sets_of_servers_share_the_faults():
    outcome = run(BY_NAME["WAIT 1, promoted"], FAULTS, lanes=2)
    assert (outcome.faults, outcome.lost, outcome.undone) == (FAULTS, 0, 0)
    assert outcome.sends > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["no log, killed", "no, power", "replica, apart"])
def test_what_nobody_has_confirmed_is_lost(name):
    """The measurement sees a loss if there is one."""
    outcome = run(BY_NAME[name], FAULTS)
    assert outcome.lost > 0 and outcome.rounds > 0
