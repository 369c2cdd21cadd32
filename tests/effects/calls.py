"""python -m tests.effects.calls --calls 1000000: random calls with APPLY, against a model and a server without the module.

The second server is of the same engine. It runs the plain commands of each call that was done, and the one that was at
fault of each call that was refused, and its replies must be the same. From time to time all keys of both servers and of
the model are compared. The exit status is 1 at the first difference.
"""

import argparse
import random
import sys
import time
from collections import Counter

from tests.effects.model import (
    ANY_ID,
    FORBIDDEN,
    GREATEST,
    GROWS,
    PLAIN,
    QUEUE,
    STREAM,
    Model,
    Stream,
    random_condition,
    random_effect,
    words_of,
)
from tests.harness.server import Server
from tests.harness.wire import Error

BATCH = 250
"""Calls of one pipeline."""
# How a plain command says what APPLY gives a code.
SAYS = {
    "WRONGTYPE": ("WRONGTYPE",),
    "NOTNUMBER": ("not an integer", "NaN"),
    "OVERFLOW": ("overflow", "equal or smaller", "exhausted"),
    "NOPERM": ("NOPERM",),
    "OOM": ("OOM",),
}


class Differs(AssertionError):
    """The servers or the model are not of one opinion."""


class Both:
    """The server with the module and the plain one."""

    def __init__(self, seed):
        self.rng, self.model, self.outcomes = random.Random(seed), Model(), Counter()
        self.server, self.plain = Server().start(), Server(load_module=False).start()
        self.wires = {False: self.open(), True: self.open("limited")}
        self.receipts, self.stale = [], []
        self.wires[False][0].ok("DQ.SEND", QUEUE, "x")

    def open(self, user=None):
        wires = [self.server.wire(), self.plain.wire()]
        for wire in wires if user else ():
            forbidden = [f"-{verb.lower()}" for verb in sorted(FORBIDDEN)]
            wire.ok("ACL", "SETUSER", user, "on", "nopass", "allkeys", "allchannels", "+@all", *forbidden)
            wire.ok("AUTH", user, "x")
        return wires

    def close(self):
        self.server.close()
        self.plain.close()

    def batch(self):
        """One pipeline of calls."""
        self.disturb()
        self.fetch()
        is_limited, is_full = self.rng.random() < 0.1, self.rng.random() < 0.05
        of_dq, of_plain = self.wires[is_limited]
        self.bound(1 if is_full else 0)
        calls = [self.draw(is_limited, is_full) for _ in range(BATCH)]
        of_dq.send_many([call.words for call in calls])
        for call in calls:
            self.read(call, of_dq.recv())
        plain = [(call, command, expected) for call in calls for command, expected in call.plainly()]
        of_plain.send_many([command for _, command, _ in plain])
        for call, command, expected in plain:
            reply = of_plain.recv()
            if not expected(reply):
                raise Differs(f"{call.words}: {call.reply}, and {command}: {reply}")
        self.bound(0)

    def bound(self, most):
        for wire in self.wires[False]:
            wire.ok("CONFIG", "SET", "maxmemory", most)

    def fetch(self):
        """Enough messages that run."""
        wire = self.wires[False][0]
        wire.send_many([("DQ.SEND", "q", "x")] * BATCH)
        for _ in range(BATCH):
            wire.recv()
        messages = wire.ok("DQ.FETCH", "q", "COUNT", BATCH, "LEASE", 3_600_000)
        self.receipts += [message[1] for message in messages]

    def disturb(self):
        """Plain commands that change what the keys hold."""
        rng, both, key = self.rng, self.wires[False], self.rng.choice(PLAIN)
        for command in ([["DEL", key]], [["DEL", key], ["RPUSH", key, "v"]], [["SET", key, "text"]])[rng.randrange(3)]:
            replies = [wire.ok(*command) for wire in both]
            if replies != [self.model.do(*command)] * 2:
                raise Differs(f"{command}: {replies}")
        if rng.random() < 0.3:
            left = rng.randrange(3)
            for wire in both:
                wire.ok("DEL", STREAM)
                wire.ok("XADD", STREAM, f"{GREATEST}-{GREATEST - left}", "f", "v")
            self.model.drop(STREAM)
            self.model.keys[STREAM] = Stream(1, left)

    def draw(self, is_limited, is_full):
        rng = self.rng
        effects = [random_effect(rng) for _ in range(rng.randint(1, 4))]
        conditions = [random_condition(rng) for _ in range(rng.randint(1, 2))] if rng.random() < 0.15 else []
        is_current = rng.random() < 0.95 or not self.stale
        receipt = self.receipts[-1] if is_current else rng.choice(self.stale)
        wanted = self.model.call(effects, conditions, is_current, is_limited, is_full)
        if is_current and isinstance(wanted, list):
            self.stale = [*self.stale[-20:], self.receipts.pop()]
        # A server at maxmemory refuses all of ACKSEND.
        verb = rng.choice(("ACK", "ACK", "ACK", "FETCH", "ACKSEND")[: 4 if is_full else 5])
        return Call(verb, receipt, effects, conditions, wanted)

    def read(self, call, reply):
        """Compares a reply with the model's."""
        messages = []
        if isinstance(reply, list) and call.verb != "ACK":
            reply, more = reply
            messages = more if call.verb == "FETCH" else []
        self.receipts[:0] = [message[1] for message in messages]
        call.reply, wanted = reply, call.wanted
        if isinstance(wanted, list):
            is_same = isinstance(reply, list) and len(reply) == len(wanted)
            is_same = is_same and all(one is ANY_ID or one == other for one, other in zip(wanted, reply))
            self.outcomes["applied"] += 1
        elif wanted is None:
            is_same = reply is None
            self.outcomes["stale"] += 1
        else:
            is_same = isinstance(reply, Error) and reply.startswith(wanted)
            self.outcomes[" ".join(wanted.split()[: 2 if wanted.startswith("ERR") else 1])] += 1
        if not is_same:
            raise Differs(f"{call.words}: {reply}, and the model: {wanted}")

    def compare(self):
        """Compares all keys of both servers and the model."""
        both = self.wires[False]
        for key in PLAIN:
            digests = [wire.ok("DEBUG", "DIGEST-VALUE", key) for wire in both]
            expire = [wire.ok("PTTL", key) > 0 for wire in both]
            if digests[0] != digests[1] or expire != [key in self.model.expiring] * 2:
                raise Differs(f"{key}: {digests}, expires: {expire}")
            held, wanted = self.held(both[0], key), self.model.keys.get(key)
            wanted = {list: len, Stream: lambda stream: stream.length}.get(type(wanted), lambda value: value)(wanted)
            if held != wanted:
                raise Differs(f"{key} holds {held}, and in the model {wanted}")

    def held(self, wire, key):
        text = bytes.decode
        match wire.ok("TYPE", key):
            case b"string":
                return text(wire.ok("GET", key))
            case b"hash":
                return {text(field): text(value) for field, value in wire.ok("HGETALL", key).items()}
            case b"set":
                return set(map(text, wire.ok("SMEMBERS", key)))
            case b"zset":
                return {text(member): score for member, score in wire.ok("ZRANGE", key, 0, -1, "WITHSCORES")}
            case b"list":
                return wire.ok("LLEN", key)
            case b"stream":
                return wire.ok("XLEN", key)
        return None


