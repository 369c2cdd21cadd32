"""What goes over very many messages step by step, or would if it were not counted: batches and FIND."""

from dataclasses import dataclass

from tests.load.crowd import FAR, fill
from tests.load.stalls import Row, Stalls

# FETCH and ACK of so many in a command, as workers do.
TAKEN = 100
STEP = 1000
# Commands that take longer than this, in us, are remembered by the server.
SLOW = 200


@dataclass
class Longest:
    """The command of a kind that took longest, in ms, by the server's SLOWLOG."""

    name: str
    ms: float


class Searches:
    """Rows on a server of `stalls`, and how long the longest command of each took."""

    def __init__(self, stalls: Stalls, members: int, searched: int):
        self.stalls, self.members, self.searched = stalls, members, searched
        self.client = stalls.client

    def rows(self):
        """Every row with the longest of its commands, one by one as it is measured."""
        yield self.sending()
        yield self.ending()
        yield self.last()
        self.stalls.clear()
        yield self.finding()
        self.stalls.clear()

    def sending(self):
        """All members of a batch, a hundred in a command."""
        return self.timed(
            "sent into one batch", self.members, "dq.msend", lambda: fill(self.stalls.server, "q", self.members, "BATCH", "b", batch=TAKEN)
        )

    def ending(self):
        """All members but one end, while a message waits for them."""
        self.client.execute_command("DQ.SEND", "q", "all", "ID", "all", "AFTER", "b")
        return self.timed("members of the batch end", self.members - 1, "dq.fetch", self.end_all_but_one)

    def end_all_but_one(self) -> None:
        with self.stalls.server.wire(protocol=2, timeout=600) as wire:
            done, left = [], self.members - 1
            while left or done:
                words = ["ACK", len(done), *done] if done else []
                if left:
                    reply = wire.ok("DQ.FETCH", "q", "COUNT", min(left, TAKEN), *words)
                else:
                    wire.ok("DQ.ACK", "q", *done)
                    reply = []
                done = [message[1] for message in reply]
                left -= len(done)

    def last(self):
        """The last member ends: a consumer that waits gets the message that was held."""
        client, server = self.client, self.stalls.server
        assert client.execute_command("DQ.LEN", "q", "held") == 1
        [[_, receipt, *_]] = client.execute_command("DQ.FETCH", "q")
        wire = server.wire(protocol=2, timeout=60)
        wire.send("DQ.FETCH", "q", "BLOCK", 0)
        server.wait_blocked(1)
        row = self.timed("the last member ends", 1, "dq.ack", lambda: client.execute_command("DQ.ACK", "q", receipt))
        [[id, *_]] = wire.recv()
        assert id == b"all"
        wire.close()
        return row

    def finding(self):
        """FIND that goes over all messages of a state, looks at each payload, and finds none."""
        fill(self.stalls.server, "q", self.searched, "DELAY", FAR)
        return self.timed(f"DQ.FIND, COUNT {STEP:,}", self.searched, "dq.find", self.find_all)

    def find_all(self) -> None:
        cursor, steps = b"0", 0
        while True:
            cursor, found = self.client.execute_command(
                "DQ.FIND", "q", "delayed", "PAYLOAD", "*y*", "CURSOR", cursor, "COUNT", STEP
            )
            steps += 1
            assert not found
            if cursor == b"0":
                break
        assert steps >= self.searched // STEP

    def timed(self, name, messages, command, act) -> tuple[Row, Longest]:
        self.client.config_set("slowlog-log-slower-than", SLOW)
        self.client.config_set("slowlog-max-len", 10_000)
        self.client.slowlog_reset()
        row = self.stalls.row(name, messages, act, lambda: True)
        slow = [entry["duration"] for entry in self.client.slowlog_get(10_000) if entry["command"].lower().startswith(command.encode())]
        self.client.config_set("slowlog-log-slower-than", -1)
        return row, Longest(command.upper(), max(slow, default=0) / 1000)
