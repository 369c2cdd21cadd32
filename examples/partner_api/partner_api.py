"""Partners that ask for a rest, and partners that are down: nobody is called in vain.

The shop tells its partners by HTTP what happened to their orders. Each partner is a group of one queue. The partners
are here on loopback:

* `acme` accepts some calls, then answers 429 with `Retry-After: 1`, and so on. When it has accepted half of its
  notices, it is down for some seconds: it closes each connection without an answer.
* Every second one of the others asks for rests, too, but is never down.
* All others answer at once.

A worker does what a partner asks for, and no more:

* 429: it gives the notice back without blame and pauses the partner in the same step (NACK SILENT PAUSE GROUP). No
  attempt is counted. Other workers cannot slip in a call between.
* No answer: the notice has failed. After three failures the queue's BREAKER is open: nothing of that partner is
  delivered for half a second. Then one notice tries it. If that fails, the breaker is open for twice as long.

Run it against a server that has the module loaded. It needs Python 3.11 or newer and the package:

    python3 -m venv .venv && .venv/bin/pip install ./clients/python
    .venv/bin/python examples/partner_api/partner_api.py --url redis://127.0.0.1:6379 --notices 10000

Each partner keeps a log of the calls that it got. From that log the program counts the calls that came during a
Retry-After and while the breaker had to be open. The attempts that the queue has counted are compared with it, too.
The exit code is 1 if a figure is wrong. The queue is its own and is removed at the end.
"""

import argparse
import collections
import http.client
import http.server
import json
import logging
import multiprocessing
import os
import socket
import sys
import threading
import time

from dqueue import Queue, Retry, Snooze, Worker, connect

RETRY_AFTER = 1  # s, as in the header
FAILURES, WINDOW, OPEN, LONGEST = 3, 10_000, 500, 2_000
BREAKER = (FAILURES, WINDOW, OPEN, LONGEST)
BACKOFF = 50
RETRIES = 1000


def now_ms():
    return time.time_ns() // 1_000_000


# ---- the partners' side ---------------------------------------------------------------------------------------------


class Partner:
    """One partner: what it answers, and its log of (time in ms, notice, answer)."""

    def __init__(self, notices, limit=None, downtime=0):
        self.notices, self.limit, self.downtime = notices, limit, downtime
        self.log, self.lock = [], threading.Lock()
        self.accepted, self.next_rest, self.rest_until, self.down_until = 0, limit, None, None

    def answer(self, notice):
        """200, 429, or None for a partner that is down."""
        with self.lock:
            now = now_ms()
            answer = self._decide(now)
            self.log.append((now, notice, answer))
            return answer

    def _decide(self, now):
        if self.downtime and self.accepted >= self.notices // 2:
            self.down_until = self.down_until or now + self.downtime
            if now < self.down_until:
                return None
        if self.limit and self.accepted >= self.next_rest:
            self.rest_until = self.rest_until or now + RETRY_AFTER * 1000
            if now < self.rest_until:
                return 429
            self.next_rest, self.rest_until = self.next_rest + self.limit, None
        self.accepted += 1
        return 200


class Partners(http.server.ThreadingHTTPServer):
    """The endpoints of all partners in one server: /<partner>."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, partners):
        super().__init__(("127.0.0.1", 0), Endpoint)
        self.partners = partners
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Silent: a killed or stopped worker closes its connection."""


