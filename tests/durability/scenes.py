"""Queues in every condition, and what a client sees of each from then on. test_matrix.py brings them through every way
in which a server gets its data.

A scene is a pair: one function builds the queues and returns the receipts that are still needed, and a generator goes
on with them and yields what it sees, step by step. All clocks are manual and all keys are of one slot.
"""

from tests.harness.replies import Queue, as_map
from tests.harness.scene import Scene
from tests.harness.traffic import FAR, rich, waiting

SLOT = "{s}"
SCENES = {}


def scene(*names):
    """Registers a class with `build` and `go_on` under its name; they get the queues of these names."""

    def register(cls):
        SCENES[cls.__name__] = Pair(cls, [f"{SLOT}:{cls.__name__}:{name}" for name in names])
        return cls

    return register


class Pair:
    """The two functions of a scene, and the names of its queues."""

    def __init__(self, cls, keys):
        self.cls, self.keys = cls, keys

    def over(self, client):
        return [Scene.over(client, key) for key in self.keys]

    def build(self, client):
        """Builds the queues. Returns what `go_on` needs of them."""
        return self.cls.build(*self.over(client))

    def go_on(self, client, held):
        return self.cls.go_on(*self.over(client), held)


def create(q, *options, start=1_000_000):
    q.do("CREATE", "CLOCK", "MANUAL", start, *options)


def deliver(q, *options, ack=True):
    """FETCH of up to five messages, and their ACK. Returns their ids, attempts and payloads."""
    got = q.fetch("COUNT", 5, *options)
    if got and ack:
        q.ack(*[m.receipt for m in got])
    return [(m.id, m.attempt, m.payload) for m in got]


def deliveries(q, steps, ms):
    """Deliveries while time passes."""
    for _ in range(steps):
        q.advance(ms)
        yield deliver(q), q.counts()


@scene("manual", "server")
class Options:
    """Messages in every state and every option set, by both clocks. No event is due for hours."""

    def build(*queues):
        running = []
        for q, clock in zip(queues, ("MANUAL", "SERVER")):
            running.append(rich(q.client, q.key, clock).running)
            waiting(Queue(q.client, q.key), FAR)
        return running

    def go_on(*queues):
        *queues, running = queues
        for q, receipt in zip(queues, running):
            yield (q.ack(receipt), q.state("running"), q.send("x", "ID", "dedup"), q.listed("held"))
            rest = q.fetch("COUNT", 100)
            assert min(m.receipt for m in rest) > receipt
            yield len(rest)


