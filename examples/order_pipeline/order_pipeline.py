"""A pipeline over four queues, whose workers are killed at random: no order is lost between two steps, none doubled.

An order is paid, picked, packed and shipped. Each step is a queue of its own with its own workers. A worker finishes a
step and sends the message of the next one with a single command, DQ.ACKSEND: both happen or neither. Meanwhile workers
are killed with SIGKILL at random moments, also between two bytes of their commands, and new ones are started.

A killed worker's order is handled again when the lease is over, in the same step. That is repeated work, which a queue
cannot avoid. But the order has one message at any time.

Run it against a server that has the module loaded. It needs Python 3.11 or newer and the package:

    python3 -m venv .venv && .venv/bin/pip install ./clients/python
    .venv/bin/python examples/order_pipeline/order_pipeline.py --url redis://127.0.0.1:6379 --orders 2000

The messages have no ids of their own, so nothing hides a double. At the end the program counts the messages of each
order in the records of each queue. The exit code is 1 if an order is lost or doubled. With `--apart 1` a step is sent
and acked by two commands, a millisecond apart, as it is without ACKSEND: then orders are doubled. The queues are its
own and are removed at the end.
"""

import argparse
import collections
import json
import logging
import multiprocessing
import os
import random
import sys
import time

from dqueue import Follow, Next, Queue, Worker, connect

STEPS = ("pay", "pick", "pack", "ship")
LEASE_MS = 600


def work(options, step, name):
    """A worker of one step, until it is killed or stopped."""
    logging.disable(logging.WARNING)  # a stopping worker may lose a lease, which is no trouble here
    queues = {name: Queue(connect(options.url), key(options, name)) for name in STEPS}
    # Workers are killed all the time here, which is no message's fault.
    worker = Worker(queues[step], concurrency=2, lease=LEASE_MS, block=500, consumer=name, lost_workers=0)
    following = dict(zip(STEPS, STEPS[1:]))

    @worker.handler()
    def handle(message):
        order = message.json()
        time.sleep(random.uniform(0, options.handler_ms) / 1000)
        order["done"].append(step)
        if step not in following:
            return f"shipped {order['order']}"
        payload, dest = json.dumps(order), following[step]
        if options.apart is None:
            return Follow(Next(payload, to=queues[dest].key), result=f"{step} done")
        queues[dest].send(payload)
        time.sleep(options.apart / 1000)
        return f"{step} done"

    worker.run()


def key(options, step):
    # The hash tag keeps the queues of a pipeline in one slot of a cluster.
    return f"{{{options.shop}}}:{step}"


class Workers:
    """Processes, of which any may be killed. Each is one of a step."""

    def __init__(self, options):
        self.options = options
        self.processes = {}
        self.started = self.killed = self.at_work = 0

    def start(self, step):
        self.started += 1
        name = f"{step}-{self.started}"
        process = multiprocessing.Process(target=work, args=(self.options, step, name))
        process.start()
        self.processes[step, name] = process

    def kill_one(self, queues):
        """SIGKILLs a worker, whatever it does at that moment, and starts another one in its place."""
        step, name = random.choice(sorted(self.processes))
        process = self.processes.pop((step, name))
        process.kill()
        process.join()
        self.killed += 1
        self.at_work += any(record.consumer == name for record in queues[step].list("running"))
        self.start(step)

    def stop(self):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.join()


def count_messages(queues):
    """Returns the number of messages of each order in each step, from the records, and the deliveries of all."""
    messages, deliveries = {step: collections.Counter() for step in STEPS}, 0
    torn = 0
    for place, step in enumerate(STEPS):
        for record in queues[step].list("finished", count=1000):
            order = json.loads(record.payload)
            messages[step][order["order"]] += 1
            deliveries += record.attempt
            torn += order["done"] != list(STEPS[:place])
    return messages, deliveries, torn


def report(options, queues, workers):
    messages, deliveries, torn = count_messages(queues)
    orders = range(options.orders)
    all_messages = sum(counter.total() for counter in messages.values())
    print(f"orders                       {options.orders} through {len(STEPS)} steps")
    print(f"workers killed               {workers.killed}")
    print(f"killed at work               {workers.at_work}")
    print(f"steps handled again          {deliveries - all_messages}")
    broken = {
        "doubled": sum(max(0, messages[step][order] - 1) for step in STEPS for order in orders),
        "lost": sum(messages[STEPS[-1]][order] == 0 for order in orders),
        "steps left out": torn,
        "still in a queue": sum(queue.len() for queue in queues.values()),
        "dead": sum(queue.len("dead") for queue in queues.values()),
    }
    for promise, count in broken.items():
        print(f"{promise:<29}{count}   (must be 0)")
    return 1 if any(broken.values()) else 0


def play(options, queues):
    for queue in queues.values():
        queue.create(retries=-1, retain=3_600_000)
    for order in range(options.orders):
        queues[STEPS[0]].send(json.dumps({"order": order, "done": []}))
    workers = Workers(options)
    try:
        for step in STEPS:
            for _ in range(options.workers):
                workers.start(step)
        deadline = time.monotonic() + options.seconds
        while any(queue.len() for queue in queues.values()) and time.monotonic() < deadline:
            time.sleep(random.uniform(0, 2 * options.kill_ms) / 1000)
            workers.kill_one(queues)
    finally:
        workers.stop()
    return report(options, queues, workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--orders", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2, help="processes for each step")
    parser.add_argument("--handler-ms", type=float, default=4, help="the longest time that a step takes")
    parser.add_argument("--kill-ms", type=float, default=40, help="the mean time between two kills")
    parser.add_argument("--apart", type=float, metavar="MS", help="send and ack as two commands, so far apart")
    parser.add_argument("--seconds", type=float, default=120, help="when to give up")
    options = parser.parse_args()
    options.shop = f"shop:{os.getpid()}"
    queues = {step: Queue(connect(options.url), key(options, step)) for step in STEPS}
    try:
        return play(options, queues)
    finally:
        queues[STEPS[0]].client.unlink(*(queue.key for queue in queues.values()))


if __name__ == "__main__":
    sys.exit(main())
