"""Readers that make RESP2 and RESP3 replies look alike, and a queue under virtual time."""

from collections import namedtuple

import redis

Message = namedtuple("Message", "id receipt attempt payload meta")


def as_map(reply):
    """A map reply (RESP3 map or RESP2 flat array) as dict with str keys; None stays None."""
    if reply is None:
        return None
    if isinstance(reply, dict):
        pairs = reply.items()
    else:
        assert len(reply) % 2 == 0, f"not a map: {reply!r}"
        pairs = zip(reply[::2], reply[1::2])
    result = {}
    for name, value in pairs:
        name = name.decode() if isinstance(name, bytes) else name
        assert name not in result, f"key {name} comes twice"
        result[name] = value
    return result


def as_maps(reply):
    """An array of maps."""
    return [as_map(one) for one in reply]


def msg(fetched) -> Message:
    """One element of a FETCH reply; meta is None without WITHMETA."""
    assert len(fetched) in (4, 5), f"not a message: {fetched!r}"
    meta = as_map(fetched[4]) if len(fetched) == 5 else None
    return Message(fetched[0], fetched[1], fetched[2], fetched[3], meta)


def msgs(reply) -> list:
    """All messages of a FETCH reply."""
    return [msg(one) for one in reply]


def digest(client, key) -> bytes:
    """DEBUG DIGEST-VALUE of one key. It is all zeros for a missing key."""
    return client.execute_command("DEBUG", "DIGEST-VALUE", key)[0]


def number(value):
    """A double in the form of RESP3 or of RESP2."""
    return None if value is None else float(value)


def truth(value) -> bool:
    """A boolean in the form of RESP3 or of RESP2."""
    assert value in (0, 1, True, False), f"not a boolean: {value!r}"
    return bool(value)


class Queue:
    """Short verbs on one key. Replies come back as written in the contract, maps as dicts."""

    def __init__(self, client, key):
        self.client = client
        self.key = key

    def do(self, verb, *args):
        """DQ.<verb> on this key."""
        return self.client.execute_command(f"DQ.{verb}", self.key, *args)

    def fails(self, verb, *args) -> str:
        """The error of a call that must fail."""
        try:
            reply = self.do(verb, *args)
        except redis.ResponseError as error:
            return str(error)
        raise AssertionError(f"DQ.{verb} {args!r} gave {reply!r}, not an error")

    def send(self, payload=b"x", *options):
        return self.do("SEND", payload, *options)

    def fetch(self, *options):
        return msgs(self.do("FETCH", *options))

    def one(self, *options) -> Message:
        """FETCH that must deliver exactly one message. Returns the message."""
        got = self.fetch(*options)
        assert len(got) == 1, f"expected one message, got {got}"
        return got[0]

    def ids(self, *options):
        return [m.id for m in self.fetch(*options)]

    def payloads(self, *options):
        return [m.payload for m in self.fetch(*options)]

    def ack(self, *receipts):
        return self.do("ACK", *receipts)

    def nack(self, *args):
        return self.do("NACK", *args)

    def touch(self, ms, *receipts):
        return self.do("TOUCH", ms, *receipts)

    def get(self, id):
        return as_map(self.do("GET", id))

    def state(self, id):
        record = self.get(id)
        return None if record is None else record["state"].decode()

    def len(self, *state):
        return self.do("LEN", *state)

    def info(self):
        return as_map(self.do("INFO"))

    def peek(self, *options):
        return as_maps(self.do("PEEK", *options))

    def tick(self, *args):
        return as_map(self.do("TICK", *args))

    def digest(self):
        return digest(self.client, self.key)


class Manual(Queue):
    """A queue of CLOCK MANUAL; options follow as in DQ.CREATE. Its clock begins at `start` ms."""

    def __init__(self, client, key, *options, start: int = 0):
        super().__init__(client, key)
        reply = self.do("CREATE", "CLOCK", "MANUAL", start, *options)
        assert reply in (b"OK", True), reply

    def advance(self, ms: int) -> dict:
        """Moves the clock by ms. Returns the counts of what fell due."""
        return self.tick("ADVANCE", ms)

    def to(self, ms: int) -> dict:
        """Moves the clock to the absolute time ms."""
        return self.tick("TO", ms)

    @property
    def now(self) -> int:
        return self.info()["now"]
