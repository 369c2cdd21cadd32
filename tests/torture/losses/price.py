"""The cost of a confirmed send, without any fault: alone, and with fifty clients at a time."""

import asyncio
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from dqueue import Durable
from dqueue.asyncio import Queue, connect

from tests.harness.wire import Wire
from tests.torture.losses.rows import Row
from tests.torture.losses.traffic import Confirm

CLIENTS = 50
# The time for which each of the two figures is measured, in seconds.
SPAN = 3.0


@dataclass
class Price:
    alone: float
    """How long one client waits for one send, in ms: the median."""
    rate: float
    """Sends a second of fifty clients, each of which sends one message at a time."""


def price(row: Row) -> Price:
    with tempfile.TemporaryDirectory(prefix="dq-losses-") as folder:
        place = row.place(Path(folder), 1, row.settings)
        try:
            place.open()
            if row.durable:
                alone = asyncio.run(sends(place.port, row.durable, 1))
                many = asyncio.run(sends(place.port, row.durable, CLIENTS))
                return Price(statistics.median(alone) * 1000, CLIENTS * len(many) / sum(many))
            wires = [Wire(place.primary.port, protocol=2, timeout=30) for _ in range(CLIENTS)]
            alone = turns(wires[:1], row.confirm)
            many = turns(wires, row.confirm)
            for wire in wires:
                wire.close()
        finally:
            place.close()
    return Price(statistics.median(alone) * 1000, CLIENTS * len(many) / sum(many))


async def sends(port: int, durable: Durable, clients: int) -> list:
    """The time of each send, by a number of clients of the Python package at the same time."""
    client, took, end = connect(f"redis://127.0.0.1:{port}"), [], time.monotonic() + SPAN
    queue = Queue(client, "price", durable=durable)

    async def send_on() -> None:
        while True:
            begun = time.monotonic()
            await queue.send("payload")
            took.append(time.monotonic() - begun)
            if time.monotonic() > end:
                return

    await asyncio.gather(*(send_on() for _ in range(clients)))
    await client.aclose()
    return took


def turns(wires: list, confirm: Confirm) -> list:
    """The time of each turn, in which every client sends one message and waits until it is confirmed."""
    commands = [["DQ.SEND", "price", b"payload"], *([confirm.words] if confirm.words else ())]
    took, end = [], time.monotonic() + SPAN
    while not took or time.monotonic() < end:
        begun = time.monotonic()
        for wire in wires:
            wire.send_many(commands)
        for wire in wires:
            replies = [wire.recv() for _ in commands]
            assert not confirm.words or confirm.holds(replies[-1]), replies
        took.append(time.monotonic() - begun)
    return took
