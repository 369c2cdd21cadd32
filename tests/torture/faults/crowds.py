"""A thousand queues with due events in one moment, and a server that is killed meanwhile."""

import threading
import time

from tests.checker.link import Link, Refused, Unknown
from tests.harness.replies import Queue
from tests.torture.faults.process import Kill9

QUEUES = 1_000
CONSUMERS = 10
# The delay of the messages of a round, in ms. The server is killed at about the time at which they are due.
DELAY = 150


class ManyQueues(Kill9):
    """Beside the usual queues: a message in each of a thousand, all due together, while the server is killed.

    Each message of a round is acked once: by the consumer that was told so, or, where the kill took the answer, perhaps
    before it. No message is lost, and none is delivered again after an answered ack.
    """

    pause = 2.0

    def created(self) -> None:
        super().created()
        self.many = [f"{self.key}:many:{n}" for n in range(QUEUES)]
        self.round = 0
        with self.server.wire() as w:
            for key in self.many:
                w.ok("DQ.CREATE", key, "RETRIES", -1, "LEASE", 1000, "BACKOFF", "FIXED", 0)

    def inject(self) -> None:
        self.round += 1
        self.acked, self.doubtful, self.again = set(), set(), []
        with self.server.wire() as w:
            w.send_many([("DQ.SEND", key, key, "ID", f"r{self.round}", "DELAY", DELAY) for key in self.many])
            errors = [reply for reply in (w.recv() for _ in self.many) if reply != f"r{self.round}".encode()]
        assert not errors, errors[:3]
        self.over = threading.Event()
        consumers = [threading.Thread(target=self.consume, args=(self.many[n::CONSUMERS],)) for n in range(CONSUMERS)]
        for consumer in consumers:
            consumer.start()
        time.sleep(DELAY / 1000 * self.rng.uniform(0.8, 1.6))
        super().inject()
        deadline = time.monotonic() + 30
        while len(self.acked | self.doubtful) < QUEUES or self.left():
            if time.monotonic() > deadline:
                missing = QUEUES - len(self.acked | self.doubtful)
                self.differences.append(f"round {self.round}: {missing} messages were never acked, {self.left()} are left")
                break
            time.sleep(0.05)
        self.over.set()
        for consumer in consumers:
            consumer.join()
        self.differences += [f"round {self.round}: {key} was delivered again after its ack" for key in self.again]
        self.extra_operations += 3 * QUEUES

    def consume(self, keys) -> None:
        """Takes and acks the messages of its queues, over a connection that breaks with the server."""
        link = Link([self.server.port])
        while not self.over.is_set():
            try:
                reply = link.call("DQ.MFETCH", len(keys), *keys, "BLOCK", 200)
            except (Refused, Unknown):
                time.sleep(0.02)
                continue
            if not reply:
                continue
            key, [[_, receipt, *_]] = reply
            if key in self.acked:
                self.again.append(key.decode())
            try:
                done = link.call("DQ.ACK", key, receipt)
            except (Refused, Unknown):
                # The ack may have been done. If it was not, the message comes again.
                self.doubtful.add(key)
                continue
            if done:
                self.acked.add(key)

    def left(self) -> int:
        """How many messages the thousand queues hold."""
        client = self.server.client()
        return sum(Queue(client, key).len() for key in self.many)
