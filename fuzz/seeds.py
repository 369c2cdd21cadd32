"""python fuzz/seeds.py (in the root of the repository): writes the first inputs of the fuzz targets.

Snapshots and log entries come from the log of a real server, so that they have everything that exists.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.harness.aof import commands, increments  # noqa: E402
from tests.harness.replies import Queue  # noqa: E402
from tests.harness.server import Server, wait_for  # noqa: E402
from tests.harness.traffic import FAR, Traffic, batches, hand_back, rich, waiting  # noqa: E402
from tests.harness.verbs import KEYS  # noqa: E402

CORPUS = Path(__file__).parent / "corpus"
# A chunk of a snapshot begins with its kind and whether it is the first.
CHUNK_HEAD = 2
# A log entry begins with its kind and form. The flags say whether it has steps of time, which come next.
KIND_BITS = 5
FLAGS = 8
STEPS = 1
MOST_STEPS = b"\xff\xff\xff\xff\x0f"

DOCUMENTS = [
    b'a b /c/d\n{"a":1,"b":"x","c":{"d":true}}',
    b'/a/0 /a/1\n{"a":[18446744073709551615,-1.5e300]}',
    b'/ /~0~1\n{"":"\\u0000\\ud83d\\ude00","~/":2302393013}',
    b'a\n{"a":null}',
    b"a\n" + b'{"a":' * 127 + b"1" + b"}" * 127,
    b"a\n" + b'{"a":' * 129 + b"1" + b"}" * 129,
    b'a\n{"a":1,"a":2,"b":1e400}',
    b'/a/b\n{"a":{"b":1e-5},"x":[[],{},"\\"\\\\"]}',
]


def put(target: str, number: int, data: bytes) -> None:
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed-{number:02}").write_bytes(data)


def log_of(work, **conf) -> list:
    """Returns the entries that some work leaves in the log, and the chunks of the snapshot that a rewrite makes of it."""
    server = Server(appendonly="yes", appendfsync="always", aof_use_rdb_preamble="no", **conf).start()
    try:
        work(server.client())
        # The log has commands of the server, too, such as XADD.
        records = [args[2] for args in commands(server) if args[0].upper() == b"DQ.OP"]
        client = server.client()
        client.execute_command("BGREWRITEAOF")
        wait_for(lambda: not client.info("persistence")["aof_rewrite_in_progress"], 20, "the rewriting")
        [base] = (server.dir / "appendonlydir").glob("*.base.aof")
        increments(server)
        return records, chunks(base.read_bytes())
    finally:
        server.close()


def chunks(data: bytes) -> list:
    """Returns the piece of the snapshot in each DQ.OP of a rewritten log."""
    found, at = [], 0
    while (at := data.find(b"DQ.OP\r\n", at)) >= 0:
        at += len(b"DQ.OP\r\n")
        for _ in range(2):
            end = data.index(b"\r\n", at)
            size = int(data[at + 1 : end])
            value, at = data[end + 2 : end + 2 + size], end + 2 + size + 2
        found.append(value[CHUNK_HEAD:])
    return found


def has_no_steps(record: bytes) -> bool:
    """Whether a log entry of the first form has neither steps of time nor the creation of the queue."""
    return record[0] >> KIND_BITS == 1 and record[FLAGS] & 3 == 0


def with_most_steps(record: bytes) -> bytes:
    """A log entry like that with more steps of time than a slice can take."""
    return record[:FLAGS] + bytes([record[FLAGS] | STEPS]) + MOST_STEPS + record[FLAGS + 1 :]


def line(wait: int, *words) -> bytes:
    return bytes([wait]) + b"\x1f".join(w if isinstance(w, bytes) else str(w).encode() for w in words) + b"\n"


def later(client) -> None:
    """The last operations of `rich`, alone, so that all of them fit into one input."""
    q = Queue(client, "q")
    q.do("CREATE", "CLOCK", "MANUAL", "RETAIN", 5000)
    q.send("running")
    q.running = q.one().receipt
    hand_back(q, 5000)
    batches(q, 5000)


def main() -> None:
    works = [
        lambda c: rich(c, "q"),
        lambda c: rich(c, "q", "SERVER"),
        lambda c: Traffic(c, "q", 1, "RETAIN", 500).run(60),
        lambda c: Traffic(c, "q", 2, "CLOCK", "MANUAL", "MAXLEN", 20).run(60),
        lambda c: c.execute_command("DQ.CREATE", "q"),
        later,
        lambda c: waiting(rich(c, "q"), FAR),
    ]
    for number, work in enumerate(works):
        records, snapshots = log_of(work)
        put("snapshot", number, b"".join(snapshots))
        put("log_entry", number, b"".join(bytes([len(r)]) + r for r in records if len(r) < 256)[:4000])
    hostile = with_most_steps(next(r for r in records if has_no_steps(r)))
    put("log_entry", len(works), bytes([len(hostile)]) + hostile)
    calls = [line(9, args[0], *args[1:]) for args, _ in KEYS]
    put("arguments", 0, b"m" + b"".join(calls))
    put("arguments", 1, b"s" + b"".join(calls[::-1]))
    for n in range(0, len(calls), 5):
        put("arguments", 2 + n // 5, b"s" + b"".join(calls[n : n + 5]))
    life = [
        line(0, "ALTER", "k", "RETRIES", 1, "LEASE", 5, "BACKOFF", "EXP", 3, "ONDEAD", "BLOCK", "DEDUP", 9, "RETAIN", 9),
        line(0, "ALTER", "k", "BREAKER", 1, "PER", 9, "OPEN", 3, "MAX", 9),
        line(0, "SEND", "k", "p", "ID", "a", "GROUP", "g", "SCORE", 1, "DELAY", 2, "TTL", 500, "HEADERS", 1, "f", "v"),
        line(0, "SEND", "k", "p", "ID", "b", "GROUP", "g", "PRIORITY", -3, "TYPE", "t", "RETRIES", -1),
        line(40, "FETCH", "k", "COUNT", 5, "PERGROUP", 2, "CONSUMER", "c"),
        line(9, "NACK", "k", 1700000000000001, "DELAY", 5),
        line(200, "FETCH", "k", "GROUP", "g"),
        line(0, "CANCEL", "k", "a", "b"),
        line(0, "GROUPSET", "k", "g", "WEIGHT", 2, "CONCURRENCY", 3, "RATE", 2, "PER", 50),
        line(9, "MSEND", "k", 3, "x", "y", "z", "GROUP", "g"),
        line(0, "PAUSE", "k", "GROUP", "g", "FOR", 20),
        line(90, "FETCH", "k", "COUNT", 9, "NOACK"),
        line(9, "FIND", "k", "dead", "ERROR", "*", "REV", "DO", "REDRIVE"),
        line(9, "REDRIVE", "k", "ALL"),
        line(255, "PURGE", "k", "STATE", "dead"),
        line(0, "SCHEDULE", "k", "n", "EVERY", 7, "PAYLOAD", "p", "MISSED", "ALL", "OVERLAP", "SKIP"),
        line(90, "FETCH", "k", "COUNT", 99),
    ]
    handed_back = [
        line(0, "CREATE", "k", "RETAIN", 99, "ONDEAD", "BLOCK"),
        line(0, "SEND", "k", "p", "GROUP", "g", "BATCH", "b", "RETAIN", 5),
        line(0, "SEND", "k", "p", "BATCH", "b", "EXPIREAT", 1700000000500),
        line(0, "SEND", "k", "p", "AFTER", "b", "ONFAIL", "GO", "BATCH", "c"),
        line(0, "SEND", "k", "p", "AFTER", "b", "ONFAIL", "DIE", "GROUP", "g"),
        line(0, "SEND", "k", "p", "AFTER", "c", "ID", "last"),
        line(0, "SEND", "k", "p", "GROUP", "g", "IFGROUP", "ID", "d", "DELAY", 9, "REPLACE", "MAXWAIT", 20),
        line(9, "FETCH", "k", "CONSUMER", "c", "TOKEN", "t", "BIND", "GRACE", 50, "COUNT", 2, "LEASE", 90),
        line(0, "CLOSE", "k"),
        line(9, "FETCH", "k", "CONSUMER", "c", "TOKEN", "t"),
        line(0, "TOUCH", "k", 500, "~", "NOTE", "half"),
        line(0, "ACKSEND", "k", "~", "RESULT", "r", "NEXT", "k", "q", "BATCH", "b", "NEXT", "k", "q", "ID", "n"),
        line(9, "FETCH", "k"),
        line(0, "NACK", "k", "~", "SILENT", "DELAY", 9, "NOTE", "n", "PAUSE", "QUEUE", 5),
        line(90, "FETCH", "k", "COUNT", 3),
        line(0, "NACK", "k", "~", "FATAL", "ERROR", "e"),
        line(9, "FETCH", "k", "COUNT", 9, "ACK", 1, "~", "RESULTS", 1, "r"),
        line(0, "LIST", "k", "held", "REV"),
        line(0, "BATCHES", "k", "COUNT", 5),
        line(0, "FIND", "k", "held", "BATCH", "c", "SINCE", 1, "UNTIL", 1800000000000, "DO", "CANCEL"),
        line(255, "FIND", "k", "dead", "HEADER", "f", "v", "PAYLOAD", "*p*", "TYPE", "t", "ID", "*", "DO", "REDRIVE"),
        line(0, "PURGE", "k"),
    ]
    wrong_clocks = [
        line(0, "CREATE", "k", "RETAIN", 99, "BACKOFF", "FIXED", 50),
        line(0, "SCHEDULE", "k", "n", "EVERY", 70, "PAYLOAD", "p"),
        line(0, "MSEND", "k", 3, "x", "y", "z", "GROUP", "g", "DELAY", 30),
        line(0, "SEND", "k", "p", "AT", 1700000100000, "GROUP", "g", "ID", "at"),
        line(0, "SEND", "k", "now"),
        line(40, "FETCH", "k", "LEASE", 20, "COUNT", 2),
        line(0, "STAND", "k", 30),
        line(0, "TOUCH", "k", 500, "~"),
        line(0, "CLOCK", "k", 200000),
        line(9, "FETCH", "k", "COUNT", 9, "LEASE", 90000),
        line(0, "NACK", "k", "~"),
        line(0, "PAUSE", "k", "GROUP", "g", "FOR", 20),
        line(0, "CLOCK", "k", -150000),
        line(9, "FETCH", "k"),
        line(0, "CLOCK", "k", -30000),
        line(40, "FETCH", "k", "COUNT", 9),
        line(0, "CLOCK", "k", 259200000),
        line(0, "SEND", "k", "p"),
        line(0, "CLOCK", "k", -259200000),
        line(9, "FETCH", "k", "ACK", 1, "~"),
    ]
    shares = [
        line(0, "CREATE", "k", "FAIR", "COST", "RETAIN", 99, "RETRIES", 0, "DEADTO", "dead"),
        line(0, "LIMIT", "k", "api-*", "CONCURRENCY", 2, "RATE", 5, "PER", 50),
        line(0, "SEND", "k", "p", "ID", "a", "GROUP", "g", "COST", 3, "LIMITS", 2, "api-x", "api-y"),
        line(0, "SEND", "k", "p", "ID", "b", "GROUP", "h", "COST", 9007199254740991, "LIMITS", 1, "api-x"),
        line(0, "SEND", "k", "p", "ID", "parent", "CHILDREN", 2),
        line(0, "SEND", "k", "p", "ID", "c", "PARENT", "k", "parent", "ONDEAD", "DIE"),
        line(0, "SEND", "k", "p", "ID", "d", "PARK", "FOR", 500),
        line(9, "FETCH", "k", "COUNT", 3, "LEASE", 20),
        line(0, "SEND", "k", "q", "ID", "a", "REPLACE", "RERUN", "COST", 2),
        line(0, "SIGNAL", "k", "d", "DATA", "x"),
        line(0, "ACK", "k", "~", "COST", 7),
        line(0, "CHILDREN", "k", "parent"),
        line(0, "LIMITS", "k", "COUNT", 5),
        line(90, "FETCH", "k", "COUNT", 9),
        line(0, "EXPLAIN", "k", "b"),
        line(0, "SCHEDULES", "k", "PAUSE", "n"),
    ]
    put("arguments", 55, b"s" + b"".join(shares))
    put("arguments", 56, b"m" + b"".join(shares))
    put("arguments", 54, b"s" + b"".join(wrong_clocks))
    put("arguments", 52, b"s" + b"".join(handed_back))
    put("arguments", 53, b"m" + b"".join(handed_back))
    put("arguments", 50, b"s" + b"".join(life))
    put("arguments", 51, b"m" + b"".join(life))
    for number, document in enumerate(DOCUMENTS):
        put("json", number, document)


if __name__ == "__main__":
    main()
