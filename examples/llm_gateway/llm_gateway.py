"""A gateway to a language model: tenants share one provider, tokens are limited, and nobody starves.

Tenants send prompts to one queue, each tenant as a group. What a request takes is known only when it has been answered, so
it is sent with an estimate (COST), and the ack books the tokens that were really used (ACK ... COST). The provider is an
HTTP server on loopback, which takes longer for longer answers, and now and then answers 429 with `Retry-After: 1`.

* `DQ.LIMIT tenant-* CONCURRENCY ...` and `DQ.LIMIT tokens-* RATE tokens PER ms WEIGHT`: each tenant has so many requests at
  once, and so many tokens in any window. One of them, `metered`, has a limit of its own for tokens, which is narrow.
* `MAXRUNNING`: so many requests at once for all. It is an option of the queue and not a limit with a name, because groups
  that wait for the same name take turns by their number, and not by FAIR.
* 429: the worker gives the request back without blame, and pauses the queue for the time that the provider has asked for,
  in one step (NACK SILENT PAUSE QUEUE). No other worker calls it in between.
* `FAIR TIME`: tenants take turns by the time for which workers held their requests. `whale` sends long ones, and has
  workers for no longer than each of the others while they have something to do.

Workers are killed with SIGKILL meanwhile. What they had is done again when its lease is over.

Run it against a server that has the module loaded. It needs Python 3.11 or newer and the package:

    python3 -m venv .venv && .venv/bin/pip install ./clients/python
    .venv/bin/python examples/llm_gateway/llm_gateway.py --url redis://127.0.0.1:6379 --requests 40

At the end the program reads the event stream of the queue and counts again: the exit code is 1 if a limit was exceeded in
any window, if a request was delivered in a pause or never answered, or if a tenant starved. `--without` shows what FAIR and
the limits are for. The queue is its own and is removed at the end.
"""

import argparse
import collections
import http.client
import http.server
import json
import logging
import multiprocessing
import os
import sys
import threading
import time

from dqueue import Queue, Snooze, Worker, connect

RETRY_AFTER = 1  # s, as in the header
WINDOW = 1000  # ms. A real provider counts by the minute
AT_ONCE, OF_ALL = 5, 6
TOKENS, METERED = 100_000, 2_000
LEASE_MS = 1000


class Tenant:
    """What a tenant sends: how many requests, how long each takes in ms, its estimate in tokens."""

    def __init__(self, requests, takes, estimate):
        self.requests, self.takes, self.estimate = requests, takes, estimate


