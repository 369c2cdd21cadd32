"""Figures of `dq import`, with the package of BullMQ 5 as the old side, source and target on this machine.

    python -m tests.takeover.figures [--jobs N] [--produced N] [--kills N]

Jobs a second, the PING of others meanwhile and the memory; how late jobs of an old producer are under --follow; and what is
lost, doubled or early when the importer and the servers (appendfsync always) are killed in turn. DQ_CLI names the program: a
release build, or the figures mean nothing.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import redis

from tests.harness.cli import build
from tests.harness.server import Server, wait_for
from tests.takeover.conftest import Move
from tests.takeover.peers import Bullmq, bullmq

VERSION = "5.81.5"



def fetched(client: redis.Redis, block=0) -> list[tuple[int, float]]:
    """Takes and ends what is due; the number of each job, and how late it is in ms."""
    batch = client.execute_command("DQ.FETCH", "bull:mails", "COUNT", 1000, *(("BLOCK", block) if block else ()))
    now = time.time() * 1000
    if not batch:
        return []
    client.execute_command("DQ.ACK", "bull:mails", *[message[1] for message in batch])
    data = [json.loads(message[3])["data"] for message in batch]
    return [(job["n"], now - job["due"]) for job in data]


def throughput(move: Move, old: Bullmq, jobs: int, *flags) -> dict:
    """Moves delayed jobs of 300 bytes."""
    move.new.client().flushall()
    old.run(move.old.port, "many", jobs, 3_600_000)
    command = move.command("bullmq", "--queue", "mails", "--json", "--ledger", "throughput", *flags)
    process = subprocess.Popen(command, cwd=move.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = json.loads(process.stdout.read())
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0 and said["moved"] == jobs, said
    (move.folder / "throughput").unlink()
    return {"jobs a second": round(said["per_second"]), "PING p99, ms": round(said["ping_p99_ms"], 1), "MB": used.ru_maxrss // 1024}


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
                        getattr(move, victim).start()
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
    finally:
        move.old.close()
        move.new.close()
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--produced", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=300)
    args = parser.parse_args()
    old, program = Bullmq(bullmq(VERSION)), build()
    with tempfile.TemporaryDirectory() as folder:
        move = Move(program, Server(load_module=False).start(), Server().start(), Path(folder))
        try:
            if args.jobs:
                print("import", throughput(move, old, args.jobs), flush=True)
                print("import --fast", throughput(move, old, args.jobs, "--fast"), flush=True)
            if args.produced:
                print("--follow", lateness(move, old, args.produced), flush=True)
        finally:
            move.old.close()
            move.new.close()
        if args.kills:
            print("kill -9", kills(old, program, Path(folder), args.kills), flush=True)


if __name__ == "__main__":
    main()