class Call:
    """One acknowledgement with effects."""

    def __init__(self, verb, receipt, effects, conditions, wanted):
        self.verb, self.effects, self.conditions, self.wanted = verb, effects, conditions, wanted
        receipts = ("ACK", 1, receipt) if verb == "FETCH" else (receipt,)
        follows = ("NEXT", "q", "x") if verb == "ACKSEND" else ("LEASE", 3_600_000) if verb == "FETCH" else ()
        self.words = [f"DQ.{verb}", "q", *receipts, *words_of(effects, conditions), *follows]
        self.reply = None

    def plainly(self):
        """The plain commands that must agree with this call, each with what its reply must be."""
        if self.reply is None:
            return
        if isinstance(self.reply, list):
            yield from map(self.condition, self.conditions)
            for effect, reply in zip(self.effects, self.reply):
                yield plain(effect, reply), lambda said, reply=reply: said == reply
            return
        code, number = (self.reply.split() + [""])[:2]
        if code == "CONDITION":
            yield from (self.condition(condition) for condition in self.conditions[: int(number) - 1])
            command, holds = self.condition(self.conditions[int(number) - 1])
            yield command, lambda said: not holds(said)
        elif code == "OOM":
            yield plain(next(effect for effect in self.effects if effect[0] in GROWS)), is_error(code)
        elif code in SAYS:
            at = int(number) - 1
            effect = self.effects[at]
            if effect[1] not in (QUEUE, "q") and all(other[:2] != effect[:2] for other in self.effects[:at]):
                yield plain(effect), is_error(code)

    def condition(self, condition):
        match condition:
            case ["EXISTS", key]:
                return ("EXISTS", key), lambda said: said == 1
            case ["MISSING", key]:
                return ("EXISTS", key), lambda said: said == 0
        _, key, text = condition
        return ("GET", key), lambda said: said == text.encode()


def plain(effect, reply=b"*"):
    """The plain command of an effect. XADD gets the id that the other server has given."""
    verb, key, *words = effect
    if verb != "XADD":
        return effect
    bound = ("MAXLEN", words[-1]) if "MAXLEN" in words else ()
    return [verb, key, *bound, reply, *words[:2]]


def is_error(code):
    return lambda said: isinstance(said, Error) and any(text in said for text in SAYS[code])


def run(calls, seed) -> Counter:
    """Does so many random calls, at least. Returns how many came to what."""
    both = Both(seed)
    try:
        for number in range(-(-calls // BATCH)):
            try:
                both.batch()
                if number % 20 == 0:
                    both.compare()
            except Differs as difference:
                raise Differs(f"seed {seed}, batch {number}: {difference}") from None
        both.compare()
        return both.outcomes
    finally:
        both.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.effects.calls", description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000, help="how many (default %(default)s)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="where the random numbers start")
    args = parser.parse_args()
    began = time.monotonic()
    try:
        outcomes = run(args.calls, args.seed)
    except Differs as difference:
        print(difference)
        return 1
    for outcome, count in outcomes.most_common():
        print(f"{outcome:<16}{count:>10}")
    print(f"{sum(outcomes.values())} calls, seed {args.seed}: 0 differences, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
