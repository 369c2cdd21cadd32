"""Short forms of APPLY in the large; `make effects-calls` and its siblings do the long ones."""

import pytest

from tests.effects import calls, cost, faults, peers
from tests.effects.model import Model


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_calls_are_those_of_a_model_and_of_the_plain_commands(seed):
    outcomes = calls.run(8_000, seed)
    assert outcomes["applied"] > 1_000 and {"WRONGTYPE", "NOTNUMBER", "OVERFLOW", "CONDITION", "stale"} <= set(outcomes)


def test_a_model_that_differs_is_found(monkeypatch):
    monkeypatch.setattr(Model, "refusal", lambda *_: None)
    with pytest.raises((calls.Differs, TypeError, AttributeError, ValueError)):
        calls.run(1_000, 1)


@pytest.mark.slow
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_counters_are_the_acked_messages_in_a_torn_log(preamble):
    assert faults.torn(12, preamble, 1) == []


@pytest.mark.slow
def test_counters_are_the_acked_messages_after_failovers():
    assert faults.failovers(4, 1) == []


@pytest.mark.slow
@pytest.mark.parametrize("system", ["dq", "streams", "bullmq"])
def test_a_worker_that_was_stopped_counts_twice_only_where_there_is_no_fence(system):
    sent, counted, _ = peers.measure(system, 3, 1)
    assert counted == sent if system == "dq" else counted >= sent


def test_the_cost_of_effects_is_measured():
    least = cost.measure([None], ["ACK", "INCRBY", "both"], 500, 1, {}, 100)
    assert 0 < least[None, "ACK"] < least[None, "both"]
