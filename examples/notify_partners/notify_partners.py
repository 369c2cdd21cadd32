"""Tell partners on time: HTTP notices now or at a set second, retried, voided by newer ones, caught up with after
downtime.

The shop's partners have HTTP endpoints (here: on loopback). One always answers, one fails at times, one is
broken. What the shop tells them are messages of several types in one queue, each type with its own handler in
the workers:

* `order-status`, now or at a set second. A newer status of the same order makes an older one void that has not
  been delivered: both have the same id, and SEND ... REPLACE puts the newer one in its place.
* `invoice`, at a set second.
* `stock-report`, recurring, sent by the server itself (DQ.SCHEDULE).

A failed call is tried again 30 s later, five times at most, then its message is dead and keeps the last error.
Here time runs 100 times faster (`--speed`), so that is 300 ms. For two seconds all workers are down; what fell
due meanwhile is caught up with when they are back. The whole record of each notice (what, when due, tries,
result, time) is read from the queue at the end. A nightly schedule is shown on a queue with a manual clock,
over a change to summer time.

Run it against a server that has the module loaded:

    python3 -m venv .venv && .venv/bin/pip install 'redis>=5'
    .venv/bin/python notify_partners.py --url redis://127.0.0.1:6379 --orders 300 --seconds 8

The exit code is 1 if a promise was broken. The queues are its own and are removed at the end.
"""

import argparse
import collections
import datetime
import http.server
import json
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
import zlib
import zoneinfo

import redis

PARTNERS = ("steady-freight", "flaky-bank", "broken-shop")
RETRIES = 5


def now_ms():
    return time.time() * 1000


def connect(url):
    return redis.Redis.from_url(url, decode_responses=True, protocol=3)


# ---- the partners' side ---------------------------------------------------------------------------------------------


class Partners(http.server.ThreadingHTTPServer):
    """All endpoints in one server: /<partner>/<type>. Remembers every call."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Endpoint)
        self.calls, self.lock = collections.defaultdict(list), threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def answer(self, partner, notice):
        """The HTTP status of this call: the flaky one fails the first zero to three tries of each notice."""
        with self.lock:
            calls = self.calls[notice["id"], notice["version"]]
            failing = zlib.crc32(notice["id"].encode()) % 4
            works = partner == "steady-freight" or partner == "flaky-bank" and len(calls) >= failing
            calls.append({"at": now_ms(), "works": works})
            return 200 if works else 503


class Endpoint(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        notice = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.answer(self.path.split("/")[1], notice))
        self.end_headers()

    def log_message(self, *_):
        """Silent: the calls are remembered instead."""


# ---- the shop's side ------------------------------------------------------------------------------------------------


def post(base, path, notice):
    request = urllib.request.Request(
        f"{base}/{path}", json.dumps(notice).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=5) as reply:
        return f"HTTP {reply.status}"


def tell_status(base, id, payload):
    return post(base, f"{payload['partner']}/order-status", payload | {"id": id})


def send_invoice(base, id, payload):
    return post(base, f"{payload['partner']}/invoice", payload | {"id": id, "total": "19.90 EUR"})


def report_stock(base, id, payload):
    return post(base, "steady-freight/stock-report", payload | {"id": id})


HANDLERS = {"order-status": tell_status, "invoice": send_invoice, "stock-report": report_stock}


def work(options, base, name):
    running = True

    def stop(_signal, _frame):
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    client = connect(options.url)
    while running:
        batch = client.execute_command("DQ.FETCH", options.queue, "BLOCK", 500, "CONSUMER", name, "WITHMETA")
        for id, receipt, _attempt, payload, meta in batch:
            try:
                result = HANDLERS[meta["type"]](base, id, json.loads(payload))
            except (urllib.error.URLError, OSError) as error:
                client.execute_command("DQ.NACK", options.queue, receipt, "ERROR", str(error))
            else:
                client.execute_command("DQ.ACK", options.queue, receipt, "RESULT", result)


def notify(client, queue, type, partner, order, version, due):
    """Sends a notice; an older one of the same order that has not been delivered is void."""
    id = f"{type}:{partner}:{order}"
    payload = json.dumps({"partner": partner, "order": order, "version": version, "due": due})
    while client.execute_command("DQ.SEND", queue, payload, "ID", id, "REPLACE", "AT", due, "TYPE", type) is None:
        # The older one is being delivered at this moment, or it is dead.
        ended = client.execute_command("DQ.WAIT", queue, id, 100)
        if ended and ended[0] == "dead":
            client.execute_command("DQ.CANCEL", queue, id)
    return id


def send_notices(options, client, tick):
    """Plays a stretch of the shop's life; returns the newest version of each notice. Calls tick() all the time."""
    dice, start = random.Random(options.seed), now_ms()
    plan = []
    for order in range(options.orders):
        at = start + order * options.seconds * 1000 / options.orders
        partner = "broken-shop" if order % 20 == 2 else PARTNERS[order % 2]
        plan.append((at, "order-status", partner, order, 1, dice.choice((0, 1000))))
        if dice.random() < 0.4:
            # A second status: before the first one is due, while it waits for its next try, or after it.
            plan.append((at + dice.uniform(0, 1500), "order-status", partner, order, 2, dice.choice((0, 500))))
        if order % 3 == 0:
            plan.append((at, "invoice", partner, order, 1, 1500))
    newest = {}
    for at, type, partner, order, version, later in sorted(plan):
        while now_ms() < at:
            tick()
            time.sleep(0.001)
        due = int(now_ms()) + later
        newest[notify(client, options.queue, type, partner, order, version, due)] = (version, due, partner)
    return newest


