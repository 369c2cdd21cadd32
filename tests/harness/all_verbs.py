"""Random commands of all verbs and options, named limits included, on a few queues that depend on each other."""

import random

import redis

from tests.harness.replies import msgs

# All keys are in one slot.
QUEUES = ("{all}:a", "{all}:b", "{all}:c")
EVENTS = "{all}:events"
NAMES = ("all", "user-1", "user-2", "user-3")


class AllVerbs:
    """Queues with DEADTO, EVENTS and limits. Their clocks stand still but for DQ.TICK. Most commands are sensible, some are refused."""

    keys = (*QUEUES, EVENTS)

    def __init__(self, client, seed):
        self.client, self.rng = client, random.Random(seed)
        self.receipts = {key: [] for key in QUEUES}
        self.now, self.done, self.refused, self.last = 1000, 0, 0, ()
        for key in QUEUES:
            self.call("CREATE", key, "CLOCK", "MANUAL", self.now, "LEASE", 100, "EVENTS", EVENTS, "EVENTSLEN", 50)

    def held(self, client) -> list:
        """The digests of all keys, as this server has them."""
        return client.execute_command("DEBUG", "DIGEST-VALUE", *self.keys)

    def step(self) -> None:
        """One command. A key that was deleted is a queue again."""
        key = self.rng.choice(QUEUES)
        draw = self.rng.choice(
            (self.send, self.send, self.send, self.fetch, self.fetch, self.settle, self.settle, self.settle, self.change, self.set, self.tick)
        )
        command = draw(key)
        if command[0] != "FETCH":
            self.call(*command)
        elif reply := self.call(*command):
            self.receipts[key] = [*self.receipts[key], *(m.receipt for m in msgs(reply))][-20:]

    def call(self, verb, *words):
        self.last = (verb, *words)
        try:
            reply = self.client.execute_command(f"DQ.{verb}", *words)
            self.done += 1
            return reply
        except redis.ResponseError:
            self.refused += 1
            return None

    def maybe(self, chance, *words) -> tuple:
        return words if self.rng.random() < chance else ()

    def ms(self) -> int:
        return self.rng.choice((0, 5, 20, 50, 100, 400))

    def id(self) -> str:
        return f"i{self.rng.randrange(12)}"

    def group(self) -> str:
        return f"g{self.rng.randrange(4)}"

    def receipt(self, key) -> int:
        return self.rng.choice(self.receipts[key]) if self.receipts[key] else 1

    def options(self) -> list:
        """Options of a message that can stand beside each other."""
        rng, ms = self.rng, self.ms
        names = rng.sample(NAMES, rng.randrange(1, 4))
        one = (
            self.maybe(0.4, "DELAY", ms()) or self.maybe(0.2, "AT", self.now + ms() - 10), self.maybe(0.2, "PRIORITY", rng.randrange(-2, 3)),
            self.maybe(0.5, "GROUP", self.group(), *self.maybe(0.3, "SCORE", rng.randrange(5)), *self.maybe(0.1, "IFGROUP")),
            self.maybe(0.5, "LIMITS", len(names), *names, *self.maybe(0.5, "COST", rng.randrange(1, 4))),
            self.maybe(0.1, "TTL", ms() + 1), self.maybe(0.1, "LEASE", ms() + 1), self.maybe(0.2, "RETRIES", rng.randrange(3)),
            self.maybe(0.1, "RETAIN", ms()), self.maybe(0.1, "TYPE", "t"), self.maybe(0.1, "HEADERS", 1, "h", "v"),
            self.maybe(0.1, "ERRORS", rng.randrange(3)), self.maybe(0.1, "MAXTIMEOUTS", rng.randrange(1, 3)), self.maybe(0.1, "BACKOFF", "EXP", 5),
            self.maybe(0.15, "BATCH", f"b{rng.randrange(3)}") or self.maybe(0.1, "AFTER", f"b{rng.randrange(3)}", "ONFAIL", self.on_fail()),
            self.maybe(0.1, "PARK", *self.maybe(0.5, "FOR", ms() + 1)), self.maybe(0.1, "CHILDREN", rng.randrange(1, 3)),
            self.maybe(0.15, "PARENT", rng.choice(QUEUES), self.id(), "ONDEAD", self.on_fail()),
        )  # fmt: skip
        return [word for words in one for word in words]

    def on_fail(self) -> str:
        return self.rng.choice(("HOLD", "GO", "DIE"))

    def send(self, key) -> tuple:
        rng = self.rng
        if rng.random() < 0.1:
            return "MSEND", key, 3, "x", "y", "z", *self.options()
        replace = self.maybe(0.4, "REPLACE", *(self.maybe(0.4, "RERUN") or self.maybe(0.2, "MAXWAIT", self.ms())))
        dedup = self.maybe(0.1, "DEDUPID", self.id(), self.ms() + 1)
        return "SEND", key, f"v{rng.randrange(99)}", *self.maybe(0.7, "ID", self.id(), *replace), *dedup, *self.options()

    def fetch(self, key) -> tuple:
        rng = self.rng
        how = rng.choice(((), (), ("NOACK",), ("CONSUMER", f"c{rng.randrange(2)}", "TOKEN", f"t{rng.randrange(2)}")))
        return (
            "FETCH", key, *self.maybe(0.5, "COUNT", rng.randrange(1, 4)), *(self.maybe(0.2, "GROUP", self.group()) or self.maybe(0.2, "PERGROUP", 2)),
            *self.maybe(0.2, "LEASE", self.ms() + 1), *how, *self.maybe(0.2, "ACK", 1, self.receipt(key)),
        )  # fmt: skip

    def settle(self, key) -> tuple:
        rng, receipt = self.rng, self.receipt(key)
        following = rng.choice((("NEXT", rng.choice(QUEUES), "more", *self.options()), ("SIGNAL", rng.choice(QUEUES), self.id(), "done")))
        nack = rng.choice(((), ("FATAL",), ("SILENT",), ("DELAY", self.ms()), ("SILENT", "PARK"), ("SILENT", "PARK", "FOR", 50)))
        rest = (*self.maybe(0.3, "ERROR", "why"), *self.maybe(0.2, "NOTE", "half"), *self.maybe(0.2, "PAUSE", rng.choice(("GROUP", "QUEUE")), 30))
        return rng.choice((
            ("ACK", key, receipt, *self.maybe(0.3, "RESULT", "r"), *self.maybe(0.3, "COST", rng.randrange(5))), ("ACK", key, receipt, self.receipt(key)),
            ("NACK", key, receipt, *nack, *rest), ("NACK", key, receipt, *nack), ("ACKSEND", key, receipt, *following),
            ("TOUCH", key, self.ms() + 1, receipt, *self.maybe(0.3, "NOTE", "n")),
        ))  # fmt: skip

    def change(self, key) -> tuple:
        rng = self.rng
        state = rng.choice(("delayed", "ready", "blocked", "retry", "running", "finished", "dead", "cancelled"))
        act = rng.choice(("CANCEL", "PURGE"))
        return rng.choice((
            ("CANCEL", key, self.id()), ("RESCHEDULE", key, self.id(), "DELAY", self.ms()), ("UPDATE", key, self.id(), "new"),
            ("SIGNAL", key, self.id(), "DATA", "yes"), ("REDRIVE", key, "ALL", *self.maybe(0.5, "COUNT", 1)), ("REDRIVE", key, "IDS", 1, self.id()),
            ("FIND", key, "dead", "DO", "REDRIVE"), ("FIND", key, state, "GROUP", self.group(), "DO", act), ("PURGE", key, "STATE", state),
            ("PURGE", key, "GROUP", self.group()),
        ))  # fmt: skip

    def set(self, key) -> tuple:
        """Settings, limits, pauses, schedules."""
        rng, ms = self.rng, self.ms
        rate = ("RATE", rng.randrange(1, 5), "PER", ms() + 1)
        options = rng.choice((
            ("DEADTO", rng.choice((*QUEUES, ""))), ("RETRIES", rng.randrange(3)), ("FAIR", rng.choice(("COUNT", "TIME", "COST"))), rate,
            ("BREAKER", 2, "PER", 100, "OPEN", 20), ("MAXLEN", rng.choice((0, 40))), ("GROUPCONCURRENCY", rng.randrange(1, 3)),
            ("ONRETRY", rng.choice(("SKIP", "BLOCK", "ALONE"))), ("ONDEAD", rng.choice(("BLOCK", "CONTINUE"))), ("MAXRUNNING", rng.choice((0, 5))),
            ("RETAIN", ms()), ("DEDUP", ms()), ("DEADRETAIN", ms()), ("DEADCOUNT", rng.choice((0, 5))), ("ERRORS", 2), ("MAXTIMEOUTS", rng.randrange(3)),
        ))  # fmt: skip
        limit = rng.choice((*NAMES, "user-*", "*"))
        windows = rng.choice((("CONCURRENCY", rng.randrange(1, 4)), ("CONCURRENCY", 3, "WEIGHT"), rate, (*rate, "RATE", 9, "PER", 900)))
        schedule = ("EVERY", ms() + 15, "PAYLOAD", "tick", *self.maybe(0.3, "GROUP", self.group()), *self.maybe(0.3, "LIMITS", 1, rng.choice(NAMES)))
        return rng.choice((
            ("ALTER", key, *options), ("ALTER", key, *options), ("LIMIT", key, limit, *windows), ("LIMIT", key, limit, *windows),
            ("GROUPSET", key, self.group(), "WEIGHT", rng.randrange(1, 3), "CONCURRENCY", rng.randrange(3)),
            ("PAUSE", key, *self.maybe(0.7, "GROUP", self.group()), "FOR", ms() + 1), ("RESUME", key, *self.maybe(0.7, "GROUP", self.group())),
            ("RESUME", key), ("SCHEDULE", key, f"s{rng.randrange(2)}", *schedule, *self.maybe(0.3, "TIMES", 3)),
            ("SCHEDULES", key, rng.choice(("PAUSE", "RESUME")), "s0"), ("UNSCHEDULE", key, f"s{rng.randrange(2)}"),
        ))  # fmt: skip

    def tick(self, key) -> tuple:
        self.now += 1
        return "TICK", key, "ADVANCE", self.rng.choice((1, 5, 20, 120, 300))
