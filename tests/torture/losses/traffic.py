"""Clients that send and ack, and note the confirmed ones."""

import itertools
import threading
import time
from dataclasses import dataclass

from tests.harness.wire import Wire
from tests.torture.losses.books import Books, failed

CLIENTS = 4
# The number of messages that a client sends for each one that it acks.
ACKED = 5
# The pause after an error reply, such as that of a server that has too few replicas.
PAUSE = 0.05
# The longest time that a client may wait for replicas or for a sync, in ms.
PATIENCE = 1_000


@dataclass(frozen=True)
class Confirm:
    """The way in which a client has its commands confirmed: by a command at the end of its pipeline, or by their
    replies alone.
    """

    name: str
    words: tuple = ()
    least: tuple = ()
    """The least that the reply to that command must contain."""

    def holds(self, reply) -> bool:
        counts = reply if isinstance(reply, list) else [reply]
        return not failed(reply) and all(count >= least for count, least in zip(counts, self.least))


REPLY = Confirm("reply")


def wait(replicas: int) -> Confirm:
    """The replicas have the write in memory."""
    return Confirm(f"WAIT {replicas}", ("WAIT", replicas, PATIENCE), (replicas,))


def waitaof(local: int, replicas: int) -> Confirm:
    """The write is synced to the disk of the server itself, and to those of `replicas` replicas."""
    words = ("WAITAOF", local, replicas, 5 * PATIENCE)
    return Confirm(f"WAITAOF {local} {replicas}", words, (local, replicas))


@dataclass(frozen=True)
class Pace:
    """How long clients work before a fault, and how fast. For durable clients, `tasks` tasks work as fast as they
    can: see Lasting.
    """

    work: tuple
    """The shortest and the longest time, in seconds."""
    batch: int
    """The number of messages that go out with one confirmation."""
    rate: int
    """The maximum number of messages that all clients send in a second."""
    tasks: int = 40


# The number of messages at risk does not grow with time: many faults, with many sends in the moment before each.
QUICK = Pace((0.3, 0.6), batch=25, rate=5_000)
# The faults come more than a second apart. A log that is synced once a second can lose more with each moment of it.
SECONDS = Pace((1.2, 2.4), batch=25, rate=1_200)
# A confirmation comes once in one to two seconds, so each confirms many messages. Acks are those of what the one before
# has given.
SYNCED = Pace((2.5, 4.5), batch=1_000, rate=4_000)
# The pace for durable clients.
LASTING = Pace((2.0, 3.5), batch=50, rate=0, tasks=60)
# The pace for confirmations that come at once.
STEADY = Pace((1.5, 3.0), batch=5, rate=0)
# The faults go on for seconds after the work.
LONG = Pace((0.3, 0.6), batch=10, rate=1_500)


class Clients:
    """Some clients of one queue, each in a thread that ends with its connection."""

    def __init__(self, port: int, key: str, confirm: Confirm, pace: Pace):
        self.port, self.key, self.confirm = port, key, confirm
        self.batch, self.interval = pace.batch, pace.batch * CLIENTS / pace.rate
        self.books = Books()
        self._stopped, self._broken = threading.Event(), []
        self._threads = [threading.Thread(target=self._work, args=(n,), daemon=True) for n in range(CLIENTS)]

    def start(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def end(self) -> Books:
        """Ends the clients, after a fault that has broken their connections or has made their server silent."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a client does not end"
        if self._broken:
            raise self._broken[0]
        return self.books

    def _work(self, name: int) -> None:
        try:
            with Wire(self.port, protocol=2, timeout=30) as wire:
                numbers, taken = itertools.count(), []
                while not self._stopped.is_set():
                    begun = time.monotonic()
                    ids = [b"%d-%d" % (name, next(numbers)) for _ in range(self.batch)]
                    taken = self._step(wire, ids, taken)
                    self._stopped.wait(max(0.0, begun + self.interval - time.monotonic()))
        except OSError:
            # The client's server is dead.
            pass
        except BaseException as error:
            self._broken.append(error)

    def _step(self, wire: Wire, ids: list, taken: list) -> list:
        """Sends messages, acks those that were taken before, and takes others. Returns those, as (id, receipt)."""
        commands = [["DQ.SEND", self.key, id, "ID", id] for id in ids]
        if taken:
            commands.append(["DQ.ACK", self.key, *(receipt for _, receipt in taken)])
            self.books.asked |= {id for id, _ in taken}
        commands.append(["DQ.FETCH", self.key, "COUNT", len(ids) // ACKED])
        if self.confirm.words:
            commands.append(self.confirm.words)
        wire.send_many(commands)
        replies = [wire.recv() for _ in commands]
        is_confirmed = not self.confirm.words or self.confirm.holds(replies.pop())
        if failed(got := replies.pop()):
            time.sleep(PAUSE)
            return taken
        now = time.monotonic()
        with self.books.lock:
            if is_confirmed and taken and replies.pop() == len(taken):
                self.books.acked |= {id for id, _ in taken}
            if is_confirmed:
                self.books.sent |= {id: now for id, reply in zip(ids, replies) if reply == id}
        return [(id, receipt) for id, receipt, *_ in got]