@scene("q", "other")
class Groups:
    """Groups with settings, batches, failures, deaths, pauses, leases, and breakers that are open and half open."""

    def build(q, other):
        create(other, "ONDEAD", "BLOCK", "DEADRETAIN", 100, "BREAKER", 2, "PER", 5000, "OPEN", 400)
        for n in range(4):
            other.add(f"u{n}")
            other.add(f"p{n}", "GROUP", "paused")
            other.add(f"b{n}", "GROUP", "blocked by a record that is gone")
        other.do("PAUSE", "GROUP", "paused")
        other.nack(other.one("GROUP", "blocked by a record that is gone").receipt, "FATAL")
        other.advance(100)
        other.nack(*other.receipts("COUNT", 2))
        create(q, "LEASE", 10_000, "GROUPCONCURRENCY", 2, "ONDEAD", "BLOCK", "RETAIN", 60_000)
        q.do("ALTER", "BREAKER", 3, "PER", 5000, "OPEN", 400, "MAX", 900)
        q.do("GROUPSET", "w", "WEIGHT", 3, "CONCURRENCY", 4)
        q.do("GROUPSET", "rated", "RATE", 2, "PER", 5000)
        for i in range(6):
            for g in ("w", "rated", "plain", "failed", "dead", "paused", "batch", "trying", "broken"):
                q.add(f"{g}{i}", "GROUP", g, "SCORE", 100 - i if g == "plain" else 2**63 + i, "TYPE", "t")
            q.add(f"u{i}", "PRIORITY", i % 3 - 1)
            q.add(f"late{i}", "GROUP", "plain", "DELAY", 1000 * (i + 1))
        q.nack(q.one("GROUP", "failed").receipt, "DELAY", 3000, "ERROR", "later")
        q.nack(q.one("GROUP", "dead").receipt, "FATAL", "ERROR", "never")
        q.do("PAUSE", "GROUP", "paused", "FOR", 4000)
        q.receipts("GROUP", "rated", "COUNT", 2)
        batch = q.receipts("GROUP", "batch", "COUNT", 4)
        q.ack(batch[0])
        q.take("COUNT", 3, "CONSUMER", "worker", "PERGROUP", 2)
        Groups.fail_three_times(q, "trying")
        q.advance(500)
        q.one("GROUP", "trying")
        Groups.fail_three_times(q, "broken")
        assert [q.groups()[g]["breaker"] for g in ("trying", "broken", "failed")] == ["half-open", "open", "closed"]
        return batch[1]

    def fail_three_times(q, group):
        for _ in range(3):
            q.nack(q.one("GROUP", group).receipt)

    def go_on(q, other, of_batch):
        yield from deliveries(other, 3, 150)
        # The later messages of a batch come back with the first that fails.
        yield q.nack(of_batch), q.listed("running")
        for _ in range(12):
            got = q.hold("COUNT", 4, "PERGROUP", 2)
            receipts = [m.receipt for m in got.values()]
            if receipts:
                q.ack(receipts[0])
            if len(receipts) > 2:
                q.nack(receipts[1], "DELAY", 700)
            yield [(id, m.attempt) for id, m in got.items()], q.counts(), q.advance(900)
        q.do("RESUME", "GROUP", "dead")
        q.do("REDRIVE", "ALL")
        yield from deliveries(q, 30, 10_000)


@scene("count", "time", "cost")
class Turns:
    """Queues in the middle of the turn of a weighted group, by each measure of fairness."""

    def build(*queues):
        for q, fair in zip(queues, ("COUNT", "TIME", "COST")):
            create(q, "GROUPCONCURRENCY", 50, "FAIR", fair)
            q.do("GROUPSET", "b", "WEIGHT", 3)
            for i in range(1, 7):
                for g in "dbac":
                    q.add(f"{g}{i}", "GROUP", g, "PRIORITY", 1 if g == "c" and i > 3 else 0, "COST", i)
                q.add(f"u{i}")
            for n in (1, 1, 2):
                receipts = q.receipts("COUNT", n)
                q.advance(50 * n)
                q.ack(*receipts)

    def go_on(*queues):
        for q in queues[:-1]:
            for _ in range(25):
                yield q.advance(30), q.drain("COUNT", 1)[:3]


@scene("q")
class Batches:
    """Batches with members pending, running, delayed, failed, dead and ended; held messages of each kind."""

    def build(q):
        create(q, "RETRIES", 1, "RETAIN", 600_000, "LEASE", 10_000)
        for batch in ("plain", "dead-holds", "dead-goes", "grows", "late", "inner"):
            for n in range(3):
                q.add(f"{batch}{n}", "BATCH", batch, *(("DELAY", 2000) if batch == "late" else ()))
            if batch != "inner":
                kind = {"dead-goes": "GO"}.get(batch, "HOLD")
                q.add(f"after {batch}", "AFTER", batch, "ONFAIL", kind, *(("BATCH", "outer") if batch == "plain" else ()))
        q.add("dies with it", "AFTER", "dead-holds", "ONFAIL", "DIE")
        q.add("twice", "AFTER", "inner", "DELAY", 5000)
        q.add("outermost", "AFTER", "outer", "GROUP", "g")
        q.nack(q.one().receipt, "SILENT")
        held = q.hold("COUNT", 12)
        q.ack(held["plain0"].receipt, held["plain1"].receipt)
        q.nack(held["dead-holds0"].receipt, held["dead-goes0"].receipt, "FATAL", "ERROR", "never")
        q.do("ACKSEND", held["grows0"].receipt, "NEXT", q.key, "grown", "ID", "grown", "BATCH", "grows")
        q.do("CANCEL", "inner2")
        assert q.do("LEN", "held") == 7 and q.row("dies with it")["reason"] == "batch"

    def go_on(q, _):
        yield from deliveries(q, 5, 3000)
        q.do("REDRIVE", "IDS", 2, "dead-holds0", "dead-goes0")
        yield from deliveries(q, 8, 3000)
        assert q.do("LEN") == 0 and q.do("BATCHES")[1] == []


