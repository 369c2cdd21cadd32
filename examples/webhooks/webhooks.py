"""Webhooks: customers are told of each thing that happens to their jobs, in order, driven by the event stream of a queue.

The queue of the jobs has EVENTS: each transition of a job is an entry of a Redis stream, in the same step as the
transition. A notifier reads the stream with a consumer group and sends a message for each entry to a second queue, with
the id of the entry as its ID and the job as its GROUP. Workers call the customer's endpoint (here: on loopback), which
fails at times. So nobody polls the jobs, and no code of the workers of the jobs knows of webhooks.

The notifier is killed with SIGKILL several times, also between its SEND and its XACK. Its successor reads what was not
acked once more, and the IDs make sure that nothing is sent twice.

Run it against a server that has the module loaded. It needs Python 3.11 or newer and the package:

    python3 -m venv .venv && .venv/bin/pip install ./clients/python
    .venv/bin/python examples/webhooks/webhooks.py --url redis://127.0.0.1:6379 --jobs 200

The exit code is 1 if a customer was not told of something, was told of it in the wrong order, or if a webhook was sent
twice though it had arrived. `--without-id` shows what the IDs are for. The keys are its own and are removed at the end.
"""

import argparse
import collections
import http.server
import json
import logging
import multiprocessing
import os
import sys
import threading
import time
import urllib.request

import redis
from dqueue import Queue, Retry, Worker, connect

TOLD = ("sent", "delivered", "acked", "nacked", "dead")


class Customer(http.server.ThreadingHTTPServer):
    """The endpoint. Every fifth call fails. Remembers the others."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Endpoint)
        self.lock, self.calls, self.got = threading.Lock(), 0, []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Endpoint(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.calls += 1
            works = self.server.calls % 5 != 0
            if works:
                self.server.got.append(body)
        self.send_response(200 if works else 503)
        self.end_headers()

    def log_message(self, *_):
        pass


def do_jobs(options):
    logging.disable(logging.WARNING)
    worker = Worker(Queue(connect(options.url), options.jobs_key), concurrency=4, block=300)

    @worker.handler()
    def job(message):
        number = int(message.text)
        if number % 7 == 0 or (number % 3 == 0 and message.attempt == 1):
            raise RuntimeError("it went wrong")

    worker.run()


def call_hooks(options, port):
    logging.disable(logging.WARNING)
    # Workers are killed all the time here, which is no message's fault.
    worker = Worker(Queue(connect(options.url), options.hooks_key), concurrency=4, block=300, lost_workers=0)

    @worker.handler()
    def hook(message):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", message.payload)
        try:
            urllib.request.urlopen(request, timeout=5).close()
        except OSError as error:
            raise Retry(str(error), delay=10) from error

    worker.run()


def entries_of(reply):
    """The entries of one stream in a reply of XREADGROUP, whichever form redis-py gives it."""
    for found in reply.values() if isinstance(reply, dict) else [entries for _, entries in reply or ()]:
        return found[0] if found and isinstance(found[0], list) else found
    return []


def notify(options):
    """Sends a webhook for each entry. What its predecessor has read and not acked comes first."""
    client = redis.Redis.from_url(options.url, socket_timeout=10)
    hooks = Queue(connect(options.url), options.hooks_key)
    start = "0"
    while True:
        reply = client.xreadgroup("webhooks", "notifier", {options.stream: start}, count=20, block=200)
        entries = entries_of(reply)
        for entry, fields in entries:
            told = {name.decode(): value.decode() for name, value in fields.items()} | {"entry": entry.decode()}
            if told["event"] in TOLD:
                id = None if options.without_id else told["entry"]
                hooks.send(json.dumps(told), id=id, group=told["id"])
                time.sleep(0.001)  # where it may be killed
            client.xack(options.stream, "webhooks", entry)
        if not entries:
            start = ">"


def play(options, jobs):
    hooks = Queue(jobs.client, options.hooks_key)
    jobs.create(retries=1, backoff=("FIXED", 20), events=options.stream, events_len=1_000_000)
    # An id stays taken for longer than any notifier may need to come back.
    hooks.create(retries=-1, dedup=3_600_000)
    jobs.client.xgroup_create(options.stream, "webhooks", id="0", mkstream=True)
    customer = Customer()

    def start(target, *args):
        process = multiprocessing.Process(target=target, args=(options, *args), daemon=True)
        process.start()
        return process

    workers = [start(do_jobs), start(call_hooks, customer.server_address[1]), start(call_hooks, customer.server_address[1])]
    notifier = start(notify)
    killed = 0
    try:
        for number in range(options.jobs):
            jobs.send(str(number), id=f"job {number}")
            if number % (options.jobs // options.kills) == options.jobs // options.kills // 2:
                notifier.kill()
                notifier.join()
                killed += 1
                notifier = start(notify)
        deadline = time.monotonic() + options.seconds
        while time.monotonic() < deadline and not is_done(options, jobs, hooks):
            time.sleep(0.05)
    finally:
        notifier.kill()
        for process in workers:
            process.terminate()
        for process in (notifier, *workers):
            process.join()
    return report_on(options, jobs, customer, killed)


def is_done(options, jobs, hooks):
    if jobs.len():
        return False
    [group] = jobs.client.xinfo_groups(options.stream)
    last = jobs.client.xrevrange(options.stream, count=1)[0][0]
    return group["last-delivered-id"] == last and group["pending"] == 0 and hooks.len() == 0


def report_on(options, jobs, customer, killed):
    happened = collections.defaultdict(list)
    for entry, fields in jobs.client.xrange(options.stream):
        if fields[b"event"].decode() in TOLD:
            happened[fields[b"id"].decode()].append(entry.decode())
    told = collections.defaultdict(list)
    for body in customer.got:
        told[body["id"]].append(body["entry"])
    transitions = sum(map(len, happened.values()))
    print(f"jobs                             {len(happened)}, of which {jobs.len('dead')} died")
    print(f"transitions                      {transitions}")
    print(f"calls that failed                {customer.calls - len(customer.got)}")
    print(f"notifiers killed                 {killed}")
    broken = {
        "transitions not told": sum(len(set(ids) - set(told[job])) for job, ids in happened.items()),
        "told in the wrong order": sum(list(dict.fromkeys(told[job])) != ids for job, ids in happened.items()),
        "told twice": len(customer.got) - len({(body["id"], body["entry"]) for body in customer.got}),
    }
    for promise, count in broken.items():
        print(f"{promise:<33}{count}   (must be 0)")
    return 1 if any(broken.values()) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--kills", type=int, default=5, help="how often the notifier is killed")
    parser.add_argument("--without-id", action="store_true", help="shows what happens without: the exit code is 1")
    parser.add_argument("--seconds", type=float, default=60, help="when to give up")
    options = parser.parse_args()
    name = f"{{webhooks:{os.getpid()}}}"
    options.jobs_key, options.hooks_key, options.stream = f"{name}:jobs", f"{name}:calls", f"{name}:events"
    jobs = Queue(connect(options.url), options.jobs_key)
    try:
        return play(options, jobs)
    finally:
        jobs.client.unlink(options.jobs_key, options.hooks_key, options.stream)


if __name__ == "__main__":
    sys.exit(main())
