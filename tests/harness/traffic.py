"""Queues with all kinds of content, and random traffic, to compare by digest."""

import random

import redis

from tests.harness.replies import Queue, msgs

FAR = 10_000_000


def rich(client, key, clock="MANUAL", far=FAR) -> Queue:
    """A queue with messages in every state and every option set.

    No event is due within `far` ms, so that its digest does not change. `q.running` holds the receipt of the running
    message `running`.
    """
    q = Queue(client, key)
    q.do(
        "CREATE", "CLOCK", clock, "LEASE", far, "RETRIES", 2, "BACKOFF", "EXP", far, "MAXBACKOFF", far * 4,
        "JITTER", 10, "TTL", far * 100, "RETAIN", far, "RETAINCOUNT", 50, "DEADRETAIN", far, "DEADCOUNT", 50,
        "DEDUP", far, "MAXLEN", 1000, "MAXBYTES", 10**6, "MAXRUNNING", 900, "RATE", 5000, "PER", far,
        "GROUPCONCURRENCY", 2, "ONRETRY", "SKIP", "ONDEAD", "BLOCK",
    )  # fmt: skip
    for id in ("finished", "dead", "retry", "running", "dedup"):
        q.send(id + "\0\r\n", "ID", id)
    f, d, t, run, _ = q.fetch("COUNT", 5, "CONSUMER", b"worker\0")
    q.do("ACK", f.receipt, "RESULT", b"\xff result")
    q.nack(d.receipt, "FATAL", "ERROR", b"\xfe error")
    q.nack(t.receipt, "ERROR", "again")
    q.do("CANCEL", "dedup")
    q.running = run.receipt
    q.send(b"", "ID", "delayed", "DELAY", far, "TYPE", "t\0", "HEADERS", 2, b"a\0", b"\xff", "b", "")
    q.send("own", "ID", "own", "LEASE", 5, "RETRIES", -1, "BACKOFF", "LINEAR", 7, "TTL", far, "PRIORITY", -128)
    q.send("late", "ID", "late", "PRIORITY", 127)
    for n in range(6):
        q.send(n, "ID", f"g{n}", "GROUP", b"group\0%d" % (n % 2), "SCORE", -n / 3)
    q.fetch("COUNT", 2, "GROUP", b"group\0" + b"0", "CONSUMER", "other")
    q.do("MSEND", 20, *range(20))
    q.send("doubled", "ID", "delayed")
    q.do("GROUPSET", b"group\0" + b"1", "WEIGHT", 3, "CONCURRENCY", 2, "RATE", 5, "PER", far)
    q.do("PAUSE", "GROUP", b"group\0" + b"1", "FOR", far)
    q.do("SCHEDULE", "every", "EVERY", far, "PAYLOAD", "tick", "PRIORITY", 3)
    hand_back(q, far)
    batches(q, far)
    return q


def hand_back(q, far) -> None:
    """Adds the state that a NACK, TOKEN and the later options of a message leave behind."""
    q.do("ALTER", "BREAKER", 2, "PER", far, "OPEN", far, "MAX", far * 4)
    for n in range(3):
        q.send(n, "ID", f"broken{n}", "GROUP", "broken")
    q.nack(*(m.receipt for m in q.fetch("COUNT", 2, "GROUP", "broken")))
    q.do("TOUCH", far, q.running, "NOTE", b"half\0")
    alone(q, "snoozed", "NACK", "SILENT", "DELAY", far, "NOTE", b"\xfd note")
    alone(q, "limited", "NACK", "SILENT", "PAUSE", "GROUP", far)
    alone(q, "retained", "ACK", "RESULT", "kept", options=("RETAIN", far * 2))
    now = q.info()["now"]
    q.send("expires", "ID", "expires", "DELAY", far, "EXPIREAT", now + far * 2)
    for n in range(2):
        q.send(n, "ID", "debounced", "DELAY", far, "REPLACE", "MAXWAIT", far * 3)
    q.send("remembered", "ID", "remembered", "DEDUPID", "first", far)
    q.send("asked twice", "ID", "asked twice", "GROUP", "tokens")
    q.fetch("GROUP", "tokens", "CONSUMER", "with token", "TOKEN", b"t\0")


def batches(q, far) -> None:
    """Adds a batch with messages in every state, messages that wait for it, and messages that wait for these."""
    for n in range(3):
        q.send(n, "ID", f"member{n}", "BATCH", b"b\0")
    for kind in ("HOLD", "GO", "DIE"):
        q.send(kind, "ID", kind, "AFTER", b"b\0", "ONFAIL", kind, "BATCH", "second", "DELAY", far)
    q.send("last", "ID", "last", "AFTER", "second", "GROUP", "last", "SCORE", 1)
    alone(q, "member finished", "ACK", options=("BATCH", b"b\0", "RETAIN", far))
    alone(q, "member dead", "NACK", "FATAL", options=("BATCH", b"b\0"))
    q.send("running", "ID", "member running", "BATCH", b"b\0", "GROUP", "member running")
    q.fetch("GROUP", "member running")
    q.do("CANCEL", "member2")


