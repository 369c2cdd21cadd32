"""One run: the queues of the jobs, their senders, workers and operator, the event stream, the verdict."""

import multiprocessing
import random
import tempfile
import time
from pathlib import Path

from tests.checker.actors import Ways
from tests.checker.history import clock
from tests.checker.jobs.actors import Operator, Worker, send
from tests.checker.jobs.record import DEAD, EVENTS, PARTS, RULES, Record
from tests.checker.jobs.rules import check
from tests.harness.server import Server

FAR = 2**50
WAYS = Ways(nack=0.12, forget=0.03, crash=0.003, slow=0.01, rate=30)
# The exit code of a worker that has died as its ways say (Worker.handle).
DIED = 9
# If nothing has come for this long, in ms, workers and operator believe that nothing more will: it is longer than any
# lease, backoff or wait for a signal. After a start leases last `dq.start-grace`.
PATIENCE, PATIENCE_AFTER_START = 2_000, 7_000


def make_queues(client, key, retries=1) -> None:
    """Makes a queue of jobs, one of their parts, one of the dead, the event stream of the first two, and the limits."""
    common = ("BACKOFF", "FIXED", 20, "EVENTS", key + EVENTS, "EVENTSLEN", 10**6, "RETAIN", FAR, "RETAINCOUNT", 0)
    client.execute_command("DQ.CREATE", key, "RETRIES", retries, "DEADTO", key + DEAD, *common)
    # A part whose send was not answered is sent again, perhaps after its ack.
    client.execute_command("DQ.CREATE", key + PARTS, "RETRIES", 0, "DEDUP", FAR, *common)
    client.execute_command("DQ.CREATE", key + DEAD)
    for name, limit in RULES.items():
        client.execute_command("DQ.LIMIT", key, name, *limit.words())


def run(server: Server, seconds=5.0, senders=2, workers=4, seed=1, lease=300, patience=PATIENCE, fault=None):
    """Runs the actors against the server; returns (Record, violations).

    A worker that dies is followed by another. `fault(elapsed_s)`, if given, is called every 50 ms, as in tests.checker.run.
    """
    key = f"{{jobs:{seed}}}"
    client = server.client()
    make_queues(client, key)
    rng, context = random.Random(seed), multiprocessing.get_context("fork")
    began = clock()
    until = began + seconds * 1000
    with tempfile.TemporaryDirectory(prefix="dq-jobs-") as directory:
        places = ([server.port], key)

        def start(target, name, *args):
            process = context.Process(target=target, args=(*places, Path(directory) / f"{name}.jsonl", name, *args), daemon=True)
            process.start()
            return process

        def start_worker(number, life):
            return start(_work, f"w{number}.{life}", rng.randrange(2**31), until, patience, lease)

        others = [start(send, f"s{number}", rng.randrange(2**31), until, WAYS) for number in range(senders)]
        others.append(start(_operate, "operator", until, patience))
        lives = dict.fromkeys(range(workers), 0)
        alive = {number: start_worker(number, 0) for number in range(workers)}
        while any(process.is_alive() for process in (*others, *alive.values())):
            time.sleep(0.05)
            for number, process in alive.items():
                if process.exitcode == DIED:
                    lives[number] += 1
                    alive[number] = start_worker(number, lives[number])
            if fault and clock() < until:
                fault((clock() - began) / 1000)
            assert clock() < until + 60_000, "the actors do not come to an end"
        bad = [process.exitcode for process in (*others, *alive.values()) if process.exitcode]
        assert not bad, f"actors failed: exit codes {bad}"
        record = Record(rules=RULES)
        record.read_journals(sorted(Path(directory).glob("*.jsonl")))
    record.read_queues(client, key)
    return record, check(record)


def _work(ports, key, path, name, seed, until, patience, lease):
    Worker(ports, key, path, name, seed, lease, WAYS).run(until, patience, lambda: True)


def _operate(ports, key, path, name, until, patience):
    Operator(ports, key, path, name, 0).run(until, patience, lambda: True)
