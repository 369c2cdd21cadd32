"""The names of consumers for DQ.CONSUMERS: one for each process, and one for each of its workers."""

import itertools
import os
import socket
from collections import defaultdict
from collections.abc import Iterator

_numbers: defaultdict[int, Iterator[int]] = defaultdict(lambda: itertools.count(1))


def worker_name() -> str:
    """Returns a name for DQ.CONSUMERS that no other worker of this process has. The first has that of the process."""
    # A process that was forked counts anew.
    number = next(_numbers[os.getpid()])
    return consumer_name() if number == 1 else f"{consumer_name()}:{number}"


def consumer_name() -> str:
    """Returns the name of this process for DQ.CONSUMERS."""
    return f"{socket.gethostname()}:{os.getpid()}"
