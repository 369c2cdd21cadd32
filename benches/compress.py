"""What COMPRESS saves and costs, for payloads as frameworks send them: `python -m benches.compress --messages N`.

Each kind is sent twice to an empty server, with COMPRESS OFF and ON, and its messages wait. A line has, a message:

- payload: its bytes as they were sent
- rss, usage: bytes of the server's memory, and of the queue by MEMORY USAGE
- saving: bytes of memory at the peak of a BGSAVE under traffic
- saved: bytes of the snapshot, which is also what a full synchronisation carries
- cpu: microseconds of the server until all is sent, and packed
- send, fetch: microseconds of a command, in the best of many bulks; what is fetched has waited

and of the whole the seconds to load it, the longest slice of the server in microseconds, and the part of the payloads that is
packed. A busy machine changes the times, and not the bytes.
"""

import argparse
import json
import os
import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import kombu.transport.memory
from celery import Celery
from kombu.utils.json import dumps

from tests.harness.server import Server, wait_for

HOURS = 7_200_000
# When the messages are due that are fetched. The others wait longer, each another time.
SOONER = 3_600_000
BULK = 1000
# The bytes of payloads that may wait to be packed while more are sent.
UNPACKED = 1 << 30
FETCHED = 20_000
# The SENDs whose cost is measured, and how many go by between two looks at what is packed.
MEASURED = 100_000
PAUSED = 50_000
# From so many messages on their packing is hurried.
MANY = 5_000_000
TASKS = ["mail.send_reminder", "orders.expire_cart", "billing.retry_charge", "push.notify", "reports.build", "search.reindex"]
# As many messages are made by Celery itself. The others are these with other ids, times and numbers.
BY_CELERY = 2000


def arguments(draw: random.Random) -> tuple[list, dict]:
    person = draw.randint(1, 5_000_000)
    match draw.randint(0, 9):
        case 0 | 1 | 2 | 3 | 4:
            return [person], {}
        case 5 | 6 | 7:
            return [person, draw.choice(["email", "sms", "push"])], {"locale": draw.choice(["de", "en", "fr", "pt"])}
        case _:
            return [], {"order_id": draw.randint(1, 9**9), "customer": person, "amount": round(draw.random() * 300, 2)}


def celery_messages(draw: random.Random) -> list[dict]:
    """Messages as Celery gives them to a transport, which writes them as JSON."""
    made: list[dict] = []
    kombu.transport.memory.Channel._put = lambda channel, queue, message, **options: made.append(message)
    app = Celery("shop", broker="memory://", set_as_current=False)
    for task in (app.signature(f"shop.{draw.choice(TASKS)}") for _ in range(BY_CELERY)):
        args, kwargs = arguments(draw)
        task.apply_async(args, kwargs, countdown=draw.randint(60, 1_000_000), ignore_result=True)
    return made


def celery(draw: random.Random) -> Iterator[tuple[str, bytes]]:
    """Ids and payloads of tasks."""
    made = [(message, dumps(message)) for message in celery_messages(draw)]
    start = datetime.now(UTC)
    while True:
        message, text = draw.choice(made)
        task, tag = (str(uuid.UUID(int=draw.getrandbits(128), version=4)) for _ in range(2))
        eta = (start + timedelta(microseconds=draw.randint(10**8, 10**12))).isoformat()
        text = text.replace(message["headers"]["id"], task).replace(message["properties"]["delivery_tag"], tag)
        yield tag, text.replace(message["headers"]["eta"], eta).encode()


def named(payload: Callable[[random.Random, str], object]) -> Callable[[random.Random], Iterator[tuple[str, bytes]]]:
    def all_of(draw: random.Random) -> Iterator[tuple[str, bytes]]:
        while True:
            name = str(uuid.UUID(int=draw.getrandbits(128), version=4))
            made = payload(draw, name)
            yield name, made if isinstance(made, bytes) else json.dumps(made).encode()

    return all_of