def tenants_of(options):
    tenants = {f"small-{number}": Tenant(options.requests, 20, 300) for number in range(5)}
    return tenants | {"whale": Tenant(options.requests, 200, 3000), "metered": Tenant(options.requests // 2, 10, 500)}


def tokens_of(tenant, number):
    """What a request really takes: mostly less than estimated, sometimes more."""
    return tenant.estimate * (1 + number % 4) // 3


# ---- the provider ---------------------------------------------------------------------------------------------------


class Provider(http.server.ThreadingHTTPServer):
    """Asks for a rest after so many answers."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, tenants, most):
        super().__init__(("127.0.0.1", 0), Endpoint)
        self.tenants, self.most, self.lock = tenants, most, threading.Lock()
        self.calls, self.refused, self.answered = 0, 0, []
        self.since_rest, self.rest_until = 0, 0.0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def admits(self):
        with self.lock:
            self.calls += 1
            now = time.monotonic()
            if self.since_rest >= self.most and now >= self.rest_until:
                self.since_rest, self.rest_until = 0, now + RETRY_AFTER
            if now < self.rest_until:
                self.refused += 1
                return False
            self.since_rest += 1
            return True

    def handle_error(self, *_):
        """Silent: a killed worker closes its connection."""


class Endpoint(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.server.admits():
            return self.reply(429, {}, ("Retry-After", str(RETRY_AFTER)))
        tenant = self.server.tenants[prompt["tenant"]]
        time.sleep(tenant.takes / 1000)
        self.server.answered.append((prompt["tenant"], prompt["number"]))
        return self.reply(200, {"tokens": tokens_of(tenant, prompt["number"])})

    def reply(self, status, content, *headers):
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Silent: the provider counts."""


# ---- the gateway ----------------------------------------------------------------------------------------------------


def work(options, address):
    logging.disable(logging.WARNING)
    # Workers are killed all the time here, which is no message's fault.
    queue = Queue(connect(options.url), options.queue)
    worker = Worker(queue, concurrency=4, lease=LEASE_MS, block=300, lost_workers=0)

    @worker.handler()
    def ask(message):
        connection = http.client.HTTPConnection(*address, timeout=5)
        try:
            connection.request("POST", "/", message.payload)
            reply = connection.getresponse()
            content = json.loads(reply.read())
        finally:
            connection.close()
        if reply.status == 429:
            raise Snooze("429", pause=("QUEUE", int(reply.headers["Retry-After"]) * 1000))
        message.cost = content["tokens"]

    worker.run()


def send(options, queue, tenants):
    if options.without != "limits":
        # Each name that matches has requests or tokens of its own.
        queue.limit("tenant-*", concurrency=AT_ONCE)
        queue.limit("tokens-*", rates=[(TOKENS, WINDOW)], weight=True)
        queue.limit("tokens-metered", rates=[(METERED, WINDOW)], weight=True)
    for name, tenant in tenants.items():
        for number in range(tenant.requests):
            queue.send(
                json.dumps({"tenant": name, "number": number}), id=f"{name} {number}", group=name,
                limits=[f"tenant-{name}", f"tokens-{name}"], cost=tenant.estimate,
            )  # fmt: skip


def play(options, queue):
    tenants = tenants_of(options)
    requests = sum(tenant.requests for tenant in tenants.values())
    # The workers begin when all have sent, so that everybody waits from the beginning.
    queue.pause()
    send(options, queue, tenants)
    provider = Provider(tenants, requests // 3)

    def start():
        process = multiprocessing.Process(target=work, args=(options, provider.server_address), daemon=True)
        process.start()
        return process

    workers, killed = [start(), start()], 0
    queue.resume()
    deadline = time.monotonic() + options.seconds
    try:
        while queue.len() and time.monotonic() < deadline:
            if killed < options.kills and len(provider.answered) > requests * (killed + 1) // (options.kills + 2):
                workers[killed % 2].kill()
                workers[killed % 2].join()
                workers[killed % 2] = start()
                killed += 1
            time.sleep(0.01)
    finally:
        for process in workers:
            process.kill()
            process.join()
        provider.shutdown()
    return report(options, queue, tenants, provider, killed)


# ---- the proof ------------------------------------------------------------------------------------------------------


class Count:
    """Counts again what the event stream tells."""

    def __init__(self, tenants):
        self.tenants = tenants
        # The name and the time of delivery of what runs.
        self.running, self.most = {}, collections.Counter()
        # For how many ms workers have held the requests of each tenant.
        self.held = collections.Counter()
        # For each tenant the (time, tokens) of what has begun within the window.
        self.begun = collections.defaultdict(list)
        self.last, self.paused_until = {}, 0
        self.faults = collections.Counter()

    def read(self, event, id, at):
        name, number = id.split()
        if event == "delivered":
            self.begins(id, name, at)
        elif event in ("acked", "nacked", "timeout", "dead"):
            _, since = self.running.pop(id, (name, at))
            self.held[name] += at - since
        if event == "acked":
            self.last[id][1] = tokens_of(self.tenants[name], int(number))
        if event == "nacked":
            self.paused_until = max(self.paused_until, at + RETRY_AFTER * 1000)

    def begins(self, id, name, at):
        self.running[id] = name, at
        now = [one for one in self.begun[name] if one[0] > at - WINDOW]
        self.last[id] = [at, self.tenants[name].estimate]
        self.begun[name] = [*now, self.last[id]]
        used = sum(tokens for _, tokens in self.begun[name])
        self.most[name] = max(self.most[name], used)
        self.faults["windows exceeded"] += used > (METERED if name == "metered" else TOKENS)
        self.faults["too many of a tenant at once"] += [one for one, _ in self.running.values()].count(name) > AT_ONCE
        self.faults["too many at once"] += len(self.running) > OF_ALL
        self.faults["delivered in a pause"] += at < self.paused_until


def report(options, queue, tenants, provider, killed):
    count, ended, held = Count(tenants), set(), {}
    for _, fields in queue.client.xrange(options.stream):
        event, id = fields[b"event"].decode(), fields[b"id"].decode()
        count.read(event, id, int(fields[b"at"]))
        if event == "acked":
            ended.add(id)
            if id.startswith("small"):
                held = dict(count.held)
    whale = held.pop("whale", 0)
    others = sum(ms for name, ms in held.items() if name.startswith("small")) // 5
    sent = {f"{name} {number}" for name, tenant in tenants.items() for number in range(tenant.requests)}
    estimated = sum(tenant.estimate * tenant.requests for tenant in tenants.values())
    used = sum(tokens_of(tenant, number) for tenant in tenants.values() for number in range(tenant.requests))
    print(f"requests                           {len(sent)} of {len(tenants)} tenants")
    print(f"tokens estimated                   {estimated}")
    print(f"tokens really used                 {used}")
    print(f"calls                              {provider.calls}")
    print(f"answered 429                       {provider.refused}")
    print(f"workers killed                     {killed}")
    print(f"tokens of metered in a window      {count.most['metered']}, of {METERED}")
    print(f"workers' time until the small ones had all: {whale} ms for the whale, {others} for each of them")
    broken = {
        "windows exceeded": count.faults["windows exceeded"],
        "too many of a tenant at once": count.faults["too many of a tenant at once"],
        "too many at once": count.faults["too many at once"],
        "delivered in a pause": count.faults["delivered in a pause"],
        "requests never answered": len(sent - ended),
        # By requests, the whale would get ten times as much.
        "tenants starved": int(whale > 2 * others),
    }
    for promise, faults in broken.items():
        print(f"{promise:<35}{faults}   (must be 0)")
    return 1 if any(broken.values()) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--requests", type=int, default=40, help="of each tenant, at least 20")
    parser.add_argument("--kills", type=int, default=2, help="workers that are killed")
    parser.add_argument("--without", choices=("fair", "limits"), help="shows what happens without it: the exit code is 1")
    parser.add_argument("--seconds", type=float, default=60, help="when to give up")
    options = parser.parse_args()
    options.queue = f"{{llm:{os.getpid()}}}"
    options.stream = f"{options.queue}:events"
    queue = Queue(connect(options.url), options.queue)
    fair = "COUNT" if options.without == "fair" else "TIME"
    queue.create(
        retries=-1, fair=fair, group_concurrency=OF_ALL, max_running=OF_ALL, events=options.stream, events_len=1_000_000
    )
    try:
        return play(options, queue)
    finally:
        queue.client.unlink(options.queue, options.stream)


if __name__ == "__main__":
    sys.exit(main())
