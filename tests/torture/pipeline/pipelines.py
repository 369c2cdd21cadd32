"""One pipeline in three forms: with dq, and with plain lists by MULTI/EXEC and by Lua."""

from collections import Counter
from dataclasses import dataclass

from tests.harness.wire import Error, Wire

STAGES = 5
# The lease is longer than any run: a delivered message stays leased until it is handed on, regardless of failures.
LEASE = 3_600_000
FAR = 2**50


@dataclass
class Item:
    """One item, in the pipeline: its number, and how often each stage has handled it."""

    number: int
    counts: tuple = (0,) * STAGES

    @classmethod
    def of(cls, body: bytes) -> "Item":
        number, counts = body.split(b":")
        return cls(int(number), tuple(map(int, counts.split(b"."))))

    def body(self) -> bytes:
        return b"%d:%s" % (self.number, b".".join(b"%d" % count for count in self.counts))

    def handled(self, stage: int) -> "Item":
        """The item after this stage."""
        counts = list(self.counts)
        counts[stage] += 1
        return Item(self.number, tuple(counts))


@dataclass
class Found:
    """An item that an inventory has found: its stage (STAGES: after the last), and whether a batch holds it."""

    item: Item
    stage: int
    held: bool = False


def ok(reply):
    """Returns the reply. An error would be a mistake of the test itself."""
    assert not isinstance(reply, Error), reply
    return reply


class Dq:
    """Each stage is a queue; DQ.ACKSEND acknowledges the item in one and sends it to the next.

    Workers take items with a TOKEN: after a failure they say again what they had said, and go on. Each order has
    three items of one batch, and a fourth that comes after them: it is held until the first stage has handled all.
    """

    name = "dq: ACKSEND"
    module = True
    # The log is rewritten after this number of failures.
    rewrite_every = 50
    held_every = 4

    def __init__(self):
        self.keys = [f"{{pipeline}}:{n}" for n in range(STAGES + 1)]
        self.workers = []
        # How often a worker has begun to handle each (item, stage), and which of these a torn log may have undone.
        self.begun, self.undone = Counter(), set()
        # Receipts that a worker has had.
        self.had = set()

    def create(self, wire: Wire) -> None:
        for key in self.keys:
            ok(wire.call("DQ.CREATE", key, "LEASE", LEASE, "RETRIES", -1, "DEDUP", FAR))

    def restarted(self, wire: Wire, torn: bool) -> None:
        """Ends the leases of messages whose handing on was undone by a torn log, now instead of in an hour.

        Not of what no worker has got yet: whoever asked for it will say the token again.
        """
        if not torn:
            return
        self.undone |= set(self.begun)
        forgotten = self.had - {worker.taken[1] for worker in self.workers if worker.taken}
        for key in self.keys[:STAGES]:
            _, rows = ok(wire.call("DQ.LIST", key, "running", "COUNT", 10_000))
            for receipt in {row[row.index(b"receipt") + 1] for row in rows} & forgotten:
                assert ok(wire.call("DQ.TOUCH", key, 1, receipt)) == 1

    def producer(self) -> "DqProducer":
        return DqProducer(self)

    def worker(self, stage: int) -> "DqWorker":
        self.workers.append(DqWorker(self, stage))
        return self.workers[-1]

    def inventory(self, wire: Wire) -> list:
        """All items, at one moment."""
        states = ("delayed", "ready", "blocked", "retry", "running", "held", "dead")
        asked = [(stage, state) for stage in range(STAGES + 1) for state in states]
        wire.send("MULTI")
        for stage, state in asked:
            wire.send("DQ.LIST", self.keys[stage], state, "COUNT", 10_000)
        wire.send("EXEC")
        for _ in range(len(asked) + 1):
            ok(wire.recv())
        found = []
        for (stage, state), (_, rows) in zip(asked, ok(wire.recv())):
            for row in rows:
                fields = dict(zip(row[::2], row[1::2]))
                found.append(Found(Item.of(fields[b"payload"]), stage, state == "held"))
        return found

    def collect(self, wire: Wire) -> list:
        """Removes the items that have passed the last stage."""
        return [Item.of(body) for _, _, _, body in ok(wire.call("DQ.FETCH", self.keys[STAGES], "COUNT", 10_000, "NOACK"))]

    def order(self, number: int) -> int:
        return number // self.held_every

    def held_wrongly(self, found: list) -> list:
        """Items that are held though their batch has ended, and those that are not though it has not."""
        first = [f for f in found if f.stage == 0]
        open_batches = {self.order(f.item.number) for f in first if not self.was_held(f.item.number)}
        last = [f for f in found if self.was_held(f.item.number)]
        return [f.item.number for f in last if f.held != (self.order(f.item.number) in open_batches)]

    def was_held(self, number: int) -> bool:
        """Whether it is the item of its order that waits for the others."""
        return number % self.held_every == self.held_every - 1