@scene("q")
class Limits:
    """Limits with windows, running messages, groups and others that wait, and a message that is too large."""

    def build(q):
        create(q, "LEASE", 10_000)
        q.do("LIMIT", "user-*", "CONCURRENCY", 1, "RATE", 3, "PER", 3000)
        q.do("LIMIT", "all", "CONCURRENCY", 3, "RATE", 20, "PER", 8000)
        q.add("large", "GROUP", "g0", "PRIORITY", 9, "LIMITS", 1, "cores", "COST", 9)
        q.do("LIMIT", "cores", "CONCURRENCY", 8, "WEIGHT")
        for n in range(12):
            q.add(f"m{n}", "LIMITS", 2, f"user-{n % 4}", "all", "COST", 1 + n % 2, "PRIORITY", n % 3)
            q.add(f"g{n}", "GROUP", f"g{n % 3}", "LIMITS", 2, "all", "cores", "COST", 1 + n % 3)
        q.add("later", "LIMITS", 1, "all", "DELAY", 2500)
        held = list(q.hold("COUNT", 3).values())
        q.advance(100)
        q.do("ACK", held[0].receipt, "COST", 4)
        q.nack(held[1].receipt, "DELAY", 500)
        q.hold("COUNT", 1)

    def go_on(q, _):
        yield from deliveries(q, 50, 700)
        assert q.do("LEN") == 1 and q.code("large") == "limit"
        yield q.do("LIMIT", "user-*"), q.do("LIMIT", "all", "CONCURRENCY", 9)


@scene("q")
class Parked:
    """Messages that wait for signals in every way, and one for whose run another payload waits."""

    def build(q):
        create(q, "LEASE", 100_000)
        for id in ("ever", "for", "kept", "run"):
            q.add(id, "GROUP", f"g-{id}")
        held = q.hold("COUNT", 4)
        q.nack(held["ever"].receipt, "SILENT", "PARK", "NOTE", "half")
        q.nack(held["for"].receipt, "SILENT", "PARK", "FOR", 5000)
        q.do("SIGNAL", "kept", "DATA", "early")
        rerun = ("REPLACE", "RERUN", "DELAY", 700, "TYPE", "t", "PRIORITY", -5, "HEADERS", 1, "a", "b")
        q.do("SEND", "again", "ID", "run", *rerun)
        q.add("sent", "PARK", "FOR", 3000, "DELAY", 4000)
        q.add("first", "BATCH", "b")
        q.add("after", "AFTER", "b", "PARK", "FOR", 2000)
        return held["kept"].receipt, held["run"].receipt

    def go_on(q, held):
        kept, run = held
        yield q.nack(kept, "SILENT", "PARK"), q.ack(run)
        for _ in range(7):
            yield q.do("SIGNAL", "ever", "DATA", "go"), q.listed("held")
            got = q.do("FETCH", "COUNT", 9, "WITHMETA")
            yield [(m[0], m[2], m[3], as_map(m[4])["signal"]) for m in got]
            q.ack(*[m[1] for m in got], 1)
            yield q.advance(1000)


