"""Close the orders that nobody pays.

A shop closes an order and returns its stock some time after it was placed, unless it is paid before. Here that
time is a few seconds instead of 30 minutes, and a whole day is played in one go:

* the producer places orders; each puts one delayed message into the queue, with the order number as its id;
* the payer pays some of them, at any moment up to (and a little past) the last one, and takes the message back
  with DQ.CANCEL, whose answer says whether it came in time;
* the workers, separate processes, close what falls due. Some closings fail and are tried again, and one worker
  is killed with SIGKILL while it has an order in its hands.

The shop's own data is an SQLite file: the queue delivers at least once, and "close it if it is still open" is
one conditional UPDATE there, as in any shop.

Run it against a server that has the module loaded:

    python3 -m venv .venv && .venv/bin/pip install 'redis>=5'
    .venv/bin/python close_unpaid_orders.py --url redis://127.0.0.1:6379 --orders 3000 --seconds 10

It prints how many orders were paid and closed and how late, and ends with exit code 1 if a promise was broken:
an order closed twice, lost, closed early, closed though its message had been taken back in time, or held by two
workers at once. The queue and the shop's file are its own and are removed at the end.
"""

import argparse
import collections
import multiprocessing
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time

import redis

LEASE_MS = 2000
LATE_MS = 100
FAILING = 0.01

SCHEMA = """
CREATE TABLE orders (id TEXT PRIMARY KEY, due REAL, state TEXT DEFAULT 'open', closed_at REAL,
                     closings INTEGER DEFAULT 0, payment TEXT);
CREATE TABLE deliveries (id TEXT, receipt INTEGER PRIMARY KEY, worker TEXT, began REAL, ended REAL, outcome TEXT);
"""


def now_ms():
    return time.time() * 1000


def connect(url):
    return redis.Redis.from_url(url, decode_responses=True, protocol=3)


def open_shop(path):
    shop = sqlite3.connect(path, timeout=30)
    shop.execute("PRAGMA journal_mode=WAL")
    shop.execute("PRAGMA synchronous=OFF")
    return shop


# ---- the three parties ----------------------------------------------------------------------------------------------


def place_orders(options, path, start):
    client, shop = connect(options.url), open_shop(path)
    for number in range(options.orders):
        placed = start + number * options.seconds * 1000 / options.orders
        time.sleep(max(0, (placed - now_ms()) / 1000))
        order, due = f"order-{number}", int(placed + options.unpaid_ms)
        with shop:
            shop.execute("INSERT INTO orders (id, due) VALUES (?, ?)", (order, due))
        # The id makes a repeated SEND harmless, should the connection break before the reply.
        client.execute_command("DQ.SEND", options.queue, order, "ID", order, "AT", due)


def pay_orders(options, path, start):
    client, shop = connect(options.url), open_shop(path)
    dice = random.Random(options.seed)
    payments = []
    for number in range(options.orders):
        if dice.random() < 0.4:
            placed = start + number * options.seconds * 1000 / options.orders
            # One in ten decides in the very last moment: the race between payment and closing.
            share = dice.uniform(0.995, 1.005) if dice.random() < 0.1 else dice.uniform(0.1, 0.99)
            payments.append((placed + share * options.unpaid_ms, f"order-{number}"))
    for at, order in sorted(payments):
        time.sleep(max(0, (at - now_ms()) / 1000))
        [state] = client.execute_command("DQ.CANCEL", options.queue, order)
        # Cancelled while it waited: nobody will close it. Running or gone: the shop's own data says who was first.
        with shop:
            shop.execute("UPDATE orders SET payment = ? WHERE id = ?", (state or "gone", order))
            shop.execute("UPDATE orders SET state = 'paid' WHERE id = ? AND state = 'open'", (order,))


def close_orders(options, path, name):
    running = True

    def stop(_signal, _frame):
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    client, shop, dice = connect(options.url), open_shop(path), random.Random(name)
    done = []
    while running:
        # One round trip: acknowledge the last one, wait for the next one. The lease begins only now, when there is
        # nothing else to do, so it never runs while an order waits in the client.
        ack = ["ACK", len(done), *done] if done else []
        batch = client.execute_command("DQ.FETCH", options.queue, "BLOCK", 500, "CONSUMER", name, *ack)
        done = []
        for order, receipt, _attempt, _payload in batch:
            with shop:
                shop.execute(
                    "INSERT INTO deliveries (id, receipt, worker, began) VALUES (?, ?, ?, ?)",
                    (order, receipt, name, now_ms()),
                )
            if close_one(options, shop, dice, order, receipt):
                done.append(receipt)
            else:
                client.execute_command("DQ.NACK", options.queue, receipt, "ERROR", "the stock service did not answer")
    if done:
        client.execute_command("DQ.ACK", options.queue, *done)


def close_one(options, shop, dice, order, receipt):
    """The business of it. True if it worked; every hundredth time it does not."""
    time.sleep(options.handler_ms / 1000)
    works = dice.random() >= FAILING
    with shop:
        if works:
            shop.execute(
                """UPDATE orders SET state = 'closed', closed_at = ?, closings = closings + 1
                   WHERE id = ? AND state = 'open'""",
                (now_ms(), order),
            )
        shop.execute(
            "UPDATE deliveries SET ended = ?, outcome = ? WHERE receipt = ?",
            (now_ms(), "closed" if works else "failed", receipt),
        )
    return works


