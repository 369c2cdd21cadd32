"""Figures of `dq import`, with the packages of BullMQ 5 and Celery as the old side, source and target on this machine.

    python -m tests.takeover.figures [--jobs N] [--celery N] [--undo N] [--produced N] [--kills N]

Jobs a second, also of the processor time of each program, the PING of others meanwhile and the memory; whether an undo leaves
the source as it was; how late jobs of an old producer are under --follow; and what is lost, doubled or early when the importer
and the servers (appendfsync always) are killed in turn. DQ_CLI names the program: a release build, or the figures mean nothing.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import redis

from tests.harness.cli import build
from tests.harness.server import Server, wait_for
from tests.takeover import test_celery
from tests.takeover.conftest import Move
from tests.takeover.peers import Bullmq, bullmq
from tests.takeover.test_bullmq import own

VERSION = "5.81.5"
CELERY = "5.7.0"
PAGE = 1000

def fetched(client: redis.Redis, block=0) -> list[tuple[int, float]]:
    """Takes and ends what is due; the number of each job, and how late it is in ms."""
    batch = client.execute_command("DQ.FETCH", "bull:mails", "COUNT", 1000, *(("BLOCK", block) if block else ()))
    now = time.time() * 1000
    if not batch:
        return []
    client.execute_command("DQ.ACK", "bull:mails", *[message[1] for message in batch])
    data = [json.loads(message[3])["data"] for message in batch]
    return [(job["n"], now - job["due"]) for job in data]


def used(move: Move, *words) -> dict:
    """Runs dq import; what it says, its memory, and the processor time of it and of both servers."""
    before = [move.old.cpu_seconds(), move.new.cpu_seconds()]
    process = subprocess.Popen(move.command(*words), cwd=move.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = json.loads(process.stdout.read())
    _, status, own_use = os.wait4(process.pid, 0)
    assert status == 0, said
    seconds = [own_use.ru_utime + own_use.ru_stime, move.old.cpu_seconds() - before[0], move.new.cpu_seconds() - before[1]]
    return said | {"MB": own_use.ru_maxrss // 1024, "cpu": dict(zip(("importer", "source", "target"), seconds))}


def throughput(move: Move, peer: str, queue: str, jobs: int, *flags, ledger: str = "moved") -> dict:
    """Moves jobs that are there."""
    move.new.client().flushall()
    said = used(move, peer, "--queue", queue, "--json", "--ledger", f"{peer}-{ledger}", *flags)
    assert said["moved"] == jobs, said
    return {
        "jobs a second": round(said["per_second"]),
        "us of processor a job": {name: round(seconds / jobs * 1e6, 1) for name, seconds in said["cpu"].items()},
        "PING p99, ms": round(said["ping_p99_ms"], 1),
        "MB": said["MB"],
    }


def state(client: redis.Redis) -> dict[bytes, bytes]:
    """All keys, each with a sum over what it holds, but what BullMQ writes at any time."""
    sums, keys = {}, client.scan_iter(count=PAGE)
    while page := [*islice(keys, PAGE)]:
        pipe = client.pipeline(transaction=False)
        page = [key for key in page if not own(key)]
        for key in page:
            pipe.type(key)
        for key, kind in zip(page, pipe.execute()):
            {
                b"string": lambda key: pipe.get(key),
                b"list": lambda key: pipe.lrange(key, 0, -1),
                b"hash": lambda key: pipe.hgetall(key),
                b"zset": lambda key: pipe.zrange(key, 0, -1, withscores=True),
            }[kind](key)
        for key, held in zip(page, pipe.execute()):
            fields = sorted(held.items()) if isinstance(held, dict) else held
            sums[key] = hashlib.sha256(repr(fields).encode()).digest()[:8]
    return sums


def undo(move: Move, old: Bullmq, jobs: int) -> dict:
    """Moves jobs and takes them back."""
    for end in (move.old, move.new):
        end.client().flushall()
    old.run(move.old.port, "many", jobs, 3_600_000)
    before = state(move.old.client())
    moved = throughput(move, "bullmq", "mails", jobs, ledger="undo")
    began = time.monotonic()
    said = used(move, None, "--undo", "bullmq-undo", "--json")
    took = time.monotonic() - began
    return {
        "import": moved, "back": said["back"], "jobs a second": round(jobs / took), "MB": said["MB"],
        "us of processor a job": {name: round(seconds / jobs * 1e6, 1) for name, seconds in said["cpu"].items()},
        "as before": state(move.old.client()) == before, "left at the target": len(move.new.client().keys("dq:*")),
    }  # fmt: skip


def lateness(move: Move, old: Bullmq, produced: int) -> dict:
    """Lets an old producer add jobs under --follow."""
    client = move.new.client()
    client.flushall()
    process = move.start("bullmq", "--queue", "mails", "--follow", "--ledger", "follow")
    wait_for(lambda: client.exists("bull:mails"), timeout=20)
    producer = old.start(move.old.port, "produce", produced)
    late = []
    while len(late) < produced:
        late += fetched(client, block=20_000)
    assert producer.wait(20) == 0
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert sorted(n for n, _ in late) == list(range(produced))
    times = sorted(ms for _, ms in late)
    return {"lateness p99, ms": round(times[len(times) * 99 // 100], 1), "early": sum(ms < 0 for ms in times)}


def kills(old: Bullmq, program, folder: Path, count: int) -> dict:
    """Kills importer, source and target in turn, at any moment of an import."""
    conf = {"appendonly": "yes", "appendfsync": "always"}
    move = Move(program, Server(load_module=False, **conf).start(), Server(**conf).start(), folder)
    totals = {"kills": 0, "lost": 0, "twice": 0, "early": 0}
    try:
        while totals["kills"] < count:
            for end in (move.old, move.new):
                end.client().flushall()
                # A log of all earlier rounds would take ever longer to load.
                end.client().bgrewriteaof()
                wait_for(lambda end=end: end.info("persistence")["aof_rewrite_in_progress"] == "0", timeout=120)
            jobs = 3000
            old.run(move.old.port, "many", jobs, 1500)
            done, code = [], None
            while code != 0:
                process = move.start("bullmq", "--queue", "mails", "--rate", 4000, "--ledger", f"kills{totals['kills']}")
                victim = random.choice(["importer", "old", "new"])
                time.sleep(random.uniform(0.02, 0.4))
                if process.poll() is None and totals["kills"] < count:
                    totals["kills"] += 1
                    if victim == "importer":
                        process.kill()
                    else:
                        getattr(move, victim).kill9()
                        getattr(move, victim).start(timeout=120)
                code = process.wait(60)
                process.communicate()
                # Each import has another ledger, as after the loss of one.
                move.old.client().delete("bull:mails:dq:lease")
                done += fetched(move.new.client()) if move.new.client().exists("bull:mails") else []
            while more := fetched(move.new.client(), block=3000):
                done += more
            ran = [n for n, _ in done]
            totals["lost"] += jobs - len(set(ran))
            totals["twice"] += len(ran) - len(set(ran))
            totals["early"] += sum(late < -1 for _, late in done)
            print(totals, file=sys.stderr, flush=True)
    finally:
        move.old.close()
        move.new.close()
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in {"jobs": 200_000, "celery": 100_000, "undo": 100_000, "produced": 2000, "kills": 300}.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    args = parser.parse_args()
    old, program = Bullmq(bullmq(VERSION)), build()
    with tempfile.TemporaryDirectory() as folder:
        move = Move(program, Server(load_module=False).start(), Server().start(), Path(folder))
        try:
            for flags in [(), ("--fast",)] if args.jobs else []:
                move.old.client().flushall()
                old.run(move.old.port, "many", args.jobs, 3_600_000)
                print("BullMQ", *flags, throughput(move, "bullmq", "mails", args.jobs, *flags), flush=True)
            if args.celery:
                move.old.client().flushall()
                log = Path(folder, "log")
                test_celery.run(test_celery.celery(CELERY), move.old.port, "many", args.celery, log=log)
                size = len(move.old.client().lindex("celery", 0))
                print(f"Celery, {size} B", throughput(move, "celery", "celery", args.celery), flush=True)
            if args.undo:
                print("--undo", undo(move, old, args.undo), flush=True)
            if args.produced:
                move.old.client().flushall()
                print("--follow", lateness(move, old, args.produced), flush=True)
        finally:
            move.old.close()
            move.new.close()
        if args.kills:
            print("kill -9", kills(old, program, Path(folder), args.kills), flush=True)


if __name__ == "__main__":
    main()
