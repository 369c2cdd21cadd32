"""The processes of the soak: senders, consumers, and others that interfere."""

import random
import time

from tests.harness.server import now_ms
from tests.harness.wire import Error, Wire

# The options with which each queue is made; together they use everything that is stored.
QUEUES = {
    b"soak:plain": ("LEASE", 500, "DEADCOUNT", 500),
    b"soak:groups": (
        "LEASE", 700, "RETAIN", 3_600_000, "RETAINCOUNT", 3000, "DEADCOUNT", 1000, "BACKOFF", "EXP", 20,
        "BREAKER", 3, "PER", 1000, "OPEN", 100, "MAX", 400,
    ),
    b"soak:delayed": ("LEASE", 500, "RETAIN", 2000, "DEDUP", 2000, "DEADRETAIN", 3000, "BACKOFF", "FIXED", 200),
    b"soak:dying": ("LEASE", 300, "TTL", 3000, "RETRIES", 1, "DEADRETAIN", 2000, "MAXRUNNING", 300, "ONDEAD", "BLOCK"),
}  # fmt: skip
# Errors that are part of the traffic: the backlog keeps its length because it reaches its limit.
EXPECTED = ("QUEUEFULL",)


def create(client, messages: int) -> None:
    """Makes the queues, with a maximum number of messages for each."""
    for key, options in QUEUES.items():
        client.execute_command("DQ.CREATE", key, "MAXLEN", messages, *options)
        for n in range(3):
            client.execute_command(
                "DQ.SCHEDULE", key, f"every{n}", "EVERY", 40 + n * 30, "PAYLOAD", "tick", "OVERLAP", "SKIP"
            )


class Actor:
    """A process with its own connection and random numbers; `run` continues until `pauses` ends it."""

    def __init__(self, port: int, pauses, seed: int):
        self.pauses, self.rng = pauses, random.Random(seed)
        self.wire = Wire(port, timeout=60)
        self.keys = list(QUEUES)

    def run(self) -> None:
        """Turns of this actor's work, as long as there are any."""
        while self.pauses.working():
            self.turn(self.rng.choice(self.keys))

    def do(self, verb, key, *args):
        """Sends one command. Returns the reply, or None for an error that belongs to the traffic."""
        reply = self.wire.call(f"DQ.{verb}", key, *args)
        if isinstance(reply, Error):
            assert reply.startswith(EXPECTED), f"DQ.{verb} {key} {args}: {reply}"
            return None
        return reply


class Producer(Actor):
    """Sends singles and batches of every kind, and waits where the queue is full."""

    def turn(self, key) -> None:
        rng = self.rng
        if rng.random() < 0.5:
            count = rng.randrange(5, 100)
            sent = self.do("MSEND", key, count, *[self.payload() for _ in range(count)], *self.options(key))
        else:
            extra = self.options(key)
            if rng.random() < 0.6:
                extra += ["ID", f"id{rng.randrange(20_000)}"]
                if rng.random() < 0.3:
                    extra += ["REPLACE", *rng.choice([(), ("MAXWAIT", rng.randrange(1, 5000))])]
            if rng.random() < 0.3:
                fields = rng.randrange(1, 4)
                extra += ["HEADERS", fields]
                for n in range(fields):
                    extra += [f"field{n}", rng.randbytes(rng.randrange(20))]
            sent = self.do("SEND", key, self.payload(), *extra)
        if sent is None:
            time.sleep(0.002)

    def payload(self) -> bytes:
        return b"p" * self.rng.choice((0, 8, 40, 100, 100, 200, 1000))

    def options(self, key) -> list:
        rng, options = self.rng, []
        if rng.random() < (0.9 if key == b"soak:delayed" else 0.2):
            options += ["DELAY", rng.randrange(3000)]
        if key == b"soak:groups" or rng.random() < 0.2:
            # Most groups are used again; some have one message and are never used again.
            name = f"g{rng.randrange(2000)}" if rng.random() < 0.9 else f"once{rng.getrandbits(60)}"
            options += ["GROUP", name, "SCORE", rng.randrange(100)]
        if rng.random() < 0.2:
            options += ["PRIORITY", rng.randrange(-3, 4)]
        if rng.random() < 0.1:
            options += ["TYPE", f"type{rng.randrange(50)}"]
        if rng.random() < 0.1:
            soon = rng.randrange(1, 5000)
            options += rng.choice([("TTL", soon), ("EXPIREAT", now_ms() + soon)])
        if rng.random() < 0.1:
            options += ["RETAIN", rng.randrange(5000)]
        # Each batch covers one second, so that each ends.
        batch = f"b{int(time.monotonic())}:{rng.randrange(20)}"
        kind = rng.random()
        if kind < 0.1:
            options += ["BATCH", batch]
        elif kind < 0.13:
            options += ["AFTER", batch, "ONFAIL", rng.choice(["HOLD", "GO", "DIE"])]
        return options


