"""Queues under faults that are used for jobs which die, wait for others, run once more and share limits (tests/checker/jobs)."""

import os
from dataclasses import dataclass

from tests.checker.jobs.actors import Operator, Worker, send
from tests.checker.jobs.record import DEAD, EVENTS, PARTS, RULES, Record
from tests.checker.jobs.rules import check
from tests.checker.jobs.run import WAYS, make_queues
from tests.torture.actors import PATIENCE, lives
from tests.torture.workload import Workload


def work(ports, key, directory, name, seed, until, lease, ways):
    """Keeps one worker alive."""

    def live(life, path):
        Worker(ports, key, path, f"{name}.{life}", seed + life, lease, ways).run(until, PATIENCE, is_healed(directory))

    lives(directory, name, live)


def operate(ports, key, path, until):
    """Runs one operator until no work is left."""
    Operator(ports, key, path, "operator", 0).run(until, PATIENCE, is_healed(os.path.dirname(path)))


def is_healed(directory):
    return lambda: os.path.exists(f"{directory}/healed")


@dataclass(frozen=True)
class Jobs(Workload):
    """A queue of jobs, one of their parts, one of the dead, and the event stream of the first two."""

    def queues(self, key) -> list:
        return [key + self.suffix + more for more in ("", PARTS, DEAD)]

    def keys(self, key) -> list:
        return [*self.queues(key), key + self.suffix + EVENTS]

    def watchers(self) -> list:
        return [("operator", operate)]

    def create(self, client, key) -> None:
        make_queues(client, key, self.retries)

    def judge(self, target) -> tuple:
        record = Record(rules=RULES, windows=target.windows)
        record.read_journals(sorted(target.journals.glob(f"{self.name}.*.jsonl")))
        record.read_queues(target.primary().client(), target.key + self.suffix)
        return record.operations, record.gone, check(record)


JOBS = Jobs(
    name="jobs",
    suffix=":jobs",
    retries=1,
    ways=WAYS,
    producers=2,
    consumers=4,
    produce=send,
    consume=work,
)
