"""The verbs by kind, and a call of each verb with its keys, for tests that run over all verbs."""

# Verbs of families: they name no keys.
KEYLESS = "ROUTE PARTITIONS NFETCH NINFO".split()
READS = "GET LIST PEEK LEN INFO GROUPS BATCHES CHILDREN LIMITS CONSUMERS EXPLAIN SCHEDULES ROUTE PARTITIONS NINFO".split()
WRITES = (
    "CREATE ALTER SEND MSEND GROUPPUSH FETCH MFETCH ACK ACKSEND NACK TOUCH TICK CANCEL RESCHEDULE UPDATE SIGNAL REDRIVE PURGE "
    "PAUSE RESUME GROUPSET LIMIT SCHEDULE UNSCHEDULE FIND NFETCH"
).split()
ADDS = "CREATE SEND MSEND GROUPPUSH ACKSEND SCHEDULE".split()
DRAINS = "FETCH MFETCH ACK NACK TOUCH TICK CANCEL SIGNAL PURGE RESUME UNSCHEDULE FIND NFETCH".split()
BLOCKS = "FETCH MFETCH NFETCH WAIT".split()
ALL = READS + WRITES + ["WAIT"]

# A call of each verb and the keys in it.
KEYS = [
    (("CREATE", "k"), ["k"]),
    (("CREATE", "k", "TTL", 5, "DEADTO", "RETRIES", "retries", "CLOCK", "MANUAL"), ["k", "RETRIES"]),
    (("ALTER", "k", "LEASE", 5), ["k"]),
    (("ALTER", "k", "deadto", "k2", "expired", "RETRIES", 5), ["k", "k2"]),
    (("ALTER", "k", "DEADTO", ""), ["k"]),
    (("ALTER", "k", "EVENTS", "DEADTO", "DEADTO", "EVENTS", "EVENTSLEN", 5), ["k", "DEADTO", "EVENTS"]),
    (("SEND", "k", "p"), ["k"]),
    (("SEND", "k", "ID", "ID", "k2", "REPLACE", "DELAY", 5), ["k"]),
    (("MSEND", "k", 2, "NUMKEYS", "3", "DELAY", 5), ["k"]),
    (("SEND", "k", "PARENT", "PARENT", "PARENT", "id", "CHILDREN", 2), ["k", "PARENT"]),
    (("SEND", "k", "p", "TYPE", "PARENT", "parent", "k2", "id", "ONDEAD", "GO"), ["k", "k2"]),
    (("MSEND", "k", 1, "PARENT", "PARENT", "k2", "id"), ["k", "k2"]),
    (("GROUPPUSH", "k", "{}", "GROUPBY", 1, "a"), ["k"]),
    (("FETCH", "k"), ["k"]),
    (("FETCH", "k", "ACK", 2, 1, 2, "BLOCK", 0), ["k"]),
    (("FETCH", "k", "CONSUMER", "c", "TOKEN", "ACK", "BIND", "GRACE", 5), ["k"]),
    (("MFETCH", 1, "k"), ["k"]),
    (("MFETCH", 3, "a", "COUNT", "c", "COUNT", 5, "BLOCK", 0), ["a", "COUNT", "c"]),
    (("ACK", "k", 1, 2, "RESULT", "r"), ["k"]),
    (("ACK", "k", 1, "RESULT", "APPLY", "APPLY", 2, "SET", "APPLY", "RESULT", "HSET", "k2", "f", "v"), ["k", "APPLY", "k2"]),
    (("FETCH", "k", "ACK", 1, 1, "APPLY", 1, "INCRBY", "k2", 1, "COUNT", 2), ["k", "k2"]),
    (("ACKSEND", "k", 1, "NEXT", "k", "p"), ["k", "k"]),
    (("ACKSEND", "k", 1, "APPLY", 1, "DEL", "k2", "NEXT", "k3", "p"), ["k", "k2", "k3"]),
    (
        ("ACKSEND", "k", 1, "RESULT", "NEXT", "next", "NEXT", "NEXT", "TYPE", "NEXT", "DELAY", 5, "NEXT", "b", "p"),
        ["k", "NEXT", "b"],
    ),
    (("ACKSEND", "k", 1, "SIGNAL", "NEXT", "SIGNAL", "id", "NEXT", "b", "p", "PARK", "SIGNAL", "c", "i", "t"), ["k", "NEXT", "b", "c"]),
    (("ACKSEND", "k", 1, "NEXT", "a", "p", "PARENT", "k2", "id", "NEXT", "b", "p"), ["k", "a", "k2", "b"]),
    (("NACK", "k", 1), ["k"]),
    (("TOUCH", "k", 5, 1), ["k"]),
    (("TICK", "a"), ["a"]),
    (("TICK", "a", "b"), ["a", "b"]),
    (("TICK", "a", "ADVANCE"), ["a", "ADVANCE"]),
    (("TICK", "a", "ADVANCE", 5), ["a"]),
    (("TICK", "a", "to", 5), ["a"]),
    (("TICK", "a", "b", "c"), ["a", "b", "c"]),
    (("TICK", "a", "ADVANCE", "c", "d"), ["a", "ADVANCE", "c", "d"]),
    (("GET", "k", "id"), ["k"]),
    (("LIST", "k", "dead"), ["k"]),
    (("FIND", "k", "dead", "ID", "k2", "DO", "PURGE"), ["k"]),
    (("PEEK", "k"), ["k"]),
    (("LEN", "k"), ["k"]),
    (("INFO", "k"), ["k"]),
    (("GROUPS", "k"), ["k"]),
    (("BATCHES", "k", "COUNT", 5), ["k"]),
    (("CHILDREN", "k", "id", "COUNT", 5), ["k"]),
    (("LIMITS", "k", "COUNT", 5), ["k"]),
    (("CONSUMERS", "k"), ["k"]),
    (("EXPLAIN", "k", "id"), ["k"]),
    (("WAIT", "k", "id", 5), ["k"]),
    (("CANCEL", "k", "a", "b"), ["k"]),
    (("RESCHEDULE", "k", "id", "AT", 5), ["k"]),
    (("UPDATE", "k", "id", "p"), ["k"]),
    (("SIGNAL", "k", "id", "DATA", "k2"), ["k"]),
    (("REDRIVE", "k", "ALL"), ["k"]),
    (("PURGE", "k"), ["k"]),
    (("PAUSE", "k"), ["k"]),
    (("RESUME", "k"), ["k"]),
    (("GROUPSET", "k", "g", "WEIGHT", 2), ["k"]),
    (("LIMIT", "k", "user-*", "CONCURRENCY", 2), ["k"]),
    (("SCHEDULE", "k", "n", "EVERY", 5, "PAYLOAD", "p"), ["k"]),
    (("UNSCHEDULE", "k", "n"), ["k"]),
    (("SCHEDULES", "k"), ["k"]),
]

