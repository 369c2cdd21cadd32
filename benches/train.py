#!/usr/bin/env python3
"""Puts a typical load on an instrumented module, so that the compiler learns which of its code is hot.

    benches/train.py [--module PATH] [--redis-server PATH] [--generator PATH]

`make build-pgo` runs it. The more time a command takes here, the more it counts. Most of the load is one message at a
time, sent, fetched and acked. Then come batches, delays and groups, and a little of failures and queries.
"""

import os
import time

import redis
from bench import parser
from generator import Generator, Step
from server import CLIENT_CORE, Server

MESSAGES = 50_000
GROUPS = 20_000
SOON = "{rand:1:300}"
SOON_S = 0.35

SEND = "DQ.SEND q {payload}"
SEND_TO_GROUP = f"DQ.SEND q {{payload}} GROUP g{{rand:1:{GROUPS}}}"
FETCH_ACK = [Step("DQ.FETCH q", "receipts"), Step("DQ.ACK q {taken}")]
FETCH_AND_ACK = [Step("DQ.FETCH q [ ACK {count} {taken} ]", "receipts")]
TENS = [Step("DQ.FETCH q COUNT 10 [ ACK {count} {taken} ]", "receipts")]

ROUNDS = [
    (SEND, FETCH_ACK, 1),
    (SEND, FETCH_AND_ACK, 1),
    (SEND_TO_GROUP, FETCH_ACK, 1),
    (SEND_TO_GROUP, FETCH_AND_ACK, 1),
    (f"DQ.SEND q {{payload}} DELAY {SOON}", FETCH_AND_ACK, 1),
    ("DQ.MSEND q 10 {payload:10}", TENS, 10),
    (f"DQ.MSEND q 10 {{payload:10}} DELAY {SOON}", TENS, 10),
]
"""The command that sends, the commands that fetch and ack, and the messages of each command."""

SELDOM = [
    ("DQ.SEND q {payload} ID {uuid} PRIORITY {rand:0:9} RETRIES 3 BACKOFF EXP 10 TYPE t", ""),
    ("DQ.SEND q {payload} DELAY {rand:100000:900000} HEADERS 1 trace {uuid}", "bulk"),
    ("DQ.RESCHEDULE q {taken} DELAY 200000", ""),
    ("DQ.GET q {taken}", ""),
    ("DQ.CANCEL q {taken}", ""),
    ("DQ.FETCH q CONSUMER c{conn} LEASE 60000", "receipts"),
    ("DQ.TOUCH q 60000 {taken}", ""),
    ("DQ.NACK q {taken} DELAY 1 ERROR later", ""),
    ("DQ.FETCH q CONSUMER c{conn} WITHMETA", "receipts"),
    ("DQ.NACK q {taken} FATAL", ""),
    ("DQ.FETCH q NOACK", ""),
    ("DQ.LEN q", ""),
    ("DQ.INFO q", ""),
]
"""Templates of commands that are used less, and the parts of their replies that the next commands use."""
SELDOM_TIMES = 2_000


def work(generator, server):
    """Does the whole load once."""
    for send, takes, batch in ROUNDS:
        generator.run(server, [Step(send)], MESSAGES // batch)
        if "DELAY" in send:
            time.sleep(SOON_S)
        generator.run(server, takes, MESSAGES // batch)
        server.empty()
    generator.run(server, [Step(template, take) for template, take in SELDOM], SELDOM_TIMES * len(SELDOM))
    server.client.execute_command("DQ.REDRIVE", "q", "ALL")
    with server.client.pipeline(transaction=False) as events:
        for number in range(SELDOM_TIMES):
            event = f'{{"user": {{"name": "someone", "id": {number % 100}}}, "amount": {number}}}'
            events.execute_command("DQ.GROUPPUSH", "q", event, "GROUPBY", 1, "/user/id")
        events.execute()
    generator.lateness(server, "waited-for", MESSAGES // 10, seconds=1, consumers=50)


def end(server):
    """Shuts the server down in an orderly way: the counters are written when it ends."""
    try:
        server.client.shutdown(nosave=True)
    except redis.exceptions.ConnectionError:
        pass
    server.process.wait()


def main():
    chosen = parser(__doc__.splitlines()[0]).parse_args()
    os.sched_setaffinity(0, {CLIENT_CORE})
    generator = Generator(chosen.generator.resolve())
    modules = [chosen.module.resolve()]
    for aof in (False, True):
        with Server(chosen.redis_server, modules, aof=aof) as server:
            work(generator, server)
            generator.run(server, [Step(SEND)], MESSAGES)
            server.client.save()
            with Server(chosen.redis_server, modules, dump=server.dir / "dump.rdb") as loaded:
                end(loaded)
            end(server)


if __name__ == "__main__":
    main()
