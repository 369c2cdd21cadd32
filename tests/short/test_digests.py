"""The program behind `make soak-digests` works: all copies of a queue stay the same, and one that does not is found."""

import pytest

from tests.harness.topology import Pair
from tests.soak.digests import AOF, Differs, live


@pytest.fixture
def pair(make_server):
    return Pair.of(make_server(**AOF), make_server(**AOF))


@pytest.mark.parametrize("seed", range(3))
def test_all_copies_are_the_same_after_each_command(pair, seed):
    traffic = live(pair, seed, 300)
    assert traffic.done > 10 * traffic.refused


def test_a_copy_that_differs_is_found(pair):
    def breaks(client):
        client.config_set("replica-read-only", "no")
        client.execute_command("DQ.PAUSE", "{all}:a", "GROUP", "other")

    with pytest.raises(Differs, match="differ on the replica"):
        live(pair, 1, 300, at={100: lambda: breaks(pair.replica.client())})