# The words of a short call of each verb.
BASE = {words[0]: words[1:] for words, _ in reversed(KEYS)}
BASE |= {
    "FIND": ("k", "dead"), "ROUTE": ("family", 4, "group"), "PARTITIONS": ("family", 4), "NFETCH": ("family",), "NINFO": ("family",),
    "CHILDREN": ("k", "id"), "BATCHES": ("k",), "LIMITS": ("k",), "SIGNAL": ("k", "id"), "ALTER": ("k", "LEASE", 5),
    "GROUPPUSH": ("k", '{"a":1}', "GROUPBY", 1, "a"), "ACK": ("k", 1), "CANCEL": ("k", "a"), "TICK": ("k",),
    "RESCHEDULE": ("k", "id", "DELAY", 5),
}  # fmt: skip


def tokens(arguments, values: bool = False, named: bool = False) -> set:
    """The words of a command that are options, and those that are `values` of an option (`named`) if they are wanted."""
    found = set()
    for argument in arguments:
        token = argument.get(b"token")
        if token and (values or not (named and argument[b"type"] == b"pure-token")):
            found.add(token.decode().upper())
        found |= tokens(argument.get(b"arguments", []), values, bool(token) and argument[b"type"] == b"oneof")
    return found


def commands(wire) -> list:
    """All commands of the module except the internal ones."""
    names = wire.ok("COMMAND", "LIST", "FILTERBY", "MODULE", "dq")
    return sorted(name.decode().upper().removeprefix("DQ.") for name in names if name not in (b"dq.op", b"dq.ops"))


def options(wire, verb, values: bool = False) -> set:
    """The options of a command, as COMMAND DOCS has them."""
    [doc] = wire.ok("COMMAND", "DOCS", f"dq.{verb}").values()
    return tokens(doc[b"arguments"], values)
