"""Operations that go over very many messages step by step, or would if they were not counted: batches and FIND."""

from dataclasses import dataclass
from pathlib import Path

from tests.harness.wire import Error
from tests.load.large_queues import FAR, PAYLOAD, fill
from tests.load.stalls import Row, Stalls

# The number of messages in each MSEND, FETCH and ACK, as busy programs do.
TAKEN = 100
STEP = 1000


@dataclass
class Longest:
    """The longest of some commands: the processor time that the server took between the command and its reply, in ms.

    That of the PINGs which came meanwhile is in it. The time of other programs is not counted.
    """

    name: str
    ms: float = 0.0


class Searches:
    """Rows on a server of `stalls`, each with the longest of its commands."""

    def __init__(self, stalls: Stalls, members: int, searched: int):
        self.stalls, self.members, self.searched = stalls, members, searched
        self.client = stalls.client

    def rows(self):
        """Every row, one by one as it is measured."""
        yield self.timed("sent into one batch", self.members, "DQ.MSEND", self.send_members)
        self.client.execute_command("DQ.SEND", "q", "all", "ID", "all", "AFTER", "b")
        yield self.timed("members of the batch end", self.members - 1, "DQ.FETCH", self.end_all_but_one)
        yield self.the_last_one()
        self.stalls.clear()
        fill(self.stalls.server, "q", self.searched, "DELAY", FAR)
        yield self.timed(f"DQ.FIND, COUNT {STEP:,}", self.searched, "DQ.FIND", self.find_all)
        self.stalls.clear()

    def send_members(self, call) -> None:
        for sent in range(0, self.members, TAKEN):
            n = min(TAKEN, self.members - sent)
            call("q", n, *[PAYLOAD] * n, "BATCH", "b")

    def end_all_but_one(self, call) -> None:
        left, done = self.members - 1, []
        while left:
            acks = ["ACK", len(done), *done] if done else []
            done = [message[1] for message in call("q", "COUNT", min(left, TAKEN), *acks)]
            left -= len(done)
        self.client.execute_command("DQ.ACK", "q", *done)

    def the_last_one(self):
        """The last member ends. A consumer that waits gets the message that was held."""
        assert self.client.execute_command("DQ.LEN", "q", "held") == 1
        [[_, receipt, *_]] = self.client.execute_command("DQ.FETCH", "q")
        with self.stalls.server.wire(protocol=2, timeout=60) as wire:
            wire.send("DQ.FETCH", "q", "BLOCK", 0)
            self.stalls.server.wait_blocked(1)
            timed = self.timed("the last member ends", 1, "DQ.ACK", lambda call: call("q", receipt))
            [[id, *_]] = wire.recv()
            assert id == b"all"
        return timed

    def find_all(self, call) -> None:
        """Searches all payloads, and finds none."""
        cursor, steps = b"0", 0
        while steps == 0 or cursor != b"0":
            cursor, found = call("q", "delayed", "PAYLOAD", "*y*", "CURSOR", cursor, "COUNT", STEP)
            steps += 1
            assert not found
        assert steps >= self.searched // STEP

    def timed(self, name, messages, command, act) -> tuple[Row, Longest]:
        longest = Longest(command)
        with self.stalls.server.wire(protocol=2, timeout=600) as wire:

            def call(*words):
                before = self.processor_ms()
                reply = wire.call(command, *words)
                longest.ms = max(longest.ms, self.processor_ms() - before)
                assert not isinstance(reply, Error), reply
                return reply

            row = self.stalls.row(name, messages, lambda: act(call), lambda: True)
        return row, longest

    def processor_ms(self) -> float:
        """The processor time of the server's main thread so far."""
        pid = self.stalls.server.pid
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e6
