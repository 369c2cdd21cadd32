"""The log that tasks and workers write: one list on a server of its own, in the order in which things happened."""

import time
from collections import defaultdict
from dataclasses import dataclass

import redis

KEY = "task_log"


@dataclass(frozen=True)
class Entry:
    """`what` happened to a task at a time (Unix seconds), at a worker of that name."""

    what: str
    task: str
    at: float
    worker: str


class TaskLog:
    """The list. Programs in other languages add the same lines: `what task unix-seconds worker`."""

    def __init__(self, port: int) -> None:
        self._client = redis.Redis(port=port)

    def write(self, what: str, task: str, worker: str = "-") -> None:
        self._client.rpush(KEY, f"{what} {task} {time.time()} {worker}")

    def entries(self, since: int = 0) -> list[Entry]:
        """Returns the entries from this one on."""
        found = []
        for line in self._client.lrange(KEY, since, -1):
            what, task, at, worker = line.decode().split(" ")
            found.append(Entry(what, task, float(at), worker))
        return found

    def length(self) -> int:
        return self._client.llen(KEY)

    def clear(self) -> None:
        self._client.delete(KEY)


@dataclass
class Verdict:
    """The outcome of tasks while workers were killed."""

    sent: int
    lost: int
    """Tasks that have not run to their end."""
    after_ack: int
    """Starts of a task that come after its ack."""
    cut: int
    """Runs that a kill has cut off, or whose ack it has prevented."""
    again: list[float]
    """Seconds from those kills until the task has started again."""


def judge(sent: list[str], kills: dict[str, float], entries: list[Entry]) -> Verdict:
    """`kills` has the time at which each worker of that name was killed."""
    ended, acked, after_ack = set(), set(), 0
    open_runs: dict[tuple[str, str], None] = {}
    waiting: defaultdict[str, list[float]] = defaultdict(list)
    again: list[float] = []
    cut = 0
    killed = dict(sorted(kills.items(), key=lambda item: item[1]))
    for entry in entries:
        # Kills up to now, because the list has the order in which things happened.
        for worker in [worker for worker, at in killed.items() if at <= entry.at]:
            at = killed.pop(worker)
            for run in [run for run in open_runs if run[1] == worker]:
                del open_runs[run]
                waiting[run[0]].append(at)
                cut += 1
        run = (entry.task, entry.worker)
        if entry.what == "start":
            after_ack += entry.task in acked
            again += [entry.at - at for at in waiting.pop(entry.task, ())]
            open_runs[run] = None
        elif entry.what == "end":
            ended.add(entry.task)
        elif entry.what == "ack":
            acked.add(entry.task)
            open_runs.pop(run, None)
    return Verdict(len(sent), len(set(sent) - ended), after_ack, cut, again)