class Consumer(Actor):
    """Fetches in every form, and acks most, nacks some, and forgets some."""

    def turn(self, key) -> None:
        rng = self.rng
        options = ["COUNT", rng.randrange(1, 100), "BLOCK", 100]
        if rng.random() < 0.1:
            options.append("NOACK")
        else:
            if rng.random() < 0.3:
                options += ["CONSUMER", f"consumer{rng.randrange(20)}"]
                options += rng.choice([(), ("TOKEN", rng.getrandbits(60))])
            if rng.random() < 0.2:
                options += rng.choice([("BIND",), ("BIND", "GRACE", 50)])
        if rng.random() < 0.3:
            options += ["PERGROUP", rng.randrange(1, 5)]
        receipts = [one[1] for one in self.do("FETCH", key, *options) if one[1]]
        if not receipts:
            return
        fate = rng.random()
        if fate < 0.1:
            self.do("ACKSEND", key, receipts[0], "NEXT", key, "p" * rng.randrange(200), "DELAY", rng.randrange(1000))
        elif fate < 0.80:
            result = ["RESULT", "done"] if rng.random() < 0.1 else []
            self.do("ACK", key, *receipts, *result)
        elif fate < 0.95:
            how = rng.choice(
                [(), ("SILENT",), ("DELAY", rng.randrange(500)), ("FATAL",), ("ERROR", "it broke"), ("NOTE", "half"),
                 ("SILENT", "DELAY", rng.randrange(500)), ("PAUSE", "QUEUE", 5)]
            )  # fmt: skip
            self.do("NACK", key, *receipts, *how)
        elif fate < 0.98:
            self.do("TOUCH", key, rng.randrange(1, 400), *receipts, *rng.choice([(), ("NOTE", "n" * 50)]))


class Meddler(Actor):
    """All other changes of queues, and connections that open and close."""

    def turn(self, key) -> None:
        rng = self.rng
        id = f"id{rng.randrange(20_000)}"
        match rng.randrange(11):
            case 0 | 1:
                self.do("CANCEL", key, id, f"id{rng.randrange(20_000)}")
            case 2:
                self.do("RESCHEDULE", key, id, "DELAY", rng.randrange(2000))
            case 3:
                self.do("UPDATE", key, id, rng.randbytes(rng.randrange(300)))
            case 4:
                self.do("REDRIVE", key, "ALL", "COUNT", rng.randrange(1, 50))
            case 5:
                self.do("PURGE", key, "STATE", rng.choice(["dead", "finished", "cancelled"]))
            case 6:
                self.do("PAUSE", key, "GROUP", f"g{rng.randrange(2000)}", "FOR", rng.randrange(1, 200))
            case 7:
                self.do("GROUPSET", key, f"g{rng.randrange(2000)}", "CONCURRENCY", rng.randrange(3), "RATE", 0)
            case 8:
                self.resume(key)
            case 9:
                state = rng.choice(["dead", "delayed"])
                deed = "REDRIVE" if state == "dead" else "CANCEL"
                self.do("FIND", key, state, "ID", "*7*", "COUNT", 200, "DO", deed)
            case 10:
                self.wire.call("COPY", key, b"soak:copy", "REPLACE")
                self.wire.call("UNLINK", b"soak:copy")
                time.sleep(0.2)
        time.sleep(0.005)

    def resume(self, key) -> None:
        """Releases the groups that dead messages hold: no other process does, and each dead one in them is
        remembered.
        """
        cursor = "0"
        while True:
            cursor, groups = self.do("GROUPS", key, "CURSOR", cursor, "COUNT", 1000, "STATE", "blocked")
            for group in groups:
                self.do("RESUME", key, "GROUP", group[b"group"])
            if cursor == b"0":
                return


class Passenger(Actor):
    """Connects, waits with a lease bound to its connection, and disconnects: in half of the cases with an unread
    reply.
    """

    def __init__(self, port: int, pauses, seed: int):
        super().__init__(port, pauses, seed)
        self.port = port

    def turn(self, key) -> None:
        with Wire(self.port, timeout=60) as wire:
            wire.send("DQ.FETCH", key, "COUNT", self.rng.randrange(1, 20), "BLOCK", 50, "BIND")
            if self.rng.random() < 0.5:
                wire.recv()
        time.sleep(0.02)


ACTORS = (Producer,) * 3 + (Consumer,) * 4 + (Meddler, Passenger)


def play(kind, port: int, pauses, seed: int) -> None:
    """The life of one actor's process."""
    kind(port, pauses, seed).run()
