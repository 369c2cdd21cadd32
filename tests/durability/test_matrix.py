"""Every scene in every way in which a server gets its data: the same digest, the same to read, and the same from then on."""

import pytest

from tests.durability.scenes import SCENES, SLOT
from tests.golden import plain, queue
from tests.harness.job_traffic import JobTraffic
from tests.harness.replies import Queue, digest
from tests.harness.traffic import Traffic

KEYS = [key for scene in SCENES.values() for key in scene.keys]


def build(client) -> dict:
    """Builds all scenes. Returns what is needed to go on with them."""
    return {name: scene.build(client) for name, scene in SCENES.items()}


def state(client) -> dict:
    """The digests of all keys, and all that can be read of them."""
    return {key: (digest(client, key), read(client, key)) for key in KEYS}


def read(client, key):
    if client.type(key) != b"dqueue-rs":
        return client.xrange(key)
    seen = plain(queue(Queue(client, key)))
    # The digest has the time of a manual clock.
    del seen["info"]["now"]
    # Lists without an order of their own.
    for name in ("groups", "limits"):
        seen[name].sort(key=str)
    return seen


def outcomes(client, held) -> dict:
    return {name: list(scene.go_on(client, held[name])) for name, scene in SCENES.items()}


@pytest.fixture(scope="module")
def wanted(_shared) -> dict:
    """The outcomes where nothing comes between."""
    client = _shared.client()
    found = outcomes(client, build(client))
    client.flushall()
    return found


def assert_equal(found: dict, wanted: dict):
    for name in wanted:
        assert found[name] == wanted[name], name


def test_all_survives(cycle, wanted):
    server, turn = cycle
    client = server.client()
    held, before = build(client), state(client)
    for _ in range(2):
        turn()
        client = server.client()
        assert_equal(state(client), before)
    assert_equal(outcomes(client, held), wanted)


def test_random_traffic_survives(cycle):
    server, turn = cycle
    client = server.client()
    jobs, plain = JobTraffic(client, 1), [f"q{seed}" for seed in range(3)]
    for round in range(2):
        for seed, key in enumerate(plain):
            Traffic(client, key, 2 * seed + round, "CLOCK", "MANUAL", "RETAIN", 500, "MAXLEN", 80, linked=seed == 2).run(300)
        jobs.run(300)
        before = jobs.held(), [digest(client, key) for key in plain]
        turn()
        client = server.client()
        jobs.go_to(client)
        assert (jobs.held(), [digest(client, key) for key in plain]) == before


def test_a_copy_has_all_messages_and_runs_none(r3):
    build(r3)
    for key in KEYS:
        if r3.type(key) != b"dqueue-rs":
            continue
        q, before = Queue(r3, key), digest(r3, key)
        assert r3.copy(key, key + ":copy")
        copy = Queue(r3, key + ":copy")
        assert (copy.len(), copy.len("running")) == (q.len(), 0)
        copy.do("PURGE")
        assert digest(r3, key) == before, key


def test_a_replica_has_the_same_at_every_step(replica_pair):
    client = replica_pair.primary.client()
    held = build(client)
    replica_pair.assert_same(*KEYS)
    for name, scene in SCENES.items():
        for n, _ in enumerate(scene.go_on(client, held[name])):
            if n % 3 == 0:
                replica_pair.assert_same(*scene.keys)
        replica_pair.assert_same(*scene.keys)


def test_a_promoted_replica_goes_on_as_its_primary_would_have(replica_pair, wanted):
    client = replica_pair.primary.client()
    held, before = build(client), state(client)
    replica_pair.wait_sync()
    replica_pair.promote()
    promoted = replica_pair.replica.client()
    assert_equal(state(promoted), before)
    assert_equal(outcomes(promoted, held), wanted)


def test_a_slot_moves_with_all_of_it(cluster, wanted):
    slot, source = cluster.slot(SLOT), cluster.owner(SLOT)
    held, before = build(source.client()), state(source.client())
    target = next(node for node in cluster.nodes if node is not source)
    cluster.move_slot(slot, source, target)
    assert_equal(state(target.client()), before)
    assert_equal(outcomes(target.client(), held), wanted)
