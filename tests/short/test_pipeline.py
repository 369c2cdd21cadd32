"""A short run of the pipeline under power failures; `make torture-pipeline` does a thousand of them."""

import pytest

from tests.harness.wire import Wire
from tests.torture.pipeline.pipelines import Dq, DqWorker, Multi, ok
from tests.torture.pipeline.run import run


@pytest.mark.slow
def test_no_item_is_doubled_or_lost_between_stages_that_hand_on_by_acksend():
    outcome = run(Dq(), failures=24, seed=7)
    assert outcome.wrong == {}
    assert (outcome.failures, outcome.torn) == (24, 6)
    assert outcome.handed_on > outcome.finished > 30
    assert outcome.released > 5
    assert outcome.gone > 0


class Apart(Dq):
    """Hands on by two commands, as if there were no ACKSEND."""

    class Worker(DqWorker):
        def hand_on(self, wire: Wire, complain) -> None:
            (item, receipt), pipeline = self.taken, self.pipeline
            ok(wire.call("DQ.SEND", pipeline.keys[self.stage + 1], item.handled(self.stage).body()))
            ok(wire.call("DQ.ACK", pipeline.keys[self.stage], receipt))
            self.taken = None

    def worker(self, stage: int) -> DqWorker:
        self.workers.append(self.Worker(self, stage))
        return self.workers[-1]


@pytest.mark.slow
def test_the_pipeline_finds_the_items_that_two_commands_double():
    outcome = run(Apart(), failures=24, seed=7)
    assert outcome.count("doubled") > 0


@pytest.mark.slow
def test_the_pipeline_of_transactions_comes_to_its_end():
    """This pipeline is not judged: whether a torn log doubles or loses anything is a matter of the server's version."""
    outcome = run(Multi(), failures=8, seed=7)
    assert (outcome.failures, outcome.torn) == (8, 2)
    assert outcome.handed_on > outcome.finished > 0
