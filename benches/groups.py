"""Measures what groups cost when most of them cannot deliver: server CPU a message, as ratios of one run.

    python benches/groups.py --module target/release/libdq.so [--scale 1.0]

Rows:

- one group of a million messages beside 10,000 small ones: no small one waits for more than one turn of the long one,
  and a fetch costs as much as without the long group;
- 100,000 groups that are held beside one that can deliver, against that one alone;
- GROUPPUSH of a 1 KB object (two group fields, id, score) against SEND of the same bytes into the same group.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import redis

PIPELINE = 500


class Bench:
    def __init__(self, module, program):
        self.directory = tempfile.TemporaryDirectory()
        self.port = 7912
        self.process = subprocess.Popen(
            [program, "--port", str(self.port), "--save", "", "--dir", self.directory.name, "--loadmodule", module],
            stdout=subprocess.DEVNULL,
        )
        self.client = redis.Redis(port=self.port, socket_timeout=120)
        while True:
            try:
                self.client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.05)

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()

    def do(self, *words):
        return self.client.execute_command(*words)

    def cpu_us(self):
        cpu = self.client.info("cpu")
        return 1e6 * (float(cpu["used_cpu_user_main_thread"]) + float(cpu["used_cpu_sys_main_thread"]))

    def all(self, commands):
        """Runs commands in pipelines. Returns their replies."""
        replies = []
        commands = list(commands)
        for start in range(0, len(commands), PIPELINE):
            with self.client.pipeline(transaction=False) as pipeline:
                for words in commands[start : start + PIPELINE]:
                    pipeline.execute_command(*words)
                replies += pipeline.execute()
        return replies

    def cost(self, commands):
        """Runs commands. Returns the server CPU of one of them, in microseconds, and all replies."""
        commands = list(commands)
        before = self.cpu_us()
        replies = self.all(commands)
        return (self.cpu_us() - before) / len(commands), replies

    def drain(self, key, count):
        """Fetches and acks messages one by one.

        Returns the server CPU of a message, in microseconds, and the group of each message in order of delivery.
        """
        before = self.cpu_us()
        groups, receipts = [], []
        while len(groups) < count:
            words = ["DQ.FETCH", key, "WITHMETA"]
            commands = []
            for _ in range(min(PIPELINE, count - len(groups))):
                acks = ["ACK", 1, receipts.pop()] if receipts else []
                commands.append([*words, *acks])
            got = [message for reply in self.all(commands) for message in reply]
            if not got:
                raise SystemExit(f"{key} gave nothing after {len(groups)} messages")
            for message in got:
                meta = message[4]
                groups.append(meta[b"group"] if isinstance(meta, dict) else meta[1])
                receipts.append(message[1])
        return (self.cpu_us() - before) / count, groups


def long_group(bench, scale):
    """Measures 10,000 small groups beside one of a million messages."""
    long, small = int(1_000_000 * scale), int(10_000 * scale)
    bench.do("DQ.CREATE", "alone", "GROUPCONCURRENCY", 100)
    bench.do("DQ.CREATE", "beside", "GROUPCONCURRENCY", 100)
    bench.all(("DQ.MSEND", "beside", 1000, *["x" * 100] * 1000, "GROUP", "long") for _ in range(long // 1000))
    for key in ("beside", "alone"):
        bench.all(("DQ.SEND", key, "x" * 100, "GROUP", f"s{i}") for i in range(small))
    alone, _ = bench.drain("alone", small)
    beside, groups = bench.drain("beside", small + 2)
    last_small = max(i for i, group in enumerate(groups) if group != b"long")
    turns = groups[:last_small].count(b"long")
    if turns > 1:
        raise SystemExit(f"small groups waited: the long one had {turns} turns before the last of them")
    return beside / alone, f"turns of the long group before the last of {small:,} small ones: {turns}"


def held_groups(bench, scale):
    """Measures a group that can deliver beside 100,000 that are held."""
    held, free = int(100_000 * scale), int(20_000 * scale)
    for key in ("one", "among"):
        bench.do("DQ.CREATE", key, "RETRIES", -1, "LEASE", 3_600_000)
        bench.do("DQ.GROUPSET", key, "free", "CONCURRENCY", 10_000)
    bench.all(("DQ.SEND", "among", "x", "GROUP", f"h{i // 2}") for i in range(2 * held))
    while messages := bench.do("DQ.FETCH", "among", "COUNT", 10_000):
        bench.do("DQ.NACK", "among", *[message[1] for message in messages], "DELAY", 3_600_000)
    costs = {}
    for key in ("one", "among"):
        bench.all(("DQ.SEND", key, "x" * 100, "GROUP", "free") for _ in range(free))
        costs[key], _ = bench.drain(key, free)
    blocked = bench.do("DQ.LEN", "among", "blocked")
    return costs["among"] / costs["one"], f"{blocked:,} messages of {held:,} held groups"


def group_push(bench, scale):
    """Measures GROUPPUSH of a 1 KB object against SEND of it."""
    total = int(50_000 * scale)

    def event(number):
        body = {
            "reqId": f"{number:036d}",
            "user_id": number % 1000,
            "order_id": 2302393013,
            "data": {"status": 1, "items": [{"sku": f"{i:08d}", "count": i, "price": 1999} for i in range(15)]},
            "q_time": 1563978617 + number,
            "note": "",
        }
        text = json.dumps(body)
        body["note"] = "n" * (1024 - len(text))
        return json.dumps(body)

    events = [event(number) for number in range(total)]
    options = ["GROUPBY", 2, "user_id", "order_id", "IDPATH", "reqId", "SCOREPATH", "q_time"]
    sends, pushes = [], []
    for turn in range(3):
        send, _ = bench.cost(
            ("DQ.SEND", f"s{turn}", text, "ID", f"{n:036d}", "GROUP", f"{n % 1000}_2302393013", "SCORE", 1563978617 + n)
            for n, text in enumerate(events)
        )
        push, _ = bench.cost(("DQ.GROUPPUSH", f"p{turn}", text, *options) for text in events)
        sends.append(send)
        pushes.append(push)
    ratio = statistics.median(push / send for push, send in zip(pushes, sends, strict=True))
    return ratio, f"{statistics.median(pushes):.2f} us against {statistics.median(sends):.2f} us"


ROWS = [
    ("FETCH+ACK of 10,000 small groups beside one of a million, against without it", long_group),
    ("FETCH+ACK of a group beside 100,000 held ones, against alone", held_groups),
    ("GROUPPUSH of a 1 KB object, against SEND of it", group_push),
]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--module", required=True)
    options.add_argument("--redis-server", default="redis-server")
    options.add_argument("--scale", type=float, default=1.0)
    args = options.parse_args()
    print("| what | ratio | |\n|---|---|---|")
    for title, row in ROWS:
        bench = Bench(os.path.abspath(args.module), args.redis_server)
        try:
            ratio, note = row(bench, args.scale)
        finally:
            bench.close()
        print(f"| {title} | {ratio:.2f} | {note} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