def waiting(q, far) -> None:
    """Adds parked messages, a parent with children, and messages that wait for limits, for the end of a run or for
    nothing more.

    Not a part of `rich`: its events and dead letters are keys of their own.
    """
    fair, other = ("TIME", "COST") if q.key == "manual" else ("COST", "TIME")
    q.do("ALTER", "FAIR", other)
    q.do("ALTER", "FAIR", fair, "ERRORS", 3, "MAXTIMEOUTS", 2, "EVENTS", f"{q.key}:events", "EVENTSLEN", 100)
    q.do("ALTER", "DEADTO", f"{q.key}:dead", "REJECTED")
    alone(q, "moved", "NACK", "FATAL", "ERROR", "to the other queue")
    alone(q, "failed", "NACK", "ERROR", b"why\0", options=("ERRORS", 2, "MAXTIMEOUTS", 3))
    alone(q, "parked", "NACK", "SILENT", "PARK", "NOTE", "asked ann")
    alone(q, "parked for a time", "NACK", "SILENT", "PARK", "FOR", far)
    q.send("parked", "ID", "sent parked", "PARK", "FOR", far)
    q.send("signalled", "ID", "signalled", "GROUP", "signalled", "DELAY", far)
    q.do("SIGNAL", "signalled", "DATA", b"\xfe yes")
    q.send("old", "ID", "rerun", "GROUP", "rerun")
    q.one("GROUP", "rerun")
    q.send("new", "ID", "rerun", "GROUP", "rerun", "REPLACE", "RERUN", "DELAY", 5)
    q.send("parent", "ID", "parent", "CHILDREN", 4, "LIMITS", 1, "api")
    for n, on_dead in enumerate(("HOLD", "GO", "DIE")):
        q.send(n, "ID", f"child{n}", "GROUP", f"child{n}", "PARENT", q.key, "parent", "ONDEAD", on_dead)
    alone(q, "child done", "ACK", "RESULT", "done", options=("PARENT", q.key, "parent", "RETAIN", far))
    q.do("LIMIT", "api", "CONCURRENCY", 3, "RATE", 9, "PER", far, "RATE", 2, "PER", far // 2)
    q.do("LIMIT", "user-*", "CONCURRENCY", 5, "WEIGHT")
    for n in range(3):
        q.send(n, "ID", f"limited{n}", "GROUP", f"limited{n}", "LIMITS", 2, "api", "user-1", "COST", 2 + n)
        q.send(n, "ID", f"hidden{n}", "LIMITS", 1, "user-1", "COST", 3)
    q.one("GROUP", "limited0")
    alone(q, "limited and done", "ACK", "COST", 3, options=("LIMITS", 2, "api", "user-2"))
    now = q.info()["now"]
    q.do("SCHEDULE", "ends", "EVERY", far, "PAYLOAD", "x", "UNTIL", now + far * 3, "TIMES", 2, "JITTER", 5, "OVERLAP", "SKIP")
    q.do("SCHEDULE", "paused", "CRON", "0 4 * * *", "TZ", "Europe/Berlin", "PAYLOAD", "x", "MISSED", "ONCE")
    q.do("SCHEDULES", "PAUSE", "paused")


def alone(q, name, verb, *words, options=()) -> None:
    """Delivers a message of a group of its own, and hands it back."""
    q.send(name, "ID", name, "GROUP", name, *options)
    q.do(verb, q.one("GROUP", name).receipt, *words)


class Traffic:
    """Random operations on one queue, most of them sensible, some stale or doubled.

    If `linked`, also those that link messages and deliveries with others: batches, ACKSEND, tokens, pauses by NACK.
    """

    def __init__(self, client, key, seed, *options, linked: bool = False):
        self.q = Queue(client, key)
        self.rng = random.Random(seed)
        self.receipts = []
        self.manual, self.linked = "MANUAL" in options, linked
        if not client.exists(key):
            self.q.do("CREATE", *options)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            try:
                self.step()
            except redis.ResponseError as error:
                assert str(error).startswith("QUEUEFULL"), error

    def receipt(self):
        return self.rng.choice(self.receipts) if self.receipts else 1

    def step(self) -> None:
        if self.linked and self.rng.random() < 0.5:
            self.linked_step()
        else:
            self.plain_step()

    def linked_step(self) -> None:
        rng, q = self.rng, self.q
        batch, group = f"b{rng.randrange(3)}", f"g{rng.randrange(5)}"
        match rng.randrange(7):
            case 0 | 1:
                q.send("member", "BATCH", batch, *rng.choice([(), ("GROUP", group), ("RETRIES", 0)]))
            case 2:
                q.send("after", "AFTER", batch, "ONFAIL", rng.choice(["HOLD", "GO", "DIE"]))
            case 3 | 4:
                options = ("COUNT", rng.randrange(1, 4), "CONSUMER", f"c{rng.randrange(2)}", "TOKEN", rng.randrange(2))
                self.receipts += [m.receipt for m in q.fetch(*options)]
            case 5:
                following = [["NEXT", q.key, "next", *rng.choice([(), ("BATCH", batch)])] for _ in range(rng.randrange(1, 3))]
                q.do("ACKSEND", self.receipt(), *sum(following, []))
            case 6:
                for m in q.fetch("GROUP", group):
                    how = rng.choice([("SILENT",), ("SILENT", "DELAY", 30), ()])
                    q.nack(m.receipt, *how, "PAUSE", *rng.choice([("GROUP", 50), ("QUEUE", 5)]))

    def plain_step(self) -> None:
        rng, q = self.rng, self.q
        id = f"id{rng.randrange(60)}"
        match rng.randrange(16):
            case 0 | 1 | 2 | 3:
                options = []
                if rng.random() < 0.4:
                    options += ["DELAY", rng.randrange(400)]
                if rng.random() < 0.3:
                    options += ["GROUP", f"g{rng.randrange(5)}", "SCORE", rng.randrange(9)]
                    if rng.random() < 0.1:
                        options.append("IFGROUP")
                if rng.random() < 0.3:
                    options += ["PRIORITY", rng.randrange(-3, 3)]
                if rng.random() < 0.2:
                    options += ["TTL", rng.randrange(1, 2000)]
                if rng.random() < 0.6:
                    options += ["ID", id]
                    if rng.random() < 0.3:
                        options.append("REPLACE")
                        if rng.random() < 0.5:
                            options += ["MAXWAIT", rng.randrange(400)]
                if rng.random() < 0.1:
                    options += ["DEDUPID", rng.randrange(9), rng.randrange(1, 400)]
                if rng.random() < 0.2:
                    options += ["RETAIN", rng.randrange(500)]
                if rng.random() < 0.15:
                    options += ["BATCH", f"b{rng.randrange(3)}"]
                elif rng.random() < 0.1:
                    options += ["AFTER", f"b{rng.randrange(3)}", "ONFAIL", rng.choice(["HOLD", "GO", "DIE"])]
                q.send(rng.randbytes(rng.randrange(40)), *options)
            case 4:
                q.do("MSEND", 3, "a", "b", "c", "DELAY", rng.randrange(100))
            case 5 | 6 | 7:
                options = ["COUNT", rng.randrange(1, 6), "LEASE", rng.randrange(1, 500)]
                if rng.random() < 0.3:
                    options += ["CONSUMER", f"c{rng.randrange(3)}"]
                self.receipts += [m.receipt for m in msgs(q.do("FETCH", *options))]
                del self.receipts[:-20]
            case 8 | 9:
                q.ack(self.receipt(), self.receipt())
            case 10:
                ms = rng.randrange(200)
                how = [(), ("SILENT",), ("DELAY", ms), ("SILENT", "DELAY", ms), ("FATAL",), ("ERROR", "e"), ("NOTE", "n")]
                q.nack(self.receipt(), *rng.choice(how))
            case 11:
                note = rng.choice([(), ("NOTE", "half"), ("NOTE", "")])
                q.do("TOUCH", rng.randrange(1, 500), self.receipt(), *note)
            case 12:
                q.do("CANCEL", id, f"id{rng.randrange(60)}")
            case 13:
                q.do("RESCHEDULE", id, "DELAY", rng.randrange(300))
                q.do("UPDATE", f"id{rng.randrange(60)}", rng.randbytes(9))
            case 14:
                q.do("REDRIVE", "ALL", "COUNT", 2)
            case 15:
                if self.manual:
                    q.tick("ADVANCE", rng.randrange(1, 120))
                if rng.random() < 0.3:
                    q.do("PAUSE", "FOR", rng.randrange(1, 50))
                elif rng.random() < 0.1:
                    q.do("PURGE", "STATE", rng.choice(["dead", "ready", "finished"]))
                else:
                    q.fetch("NOACK")


def exercise(client, key, seed):
    """Uses a queue at random. Errors are fine, crashes are not."""
    traffic = Traffic(client, key, seed)
    for _ in range(12):
        try:
            traffic.step()
        except redis.ResponseError:
            pass
    for verb in ("INFO", "GROUPS", "SCHEDULES", "CONSUMERS", "PEEK"):
        client.execute_command(f"DQ.{verb}", key)
    client.execute_command("DEBUG", "DIGEST-VALUE", key)
    client.execute_command("MEMORY", "USAGE", key)
