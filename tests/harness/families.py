"""The family `f`: its queues, its deliveries, and the clients that wait at it."""

import binascii

from tests.harness.replies import msgs


def slot(tag):
    return binascii.crc_hqx(str(tag).encode(), 0) % 16384


def tag(partition, partitions):
    size = 16384 // partitions
    return next(n for n in range(10**6) if slot(n) // size == partition)


def nfetch(w, *options):
    """The key and the payloads of a delivery by NFETCH, or None."""
    reply = w.ok("DQ.NFETCH", "f", *options)
    return None if reply is None else (reply[0].decode(), [m.payload for m in msgs(reply[1])])


def key(n):
    return "f:{%d}" % n


def send(w, n, *payloads):
    for payload in payloads:
        w.ok("DQ.SEND", key(n), payload)


def waiter(server, *options, protocol=3, auth=None):
    w = server.wire(protocol)
    if auth:
        w.ok("AUTH", *auth)
    before = int(server.info("clients")["blocked_clients"])
    w.send("DQ.NFETCH", "f", "BLOCK", 0, *options)
    server.wait_blocked(before + 1)
    return w


def got(w):
    reply = w.recv()
    return reply[0].decode(), [m.payload for m in msgs(reply[1])]
