"""A producer and a worker with redis-py and asyncio; README.md says what they show.

    python3 -m venv .venv && .venv/bin/pip install 'redis>=5'
    .venv/bin/python python_asyncio.py send redis://127.0.0.1:6379 orders 100
    .venv/bin/python python_asyncio.py work redis://127.0.0.1:6379 orders

The worker runs a batch side by side. Its FETCH is not cancelled at a stop: the server may just have answered it.
"""

import asyncio
import json
import os
import signal
import socket
import sys

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

LEASE_MS = int(os.environ.get("LEASE_MS", 30_000))
BLOCK_MS = 2_000
SOCKET_TIMEOUT_S = 5  # longer than BLOCK_MS

LOST = (redis.ConnectionError, redis.TimeoutError)


def connect(url):
    return redis.asyncio.Redis.from_url(
        url,
        protocol=int(os.environ.get("RESP", 3)),
        decode_responses=True,
        socket_timeout=SOCKET_TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),  # repeating is done below, where it can be seen
    )


def say(*words):
    print(*words, flush=True)


async def insist(client, stopping, *command):
    """Repeats a command until it is answered. All commands here may be: see README.md."""
    pause = 0.05
    while True:
        try:
            return await client.execute_command(*command)
        except LOST as error:
            if stopping.is_set():
                raise
            say("trying again:", error)
        await asyncio.sleep(pause)
        pause = min(pause * 2, 1)


# ---- producer -------------------------------------------------------------------------------------------------------


async def send(client, stopping, queue, count, work_ms=20):
    try:
        await insist(client, stopping, "DQ.CREATE", queue, "DEDUP", 60_000)
    except redis.ResponseError as error:
        if "queue already exists" not in str(error):
            raise
    for n in range(int(count)):
        job = {"order": f"order-{n}", "work_ms": int(work_ms)}
        id = f"close:{job['order']}"
        added = await insist(client, stopping, "DQ.SEND", queue, json.dumps(job), "ID", id)
        say("sent" if added else "already there", id)


# ---- worker ---------------------------------------------------------------------------------------------------------


async def close_order(client, queue, job, receipt):
    """The work; False if somebody with a newer receipt did it before."""
    if job.get("broken"):
        raise RuntimeError("this order cannot be closed")
    await asyncio.sleep(job["work_ms"] / 1000)
    return bool(await client.execute_command("ZADD", f"{queue}:closed", "GT", "CH", receipt, job["order"]))


async def beat(client, queue, held):
    """Keeps the leases of what is held."""
    while True:
        await asyncio.sleep(LEASE_MS / 3000)
        try:
            if held:
                await client.execute_command("DQ.TOUCH", queue, LEASE_MS, *held)
        except redis.RedisError as error:
            say("no heartbeat:", error)  # the next one may come in time


async def handle(client, stopping, queue, held, done, message):
    id, receipt, attempt, payload = message
    try:
        closed = await close_order(client, queue, json.loads(payload), receipt)
    except Exception as error:
        await insist(client, stopping, "DQ.NACK", queue, receipt, "ERROR", str(error))
        say("failed", id, "attempt", attempt)
    else:
        done.append(receipt)
        say("done" if closed else "fenced", id, "attempt", attempt)
    del held[receipt]


async def work(client, stopping, queue):
    consumer = f"{socket.gethostname()}:{os.getpid()}"
    held, done = {}, []
    heart = asyncio.create_task(beat(client, queue, held))
    stop = asyncio.create_task(stopping.wait())
    while not stopping.is_set():
        ack = ["ACK", len(done), *done] if done else []
        options = ["COUNT", 5, "BLOCK", BLOCK_MS, "LEASE", LEASE_MS, "CONSUMER", consumer]
        try:
            batch = await insist(client, stopping, "DQ.FETCH", queue, *options, *ack)
        except LOST:
            break
        done = []
        held.update({receipt: id for id, receipt, _attempt, _payload in batch})
        if not batch or stopping.is_set():
            continue
        all_handled = asyncio.gather(*(handle(client, stopping, queue, held, done, message) for message in batch))
        await asyncio.wait([all_handled, stop], return_when=asyncio.FIRST_COMPLETED)
        if not all_handled.done():
            all_handled.cancel()
            await asyncio.gather(all_handled, return_exceptions=True)
    heart.cancel()
    stop.cancel()
    if done:
        await client.execute_command("DQ.ACK", queue, *done)
    if held:
        await client.execute_command("DQ.NACK", queue, *held, "SILENT")
        say("gave back", *held.values())


async def main():
    role, url, queue, *numbers = sys.argv[1:]
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    client = connect(url)
    if role == "send":
        await send(client, stopping, queue, *numbers)
    else:
        await work(client, stopping, queue)
    await client.aclose()


if __name__ == "__main__":
    asyncio.run(main())