@scene("parents", "children")
class Family:
    """Parents with children that have ended in all ways, and some that have not."""

    def build(p, c):
        create(p, "RETRIES", 0, "LEASE", 100)
        create(c, "RETRIES", 0, "LEASE", 100, "RETAIN", 10_000, start=5000)
        for id, total in (("held", 9), ("done", 2), ("dies", 3), ("late", 2)):
            p.send("x", "ID", id, "CHILDREN", total, "DELAY", 10)
        for n in range(6):
            c.send(n, "ID", f"h{n}", "PARENT", p.key, "held", *(["ONDEAD", "GO"] if n == 4 else []))
        for m in c.fetch("COUNT", 5):
            c.do(*(("ACK", m.receipt, "RESULT", "r") if m.id in (b"h0", b"h1") else ("NACK", m.receipt, "FATAL", "ERROR", "e")))
        c.do("CANCEL", "h2")
        for n in range(2):
            p.send(n, "ID", f"d{n}", "PARENT", p.key, "done")
        p.do("FETCH", "NOACK", "COUNT", 2)
        c.send("x", "ID", "i", "PARENT", p.key, "dies", "ONDEAD", "DIE", "PRIORITY", -1)
        c.do("NACK", c.one().receipt)
        c.send("x", "ID", "l", "PARENT", p.key, "late", "PRIORITY", -1)
        assert (p.state("done"), p.state("dies"), p.state("held")) == ("delayed", "dead", "held")

    def go_on(p, c, _):
        for step in (
            lambda: c.do("REDRIVE", "ALL"),
            lambda: c.do("FETCH", "COUNT", 9, "NOACK"),
            lambda: p.advance(20),
            lambda: c.send("x", "ID", "l2", "PARENT", p.key, "late"),
            lambda: c.do("CANCEL", "l2"),
            lambda: c.do("PURGE"),
            lambda: p.do("FETCH", "COUNT", 9, "NOACK"),
        ):
            step()
            held = p.get("held")
            yield (held and as_map(held["children"]), p.state("late"), p.len("ready"), p.do("CHILDREN", "held"))


@scene("home", "dead", "events")
class Letters:
    """Deaths of every kind with DEADTO and EVENTS, with some messages that cannot go."""

    def build(q, dead, events):
        create(q, "RETRIES", 0, "LEASE", 100, "ONDEAD", "BLOCK", "DEADTO", dead.key, "EVENTS", events.key)
        create(dead)
        q.do("MSEND", 4, *"abcd", "GROUP", "g")
        q.send("ttl", "TTL", 50, "ID", "taken")
        dead.send("old", "ID", "taken")
        q.do("NACK", q.one().receipt, "FATAL", "ERROR", "e")
        q.do("FETCH", "COUNT", 5)
        q.advance(60)
        q.advance(60)
        dead.do("ALTER", "MAXLEN", 5)
        q.send("1", "ID", "1")
        q.send("2", "ID", "2")
        for m in q.fetch("COUNT", 2):
            q.nack(m.receipt)

    def go_on(q, dead, events, _):
        yield (q.code("taken"), q.state("2"), [fields[b"event"] for _, fields in q.client.xrange(events.key)])
        q.do("REDRIVE", "ALL")
        for _ in range(3):
            yield (len(deliver(dead)), len(deliver(q, ack=False)), q.advance(100), dead.counts())


@scene("here", "there")
class Following:
    """ACKSENDs to the queue itself and to another, a refused one and a stale one among them."""

    def build(q, other):
        create(q, "LEASE", 600_000, "RETAIN", 60_000)
        create(other)
        q.add("a")
        receipt = q.one().receipt
        there = ("NEXT", other.key, "p")
        q.do(
            "ACKSEND", receipt, "RESULT", "r", *there, "ID", "0", "NEXT", q.key, "p", "ID", "a", *there, "ID", "late", "DELAY", 90
        )
        receipt = q.one().receipt
        q.do("ACKSEND", receipt, *there, "ID", "one", *there, "ID", "one", *there, "ID", "g", "GROUP", "g")
        q.add("y")
        receipt = q.one().receipt
        q.do("ALTER", "MAXLEN", 1)
        assert q.fails("ACKSEND", receipt, *there, "NEXT", q.key, "p", "NEXT", q.key, "p").startswith("QUEUEFULL")
        q.do("ACKSEND", receipt, *there, "ID", "1", "NEXT", q.key, "p", "ID", "2", "TTL", 500)
        return receipt

    def go_on(q, other, stale):
        yield (
            q.do("ACKSEND", stale, "NEXT", other.key, "again"),
            q.do("ACKSEND", q.one().receipt, "NEXT", other.key, "p", "ID", "z"),
        )
        yield from deliveries(other, 3, 50)


