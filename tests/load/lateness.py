"""The delay of messages that somebody waits for, as the server counts it: this process may sleep longer than it."""

import time
from dataclasses import dataclass

from tests.harness.replies import Queue
from tests.harness.server import Server, now_ms
from tests.harness.waiting import given_at, got, waiter


@dataclass
class Late:
    """The delays of some messages, in ms."""

    name: str
    messages: int
    p50: float
    p99: float
    longest: float
    # The delay with which this machine wakes a sleeping process at this hour: the server is woken by a clock like
    # anybody else.
    noise: float

    @property
    def beyond(self) -> float:
        """The excess of the median over the machine's own delay, which is counted twice, because the machine may go
        to sleep in between.
        """
        return self.p50 - 2 * self.noise


class Lateness:
    """A server, and messages of its queue `q` that consumers wait for."""

    def __enter__(self) -> "Lateness":
        self.server = Server().start()
        self.q = Queue(self.server.client(), b"q")
        self.q.server = self.server
        return self

    def __exit__(self, kind, *_) -> None:
        self.server.close(check_log=kind is None)

    def rows(self, messages: int):
        """Every row, one by one as it is measured."""
        yield self.row("due one by one", messages, self.one_by_one)
        yield self.row("due every 5 ms, a consumer each", messages, self.spread)
        yield self.row("fires of a schedule, every 50 ms", messages, self.schedule)
        yield self.in_queues(1, messages)
        yield self.in_queues(messages, messages)
        for wait in ("fetch", "list"):
            yield self.unblocked(wait, messages)
        yield self.released(messages)

    def row(self, name, messages, give) -> Late:
        self.server.client().flushall()
        self.q.do("CREATE")
        give(messages)
        info = self.q.info()
        return Late(name, messages, info["lateness-p50"], info["lateness-p99"], info["lateness-max"], noise())

    def one_by_one(self, messages) -> None:
        w = self.server.wire()
        for _ in range(messages):
            w.send("DQ.FETCH", "q", "BLOCK", 0, "NOACK")
            self.q.send("x", "DELAY", 25)
            got(w)

    def spread(self, messages) -> None:
        wires = [waiter(self.q, "NOACK") for _ in range(messages)]
        start = now_ms() + 1000
        with self.server.wire() as w:
            w.send_many([("DQ.SEND", "q", "x", "AT", start + n * 5) for n in range(messages)])
            for _ in wires:
                w.recv()
        for w in wires:
            got(w)
            w.close()

    def schedule(self, messages) -> None:
        self.q.do("SCHEDULE", "s", "EVERY", 50, "PAYLOAD", "x")
        w = self.server.wire()
        for _ in range(messages):
            w.send("DQ.FETCH", "q", "BLOCK", 0, "NOACK")
            got(w)

    def in_queues(self, queues, messages) -> Late:
        """Messages that fall due in one millisecond, spread over a number of queues, with a consumer each."""
        client = self.server.client()
        client.flushall()
        keys = [f"q:{number % queues}" for number in range(messages)]
        wires = [self.server.wire() for _ in keys]
        for key, wire in zip(keys, wires):
            wire.send("DQ.FETCH", key, "BLOCK", 0)
        self.server.wait_blocked(messages)
        due = now_ms() + 500 + messages
        for key in keys:
            client.execute_command("DQ.SEND", key, "x", "AT", due)
        for wire in wires:
            got(wire)
            wire.close()
        late = client.info("everything")
        found = (late[f"dq_lateness_{which}_ms"] for which in ("p50", "p99", "max"))
        return Late(f"due in one ms in {queues:,} queue" + ("s" if queues > 1 else ""), messages, *found, noise())

    def unblocked(self, wait, messages) -> Late:
        """The command of a client that has just been unblocked, as the server is about to sleep."""
        self.server.client().flushall()
        self.q.do("CREATE")
        late = []
        for n in range(messages):
            w, c = waiter(self.q), self.server.wire()
            first = ("DQ.FETCH", "other", "BLOCK", 0) if wait == "fetch" else ("BLPOP", "list", 0)
            c.send_many([first, ("DQ.SEND", "q", "x", "DELAY", n % 2 * 5)])
            self.server.wait_blocked(2)
            if wait == "fetch":
                self.q.client.execute_command("DQ.SEND", "other", "go")
            else:
                self.q.client.rpush("list", "go")
            [m] = got(w)
            late.append(given_at(self.q, m) - self.q.get(m.id)["due-at"])
            self.q.ack(m.receipt)
            w.close()
            c.close()
            self.server.wait_blocked(0)
        name = "sent by one that " + ("FETCH" if wait == "fetch" else "BLPOP") + " held up"
        return late_by(name, late)

    def released(self, batches) -> Late:
        """A message that a batch of three holds, from the end of the last one to the consumer that waits for it."""
        self.server.client().flushall()
        self.q.do("CREATE", "RETAIN", 600_000)
        late = []
        w = self.server.wire()
        for batch in range(batches):
            self.q.do("MSEND", 3, *"xyz", "BATCH", batch)
            self.q.send("all", "AFTER", batch)
            members = self.q.fetch("COUNT", 3)
            w.send("DQ.FETCH", "q", "BLOCK", 0)
            self.server.wait_blocked(1)
            self.q.ack(*[m.receipt for m in members])
            [m] = got(w)
            late.append(given_at(self.q, m) - max(self.q.get(member.id)["finished-at"] for member in members))
            self.q.ack(m.receipt)
        w.close()
        return late_by("held by a batch of three", late)


def late_by(name, late) -> Late:
    late = sorted(late)
    return Late(name, len(late), late[len(late) // 2], late[len(late) * 99 // 100], late[-1], noise())


def noise() -> float:
    """The delay with which this machine wakes a sleeping process at this hour, in ms: the median of 20 times."""
    late = []
    for _ in range(20):
        began = time.perf_counter()
        time.sleep(0.01)
        late.append((time.perf_counter() - began) * 1000 - 10)
    return sorted(late)[10]