class Endpoint(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        notice = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.server.partners[self.path[1:]].answer(notice["id"])
        if answer is None:
            self.close_connection = True
            return
        self.send_response(answer)
        if answer == 429:
            self.send_header("Retry-After", str(RETRY_AFTER))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Silent: each partner has its own log."""


# ---- the shop's side ------------------------------------------------------------------------------------------------


class Caller:
    """HTTP connections to the partners, one for each thread, kept open."""

    def __init__(self, address):
        self.address, self.local = address, threading.local()

    def post(self, partner, notice):
        """Returns the status and the Retry-After of the answer. Raises OSError or HTTPException if there is none."""
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = http.client.HTTPConnection(*self.address, timeout=5)
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            connection.request("POST", f"/{partner}", json.dumps(notice), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            reply.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self.local.connection = None
            raise
        return reply.status, reply.headers.get("Retry-After")


def work(options, address):
    logging.disable(logging.WARNING)  # what fails here fails on purpose
    worker = Worker(Queue(connect(options.url), options.queue), concurrency=options.threads, block=500)
    caller = Caller(address)

    @worker.handler()
    def tell(message):
        status, retry_after = caller.post(message.group, {"id": message.id, "status": message.text})
        if status == 429:
            rest = int(retry_after) * 1000
            if options.without == "snooze":
                raise Retry("429", delay=rest)
            raise Snooze("429", pause=None if options.without == "pause" else ("GROUP", rest))
        if status != 200:
            raise RuntimeError(f"HTTP {status}")

    worker.run()


# ---- the proof ------------------------------------------------------------------------------------------------------


def calls_in_rests(log):
    """Calls that came during a Retry-After: its log alone says so."""
    until = count = 0
    for at, _, answer in log:
        count += at < until
        if answer == 429:
            until = max(until, at + RETRY_AFTER * 1000)
    return count


def calls_while_open(log):
    """Returns how often the breaker had to open by the partner's log, and the calls that came while it was open.

    The partner's failure is a bit older than the moment at which the queue hears of it, so these spans begin, and end,
    before those of the queue.
    """
    failures, until, length, opened, count = [], 0, 0, 0, 0
    for at, _, answer in log:
        count += at < until
        if answer is None:
            failures = [failure for failure in failures if at - failure < WINDOW] + [at]
            if length or len(failures) >= FAILURES:
                length = min(length * 2, LONGEST) if length else OPEN
                until, opened = at + length, opened + 1
        elif answer == 200 and length:
            failures, length = [], 0
    return opened, count


def watch_breakers(options, seen, ended):
    """Collects what the queue says about its breakers, beside the partners' logs: (partner, open until)."""
    queue = Queue(connect(options.url), options.queue)
    while not ended.wait(0.05):
        seen.update((group.group, group.open_until) for group in queue.groups() if group.breaker == "open")


def report(options, partners, queue, opened_by_queue):
    calls = [(at, notice, answer) for partner in partners.values() for at, notice, answer in partner.log]
    answers = collections.Counter(answer for _, _, answer in calls)
    opened = [calls_while_open(partner.log) for partner in partners.values()]
    records = {record.id: record for record in queue.list("finished", count=1000)}
    # Each call that was not answered 429 is one attempt, and nothing else is.
    attempts = collections.Counter(notice for _, notice, answer in calls if answer != 429)
    burned = sum(record.attempt - attempts[id] for id, record in records.items())
    accepted = collections.Counter(notice for _, notice, answer in calls if answer == 200)
    snoozed = len({notice for _, notice, answer in calls if answer == 429})
    print(f"notices                                {options.notices} to {len(partners)} partners")
    print(f"calls                                  {len(calls)}")
    print(f"answered 429                           {answers[429]}, to {snoozed} notices")
    print(f"not answered at all                    {answers[None]}")
    print(f"times a breaker opened                 {sum(count for count, _ in opened)}")
    print(f"open breakers seen in DQ.GROUPS        {len(opened_by_queue)}")
    broken = {
        "calls made during Retry-After": sum(calls_in_rests(partner.log) for partner in partners.values()),
        "calls made while open": sum(count for _, count in opened),
        "attempts burned by 429": burned,
        "notices not accepted": options.notices - len(accepted),
        "notices accepted twice": sum(count > 1 for count in accepted.values()),
        "dead": queue.len("dead"),
    }
    for promise, count in broken.items():
        print(f"{promise:<39}{count}   (must be 0)")
    return 1 if any(broken.values()) or len(records) != options.notices else 0


def play(options, queue):
    each = options.notices // options.partners
    names = ["acme"] + [f"partner-{number}" for number in range(1, options.partners)]
    partners = {name: Partner(each, each // 4 if number % 2 == 0 else None) for number, name in enumerate(names)}
    partners["acme"] = Partner(each, each // 4, options.downtime)
    options.notices = each * options.partners
    if options.without != "breaker":
        queue.alter(breaker=BREAKER)
    for number in range(each):
        for name in names:
            queue.send("shipped", id=f"{name}:{number}", group=name)
    server = Partners(partners)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(options, server.server_address)) for _ in range(options.workers)]
    seen, ended = set(), threading.Event()
    watcher = threading.Thread(target=watch_breakers, args=(options, seen, ended))
    try:
        for process in [*workers, watcher]:
            process.start()
        deadline = time.monotonic() + options.seconds
        while queue.len() and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        ended.set()
        for process in workers:
            if process.is_alive():
                process.terminate()
        for process in [*workers, watcher]:
            process.join()
        server.shutdown()
    return report(options, partners, queue, seen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--notices", type=int, default=10_000)
    parser.add_argument("--partners", type=int, default=20)
    parser.add_argument("--downtime", type=int, default=4000, help="for how many ms acme is down")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--threads", type=int, default=8, help="threads of each")
    parser.add_argument("--seconds", type=float, default=120, help="when to give up")
    parser.add_argument(
        "--without", choices=("snooze", "pause", "breaker"), help="shows what happens without it: the exit code is 1"
    )
    options = parser.parse_args()
    if options.partners < 3 or options.notices < 8 * options.partners:
        parser.error("at least 3 partners and 8 notices for each of them")
    options.queue = f"partners:api:{os.getpid()}"
    queue = Queue(connect(options.url), options.queue)
    queue.create(retries=RETRIES, backoff=("FIXED", BACKOFF), retain=3_600_000)
    try:
        return play(options, queue)
    finally:
        queue.client.unlink(options.queue)


if __name__ == "__main__":
    sys.exit(main())
