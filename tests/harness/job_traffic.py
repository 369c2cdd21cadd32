"""Random operations on jobs that die, wait for others, run once more and share limits, one command a step."""

import random

from tests.harness.replies import Manual, digest, msgs

# The ids of each kind: few, so that most are taken repeatedly.
FEW = 12
# All keys are in one slot.
JOBS, PARTS, DEAD, EVENTS = "{jobs}", "{jobs}:parts", "{jobs}:dead", "{jobs}:events"


class JobTraffic:
    """A queue of jobs with DEADTO, one of their parts, the event stream of both, and the queue of the dead. Their clocks stand still."""

    keys = (JOBS, PARTS, DEAD, EVENTS)

    def __init__(self, client, seed):
        self.rng, self.receipts = random.Random(seed), {JOBS: [], PARTS: []}
        common = ("LEASE", 100, "BACKOFF", "FIXED", 20, "RETAIN", 500, "EVENTS", EVENTS, "EVENTSLEN", 40)
        self.dead = Manual(client, DEAD, start=1000)
        self.q = Manual(client, JOBS, "RETRIES", 1, "DEADTO", DEAD, *common, start=1000)
        self.parts = Manual(client, PARTS, "RETRIES", 0, *common, start=1000)
        self.q.do("LIMIT", "user-*", "CONCURRENCY", 1, "RATE", 3, "PER", 300)
        self.q.do("LIMIT", "cores", "CONCURRENCY", 4, "WEIGHT")

    def go_to(self, client) -> None:
        """Continues with another connection, perhaps to another server."""
        self.q.client = self.parts.client = self.dead.client = client

    def held(self) -> list:
        """The digests of all keys."""
        return [digest(self.q.client, key) for key in self.keys]

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.rng.choice((self.send, self.send, self.fetch, self.fetch, self.answer, self.answer, self.operate, self.pass_time))()

    def id(self, kind) -> str:
        return f"{kind}-{self.rng.randrange(FEW)}"

    def of_all(self):
        return self.rng.choice((self.q, self.parts))

    def send(self) -> None:
        rng = self.rng
        match rng.randrange(5):
            case 0:
                names = (f"user-{rng.randrange(3)}", "cores")
                self.q.send("plain", "ID", self.id("plain"), "LIMITS", 2, *names, "COST", rng.randrange(1, 4))
            case 1:
                self.q.send(f"v{rng.randrange(99)}", "ID", self.id("page"), "REPLACE", "RERUN")
            case 2:
                self.q.send("ask", "ID", self.id("ask"), *rng.choice([(), ("PARK",), ("PARK", "FOR", 80)]))
            case 3:
                self.q.send("parent", "ID", self.id("parent"), "REPLACE", "CHILDREN", rng.randrange(1, 3))
            case 4:
                ondead = rng.choice(("HOLD", "GO", "DIE"))
                self.parts.send("part", "ID", self.id("part"), "REPLACE", "PARENT", JOBS, self.id("parent"), "ONDEAD", ondead)

    def fetch(self) -> None:
        queue = self.of_all()
        self.receipts[queue.key] += [m.receipt for m in msgs(queue.do("FETCH", "COUNT", self.rng.randrange(1, 4)))]

    def answer(self) -> None:
        rng, queue = self.rng, self.of_all()
        if not self.receipts[queue.key]:
            return
        receipt = self.receipts[queue.key].pop(rng.randrange(len(self.receipts[queue.key])))
        following = [
            ("NEXT", PARTS, "more", "PARENT", JOBS, self.id("parent")), ("SIGNAL", JOBS, self.id("ask"), "done"),
            ("NEXT", JOBS, "v", "ID", self.id("page"), "REPLACE", "RERUN"),
        ]  # fmt: skip
        answers = [
            ("ACK", receipt), ("ACK", receipt, "COST", rng.randrange(5)), ("NACK", receipt), ("NACK", receipt, "FATAL"),
            ("NACK", receipt, "SILENT", "PARK"), ("NACK", receipt, "SILENT", "PARK", "FOR", 50),
            ("ACKSEND", receipt, *sum(rng.sample(following, 2), ())),
        ]  # fmt: skip
        queue.do(*rng.choice(answers))

    def operate(self) -> None:
        rng = self.rng
        match rng.randrange(5):
            case 0 | 1:
                self.q.do("SIGNAL", self.id("ask"), "DATA", f"s{rng.randrange(99)}")
            case 2:
                self.parts.do("REDRIVE", "ALL", "COUNT", 1)
            case 3:
                self.parts.do("CANCEL", self.id("part"))
            case 4:
                self.q.do("RESCHEDULE", self.id("parent"), "DELAY", rng.randrange(60))

    def pass_time(self) -> None:
        self.of_all().advance(self.rng.choice((5, 20, 120)))
