"""The programs behind `make load` and `make soak` work; a real measurement takes minutes on a quiet machine."""

from argparse import Namespace

import pytest

from tests.harness.absence import Absences
from tests.harness.server import ROOT, wait_for
from tests.load import tenants
from tests.load.costs import COSTS, Costs
from tests.load.lateness import Lateness
from tests.load.probe import Probe, Waits
from tests.load.searches import Searches
from tests.load.stalls import Stalls
from tests.soak.__main__ import soak


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_every_kind_of_stall_is_measured():
    with Stalls(due=5000, big=5000, idle=0.1, crowd=100, bulk=5000, queues=500, aftermath=0.1, margin=1000) as stalls:
        rows = list(stalls.rows())
    assert len({row.name for row in rows}) == len(rows) == 16
    assert all(row.idle.count and row.busy.count for row in rows)


def test_batches_and_find_are_measured():
    with Stalls(due=0, big=0, idle=0.1, crowd=0, bulk=0, queues=0, aftermath=0.1) as stalls:
        rows = list(Searches(stalls, members=1000, searched=5000).rows())
    assert [row.messages for row, _ in rows] == [1000, 999, 1, 5000]
    assert all(row.idle.count and row.busy.count for row, _ in rows)
    assert rows[-1][1].name == "DQ.FIND"


@pytest.mark.timeout(180)
def test_no_cost_grows_faster_than_the_page_says():
    faster = [row for row in Costs(COSTS).rows() if not row[3]]
    assert not faster


def test_the_costs_of_each_size_on_the_page_are_measured():
    page = (ROOT / "docs/commands.md").read_text().split("## Costs", 1)[1].split("\n## ", 1)[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")]
    assert rows[1:] == list(dict.fromkeys(cost.chosen for cost in COSTS))


def test_the_lateness_of_messages_is_measured():
    with Lateness() as lateness:
        rows = list(lateness.rows(4))
    assert len({row.name for row in rows}) == len(rows) == 8
    assert all(0 <= row.p50 <= row.p99 <= row.longest for row in rows)


@pytest.mark.timeout(120)
def test_a_tenant_that_floods_is_measured(make_server, capsys):
    words = ["--tenants", "200", "--workers", "400", "--rate", "400", "--flood", "50", "--ms", "1000"]
    assert tenants.main(words) == 0
    assert "398 jobs of the others" in capsys.readouterr().out
    # The checker compares with limits that the server did not have, and finds deliveries above them, or unused room.
    args = tenants.parser().parse_args(words)
    jobs = tenants.arrivals(args, True)
    client = make_server().client()
    assert not tenants.run(client, args, jobs).faults
    for less in ("limit", "workers", "rate"):
        assert tenants.check(client, Namespace(**{**vars(args), less: 1}), jobs).faults, less
    more = Namespace(**{**vars(args), "limit": 9, "workers": 999, "rate": 999})
    assert tenants.check(client, more, jobs).used < 0.99


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_mixed_traffic_leaves_no_memory_behind(make_server, capsys):
    faults = soak(make_server(appendonly="yes"), Namespace(seconds=4, samples=2, messages=2000, seed=1))
    assert not [fault for fault in faults if "left" in fault], faults
    assert capsys.readouterr().out.count("MEMORY USAGE") == 5


# Half a second or more. Scripts of newer servers have no clock that goes on, those of older ones none of the processor.
SPIN = "for n = 1, tonumber(ARGV[1]) do redis.call('EXISTS', 'x') end"
SPINS = 1_000_000


def test_waits_for_a_busy_server_do_not_count_as_absence_of_the_processor(server):
    def seen():
        with Absences() as absences, Probe(server.port) as probe:
            server.client().eval(SPIN, 0, SPINS)
        waits = Waits.of(absences, probe)
        # On a busy machine the probe may sleep over it, or be kept from running itself.
        return waits.longest > 150 and waits.own > 100

    wait_for(seen, 50, "a wait for the server")


def test_absences_are_subtracted_from_the_waits():
    absences, probe = Absences(), Probe(0)
    absences.spans = [(1.0, 1.004), (1.010, 1.012), (2.0, 2.5)]
    assert absences.during(0, 1) == 0
    assert absences.during(1.002, 1.011) == pytest.approx(0.003)
    assert absences.during(1.005, 1.009) == 0
    assert absences.during(0, 3) == pytest.approx(0.506)
    probe.pings = [(1.001, 0.007), (1.5, 0.002), (2.1, 0.3)]
    waits = Waits.of(absences, probe)
    assert (waits.longest, waits.absent) == pytest.approx((300, 300))
    assert waits.own == pytest.approx(4)
