"""Jobs that die, wait for others, run once more and share limits: all keys together, after each kind of loading and moving."""

import pytest

from tests.durability.test_persistence import cycle  # noqa: F401
from tests.harness.job_traffic import JOBS, JobTraffic


@pytest.mark.parametrize("seed", range(2))
def test_traffic_of_jobs_survives(cycle, seed):  # noqa: F811
    server, turn = cycle
    traffic = JobTraffic(server.client(), seed)
    for _ in range(2):
        traffic.run(200)
        before = traffic.held()
        turn()
        traffic.go_to(server.client())
        assert traffic.held() == before


@pytest.mark.parametrize("seed", range(3))
def test_traffic_of_jobs_is_the_same_on_a_replica_that_takes_over(replica_pair, seed):
    traffic = JobTraffic(replica_pair.primary.client(), seed)
    for _ in range(10):
        traffic.run(30)
        replica_pair.assert_same(*traffic.keys)
    before = traffic.held()
    replica_pair.promote()
    traffic.go_to(replica_pair.replica.client())
    assert traffic.held() == before
    traffic.run(100)


def test_traffic_of_jobs_moves_with_its_slot(cluster):
    slot, source = cluster.slot(JOBS), cluster.owner(JOBS)
    traffic = JobTraffic(source.client(), 1)
    for target in [node for node in cluster.nodes if node is not source]:
        traffic.run(200)
        before = traffic.held()
        cluster.move_slot(slot, source, target)
        source = target
        traffic.go_to(source.client())
        assert traffic.held() == before
    traffic.run(100)
