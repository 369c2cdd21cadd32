"""A producer and a worker with plain redis-py; README.md says what they show.

    python3 -m venv .venv && .venv/bin/pip install 'redis>=5'
    .venv/bin/python python_sync.py send redis://127.0.0.1:6379 orders 100
    .venv/bin/python python_sync.py work redis://127.0.0.1:6379 orders
"""

import json
import os
import signal
import socket
import sys
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

LEASE_MS = int(os.environ.get("LEASE_MS", 30_000))
BLOCK_MS = 2_000
SOCKET_TIMEOUT_S = 5  # longer than BLOCK_MS

stopping = False


def connect(url):
    return redis.Redis.from_url(
        url,
        protocol=int(os.environ.get("RESP", 3)),
        decode_responses=True,
        socket_timeout=SOCKET_TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),  # repeating is done below, where it can be seen
    )


def say(*words):
    print(*words, flush=True)


def insist(client, *command):
    """Repeats a command until it is answered. All commands here may be: see README.md."""
    pause = 0.05
    while True:
        try:
            return client.execute_command(*command)
        except (redis.ConnectionError, redis.TimeoutError) as error:
            if stopping:
                raise
            say("trying again:", error)
        time.sleep(pause)
        pause = min(pause * 2, 1)


# ---- producer -------------------------------------------------------------------------------------------------------


def send(client, queue, count, work_ms=20):
    try:
        insist(client, "DQ.CREATE", queue, "DEDUP", 60_000)
    except redis.ResponseError as error:
        if "queue already exists" not in str(error):
            raise
    for n in range(int(count)):
        job = {"order": f"order-{n}", "work_ms": int(work_ms)}
        id = f"close:{job['order']}"
        added = insist(client, "DQ.SEND", queue, json.dumps(job), "ID", id)
        say("sent" if added else "already there", id)


# ---- worker ---------------------------------------------------------------------------------------------------------


class GivenBack(Exception):
    """The worker is to stop before the work is finished."""


def close_order(client, queue, job, receipt):
    """The work, in steps between which it can be stopped; False if somebody with a newer receipt did it before."""
    if job.get("broken"):
        raise RuntimeError("this order cannot be closed")
    end = time.monotonic() + job["work_ms"] / 1000
    while (left := end - time.monotonic()) > 0:
        if stopping:
            raise GivenBack
        time.sleep(min(left, 0.05))
    return bool(client.execute_command("ZADD", f"{queue}:closed", "GT", "CH", receipt, job["order"]))


def beat(client, queue, held, ended):
    """Keeps the leases of what is held, from a thread of its own."""
    while not ended.wait(LEASE_MS / 3000):
        receipts = list(held)
        try:
            if receipts:
                client.execute_command("DQ.TOUCH", queue, LEASE_MS, *receipts)
        except redis.RedisError as error:
            say("no heartbeat:", error)  # the next one may come in time


def work(client, queue):
    consumer = f"{socket.gethostname()}:{os.getpid()}"
    held, done, ended = {}, [], threading.Event()
    heart = threading.Thread(target=beat, args=(client, queue, held, ended), daemon=True)
    heart.start()
    while not stopping:
        ack = ["ACK", len(done), *done] if done else []
        options = ["COUNT", 5, "BLOCK", BLOCK_MS, "LEASE", LEASE_MS, "CONSUMER", consumer]
        try:
            batch = insist(client, "DQ.FETCH", queue, *options, *ack)
        except (redis.ConnectionError, redis.TimeoutError):
            break
        done = []
        held.update({receipt: id for id, receipt, _attempt, _payload in batch})
        for id, receipt, attempt, payload in batch:
            try:
                if stopping:
                    raise GivenBack
                closed = close_order(client, queue, json.loads(payload), receipt)
            except GivenBack:
                continue  # still held: given back below
            except Exception as error:
                insist(client, "DQ.NACK", queue, receipt, "ERROR", str(error))
                say("failed", id, "attempt", attempt)
            else:
                done.append(receipt)
                say("done" if closed else "fenced", id, "attempt", attempt)
            del held[receipt]
    ended.set()
    if done:
        client.execute_command("DQ.ACK", queue, *done)
    if held:
        client.execute_command("DQ.NACK", queue, *held, "SILENT")
        say("gave back", *held.values())


def stop(_signal, _frame):
    global stopping
    stopping = True


def main():
    role, url, queue, *numbers = sys.argv[1:]
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    client = connect(url)
    if role == "send":
        send(client, queue, *numbers)
    else:
        work(client, queue)


if __name__ == "__main__":
    main()
