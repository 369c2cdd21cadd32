"""Operations that may hold up others: everything that touches every message of a large queue at once."""

import time
from dataclasses import dataclass

from tests.harness.absence import Absences
from tests.harness.server import now_ms
from tests.load.large_queues import (
    FAR,
    PAYLOAD,
    fill,
    fill_groups,
    freed,
    raise_limit,
    until,
    waiting,
)
from tests.load.probe import Probe, Waits
from tests.load.server import TimedServer

AFTERMATH = 0.5
# Between the end of a filling, as far as it can be foreseen, and the due time: in ms.
MARGIN = 2000
# Connections beside those of the waiting consumers, and files.
SPARE = 500


@dataclass
class Row:
    """One thing that was done to so many messages, and the longest waits without and with it."""

    name: str
    messages: int
    idle: Waits
    busy: Waits
    seconds: float

    @property
    def beyond(self) -> float:
        """By how much the longest wait exceeds the idle one, both without the absences of processors, in ms."""
        return self.busy.own - self.idle.own


class Stalls:
    """A server, and what is done to its queue `q` while a probe watches.

    At least `idle` seconds are watched before each, and `aftermath` seconds after each.
    """

    def __init__(
        self, due: int, big: int, idle: float, crowd: int, bulk: int, queues: int, aftermath=AFTERMATH, margin=MARGIN
    ):
        self.due, self.big, self.idle, self.crowd, self.bulk, self.queues = due, big, idle, crowd, bulk, queues
        self.aftermath, self.margin = aftermath, margin
        raise_limit(crowd + SPARE)
        self.server = TimedServer(maxclients=crowd + SPARE)

    def __enter__(self) -> "Stalls":
        self.server.start()
        self.client = self.server.client(socket_timeout=600)
        return self

    def __exit__(self, kind, *_) -> None:
        self.server.close(check_log=kind is None)

    def rows(self):
        """Every row, one by one as it is measured."""
        yield self.due_at_once("due at once")
        yield self.due_at_once("due at once, 50 consumers waiting", consumers=50)
        yield self.waking(1)
        yield self.waking(self.crowd)
        yield self.due_to_a_crowd()
        yield self.due_in(1)
        yield self.due_in(self.queues)
        yield self.on_big("UNLINK", lambda: self.client.unlink("q"), self.gone)
        yield self.on_big("FLUSHALL ASYNC", lambda: self.client.flushall(asynchronous=True), self.gone)
        yield self.on_big("key expires (PEXPIRE)", lambda: self.client.pexpire("q", 100), self.gone)
        yield self.on_big("DQ.PURGE", lambda: self.client.execute_command("DQ.PURGE", "q"), self.empty)
        yield self.expiring()
        yield self.row("DQ.PURGE STATE dead", self.big, self.purge_dead, lambda: self.count("dead") == 0)
        self.clear()
        yield from self.rows_in_slices()

    def rows_in_slices(self):
        """The rows of what is done in slices while its client waits."""
        yield self.purging_a_state()
        yield self.purging_many_groups()
        yield self.redriving()

    def due_at_once(self, name, consumers: int = 0) -> Row:
        """All due in one millisecond. It is over when none of them is counted as delayed any more."""
        due = self.after_filling(self.due, lambda at: fill(self.server, "q", self.due, "AT", at))
        wires = waiting(self.server, "q", consumers)
        row = self.row(
            name, self.due, lambda: time.sleep(max(0, due - now_ms()) / 1000), lambda: self.count("delayed") == 0
        )
        assert all(len(wire.recv()) == 1 for wire in wires), "a consumer got nothing"
        assert self.count("ready") == self.due - consumers
        self.clear()
        return row

    def waking(self, messages: int) -> Row:
        """Very many consumers wait, and so many messages come; it is over when each has gone to one of them."""
        self.client.execute_command("DQ.CREATE", "q")
        wires = waiting(self.server, "q", self.crowd)

        def over():
            return int(self.server.info("clients")["blocked_clients"]) == self.crowd - messages

        name = f"{self.crowd:,} waiting, a message" + (" each" if messages > 1 else "")
        row = self.row(name, messages, lambda: fill(self.server, "q", messages), over)
        assert self.client.execute_command("DQ.LEN", "q", "running") == messages
        self.dismiss(wires, all_served=messages > 1)
        return row

    def due_to_a_crowd(self) -> Row:
        """Very many consumers wait, and a message for each falls due in the same millisecond."""
        wires = waiting(self.server, "q", self.crowd)
        due = self.after_filling(self.crowd, lambda at: fill(self.server, "q", self.crowd, "AT", at))

        def over():
            return int(self.server.info("clients")["blocked_clients"]) == 0

        name = f"{self.crowd:,} waiting, all due at once"
        row = self.row(name, self.crowd, lambda: time.sleep(max(0, due - now_ms()) / 1000), over)
        self.dismiss(wires, all_served=True)
        return row

    def due_in(self, queues: int) -> Row:
        """A message for each of `self.queues`, spread over so many queues, all due in one millisecond."""
        due = now_ms() + int(self.idle * 1000) + self.margin + self.queues // 5
        pipe = self.client.pipeline(transaction=False)
        for number in range(self.queues):
            pipe.execute_command("DQ.SEND", f"q:{number % queues}", PAYLOAD, "AT", due)
        pipe.execute()
        assert now_ms() + self.idle * 1000 < due, "the messages could not be sent before they were due"
        # To look into each of many queues would be a load itself, so it is over when it must be.
        over_at = due + 1000
        name = f"due at once in {queues:,} queue" + ("s" if queues > 1 else "")
        row = self.row(name, self.queues, lambda: time.sleep(max(0, over_at - now_ms()) / 1000), lambda: True)
        assert self.client.info("everything")["dq_ready"] == self.queues
        self.clear()
        return row

    def dismiss(self, wires, all_served: bool) -> None:
        assert not all_served or all(len(wire.recv()) == 1 for wire in wires), "a consumer got nothing"
        for wire in wires:
            wire.close()
        self.clear()

    def expiring(self) -> Row:
        """All dead by their TTL in one millisecond."""
        due = self.after_filling(self.big, self.fill_dying)
        return self.row(
            "messages expire (TTL)",
            self.big,
            lambda: time.sleep(max(0, due - now_ms()) / 1000),
            lambda: self.count("dead") == self.big,
        )

    def fill_dying(self, at) -> None:
        # TTL counts from the due time, so due times in the past would not do: they mean now.
        fill(self.server, "q", self.big, "AT", at, "TTL", 1)

    def purge_dead(self) -> None:
        self.client.execute_command("DQ.PURGE", "q", "STATE", "dead")

    def purging_a_state(self) -> Row:
        """All delayed messages beside as many that stay: it goes in slices."""
        fill(self.server, "q", self.bulk, "DELAY", FAR)
        fill(self.server, "q", self.bulk)
        return self.counted("DQ.PURGE STATE delayed", self.bulk, ["DQ.PURGE", "q", "STATE", "delayed"])

    def purging_many_groups(self) -> Row:
        """The ready messages of very many groups, ten messages each."""
        fill_groups(self.server, "q", self.bulk // 10, 10)
        name = f"DQ.PURGE STATE ready, {self.bulk // 10:,} groups"
        return self.counted(name, self.bulk, ["DQ.PURGE", "q", "STATE", "ready"])

    def redriving(self) -> Row:
        """All dead messages."""
        self.client.execute_command("DQ.CREATE", "q", "RETRIES", 0, "LEASE", 1)
        fill(self.server, "q", self.bulk)
        while self.client.execute_command("DQ.FETCH", "q", "COUNT", 1000):
            pass
        until(lambda: self.count("dead") == self.bulk)
        return self.counted("DQ.REDRIVE ALL", self.bulk, ["DQ.REDRIVE", "q", "ALL"])

    def counted(self, name, messages, command) -> Row:
        """A command that is over when it answers that it has done so many; `seconds` are until its reply."""
        answers = []
        row = self.row(name, messages, lambda: answers.append(self.client.execute_command(*command)), lambda: True)
        assert answers == [messages], answers
        self.clear()
        return row

    def on_big(self, name, act, over) -> Row:
        fill(self.server, "q", self.big, "DELAY", FAR)
        row = self.row(name, self.big, act, over)
        self.clear()
        return row

    def after_filling(self, messages, fill_until) -> int:
        """Fills with a due time behind the end of the filling and of the idle look, and returns it."""
        began = time.monotonic()
        fill(self.server, "warm", messages // 50, "DELAY", FAR)
        expected = (time.monotonic() - began) * 50
        self.clear()
        due = now_ms() + int(expected * 1500 + self.idle * 1000) + self.margin
        fill_until(due)
        assert now_ms() + self.idle * 1000 < due, "the messages could not be sent before they were due"
        return due

    def row(self, name, messages, act, over) -> Row:
        with Absences() as absences:
            with Probe(self.server.port) as before:
                time.sleep(self.idle)
            with Probe(self.server.port) as busy:
                began = time.monotonic()
                act()
                until(over)
                freed(self.server)
                seconds = time.monotonic() - began
                # A command that ends at once may have left work to the timers.
                time.sleep(self.aftermath)
            # The longest of many waits is longer than that of few: idle is watched for as long as busy.
            with Probe(self.server.port) as after:
                time.sleep(max(0, seconds + self.aftermath - self.idle))
        return Row(name, messages, Waits.of(absences, before, after), Waits.of(absences, busy), seconds)

    def count(self, state) -> int:
        return self.client.execute_command("DQ.LEN", "q", state)

    def empty(self) -> bool:
        return self.client.execute_command("DQ.LEN", "q") == 0

    def gone(self) -> bool:
        return not self.client.exists("q")

    def clear(self) -> None:
        self.client.flushall()
        freed(self.server)
