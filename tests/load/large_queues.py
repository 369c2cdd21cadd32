"""Queues of millions of messages, made fast, and consumers that wait for them."""

import resource
import time

from tests.harness.wire import Error, encode

BATCH = 1000
PAYLOAD = b"x" * 100
FAR = 86_400_000


def fill(server, key, messages: int, *options, batch: int = BATCH) -> None:
    """Sends this number of messages of 100 bytes, `batch` in a command, all with these options."""
    left = messages
    with server.wire(protocol=2, timeout=600) as wire:
        whole = encode(["DQ.MSEND", key, batch, *[PAYLOAD] * batch, *options])
        while left:
            n = min(left, batch)
            wire.sock.sendall(whole if n == batch else encode(["DQ.MSEND", key, n, *[PAYLOAD] * n, *options]))
            reply = wire.recv()
            assert not isinstance(reply, Error) and len(reply) == n, reply
            left -= n


def fill_groups(server, key, groups: int, each: int) -> None:
    """Sends a number of messages of 100 bytes to each of a number of groups."""
    with server.wire(protocol=2, timeout=600) as wire:
        for first in range(0, groups, BATCH):
            some = range(first, min(first + BATCH, groups))
            commands = [encode(["DQ.MSEND", key, each, *[PAYLOAD] * each, "GROUP", f"g{n}"]) for n in some]
            wire.sock.sendall(b"".join(commands))
            for _ in some:
                reply = wire.recv()
                assert not isinstance(reply, Error) and len(reply) == each, reply


def until(condition, timeout: float = 300) -> None:
    """Checks every 50 ms, so that the checks are no load."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"it did not come about in {timeout} s"
        time.sleep(0.05)


def freed(server) -> None:
    """Returns when no thread of the server has anything left to free."""
    until(lambda: int(server.info("memory")["lazyfree_pending_objects"]) == 0)


def raise_limit(files: int) -> None:
    """Lets this process and the servers that it starts have this number of files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard == resource.RLIM_INFINITY or files <= hard, f"no more than {hard} files may be open here: --crowd"
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def waiting(server, key, consumers: int) -> list:
    """Connections that are blocked in FETCH."""
    wires = [server.wire(protocol=2, timeout=60) for _ in range(consumers)]
    for wire in wires:
        wire.send("DQ.FETCH", key, "BLOCK", 0)
    server.wait_blocked(consumers, timeout=60)
    return wires
