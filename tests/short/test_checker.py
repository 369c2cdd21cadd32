"""The history checker accepts the real server, and finds every seeded fault."""

import pytest

from tests.checker.check import check
from tests.checker.jobs import rules
from tests.checker.jobs import run as jobs
from tests.checker.jobs.toy import JOB_FAULTS, JobToy
from tests.checker.run import run
from tests.checker.toy import FAULTS, Toy
from tests.checker.toy_clocks import CLOCK_FAULTS, ClockToy
from tests.checker.toy_durable import DURABLE_FAULTS, DurableToy
from tests.checker.toy_flows import FLOW_FAULTS, FlowToy

SEEDS = range(30)
# Each small queue, its faults with the rules that must see them, and the rules.
TOYS = (
    (Toy, FAULTS, check), (DurableToy, DURABLE_FAULTS, check), (ClockToy, CLOCK_FAULTS, check), (FlowToy, FLOW_FAULTS, check),
    (JobToy, JOB_FAULTS, rules.check),
)  # fmt: skip
SEEDED = [(toy, judge, fault, rule) for toy, faults, judge in TOYS for fault, rule in faults.items()]


@pytest.mark.parametrize("toy, judge, fault, rule", SEEDED, ids=[fault for *_, fault, _ in SEEDED])
def test_every_seeded_fault_is_found_by_its_rule(toy, judge, fault, rule):
    assert any(one.startswith(rule) for seed in SEEDS for one in judge(toy(seed, fault).run()))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_correct_history_passes_the_checker(seed):
    history = Toy(seed).run()
    assert len(history.deliveries) > 300
    assert check(history) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_correct_history_with_crashes_passes_the_checker(seed):
    history = DurableToy(seed).run()
    assert len(history.deliveries) > 150
    assert len(history.windows) == 6
    assert check(history) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_correct_history_with_wrong_clocks_passes_the_checker(seed):
    history = ClockToy(seed).run()
    assert len(history.deliveries) > 250
    assert len(history.steps) == 5 and len(history.standstills) == 10
    assert check(history) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_correct_history_with_breakers_and_batches_passes_the_checker(seed):
    history = FlowToy(seed).run()
    assert len(history.deliveries) > 300
    assert history.sights and history.notes and any(v.pause for v in history.verdicts)
    assert check(history) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_correct_record_of_jobs_passes_the_checker(seed):
    record = JobToy(seed).run()
    assert len(record.got) > 150
    assert record.letters and record.signals and record.counts and any(send.limits for send in record.sends)
    assert rules.check(record) == []


def report(found):
    return f"{len(found)} violations:\n" + "\n".join(found[:20])


@pytest.mark.slow
def test_a_history_of_the_real_server_passes_the_checker(server):
    history, found = run(server, seconds=4, seed=7)
    assert not found, report(found)
    assert len(history.final["finished"]) > 200
    assert history.sights and any(send.after for send in history.sends) and any(send.parent for send in history.sends)


@pytest.mark.slow
def test_a_record_of_jobs_of_the_real_server_passes_the_checker(server):
    record, found = jobs.run(server, seconds=4, seed=10)
    assert not found, report(found)
    assert len(record.events) > 300
    assert record.letters and record.signals and record.counts and any(send.limits for send in record.sends)


@pytest.mark.slow
def test_a_history_with_reloads_passes_the_checker(make_server):
    # Consumers that have died would keep their messages for the grace after each load.
    server = make_server(appendonly="yes", **{"dq.start-grace": 0})
    client = server.client()
    reloads = []

    def fault(elapsed):
        if elapsed > len(reloads) + 1:
            client.execute_command("DEBUG", "RELOAD")
            reloads.append(elapsed)

    _, found = run(server, seconds=4, seed=8, fault=fault)
    assert reloads
    assert not found, report(found)


@pytest.mark.slow
def test_a_history_with_rewrites_of_the_log_and_saves_passes_the_checker(make_server):
    server = make_server(appendonly="yes", aof_use_rdb_preamble="no")
    client = server.client()
    done = []

    def fault(elapsed):
        if elapsed > len(done) + 1:
            client.execute_command("BGREWRITEAOF" if len(done) % 2 else "BGSAVE")
            done.append(elapsed)

    _, found = run(server, seconds=4, seed=9, fault=fault)
    assert done
    assert not found, report(found)
