"""The history checker accepts the real server, and each of its rules finds what a wrong server would leave."""

import pickle
import random

import pytest

from tests.checker.check import check
from tests.checker.edits import EDITS
from tests.checker.jobs import rules
from tests.checker.jobs import run as jobs
from tests.checker.jobs.edits import EDITS as JOB_EDITS
from tests.checker.run import run
from tests.harness.server import Server

# How many places of a history an edit tries.
PLACES = 60


@pytest.fixture(scope="module")
def history():
    """The history of a real server, and what the checker finds in it."""
    server = Server().start()
    yield run(server, seconds=4, seed=7)
    server.close()


@pytest.fixture(scope="module")
def record():
    """The record of jobs of a real server, and what the checker finds in it."""
    server = Server().start()
    yield jobs.run(server, seconds=4, seed=10)
    server.close()


def report(found):
    return f"{len(found)} violations:\n" + "\n".join(found[:20])


def finds(judge, whole, edit, rule) -> bool:
    """Whether the rule finds the edit at some place of a history."""
    saved = pickle.dumps(whole)
    for place in range(PLACES):
        edited = pickle.loads(saved)
        try:
            edit(edited, random.Random(place))
        except (IndexError, ValueError):
            continue  # There is nothing to edit at this place.
        if any(one.startswith(rule) for one in judge(edited)):
            return True
    return False


@pytest.mark.slow
def test_a_history_of_the_real_server_passes_the_checker(history):
    history, found = history
    assert not found, report(found)
    assert len(history.final["finished"]) > 100
    assert history.sights and any(send.after for send in history.sends) and any(send.parent for send in history.sends)


@pytest.mark.slow
def test_a_record_of_jobs_of_the_real_server_passes_the_checker(record):
    record, found = record
    assert not found, report(found)
    assert len(record.events) > 300
    assert record.letters and record.signals and record.counts and any(send.limits for send in record.sends)


@pytest.mark.parametrize("name", EDITS)
def test_the_rule_finds_what_a_wrong_server_leaves(history, name):
    assert finds(check, history[0], EDITS[name][1], EDITS[name][0])


@pytest.mark.parametrize("name", JOB_EDITS)
def test_the_rule_finds_what_a_wrong_server_leaves_of_jobs(record, name):
    assert finds(rules.check, record[0], JOB_EDITS[name][1], JOB_EDITS[name][0])


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