def bullmq(draw: random.Random, name: str) -> object:
    args, kwargs = arguments(draw)
    options = {"attempts": 3, "delay": draw.randint(1, 10**8), "backoff": {"type": "exponential", "delay": 1000}}
    return {"name": draw.choice(TASKS), "data": {"args": args, **kwargs, "trace": name}, "opts": options}


def laravel(draw: random.Random, name: str) -> object:
    job = "App\\Jobs\\" + draw.choice(["SendReminder", "ExpireCart", "RetryCharge"])
    command = f'O:{len(job)}:"{job}":2:{{s:4:"user";i:{draw.randint(1, 5_000_000)};s:5:"queue";s:7:"default";}}'
    options = {"maxTries": None, "maxExceptions": None, "failOnTimeout": False, "backoff": None, "timeout": None}
    call = {"job": "Illuminate\\Queue\\CallQueuedHandler@call", "data": {"commandName": job, "command": command}}
    return {"uuid": name, "displayName": job, **call, **options, "retryUntil": None, "id": name[:8], "attempts": 0}


def sidekiq(draw: random.Random, name: str) -> object:
    job = {"retry": True, "queue": "default", "class": draw.choice(["ReminderJob", "ExpireCartJob", "RetryChargeJob"])}
    at = round(1_790_000_000 + draw.random() * 10**6, 6)
    return {**job, "args": arguments(draw)[0], "jid": name.replace("-", "")[:24], "created_at": at, "enqueued_at": at}


def order(draw: random.Random, name: str) -> object:
    lines = [{"sku": f"A-{draw.randint(1, 9999):05}", "count": draw.randint(1, 5)} for _ in range(draw.randint(1, 4))]
    customer = {"id": draw.randint(1, 5_000_000), "country": draw.choice(["DE", "FR", "US"]), "newsletter": False}
    return {"order": name, "customer": customer, "lines": lines, "currency": "EUR", "total": round(draw.random() * 900, 2)}


KINDS = {
    "Celery": celery,
    "BullMQ": named(bullmq),
    "Laravel": named(laravel),
    "Sidekiq": named(sidekiq),
    "orders": named(order),
    "random bytes": named(lambda draw, name: draw.randbytes(500)),
}


