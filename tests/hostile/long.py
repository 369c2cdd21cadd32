"""python -m tests.hostile.long: dumps, commands and log entries with wrong bytes, by the million.

test_input.py and test_restore.py do the same for a second. A dump that is accepted is used, and a log entry that is
accepted changes a queue that goes on being used. Nothing may end the server, and no command may hold it for longer than
MOST_MS: the server's own slow log says so, and the processor time that the server used meanwhile, since on a busy machine
a command can take long in which the server does not run. The exit status is 1 if something did.
"""

import argparse
import random
import sys
import time

from tests.harness.aof import commands
from tests.harness.server import Server
from tests.harness.traffic import Traffic, rich, waiting
from tests.harness.verbs import KEYS
from tests.harness.wire import Error
from tests.hostile.test_input import NASTY, mutate
from tests.hostile.test_restore import cut, damaged, frames, numeral, packed, unpacked

MOST_MS = 100
STEP = 20
FAR = 10_000_000
# The longest of NASTY takes longer to send than a million others.
VALUES = [value for value in NASTY if len(value) < 1_000]
USE = [("DQ.TICK",), ("DQ.FETCH", "COUNT", 5), ("DQ.ACK", 1), ("DQ.SEND", "x"), ("DQ.INFO",), ("DQ.PEEK",), ("MEMORY USAGE",)]


class Tried:
    """A server without checksums, and how many calls it has refused and done."""

    def __init__(self):
        conf = {"appendonly": "yes", "appendfsync": "no", "rdbcompression": "no"}
        self.server = Server(**conf, **{"slowlog-log-slower-than": MOST_MS * 1000, "slowlog-max-len": 1000}).start(300)
        self.client, self.wire = self.server.client(), self.server.wire(2, timeout=300)
        self.client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
        self.refused = self.done = 0
        self.slow = []

    def send(self, calls) -> None:
        """Makes calls, of which some may be refused."""
        for call, reply in zip(calls, self.replies(calls), strict=True):
            self.refused += isinstance(reply, Error)
            self.done += not isinstance(reply, Error)
            assert not isinstance(reply, Error) or len(reply) < 4096, call[0]

    def replies(self, calls) -> list:
        """Makes calls, and keeps those that took too long."""
        began = self.server.cpu_seconds()
        self.wire.send_many(calls)
        replies = [self.wire.recv() for _ in calls]
        if self.server.cpu_seconds() - began > MOST_MS / 1000:
            self.slow += [entry for entry in self.client.slowlog_get(1000) if entry["command"].split(b" ")[0] != b"DEBUG"]
        self.client.slowlog_reset()
        return replies

    def report(self, what, count, began) -> bool:
        """Prints a line, and returns whether nothing was held up."""
        slow, self.slow = self.slow, []
        seconds = time.monotonic() - began
        errors = self.client.info("dq").get("dq_internal_errors", 0)
        print(
            f"{count} {what}: {self.refused} refused, {self.done} done, {len(slow)} held the server for over {MOST_MS} ms, "
            f"{errors} internal errors, {count / seconds:.0f} a second",
            flush=True,
        )
        for entry in slow[:3]:
            print(f"  {entry['duration'] / 1000:.0f} ms: {entry['command'][:200]!r}")
        self.refused = self.done = 0
        return not slow and not errors


def sources(client) -> list:
    """The dumps of queues of every shape."""
    waiting(rich(client, "manual"), FAR)
    waiting(rich(client, "server", "SERVER"), FAR)
    Traffic(client, "traffic", 6, "CLOCK", "MANUAL", "DEDUP", 500, "RETAIN", 900, linked=True).run(200)
    return [client.dump(key) for key in ("manual", "server", "traffic")]


def dumps(tried, count, rng) -> None:
    """Restores dumps with wrong bytes, and snapshots with wrong frames and numbers, and uses those that are accepted."""
    good = sources(tried.client)
    parts = [(head, frames(snapshot), tail) for head, snapshot, tail in map(unpacked, good)]
    for _ in range(0, count, STEP):
        tried.send([("RESTORE", f"d{n}", 0, bad(rng, good, parts), "REPLACE") for n in range(STEP)])
        held = [f"d{n}" for n in range(STEP) if n % 4 == 0]
        tried.replies([(*use[0].split(), key, *use[1:]) for key in held for use in USE])
        tried.wire.ok("FLUSHALL")


def bad(rng, good, parts) -> bytes:
    """A dump that is damaged in one way or the other."""
    if rng.random() < 0.5:
        return mutate(rng, rng.choice(good))
    head, all_frames, tail = rng.choice(parts)
    whole = b"".join(numeral(len(frame)) + frame for frame in damaged(rng, all_frames))
    # To cut it into many blocks takes long.
    blocks = cut(rng, whole) if rng.random() < 0.02 else [whole]
    return packed(head, blocks, tail, seal=lambda data: data + bytes(8))


def calls(tried, count, rng) -> None:
    """Makes calls of every verb with some of their arguments replaced by odd values."""
    verbs = [call for call, _ in KEYS if call[0] not in ("WAIT", "MFETCH", "NFETCH")]
    for at in range(0, count, STEP):
        if at % 20_000 == 0:
            tried.wire.ok("FLUSHALL")
            waiting(rich(tried.client, "k"), FAR)
        tried.send([odd(rng, rng.choice(verbs)) for _ in range(STEP)])


def odd(rng, call) -> tuple:
    words = list(call)
    for _ in range(rng.choice((1, 1, 2, 3))):
        # A key that is another one would leave nothing to do for most calls.
        place = rng.randrange(2, len(words)) if len(words) > 2 else 1
        words[place : place + rng.choice((0, 1, 1, 1))] = [rng.choice(VALUES)]
    # Nothing waits.
    return (f"DQ.{words[0]}", *("COUNT" if word in ("BLOCK", b"BLOCK") else word for word in words[1:]))


def entries(tried, count, rng) -> None:
    """Applies log entries with wrong bytes to queues that are used meanwhile."""
    sources(tried.client)
    good = [call for call in commands(tried.server) if call[0].upper() in (b"DQ.OP", b"DQ.OPS")]
    assert len(good) > 100, len(good)
    for at in range(0, count, STEP):
        if at % 10_000 == 0:
            tried.wire.ok("FLUSHALL")
            sources(tried.client)
        batch = []
        for _ in range(STEP):
            words = list(rng.choice(good))
            place = rng.randrange(2, len(words), 2)
            words[place] = mutate(rng, words[place] + bytes(10))[:-10]
            batch.append(words)
        tried.send([*batch, *[(*use[0].split(), key, *use[1:]) for key in ("manual", "server", "traffic") for use in USE]])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.long", description=__doc__)
    parser.add_argument("--dumps", type=int, default=2_000_000, help="(default %(default)s)")
    parser.add_argument("--commands", type=int, default=1_000_000, help="(default %(default)s)")
    parser.add_argument("--entries", type=int, default=200_000, help="(default %(default)s)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="where the random numbers start")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    fine = True
    for what, count, run in (("dumps", args.dumps, dumps), ("commands", args.commands, calls), ("log entries", args.entries, entries)):
        tried = Tried()
        try:
            began = time.monotonic()
            run(tried, count, random.Random(f"{args.seed} {what}"))
            fine &= tried.report(what, count, began)
            assert tried.server.alive()
        finally:
            tried.server.close()
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
