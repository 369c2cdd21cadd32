"""The effects of ACK ... APPLY are the same on a replica, after a restart and after a reload."""

import random
import time

import pytest
from redis import ResponseError

from tests.effects.model import PLAIN, random_effect, words_of
from tests.harness.replies import Queue, digest


def traffic(client, seed, rounds):
    """Messages that are acknowledged with random effects, of which some are refused."""
    rng, q = random.Random(seed), Queue(client, "q")
    for _ in range(rounds):
        effects = [random_effect(rng) for _ in range(rng.randint(1, 4))]
        effects += [["INCRBY", "count", 1]]
        q.send("x")
        receipt = q.one("CONSUMER", "w").receipt
        try:
            q.do("FETCH", "CONSUMER", "w", "TOKEN", rng.randint(1, 9), "ACK", 1, receipt, *words_of(effects))
        except ResponseError:
            q.ack(receipt)


def held(client):
    return {key: (client.type(key), digest(client, key), client.pttl(key) > 0) for key in ["q", "count", *PLAIN]}


@pytest.mark.parametrize("seed", range(2))
def test_a_replica_and_a_replayed_log_have_the_same(make_server, replica_pair, seed):
    client = replica_pair.primary.client()
    traffic(client, seed, 150)
    replica_pair.wait_sync()
    assert held(replica_pair.replica.client()) == held(client)
    server = make_server(appendonly="yes")
    traffic(server.client(), seed, 150)
    before = held(server.client())
    server.restart(crash=True)
    assert held(server.client()) == before
    server.client().execute_command("DEBUG", "RELOAD")
    assert held(server.client()) == before
    server.client().execute_command("BGREWRITEAOF")
    server.restart()
    assert held(server.client()) == before


def test_a_key_that_has_expired_counts_as_missing_everywhere(replica_pair):
    client = replica_pair.primary.client()
    for server in (replica_pair.primary, replica_pair.replica):
        server.client().execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    try:
        client.set("n", 40, px=1)
        q = Queue(client, "q")
        q.send("x")
        receipt = q.one().receipt
        time.sleep(0.01)
        assert q.do("ACK", receipt, "APPLY", 1, "INCRBY", "n", 2) == [2]
        replica_pair.assert_same("q", "n")
        assert replica_pair.replica.client().get("n") == b"2"
    finally:
        for server in (replica_pair.primary, replica_pair.replica):
            server.client().execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
