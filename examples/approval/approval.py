"""Orders that a person has to approve: they wait for days without a worker, a lease or a poll.

A small order is paid at once. For a large one the worker asks the boss, and parks its message (NACK SILENT PARK FOR): it
is held, and the worker takes the next one. The boss answers with a signal (DQ.SIGNAL), which makes the message due in
that millisecond and is delivered with it. Some answers come before the message is parked, and none is lost by that. If
the boss is silent, the message is due when the time is over, without a signal: the order has expired. The orders of
partners wait for a credit check, another job, whose ack and signal are one step (DQ.ACKSEND ... SIGNAL).

A worker is killed with SIGKILL meanwhile. An order that is approved is paid exactly once, because the payment is sent in
the same step as the ack of the order.

Run it against a server that has the module loaded. It needs Python 3.11 or newer and the package:

    python3 -m venv .venv && .venv/bin/pip install ./clients/python
    .venv/bin/python examples/approval/approval.py --url redis://127.0.0.1:6379 --orders 200

The exit code is 1 if an order has another end than the boss has said, if one expired too early, if a payment is missing
or too many, or if messages were delivered in vain. `--poll` shows what that is about: handlers look again and again
instead. The queue is its own and is removed at the end.
"""

import argparse
import json
import logging
import multiprocessing
import os
import random
import sys
import time

from dqueue import Follow, Next, Park, Queue, Signal, Snooze, Worker, connect

SMALL = 100
LEASE_MS = 1000


def now_ms():
    return int(time.time() * 1000)


def work(options, name):
    logging.disable(logging.WARNING)
    client = connect(options.url)
    queue = Queue(client, options.queue)
    # Workers are killed all the time here, which is no message's fault.
    worker = Worker(queue, lease=LEASE_MS, block=500, consumer=name, lost_workers=0)

    def ask(message):
        """Asks those who are to decide. It may happen twice, if this worker is killed before it has parked the message."""
        if message.json()["partner"]:
            queue.send(message.id, type="check", id=f"check of {message.id}")
        else:
            client.rpush(options.inbox, json.dumps([message.id, now_ms()]))

    @worker.handler("order")
    def order(message):
        verdict = message.signal
        if message.json()["amount"] < SMALL:
            verdict = "approved"
        elif verdict is None and message.note is None:
            ask(message)
            if not options.poll:
                raise Park(for_=options.patience, note="asked")
            worker.note(message, str(now_ms()))
        if verdict is None and options.poll and now_ms() < int(message.note or now_ms()) + options.patience:
            raise Snooze(delay=20)
        if verdict != "approved":
            return verdict or "expired"
        return Follow(Next(message.payload, type="payment", id=f"payment of {message.id}"), result=verdict)

    @worker.handler("check")
    def check(message):
        time.sleep(0.005)
        return Follow(Signal(message.text, "approved"), result="checked")

    @worker.handler("payment")
    def pay(message):
        return "paid"

    worker.run()


def decide(options, answers):
    """The boss: approves, refuses, or says nothing. Puts what was answered, and when, into `answers`."""
    client = connect(options.url)
    queue = Queue(client, options.queue)
    said = {}
    while (got := client.blpop(options.inbox, timeout=5)) is not None:
        id, asked_at = json.loads(got[1])
        if id == "home time":
            break
        if id in said:
            continue
        said[id] = random.Random(id).choice(["approved", "approved", "refused", None])
        if said[id] is not None:
            was_heard = queue.signal(id, said[id])
            answers.put((id, said[id], asked_at, now_ms(), was_heard))
        else:
            answers.put((id, None, asked_at, 0, False))


def play(options, queue):
    queue.create(retries=-1, retain=3_600_000)
    chance = random.Random(options.seed)
    for number in range(options.orders):
        content = {"amount": chance.choice([20, 500]), "partner": chance.random() < 0.3}
        queue.send(json.dumps(content), type="order", id=f"order {number}")
    answers = multiprocessing.Queue()
    boss = multiprocessing.Process(target=decide, args=(options, answers))
    workers = [multiprocessing.Process(target=work, args=(options, f"worker {n}")) for n in range(options.workers)]
    for process in (boss, *workers):
        process.start()
    try:
        while not queue.len("held") and not options.poll and queue.len():
            time.sleep(0.001)
        workers[0].kill()
        print(f"worker 0 killed; parked then: {queue.len('held')}")
        deadline = time.monotonic() + options.seconds
        while queue.len() and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        queue.client.rpush(options.inbox, json.dumps(["home time", 0]))
        for process in workers:
            if process.is_alive():
                process.terminate()
        heard = []
        while boss.is_alive() or not answers.empty():
            if not answers.empty():
                heard.append(answers.get())
            else:
                time.sleep(0.01)
        for process in (boss, *workers):
            process.join()
    return report_on(options, queue, heard)


def report_on(options, queue, heard):
    records = list(queue.list("finished"))
    orders = {one.id: one for one in records if one.type == "order"}
    paid = [one.id for one in records if one.type == "payment"]
    approved = {id for id, one in orders.items() if one.result == "approved"}
    wrong, early, late = [], [], 0
    for id, said, asked_at, answered_at, was_heard in heard:
        one = orders.get(id)
        if one is None:
            continue
        is_in_time = was_heard and answered_at < asked_at + options.patience
        late += said is not None and not is_in_time
        if said is not None and is_in_time and one.result != said:
            wrong.append(id)
        if one.result == "expired" and one.finished_at < asked_at + options.patience:
            early.append(id)
    large = sum(json.loads(one.payload)["amount"] >= SMALL for one in orders.values())
    checks = sum(one.type == "check" for one in records)
    info = queue.info()
    needed = len(orders) + large + checks + len(paid)
    print(f"orders                           {len(orders)}, of which {large} had to be approved")
    print(f"approved by a credit check       {checks}")
    print(f"answered by the boss             {sum(said is not None for _, said, *_ in heard)} ({late} too late)")
    print(f"expired                          {sum(one.result == 'expired' for one in orders.values())}")
    print(f"deliveries                       {info['delivered']}, of which {info['redelivered']} after the kill")
    broken = {
        "orders without an end": options.orders - len(orders),
        "orders against the boss's word": len(wrong),
        "orders expired too early": len(early),
        "payments missing": len(approved - {id.removeprefix("payment of ") for id in paid}),
        "payments too many": len(paid) - len(approved),
        "deliveries in vain": max(0, info["delivered"] - info["redelivered"] - needed),
        "messages left": queue.len() + queue.len("dead"),
    }
    for promise, count in broken.items():
        print(f"{promise:<33}{count}   (must be 0)")
    return 1 if any(broken.values()) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--orders", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--patience", type=int, default=2000, help="how long an order waits for the boss, in ms")
    parser.add_argument("--poll", action="store_true", help="shows what happens without PARK: the exit code is 1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="when to give up")
    options = parser.parse_args()
    options.queue, options.inbox = f"approval:{os.getpid()}", f"approval:{os.getpid()}:inbox"
    queue = Queue(connect(options.url), options.queue)
    try:
        return play(options, queue)
    finally:
        queue.client.unlink(options.queue, options.inbox)


if __name__ == "__main__":
    sys.exit(main())
