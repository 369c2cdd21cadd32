"""One function for each measure. Each begins with empty servers."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from benches.frameworks.contenders import LEASE, Contender, Laravel
from benches.frameworks.task_log import TaskLog, judge
from tests.harness.server import Server

WORK = 0.1
"""Seconds that a task takes while workers are killed."""

BACKLOG = 40
"""Tasks that wait or run while workers are killed."""

SPEED_TASKS = 5000

SPEED_ROUNDS = 3

MANY = 8
"""Tasks at a time, in processes (Celery) or threads (Dramatiq)."""

DRAIN = 400
"""Seconds that are waited for tasks after the last kill. Celery with redis:// looks for lost tasks that seldom."""


@dataclass
class Size:
    """The amount of work. `divisor` makes all of it smaller, for a smoke test. `kills`, if given, is for all."""

    divisor: int = 1
    kills: int | None = None

    def of(self, full: int) -> int:
        return max(1, full // self.divisor)


Rows = dict[str, float]
"""Figures by the key of the row in the table."""


def cpu(server: Server) -> float:
    """Returns the seconds of processor time that the server has used."""
    used = server.client().info("cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def _fresh(contender: Contender) -> TaskLog:
    contender.server.client().flushall()
    task_log = TaskLog(contender.task_log.port)
    task_log.clear()
    return task_log


def _warm(contender: Contender, task_log: TaskLog) -> None:
    """Sends a task and waits until it is done. When its ack is noted is up to the framework."""
    contender.send("work", "warm", 0)
    _until(lambda: _has_ended(task_log, "warm"), 20)


def _has_ended(task_log: TaskLog, *tasks: str) -> bool:
    return {("end", task) for task in tasks} <= {(one.what, one.task) for one in task_log.entries()}


def _lates(task_log: TaskLog) -> list[float]:
    """Returns how late (ms) tasks were that were sent for a time."""
    return [float(one.worker) for one in task_log.entries() if one.what == "late"]


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


class _Progress:
    """The entries that the task_log has so far."""

    def __init__(self, task_log: TaskLog) -> None:
        self._task_log = task_log
        self._read = 0
        self.ended: set[str] = set()
        self.workers: set[str] = set()

    def look(self) -> None:
        for entry in self._task_log.entries(self._read):
            self._read += 1
            self.workers.add(entry.worker)
            if entry.what == "end":
                self.ended.add(entry.task)


def kills(contender: Contender, size: Size, say: Callable[[str], None]) -> Rows:
    """Kills workers, one after the other, while there is more work than they can do."""
    task_log = _fresh(contender)
    progress = _Progress(task_log)
    count = size.kills or size.of(contender.kills)
    random.seed(28)
    workers = [contender.start(2) for _ in range(3)]
    sent: list[str] = []
    killed: dict[str, float] = {}

    def is_at_work(name: str) -> bool:
        progress.look()
        while len(sent) - len(progress.ended) < BACKLOG:
            sent.append(f"t{len(sent)}")
            contender.send("work", sent[-1], WORK)
        return name in progress.workers

    def is_done() -> bool:
        progress.look()
        return len(progress.ended) == len(sent)

    for number in range(count):
        # A worker that is still starting does not count.
        victim = workers.pop(random.randrange(len(workers)))
        _until(lambda name=victim.name: is_at_work(name), 30)
        time.sleep(random.uniform(0, WORK))
        victim.kill()
        killed[victim.name] = time.time()
        workers.append(contender.start(2))
        if number % 50 == 49:
            say(f"{number + 1} kills")
    _until(is_done, DRAIN if size.divisor == 1 else 60)
    # A task that runs once more although it was acked has time to do so.
    time.sleep(LEASE + 5)
    for worker in workers:
        worker.stop()
    verdict = judge(sent, killed, task_log.entries())
    return {
        "kills": count,
        "cut": verdict.cut,
        "lost": verdict.lost,
        "after_ack": verdict.after_ack,
        "again_p50": _percentile(verdict.again, 0.5),
        "again_max": max(verdict.again, default=float("nan")),
    }


def lateness(contender: Contender, size: Size, say: Callable[[str], None]) -> Rows:
    """Sends tasks with etas spread over some seconds to a worker that is idle."""
    task_log = _fresh(contender)
    worker = contender.start(4)
    _warm(contender, task_log)
    task_log.clear()
    count = size.of(1000)
    first = time.time() + 4
    dues = sorted(first + random.uniform(0, count / 50) for _ in range(count))
    for number, due in enumerate(dues):
        contender.send("late", f"t{number}", due, due=due)
    _until(lambda: len(_lates(task_log)) >= count, count / 50 + 60)
    worker.stop()
    late = _lates(task_log)
    return {"late_p50": _percentile(late, 0.5), "late_p99": _percentile(late, 0.99), "late_missing": count - len(late)}


def memory(contender: Contender, size: Size, say: Callable[[str], None]) -> Rows:
    """Sends tasks that are due in an hour, and measures the memory of the worker."""
    task_log = _fresh(contender)
    worker = contender.start(1)
    _warm(contender, task_log)
    before = worker.memory()
    due = time.time() + 3600
    for number in range(size.of(100_000)):
        contender.send("late", f"t{number}", due, due=due)
    # The worker grows while it takes tasks over.
    sizes = [worker.memory()]
    while len(sizes) < 4 or max(sizes[-4:]) - min(sizes[-4:]) > 1024 * 1024:
        time.sleep(2)
        sizes.append(worker.memory())
    worker.kill()
    return {"memory": (max(sizes) - before) / 1e6}


def speed(contender: Contender, size: Size, say: Callable[[str], None]) -> Rows:
    """Lets one worker run empty tasks: one after the other, and if it can, several at once."""
    rows = {"ping": _ping(contender.server, size.of(SPEED_TASKS)), **_speed(contender, size, 1)}
    if contender.has_threads:
        rows |= {f"{key}_many": figure for key, figure in _speed(contender, size, MANY).items()}
    return rows


def _speed(contender: Contender, size: Size, threads: int) -> Rows:
    """Returns medians of some rounds."""
    rounds = [_speed_round(contender, size.of(SPEED_TASKS), threads) for _ in range(size.of(SPEED_ROUNDS))]
    return {key: median(one[key] for one in rounds) for key in rounds[0] if all(key in one for one in rounds)}


def _speed_round(contender: Contender, count: int, threads: int) -> Rows:
    task_log = _fresh(contender)
    began = cpu(contender.server)
    contender.send("work", "first", 0)
    for _ in range(count):
        contender.send("nothing")
    contender.send("work", "last", 0)
    worker = contender.start(threads)
    _until(lambda: _has_ended(task_log, "first", "last"), 120)
    time.sleep(0.2)
    used = cpu(contender.server) - began
    at = {(one.what, one.task): one.at for one in task_log.entries()}
    worker.stop()
    if ("end", "last") not in at:
        return {}
    return {"jobs": count / (at["start", "last"] - at["end", "first"]), "cpu": used / count * 1e6}


def _ping(server: Server, count: int) -> float:
    """Returns the server's processor time (us) of a round trip that does nothing. A task takes two or more."""
    client = server.client()
    client.ping()
    began = cpu(server)
    for _ in range(count):
        client.ping()
    return (cpu(server) - began) / count * 1e6


def two_queues(contender: Contender, size: Size, say: Callable[[str], None]) -> Rows:
    """Sends to one of two queues at which an idle worker waits, and measures the delay."""
    if not isinstance(contender, Laravel):
        return {}
    task_log = _fresh(contender)
    worker = contender.start(1)
    _warm(contender, task_log)
    task_log.clear()
    count = max(4, size.of(60))
    for number in range(count):
        time.sleep(random.uniform(0.05, 0.3))
        contender.send("late", f"t{number}", time.time(), queue=("high", "low")[number % 2])
        _until(lambda number=number: len(_lates(task_log)) > number, 20)
    worker.stop()
    late = _lates(task_log)
    return {"woken_p50": _percentile(late, 0.5), "woken_max": max(late, default=float("nan"))}


MEASURES = {"kills": kills, "lateness": lateness, "memory": memory, "speed": speed, "queues": two_queues}