def word(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


def cost(client, command: str) -> float:
    """The server's microseconds for each call of a command since the last time."""
    stats = {name.lower(): calls for name, calls in client.info("commandstats").items()}
    client.config_resetstat()
    return stats[f"cmdstat_{command}"]["usec_per_call"]


def fill(server: Server, messages: Iterator[tuple[str, bytes]], count: int, *, is_packed: bool) -> tuple[float, int]:
    """Returns the server's microseconds for each SEND, in the best of all bulks, and the bytes of all payloads."""
    head = b"*7\r\n$7\r\nDQ.SEND\r\n$1\r\nq\r\n"
    draw = random.Random(8)

    def tail(number: int) -> bytes:
        wait = SOONER if number < FETCHED else draw.randint(HOURS, 20 * HOURS)
        return word(b"DELAY") + word(b"%d" % wait)

    size, best = 0, float("inf")
    with server.client() as client:
        connection = client.connection_pool.get_connection()
        client.execute_command("DQ.CREATE", "q", "CLOCK", "MANUAL")
        for sent in range(0, count, BULK):
            bulk = [next(messages) for _ in range(BULK)]
            size += sum(len(payload) for _, payload in bulk)
            sends = [head + word(p) + word(b"ID") + word(i.encode()) + tail(n) for n, (i, p) in enumerate(bulk, sent)]
            connection.send_packed_command(sends)
            if sent < MEASURED:
                for _ in bulk:
                    connection.read_response()
                best = min(best, cost(client, "dq.send"))
            elif sent == MEASURED:
                # Reading the replies takes this program longer than the server takes for all the rest.
                for _ in bulk:
                    connection.read_response()
                connection.send_command("CLIENT", "REPLY", "OFF")
            while is_packed and sent % PAUSED == 0 and size - packed(client) > UNPACKED:
                time.sleep(0.1)
        wait_for(lambda: queue(client)[b"sent"] == count, 600, "all messages")
    return best, size


def memory(pids: list[int]) -> int:
    """The memory of processes in bytes. What two of them share is counted once."""
    kilobytes = 0
    for pid in pids:
        # A child may have ended.
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes * 1024


def cpu(server: Server) -> float:
    """The seconds of processor that a server has taken."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def save_under_traffic(server: Server, client) -> int:
    """Returns the memory at the peak of a BGSAVE, while messages that are due at once are sent and taken."""
    client.bgsave()
    peak = 0
    while client.info("persistence")["rdb_bgsave_in_progress"]:
        pipe = client.pipeline(transaction=False)
        for _ in range(200):
            pipe.execute_command("DQ.SEND", "now", "x" * 500)
            pipe.execute_command("DQ.FETCH", "now", "NOACK")
        pipe.execute()
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        peak = max(peak, memory([server.pid, *map(int, children)]))
    return peak


def fetch(client) -> float:
    """Returns the server's microseconds for each FETCH of a message that has waited, in the best of all bulks."""
    client.execute_command("DQ.TICK", "q", "TO", SOONER)
    client.config_resetstat()
    best = float("inf")
    for _ in range(FETCHED // BULK):
        pipe = client.pipeline(transaction=False)
        for _ in range(BULK):
            pipe.execute_command("DQ.FETCH", "q", "NOACK")
        assert all(pipe.execute())
        best = min(best, cost(client, "dq.fetch"))
    return best


def measure(kind: str, compress: str, count: int) -> dict[str, float]:
    # A greater budget packs sooner, and as small in the end.
    server = Server(save="", **{"dq.compress": compress, "dq.tick-budget-us": 500 if count < MANY else 5000}).start()
    try:
        client = server.client(socket_timeout=600)
        empty = client.info("memory")
        sent, size = fill(server, KINDS[kind](random.Random(7)), count, is_packed=compress == "on")
        last = -1

        def is_over() -> bool:
            nonlocal last
            now = packed(client)
            last, before = now, last
            time.sleep(2)
            return now == before

        if compress == "on":
            time.sleep(2)
            wait_for(is_over, 3600, "packing")
        processor = cpu(server)
        client.execute_command("MEMORY", "PURGE")
        memory = client.info("memory")
        peak = save_under_traffic(server, client)
        slice_us = client.info("dq")["dq_longest_slice_us"]
        client.save()
        saved = (server.dir / "dump.rdb").stat().st_size
        began = time.monotonic()
        client.execute_command("DEBUG", "RELOAD", "NOSAVE")
        loaded = time.monotonic() - began
        usage = client.memory_usage("q", samples=0)
        part = packed(client) / size
        return {
            "payload": size / count,
            "rss": (memory["used_memory_rss"] - empty["used_memory_rss"]) / count,
            "usage": usage / count,
            "saving": (peak - empty["used_memory_rss"]) / count,
            "saved": saved / count,
            "load": loaded,
            "cpu": processor * 1e6 / count,
            "send": sent,
            "fetch": fetch(client),
            "slice": slice_us,
            "packed": part,
        }
    finally:
        server.close()


def queue(client) -> dict:
    info = client.execute_command("DQ.INFO", "q")
    return info if isinstance(info, dict) else dict(zip(info[::2], info[1::2], strict=True))


def packed(client) -> int:
    return int(queue(client)[b"packed-bytes"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--compress", nargs="*", default=["off", "on"])
    options = parser.parse_args()
    for kind in options.kinds:
        for compress in options.compress:
            figures = measure(kind, compress, options.messages)
            print(f"{kind:13} {compress:3} " + "  ".join(f"{name} {n:,.2f}" for name, n in figures.items()), flush=True)


if __name__ == "__main__":
    main()