def check_notices(records, newest, calls, backoff):
    """Counts of broken promises."""
    broken = collections.Counter()
    for id, (version, due, partner) in newest.items():
        record, tries = records.get(id), calls.get((id, version), [])
        works = [call["works"] for call in tries]
        expected = "dead" if partner == "broken-shop" else "finished"
        broken["lost"] += record is None or record["state"] != expected
        broken["not told, or told twice"] += sum(works) != (expected == "finished")
        broken["not tried six times"] += expected == "dead" and len(tries) != 1 + RETRIES
        broken["early"] += any(call["at"] < due for call in tries)
        broken["tried again too soon"] += any(b["at"] - a["at"] < backoff - 1 for a, b in zip(tries, tries[1:]))
        older = [call["at"] for call in calls.get((id, version - 1), [])]
        broken["void, but told after the newer"] += bool(older and tries and older[-1] > tries[0]["at"])
    return broken


def play(options, partners):
    client = connect(options.url)
    base = f"http://127.0.0.1:{partners.server_address[1]}"
    backoff = int(30_000 / options.speed)
    tries, records = ["RETRIES", RETRIES, "BACKOFF", "FIXED", backoff], ["RETAIN", 3_600_000, "RETAINCOUNT", 0]
    client.execute_command("DQ.CREATE", options.queue, *tries, *records)
    report = ["PAYLOAD", json.dumps({"version": 1}), "TYPE", "stock-report"]
    client.execute_command("DQ.SCHEDULE", options.queue, "stock", "EVERY", 500, *report)
    workers, started, shown, phase = [], time.monotonic(), 0.0, "start"

    def go(text, count):
        nonlocal phase
        phase = text
        for process in workers:
            process.terminate()
        for process in workers:
            process.join()
        workers[:] = [
            multiprocessing.Process(target=work, args=(options, base, f"worker-{number}")) for number in range(count)
        ]
        for process in workers:
            process.start()

    def tick():
        """Shows progress every half second, and plays the downtime."""
        nonlocal shown
        elapsed = time.monotonic() - started
        down = options.seconds / 3 <= elapsed < options.seconds / 3 + options.downtime
        wanted = "down" if down else "caught up" if elapsed > options.seconds / 3 else "start"
        if wanted != phase:
            go(wanted, 0 if down else options.workers)
        if elapsed - shown >= 0.5:
            shown = elapsed
            info = client.execute_command("DQ.INFO", options.queue)
            counts = ", ".join(
                f"{state} {info[state]}" for state in ("delayed", "ready", "running", "retry", "finished", "dead")
            )
            print(f"{elapsed:5.1f} s  workers {'down' if down else 'up':<5} {counts}", flush=True)

    try:
        go("start", options.workers)
        newest = send_notices(options, client, tick)
        fired = client.execute_command("DQ.SCHEDULES", options.queue)[0]["fired"]
        client.execute_command("DQ.UNSCHEDULE", options.queue, "stock")
        end = now_ms() + 60_000
        while client.execute_command("DQ.LEN", options.queue) and now_ms() < end:
            tick()
            time.sleep(0.01)
    finally:
        go("over", 0)
    # A fire between the two commands before is not in the count that the first one gave.
    reports = sum(len(tries) for (id, _), tries in partners.calls.items() if id.startswith("stock@"))
    records = {id: client.execute_command("DQ.GET", options.queue, id) for id in newest}
    broken = check_notices(records, newest, partners.calls, backoff)
    broken["stock reports missed or doubled"] = reports - fired not in (0, 1)
    print_records(records, newest)
    states = collections.Counter(record["state"] for record in records.values() if record)
    print(
        f"notices                  {len(newest)}: {', '.join(f'{count} {state}' for state, count in states.items())}"
    )
    void = sum(version == 2 and (id, 1) not in partners.calls for id, (version, _, _) in newest.items())
    print(f"older ones void in time  {void}")
    print(f"HTTP calls               {sum(map(len, partners.calls.values()))}")
    print(f"stock reports            {reports}, one every 500 ms")
    return broken