@scene("q")
class Schedules:
    """Schedules of both kinds, one of which waits for its message, one with all bounds, and one that is paused."""

    def build(q):
        create(q)
        q.do(
            "SCHEDULE", "e", "EVERY", 100, "PAYLOAD", "x", "OVERLAP", "SKIP", "GROUP", "g", "PRIORITY", 3, "HEADERS", 1, "h", "v"
        )
        q.do("SCHEDULE", "c", "CRON", "5-59/10 * * * * *", "TZ", "Asia/Kolkata", "PAYLOAD", b"\x00y", "MISSED", "ALL")
        q.do("SCHEDULE", "b", "EVERY", 100, "PAYLOAD", "x", "UNTIL", 1_100_000, "TIMES", 9, "JITTER", 7)
        q.do("SCHEDULE", "i", "EVERY", 100, "PAYLOAD", "x", "GROUP", "none", "IFGROUP", "RETAIN", 9)
        q.send("mine", "ID", "b@1000200")
        q.advance(350)
        q.do("SCHEDULES", "PAUSE", "b")

    def go_on(q, _):
        yield from deliveries(q, 3, 50)
        q.do("SCHEDULES", "RESUME", "b")
        yield from deliveries(q, 20, 1000)
        q.do("UNSCHEDULE", "e")
        yield q.advance(7_200_000), sorted(q.schedules())


@scene("q", "closed")
class Workers:
    """Consumers, a delivery with a token, notes, kept errors, timeouts, ids that are taken, and a closed queue."""

    def build(q, closed):
        create(q, "LEASE", 10_000, "RETRIES", -1, "ERRORS", 3, "MAXTIMEOUTS", 2, "DEDUP", 700, "RETAIN", 1000, "RETAINCOUNT", 3)
        for n in range(8):
            q.add(f"m{n}", "PRIORITY", -n, *(("ERRORS", 1, "MAXTIMEOUTS", 5) if n == 1 else ()))
        for error in (b"one", b"\xff\x00"):
            q.nack(*[m.receipt for m in q.fetch("COUNT", 2, "CONSUMER", "ann")], "ERROR", error)
        q.fetch("COUNT", 2, "LEASE", 10, "CONSUMER", "ben")
        q.advance(10)
        q.ack(*q.receipts("COUNT", 2))
        ask = ("COUNT", 2, "CONSUMER", "w", "TOKEN", "t")
        first = q.fetch(*ask)
        q.touch(20_000, first[0].receipt)
        q.do("TOUCH", 20_000, first[0].receipt, "NOTE", "at it")
        q.nack(q.one().receipt, "SILENT", "DELAY", 70, "PAUSE", "QUEUE", 60, "NOTE", "n")
        for at in range(2):
            q.advance(at)
            q.send(f"{at}", "ID", "bounced", "REPLACE", "DELAY", 5000, "MAXWAIT", 6000)
        q.do("CANCEL", "m7")
        create(closed, "SENDS", "OFF")
        return first

    def go_on(q, closed, first):
        assert q.fetch("CONSUMER", "w", "TOKEN", "t") == first
        assert closed.fails("SEND", "x").startswith("QUEUECLOSED")
        yield ([q.add(f"m{n}") for n in range(3)], q.send("2", "ID", "bounced", "REPLACE", "DELAY", 9000, "MAXWAIT", 6000))
        yield ([q.do("GET", f"m{n}") and as_map(q.do("GET", f"m{n}"))["errors"] for n in range(8)], q.row("bounced")["due-at"])
        for _ in range(12):
            yield deliver(q, "LEASE", 10, ack=False), q.advance(60), q.counts()
        q.advance(2000)
        yield ([q.add(f"m{n}") for n in range(8)], [row for row in q.consumers() if row != "w"])
