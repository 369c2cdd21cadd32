"""Each user's tasks in order, on as many consumers as there happen to be.

Tasks of one user share a group: the server gives out at most one of a group at a time, in order, to whoever
asks. So there is nothing to configure and nothing to drain when consumers come and go: no queue per worker, no
user % workers. This script sends events of many users, while every half second a worker process joins or
leaves: some leave orderly (they finish what they hold), some are killed with SIGKILL at their work (their event
goes to another one when its lease is over).

Run it against a server that has the module loaded:

    python3 -m venv .venv && .venv/bin/pip install 'redis>=5'
    .venv/bin/python one_server.py --url redis://127.0.0.1:6379 --seconds 15

It prints the joins and leaves and, at the end, events lost and order violations; exit code 1 if there are any.
The queue is its own and is removed at the end. For more than one server, see cluster.py.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time

import redis
from history import Journal, report

LEASE_MS = 1500
PRODUCERS = 2


def connect(url):
    return redis.Redis.from_url(url, decode_responses=True, protocol=3)


def produce(options, folder, producer):
    """Sends events of this producer's users, numbered from 1 for each user."""
    client, journal, dice = connect(options.url), Journal(folder, f"producer-{producer}"), random.Random(producer)
    numbers = {f"user-{user}": 0 for user in range(producer, options.users, PRODUCERS)}
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        user = dice.choice(list(numbers))
        numbers[user] += 1
        payload = f"{user} {numbers[user]}"
        # The SCORE is the place in the group, the ID makes a repeated SEND harmless.
        client.execute_command(
            "DQ.SEND", options.queue, payload, "ID", payload, "GROUP", user, "SCORE", numbers[user]
        )
        journal.write("sent", user, numbers[user])
        time.sleep(PRODUCERS / options.rate)


def consume(options, folder, name):
    running = True

    def stop(_signal, _frame):
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    client, journal, dice = connect(options.url), Journal(folder, name), random.Random(name)
    done = []
    while running:
        ack = ["ACK", len(done), *done] if done else []
        batch = client.execute_command("DQ.FETCH", options.queue, "BLOCK", 500, "CONSUMER", name, *ack)
        done = []
        for _id, receipt, _attempt, payload in batch:
            user, number = payload.split()
            journal.write("begin", user, int(number))
            time.sleep(dice.uniform(0, 2 * options.handler_ms) / 1000)
            journal.write("done", user, int(number))
            done.append(receipt)
    if done:
        client.execute_command("DQ.ACK", options.queue, *done)


def play(options, folder):
    client = connect(options.url)
    client.execute_command("DQ.CREATE", options.queue, "LEASE", LEASE_MS, "RETRIES", -1, "DEDUP", 60_000)
    dice, workers, counts = random.Random(options.seed), [], {"join": 0, "leave": 0, "killed": 0}

    def join():
        name = f"worker-{counts['join']:03}"
        counts["join"] += 1
        process = multiprocessing.Process(target=consume, args=(options, folder, name), name=name)
        process.start()
        workers.append(process)

    def leave(how):
        process = workers.pop(dice.randrange(len(workers)))
        counts[how] += 1
        (process.kill if how == "killed" else process.terminate)()
        process.join()
        if how == "killed":
            Journal(folder, process.name).write("killed")

    producers = [
        multiprocessing.Process(target=produce, args=(options, folder, number)) for number in range(PRODUCERS)
    ]
    try:
        for _ in range(3):
            join()
        for process in producers:
            process.start()
        while any(process.is_alive() for process in producers):
            time.sleep(0.5)
            # Between 2 and 8 workers; each kind of change comes in turn, as often as the others.
            change = ("join", "leave", "join", "killed")[sum(counts.values()) % 4]
            if change == "join" or len(workers) <= 2:
                join()
            else:
                leave(change)
            waiting = client.execute_command("DQ.LEN", options.queue)
            print(f"{change:<8} -> {len(workers)} workers, {waiting} events waiting or running", flush=True)
        end = time.monotonic() + LEASE_MS / 1000 + 20
        while client.execute_command("DQ.LEN", options.queue) and time.monotonic() < end:
            time.sleep(0.05)
    finally:
        for process in workers + producers:
            if process.is_alive():
                process.terminate()
        for process in workers + producers:
            process.join()
    print(f"workers joined           {counts['join']}")
    print(f"workers left, killed     {counts['leave']}, {counts['killed']}")
    # A worker told to stop before it was ready to hear of it has done nothing yet.
    fine = (0, -signal.SIGTERM)
    failed = [process.name for process in workers + producers if process.exitcode not in fine]
    return 0 if report(folder) and not failed and counts["killed"] else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--rate", type=float, default=400, help="events a second")
    parser.add_argument("--handler-ms", type=float, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.queue = f"users:tasks:{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            return play(options, folder)
        finally:
            connect(options.url).unlink(options.queue)


if __name__ == "__main__":
    sys.exit(main())