def print_records(records, newest):
    """The whole record of a few notices, one of each kind of fate."""
    print(f"{'notice':<34}{'state':<10}{'tries':<7}{'due':<14}{'ended':<14}result or error")
    shown = collections.Counter()
    for id, record in records.items():
        fate = record and (record["type"], record["state"], newest[id][2])
        if record and not shown[fate]:
            shown[fate] += 1
            due, ended = (time_text(record[name]) for name in ("due-at", "finished-at"))
            said = record["result"] or record["error"]
            print(f"{id:<34}{record['state']:<10}{record['attempt']:<7}{due:<14}{ended:<14}{said}")


def time_text(ms):
    return datetime.datetime.fromtimestamp(ms / 1000).strftime("%H:%M:%S.%f")[:-3] if ms else "-"


def nightly(client, queue):
    """A nightly job at 03:30 in Berlin through a week, played by hand; returns the count of wrong fire times."""
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    start = datetime.datetime(2026, 3, 25, 12, tzinfo=berlin)
    client.execute_command("DQ.CREATE", queue, "CLOCK", "MANUAL", int(start.timestamp() * 1000))
    client.execute_command(
        "DQ.SCHEDULE", queue, "nightly", "CRON", "30 3 * * *", "TZ", "Europe/Berlin", "PAYLOAD", "settle up"
    )
    client.execute_command("DQ.TICK", queue, "ADVANCE", 7 * 24 * 3_600_000)
    fires = client.execute_command("DQ.FETCH", queue, "COUNT", 100)
    # The id of a scheduled message is name@unix-ms.
    times = [datetime.datetime.fromtimestamp(int(id.split("@")[1]) / 1000, berlin) for id, *_ in fires]
    print("nightly, 03:30 in Berlin " + ", ".join(f"{time:%d %b %H:%M} (UTC{time:%z})" for time in times))
    right = [(start + datetime.timedelta(days=day)).date() for day in range(1, 8)]
    return (
        len(times) != 7
        or any((time.hour, time.minute) != (3, 30) for time in times)
        or [t.date() for t in times] != right
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--orders", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=8, help="for how long orders come in")
    parser.add_argument("--downtime", type=float, default=2, help="for how many seconds all workers are down")
    parser.add_argument("--speed", type=float, default=100, help="how many times faster than 30 s between tries")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.queue = f"partners:notices:{os.getpid()}"
    client, night = connect(options.url), f"partners:nightly:{os.getpid()}"
    try:
        broken = play(options, Partners())
        broken["nightly fires wrong"] = int(nightly(client, night))
    finally:
        client.unlink(options.queue, night)
    for promise, count in broken.items():
        print(f"{promise:<34}{int(count)}   (must be 0)")
    return 1 if any(broken.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
