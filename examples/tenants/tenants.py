"""A queue for each tenant, and workers that wait at all of them with one connection.

Each tenant has a queue of its own, so its messages can be limited, paused, looked at and purged by themselves, and its
size does not matter to the others. The queues are named `tenants:{name}`, which makes them a family. A worker waits with
one DQ.NFETCH, however many queues there are: no list of tenants, no polling, and a new tenant needs no set-up. The
queues give in turn. One tenant with a large backlog does not hold up the others.

Run it against a server that has the module loaded:

    python3 -m venv .venv && .venv/bin/pip install 'redis>=5'
    .venv/bin/python tenants.py --url redis://127.0.0.1:6379 --tenants 10000

It sends a backlog for one tenant and then one message for each of the others. It prints how many messages of the large
one were handled before the last of the others, and ends with exit code 1 if that was unfair, or if a message is lost.
"""

import argparse
import sys
import threading

import redis

FAMILY = "tenants"
LARGE = "large"


def connect(url):
    return redis.Redis.from_url(url, decode_responses=True, protocol=3)


def queue_of(tenant):
    return f"{FAMILY}:{{{tenant}}}"


def send(client, tenants, backlog):
    """The large tenant comes first, with all of its messages."""
    for first in range(0, backlog, 1000):
        some = range(first, min(first + 1000, backlog))
        client.execute_command("DQ.MSEND", queue_of(LARGE), len(some), *(f"{LARGE} {n}" for n in some))
    for first in range(0, tenants, 1000):
        pipeline = client.pipeline(transaction=False)
        for n in range(first, min(first + 1000, tenants)):
            pipeline.execute_command("DQ.SEND", queue_of(f"tenant-{n}"), f"tenant-{n} hello")
        pipeline.execute()


def work(url, handled, is_over):
    """Handles messages of all tenants until nothing comes any more."""
    client = connect(url)
    while True:
        reply = client.execute_command("DQ.NFETCH", FAMILY, "BLOCK", 300, "COUNT", 1)
        if reply is None:
            if is_over.is_set():
                return
            continue
        queue, messages = reply
        for _id, receipt, _attempt, payload in messages:
            handled.append(payload.split()[0])
            client.execute_command("DQ.ACK", queue, receipt)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--tenants", type=int, default=10_000)
    parser.add_argument("--backlog", type=int, default=20_000, help="messages of the large tenant")
    parser.add_argument("--workers", type=int, default=4)
    options = parser.parse_args()
    client, handled, is_over = connect(options.url), [], threading.Event()
    workers = [threading.Thread(target=work, args=(options.url, handled, is_over)) for _ in range(options.workers)]
    try:
        send(client, options.tenants, options.backlog)
        for worker in workers:
            worker.start()
        is_over.set()
        for worker in workers:
            worker.join()
    finally:
        queues = [queue_of(LARGE), *(queue_of(f"tenant-{n}") for n in range(options.tenants))]
        for first in range(0, len(queues), 1000):
            client.unlink(*queues[first : first + 1000])
    small = [place for place, tenant in enumerate(handled) if tenant != LARGE]
    # Each worker may still be busy with one of them, whatever the others do meanwhile.
    before = handled[: small[-options.workers]].count(LARGE)
    lost = options.tenants + options.backlog - len(handled)
    print(f"queues                           {options.tenants + 1}")
    print(f"connections that wait            {options.workers}, each for all of them")
    print(f"messages handled                 {len(handled)}")
    print(f"lost                             {lost}   (must be 0)")
    print(f"of the large tenant, before the others had theirs: {before} of {options.backlog}")
    # In turn: it gives one message while each of the others gives one.
    return 0 if lost == 0 and before <= 2 * options.workers else 1


if __name__ == "__main__":
    sys.exit(main())