# ---- the play -------------------------------------------------------------------------------------------------------


def kill_with_an_order_in_hand(worker, name, shop):
    """SIGKILLs the worker at a moment when it holds an order; returns the order, or None if it never held one."""
    for _ in range(2000):
        os.kill(worker.pid, signal.SIGSTOP)
        held = shop.execute("SELECT id FROM deliveries WHERE worker = ? AND ended IS NULL", (name,)).fetchone()
        if held:
            os.kill(worker.pid, signal.SIGKILL)
            worker.join()
            return held[0]
        os.kill(worker.pid, signal.SIGCONT)
        time.sleep(0.002)
    return None


def play(options, path):
    client, shop = connect(options.url), open_shop(path)
    shop.executescript(SCHEMA)
    # A closing that fails is tried again for ever, 200 ms later: an order must not stay open.
    client.execute_command("DQ.CREATE", options.queue, "LEASE", LEASE_MS, "RETRIES", -1, "BACKOFF", "FIXED", 200)
    start = now_ms() + 200
    names = [f"worker-{number}" for number in range(options.workers)]
    workers = [multiprocessing.Process(target=close_orders, args=(options, path, name)) for name in names]
    others = [
        multiprocessing.Process(target=role, args=(options, path, start)) for role in (place_orders, pay_orders)
    ]
    killed = None
    try:
        for process in workers + others:
            process.start()
        time.sleep(max(0, (start + options.unpaid_ms - now_ms()) / 1000) + options.seconds / 3)
        killed = kill_with_an_order_in_hand(workers[0], names[0], shop)
        for process in others:
            process.join()
        end = now_ms() + options.unpaid_ms + LEASE_MS + 5000
        while client.execute_command("DQ.LEN", options.queue) and now_ms() < end:
            time.sleep(0.05)
    finally:
        for process in workers + others:
            if process.is_alive():
                process.terminate()
        for process in workers + others:
            process.join()
    failures = sum(process.exitcode != 0 for process in workers[1:] + others)
    return report(shop, killed, failures)


def report(shop, killed, failures):
    def count(query):
        return shop.execute(query).fetchone()[0]

    payments = collections.Counter(
        row[0] for row in shop.execute("SELECT payment FROM orders WHERE payment IS NOT NULL")
    )
    # Lateness is from the due time to the first delivery: what the queue answers for.
    late = sorted(
        row[0] for row in shop.execute("SELECT min(began) - due FROM deliveries JOIN orders USING (id) GROUP BY id")
    )
    closed = count("SELECT count(*) FROM orders WHERE state = 'closed'")
    print(f"orders placed     {count('SELECT count(*) FROM orders')}")
    print(f"paid              {count('''SELECT count(*) FROM orders WHERE state = 'paid' ''')}")
    print("  message was     " + ", ".join(f"{state} {number}" for state, number in sorted(payments.items())))
    print(f"closed            {closed}")
    if late:
        p50, p99 = late[len(late) // 2], late[len(late) * 99 // 100]
        print(f"  lateness        p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {late[-1]:.1f} ms")
    closed_late = count(f"SELECT count(*) FROM orders WHERE closed_at - due > {LATE_MS}")
    print(
        f"closed late       {closed_late} (over {LATE_MS} ms: failed closings tried again, the killed worker's order)"
    )
    print(f"failed closings   {count('''SELECT count(*) FROM deliveries WHERE outcome = 'failed' ''')}")
    print(f"worker killed     {'with ' + killed + ' in its hands' if killed else 'no'}")
    broken = {
        "closed twice": count("SELECT count(*) FROM orders WHERE closings > 1"),
        "lost": count("SELECT count(*) FROM orders WHERE state = 'open'"),
        "closed early": count("SELECT count(*) FROM deliveries JOIN orders USING (id) WHERE began < due"),
        "closed though cancelled in time": count(
            "SELECT count(*) FROM orders WHERE payment = 'delayed' AND state <> 'paid'"
        ),
        "held by two workers at once": count(
            """SELECT count(*) FROM deliveries a JOIN deliveries b ON a.id = b.id AND a.receipt < b.receipt
               WHERE b.began < coalesce(a.ended, a.began)"""
        ),
        # The killed worker may have closed its order and not said so; every other closing happens in one delivery.
        "handled again after success": count(
            "SELECT count(*) - count(DISTINCT id) FROM deliveries WHERE outcome = 'closed' AND worker <> 'worker-0'"
        ),
        "processes that failed": failures,
    }
    for promise, number in broken.items():
        print(f"{promise:<32}{number}   (must be 0)")
    return 1 if any(broken.values()) or not closed or not killed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--orders", type=int, default=3000, help="how many orders are placed")
    parser.add_argument("--seconds", type=float, default=10, help="for how long orders come in")
    parser.add_argument("--unpaid-ms", type=int, default=3000, help="how long an order may stay unpaid")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--handler-ms", type=float, default=2, help="how long it takes to close an order")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.queue = f"orders:unpaid:{os.getpid()}"
    if options.workers < 2:
        parser.error("one worker is killed: --workers must be at least 2")
    with tempfile.TemporaryDirectory() as folder:
        try:
            return play(options, os.path.join(folder, "shop.db"))
        finally:
            connect(options.url).unlink(options.queue)


if __name__ == "__main__":
    sys.exit(main())