class DqProducer:
    """Repeats a command that had no answer: an id that is taken is not sent twice."""

    def __init__(self, pipeline: Dq):
        self.pipeline, self.number = pipeline, 0

    def step(self, wire: Wire, sent) -> None:
        n, batch = self.number, self.pipeline.order(self.number)
        where = ("AFTER", batch) if self.pipeline.was_held(n) else ("BATCH", batch)
        ok(wire.call("DQ.SEND", self.pipeline.keys[0], Item(n).body(), "ID", n, *where))
        sent(n)
        self.number += 1


class DqWorker:
    """Takes one item after the other from its stage and hands it on."""

    def __init__(self, pipeline: Dq, stage: int):
        self.pipeline, self.stage, self.token = pipeline, stage, 0
        # The item it works on: (item, receipt), and whether it has asked already to hand it on.
        self.taken, self.asked = None, False
        self.handed_on = 0

    def step(self, wire: Wire, complain) -> None:
        if self.taken is None:
            self.take(wire, complain)
        if self.taken is not None:
            self.hand_on(wire, complain)

    def take(self, wire: Wire, complain) -> None:
        key, name = self.pipeline.keys[self.stage], f"worker {self.stage}"
        reply = ok(wire.call("DQ.FETCH", key, "BLOCK", 20, "CONSUMER", name, "TOKEN", self.token))
        self.token += 1
        for _, receipt, attempt, body in reply:
            item = Item.of(body)
            at = (item.number, self.stage)
            self.pipeline.begun[at] += 1
            begun = self.pipeline.begun[at]
            if attempt > begun or attempt < begun and at not in self.pipeline.undone:
                complain("miscounted", item.number, f"attempt {attempt} in stage {self.stage}, begun {begun} times")
            self.taken, self.asked = (item, receipt), False
            self.pipeline.had.add(receipt)

    def hand_on(self, wire: Wire, complain) -> None:
        item, receipt = self.taken
        again, self.asked = self.asked, True
        pipeline, body = self.pipeline, item.handled(self.stage).body()
        reply = ok(wire.call("DQ.ACKSEND", pipeline.keys[self.stage], receipt, "NEXT", pipeline.keys[self.stage + 1], body))
        # If a command about a receipt is a repetition, it is unknown whether the first one was done.
        if not isinstance(reply, list) and not again and (item.number, self.stage) not in pipeline.undone:
            complain("miscounted", item.number, f"its receipt in stage {self.stage} was stale")
        self.taken = None
        self.handed_on += 1


