"""What COMPRESS saves and costs, for payloads as frameworks send them: `python -m benches.compress --messages N`.

Each kind is sent twice to an empty server, with COMPRESS OFF and ON, and its messages wait. The table has bytes a message
in memory and in the snapshot, the time to load that, and what a SEND and a FETCH of a message cost the server.
"""

import argparse
import json
import random
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import kombu.transport.memory
from celery import Celery
from kombu.utils.json import dumps

from tests.harness.server import Server, wait_for

HOURS = 7_200_000
BULK = 2000
FETCHED = 20_000
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


def fill(server: Server, messages: Iterator[tuple[str, bytes]], count: int) -> tuple[float, int]:
    """Returns the server's microseconds for each SEND, and the bytes of all payloads."""
    head, tail = b"*7\r\n$7\r\nDQ.SEND\r\n$1\r\nq\r\n", word(b"DELAY") + word(b"%d" % HOURS)
    size = 0
    with server.client() as client:
        connection = client.connection_pool.get_connection()
        for _ in range(0, count, BULK):
            bulk = [next(messages) for _ in range(BULK)]
            size += sum(len(payload) for _, payload in bulk)
            connection.send_packed_command([head + word(p) + word(b"ID") + word(i.encode()) + tail for i, p in bulk])
            for _ in bulk:
                connection.read_response()
        stats = {name.lower(): calls for name, calls in client.info("commandstats").items()}
    calls = stats["cmdstat_dq.send"]
    return calls["usec_per_call"], size


def measure(kind: str, compress: str, count: int) -> dict[str, float]:
    server = Server(save="", **{"dq.compress": compress}).start()
    try:
        client = server.client(socket_timeout=600)
        empty = client.info("memory")
        sent, size = fill(server, KINDS[kind](random.Random(7)), count)
        began, last = time.monotonic(), -1

        def is_over() -> bool:
            nonlocal last
            now = packed(client)
            last, before = now, last
            time.sleep(1)
            return now == before

        if compress == "on":
            time.sleep(2)
            wait_for(is_over, 600, "packing")
        packing = time.monotonic() - began
        client.execute_command("MEMORY", "PURGE")
        memory = client.info("memory")
        client.save()
        saved = (server.dir / "dump.rdb").stat().st_size
        began = time.monotonic()
        client.execute_command("DEBUG", "RELOAD", "NOSAVE")
        loaded = time.monotonic() - began
        usage = client.memory_usage("q", samples=0)
        return {
            "payload": size / count,
            "rss": (memory["used_memory_rss"] - empty["used_memory_rss"]) / count,
            "usage": usage / count,
            "saved": saved / count,
            "load": loaded,
            "send": sent,
            "packing": packing,
            "packed": packed(client) / size,
        }
    finally:
        server.close()


def packed(client) -> int:
    info = client.execute_command("DQ.INFO", "q")
    pairs = info if isinstance(info, dict) else dict(zip(info[::2], info[1::2], strict=True))
    return int(pairs[b"packed-bytes"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    options = parser.parse_args()
    for kind in options.kinds:
        for compress in ("off", "on"):
            figures = measure(kind, compress, options.messages)
            print(f"{kind:13} {compress:3} " + "  ".join(f"{name} {n:,.2f}" for name, n in figures.items()), flush=True)


if __name__ == "__main__":
    main()
