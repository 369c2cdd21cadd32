"""MEMORY USAGE compared with the allocator: they agree within a twentieth for each kind of thing that a queue stores."""

import time

import pytest

from tests.harness.wire import Error
from tests.load.large_queues import FAR

# One doubling of the tables ago: they have the most room to spare, which must be reported, too.
MESSAGES = 15_000
# One FETCH takes at most 10,000 messages, so two FETCHes take all of them.
ALL = [["DQ.FETCH", "q", "COUNT", 10_000, "CONSUMER", "c"]] * 2
MOST_OFF = 0.05


def each(verb, *args):
    """One command for each message; `{n}` in an argument stands for the number of the message."""
    return lambda n: [f"DQ.{verb}", "q", *(str(arg).replace("{n}", str(n)) for arg in args)]


# The command that is sent for each message, and the operations on the queue afterwards.
SHAPES = {
    "plain": (each("SEND", "x" * 100), []),
    "empty payloads": (each("SEND", ""), []),
    "large payloads": (each("SEND", "x" * 3000), []),
    "odd sizes": (lambda n: ["DQ.SEND", "q", "x" * (n % 400)], []),
    "ids": (each("SEND", "x" * 60, "ID", "order:{n}"), []),
    "delayed": (each("SEND", "x" * 60, "DELAY", FAR), []),
    "ttl": (each("SEND", "x" * 60, "TTL", FAR), []),
    "choices": (each("SEND", "x" * 60, "RETRIES", 9, "PRIORITY", 3), []),
    "type and headers": (each("SEND", "x" * 60, "TYPE", "order", "HEADERS", 2, "trace", "{n}", "from", "here"), []),
    "a few groups": (lambda n: ["DQ.SEND", "q", "x" * 60, "GROUP", f"group:{n % 100}"], []),
    "groups of three": (lambda n: ["DQ.SEND", "q", "x" * 60, "GROUP", f"group:{n // 3}"], []),
    "groups of one": (each("SEND", "x" * 60, "GROUP", "group:{n}"), []),
    "groups with settings": (each("GROUPSET", "group:{n}", "WEIGHT", 3), []),
    "groups held by dead ones": (each("SEND", "", "GROUP", "group:{n}", "TTL", 1), ["over"]),
    "a group held by many": (each("SEND", "", "GROUP", "group", "TTL", 1), ["over"]),
    "schedules": (lambda n: ["DQ.SCHEDULE", "q", f"s{n % 1000}", "EVERY", FAR, "PAYLOAD", "x" * 60], []),
    "running": (each("SEND", "x" * 60), ALL),
    "dead": (each("SEND", "x" * 60, "TTL", 1), ["over"]),
    "failed attempts": (each("SEND", "x" * 60, "ERRORS", 3), ["nack"]),
    "finished": (each("SEND", "x" * 60), ["ack"]),
    "parked": (each("SEND", "", "PARK", "FOR", FAR), []),
    "parked by workers": (each("SEND", ""), ["park"]),
    "parked for ever": (each("SEND", ""), ["park for ever"]),
    "signals": (each("SEND", "", "ID", "order:{n}", "DELAY", FAR), ["signal"]),
    "reruns": (each("SEND", "", "ID", "order:{n}"), [*ALL, "rerun"]),
    "deduplication ids": (each("SEND", "", "ID", "order:{n}", "DEDUPID", "request:{n}", FAR), []),
    "notes": (each("SEND", ""), ["note"]),
    "results": (each("SEND", ""), ["result"]),
    "retries": (each("SEND", ""), ["nack"]),
    "a token a fetch": (each("SEND", ""), ["tokens"]),
    "a token a consumer": (each("SEND", ""), ["consumers"]),
    "effects of a token": (each("SEND", ""), ["effects"]),
    "consumers": (each("FETCH", "CONSUMER", "consumer:{n}" + "x" * 60), []),
    "paused groups": (each("PAUSE", "GROUP", "group:{n}"), []),
    "cron rules": (
        lambda n: ["DQ.SCHEDULE", "q", f"s{n % 1000}", "CRON", "*/5 1,2,3,4,5,6,7,8,9 * * *", "PAYLOAD", ""],
        [],
    ),
    "random delays": (lambda n: ["DQ.SEND", "q", "", "DELAY", FAR + n * 7919 % MESSAGES], []),
    "random times to live": (lambda n: ["DQ.SEND", "q", "", "TTL", FAR + n * 7919 % MESSAGES], []),
    "random scores": (lambda n: ["DQ.SEND", "q", "", "GROUP", f"g{n % 9}", "SCORE", n * 7919 % MESSAGES], []),
    "random priorities": (lambda n: ["DQ.SEND", "q", "", "PRIORITY", n * 7919 % 256 - 128], []),
    "long names of groups": (each("SEND", "", "GROUP", "g" * 500 + "{n}"), []),
    "groups with rates": (
        lambda n: ["DQ.GROUPSET", "q", f"group:{n}", "RATE", 9, "PER", FAR]
        if n < MESSAGES // 2
        else ["DQ.SEND", "q", "", "GROUP", f"group:{n - MESSAGES // 2}"],
        ALL,
    ),
    "groups with breakers": (
        each("SEND", "", "GROUP", "group:{n}"),
        [["DQ.ALTER", "q", "BREAKER", 9, "PER", FAR, "OPEN", 5], "nack"],
    ),
    "fair groups": (each("SEND", "", "GROUP", "group:{n}"), [["DQ.ALTER", "q", "FAIR", "TIME"], *ALL]),
    "parents": (each("SEND", "", "ID", "order:{n}", "CHILDREN", 2), []),
    "a parent of its own": (
        lambda n: ["DQ.SEND", "q", ""] + (["PARENT", "q", f"p{n - 1}"] if n % 2 else ["ID", f"p{n}", "CHILDREN", 1]),
        [],
    ),
    "a batch of its own": (each("SEND", "", "BATCH", "batch:{n}"), []),
    "batches of ten": (lambda n: ["DQ.SEND", "q", "", "BATCH", f"batch:{n // 10}"], []),
    "held by batches": (
        lambda n: ["DQ.SEND", "q", ""] + (["AFTER", f"b{n - 1}"] if n % 2 else ["BATCH", f"b{n}"]),
        [],
    ),
    "rules of limits": (each("LIMIT", "name:{n}", "CONCURRENCY", 5, "RATE", 7, "PER", FAR), []),
    "patterns": (lambda n: ["DQ.LIMIT", "q", f"name:{n % 1000}*{n % 1000}{'x' * 40}*", "CONCURRENCY", 5], []),
    "a limit of its own": (each("SEND", "", "LIMITS", 1, "name:{n}"), []),
    "eight long names": (each("SEND", "", "LIMITS", 8, *(f"{i}{'x' * 100}{{n}}" for i in range(8))), []),
    "names of a pattern that run": (
        each("SEND", "", "LIMITS", 1, "name:{n}"),
        [["DQ.LIMIT", "q", "name*", "CONCURRENCY", 5, "RATE", 7, "PER", FAR], *ALL],
    ),
    "a window of many": (each("SEND", "", "LIMITS", 1, "name"), ["window"]),
    "remembered ids": (each("SEND", "", "ID", "order:{n}"), ["ack", ["DQ.ALTER", "q", "RETAIN", 0], "pruned"]),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_memory_usage_is_what_was_allocated(make_server, shape):
    server = make_server()
    wire = server.wire(protocol=2, timeout=60)
    # The first round lets the buffers of the connection and the server grow, which must not be counted.
    make(wire, shape)
    wire.ok("DEL", "q")
    before = used(server)
    make(wire, shape)
    allocated = used(server) - before
    reported = wire.ok("MEMORY", "USAGE", "q", "SAMPLES", 0)
    message = f"reported {reported:,}, allocated {allocated:,} ({reported / allocated - 1:+.1%})"
    print(f"{shape}: {message}")
    assert abs(reported / allocated - 1) <= MOST_OFF, message


@pytest.mark.parametrize("shape", ["parked", "parked by workers", "parked for ever"])
def test_a_parked_message_takes_less_than_200_bytes_and_its_payload(make_server, shape):
    server = make_server()
    wire = server.wire(protocol=2, timeout=60)
    make(wire, shape)
    wire.ok("DEL", "q")
    before = used(server)
    make(wire, shape)
    each_takes = (used(server) - before) / MESSAGES
    print(f"{shape}: {each_takes:.0f} bytes a message")
    assert each_takes < 200


def test_each_of_many_children_takes_at_most_eight_bytes_more_than_any_message(make_server):
    server = make_server()
    wire = server.wire(protocol=2, timeout=60)
    taken = {}
    # The first round lets the buffers grow, as above.
    for options in ((), (), ("PARENT", "q", "parent")):
        wire.ok("DEL", "q")
        wire.ok("DQ.SEND", "q", "x", "ID", "parent", "CHILDREN", MESSAGES)
        before = used(server), wire.ok("MEMORY", "USAGE", "q")
        for _ in range(0, MESSAGES, 1000):
            wire.ok("DQ.MSEND", "q", 1000, *["x" * 20] * 1000, *options)
        taken[options] = used(server) - before[0], wire.ok("MEMORY", "USAGE", "q") - before[1]
    plain, children = taken.values()
    each = [(of_child - of_any) / MESSAGES for of_any, of_child in zip(plain, children)]
    print(f"a child takes {each[0]:.1f} bytes more, {each[1]:.1f} of them in MEMORY USAGE")
    assert max(each) <= 8


def make(wire, shape) -> None:
    """Creates the queue of this shape."""
    options = ["RETAIN", FAR, "RETAINCOUNT", 0, "LEASE", FAR, "DEDUP", FAR, "ONDEAD", "BLOCK"]
    wire.ok("DQ.CREATE", "q", *options)
    command, after = SHAPES[shape]
    in_thousands(wire, command)
    for step in after:
        if step == "ack":
            while got := wire.ok("DQ.FETCH", "q", "COUNT", 1000):
                wire.ok("DQ.ACK", "q", *[one[1] for one in got])
        elif step == "result":
            while got := wire.ok("DQ.FETCH", "q", "COUNT", 1000):
                in_all(wire, [["DQ.ACK", "q", one[1], "RESULT", "r" * 100] for one in got])
        elif step == "note":
            for fetch in ALL:
                got = wire.ok(*fetch)
                in_all(wire, [["DQ.TOUCH", "q", FAR, one[1], "NOTE", "n" * 100] for one in got])
        elif step == "tokens":
            in_thousands(wire, lambda n: ["DQ.FETCH", "q", "CONSUMER", f"c{n % 10}", "TOKEN", f"token:{n}"])
        elif step == "consumers":
            in_thousands(wire, lambda n: ["DQ.FETCH", "q", "CONSUMER", f"c{n}", "TOKEN", f"token:{n}"])
        elif step == "effects":
            effects = [word for i in range(100) for word in ("SADD", "set", str(i))]
            for fetch in ALL:
                got = wire.ok(*fetch)
                again = [["DQ.FETCH", "q", "CONSUMER", f"c{one[1] % 2000}", "TOKEN", "t", "ACK", 1, one[1], "APPLY", 100, *effects] for one in got]
                in_all(wire, again)
            wire.ok("DEL", "set")
        elif step == "window":
            wire.ok("DQ.LIMIT", "q", "name", "RATE", MESSAGES, "PER", FAR)
            in_thousands(wire, lambda n: ["DQ.FETCH", "q"])
        elif step == "nack":
            while got := wire.ok("DQ.FETCH", "q", "COUNT", 1000, "CONSUMER", "c"):
                wire.ok("DQ.NACK", "q", *[one[1] for one in got], "DELAY", FAR, "ERROR", "e" * 100)
        elif step in ("park", "park for ever"):
            parked = ["SILENT", "PARK"] + (["FOR", FAR] if step == "park" else [])
            while got := wire.ok("DQ.FETCH", "q", "COUNT", 1000, "CONSUMER", "c"):
                wire.ok("DQ.NACK", "q", *[one[1] for one in got], *parked)
        elif step in ("signal", "rerun"):
            sent = ("DQ.SIGNAL", "q", "order:{}", "DATA", "approved")
            if step == "rerun":
                sent = ("DQ.SEND", "q", "x" * 60, "ID", "order:{}", "REPLACE", "RERUN")
            in_thousands(wire, lambda n: [word.format(n) for word in sent])
        elif step == "pruned":
            while wire.ok("DQ.LEN", "q", "finished"):
                wire.ok("DQ.TICK", "q")
        elif step == "over":
            while wire.ok("DQ.LEN", "q", "dead") < MESSAGES:
                wire.ok("DQ.TICK", "q")
        else:
            wire.ok(*step)


def in_thousands(wire, command) -> None:
    """Sends the command of each message, a thousand at a time."""
    for start in range(0, MESSAGES, 1000):
        in_all(wire, [command(n) for n in range(start, start + 1000)])


def in_all(wire, commands) -> None:
    """Sends commands together."""
    wire.send_many(commands)
    replies = [wire.recv() for _ in commands]
    assert not [reply for reply in replies if isinstance(reply, Error)], replies


def used(server) -> int:
    """used_memory, once the buffers of closed connections and the rest that timers free are gone."""
    seen = [int(server.info("memory")["used_memory"])]
    while len(seen) < 3 or max(seen[-3:]) - min(seen[-3:]) > 4096:
        time.sleep(0.1)
        seen.append(int(server.info("memory")["used_memory"]))
    return seen[-1]