class Lists:
    """Each stage is a list, and a second list with the items that are being handled, as in the usual reliable queue.

    Taking an item is one command (LMOVE), which no log can tear. After a failure, before the workers are back,
    whoever starts them moves what had been worked on back to its stage.
    """

    module = False
    rewrite_every = 50

    def __init__(self):
        self.waiting = [f"{{pipeline}}:{n}" for n in range(STAGES + 1)]
        self.working = [f"{{pipeline}}:{n}:working" for n in range(STAGES)]

    def create(self, wire: Wire) -> None:
        """No work is needed: a list exists once it has an element."""

    def restarted(self, wire: Wire, torn: bool) -> None:
        for waiting, working in zip(self.waiting, self.working):
            while ok(wire.call("LMOVE", working, waiting, "RIGHT", "LEFT")) is not None:
                pass

    def producer(self) -> "ListProducer":
        return ListProducer(self)

    def worker(self, stage: int) -> "ListWorker":
        return ListWorker(self, stage)

    def inventory(self, wire: Wire) -> list:
        """All items, at one moment."""
        lists = [*enumerate(self.waiting), *enumerate(self.working)]
        wire.send_many([["MULTI"], *(["LRANGE", key, 0, -1] for _, key in lists), ["EXEC"]])
        for _ in range(len(lists) + 1):
            ok(wire.recv())
        return [Found(Item.of(body), stage) for (stage, _), bodies in zip(lists, ok(wire.recv())) for body in bodies]

    def collect(self, wire: Wire) -> list:
        """Removes the items that have passed the last stage."""
        bodies = ok(wire.call("LPOP", self.waiting[STAGES], 10_000))
        return [Item.of(body) for body in bodies] if isinstance(bodies, list) else []

    def held_wrongly(self, found: list) -> list:
        """Lists hold nothing back."""
        return []

    def was_held(self, number: int) -> bool:
        return False

    def hand_on(self, wire: Wire, stage: int, before: bytes, after: bytes) -> None:
        """Moves the item from those that are handled in this stage to the next stage, changed."""
        raise NotImplementedError


class Multi(Lists):
    """Handed on by a transaction."""

    name = "lists: MULTI/EXEC"

    def hand_on(self, wire, stage, before, after):
        wire.send_many(
            [["MULTI"], ["LREM", self.working[stage], 1, before], ["RPUSH", self.waiting[stage + 1], after], ["EXEC"]]
        )
        for _ in range(4):
            ok(wire.recv())


class Rewritten(Multi):
    """The pipeline with MULTI, but whoever starts the server again has the log written anew before anybody works with
    it.

    So a transaction that was torn does not stay in the log, where it would take in what comes after it.
    """

    name = "lists: rewritten"
    rewrite_every = 1


class Lua(Lists):
    """Handed on by a script."""

    name = "lists: Lua"
    script = """
        if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 1 then
            redis.call('RPUSH', KEYS[2], ARGV[2])
        end
    """

    def hand_on(self, wire, stage, before, after):
        ok(wire.call("EVAL", self.script, 2, self.working[stage], self.waiting[stage + 1], before, after))


class ListProducer:
    """A send without an answer may have been done, so it is not said again: the number is given up."""

    def __init__(self, pipeline: Lists):
        self.pipeline, self.number = pipeline, 0

    def step(self, wire: Wire, sent) -> None:
        self.number += 1
        n = self.number
        ok(wire.call("RPUSH", self.pipeline.waiting[0], Item(n).body()))
        sent(n)


class ListWorker:
    """Takes one item after the other from its stage and hands it on."""

    def __init__(self, pipeline: Lists, stage: int):
        self.pipeline, self.stage = pipeline, stage
        self.handed_on = 0

    def step(self, wire: Wire, complain) -> None:
        pipeline = self.pipeline
        body = ok(wire.call("BLMOVE", pipeline.waiting[self.stage], pipeline.working[self.stage], "LEFT", "RIGHT", 0.02))
        if isinstance(body, bytes):
            pipeline.hand_on(wire, self.stage, body, Item.of(body).handled(self.stage).body())
            self.handed_on += 1


PIPELINES = {"dq": Dq, "multi": Multi, "lua": Lua, "rewritten": Rewritten}
