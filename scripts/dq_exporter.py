#!/usr/bin/env python3
"""Serves the figures of dq queues to Prometheus.

    python3 -m venv .venv && .venv/bin/pip install 'redis>=5'
    .venv/bin/python scripts/dq_exporter.py --redis redis://127.0.0.1:6379 --listen 127.0.0.1:9122

GET /metrics asks the server at that moment: one INFO dq, and one DQ.INFO and DQ.GROUPS for each queue. Queues are found
by SCAN, once a minute (--discover), or named (--queue, as often as you like), which spares a server of many other keys
the SCAN. The rights it needs: +info +dq.info +dq.groups +scan +select, and %R~ on the queues' keys.

All metrics, with their meaning, are listed in docs/monitoring.md.
"""

import argparse
import sys
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import redis

STATES = ("delayed", "ready", "blocked", "retry", "running", "finished", "dead", "cancelled")
TOTALS = {
    "sent": "Messages sent, by schedules too",
    "duplicates": "Sends whose id was taken",
    "delivered": "Deliveries",
    "redelivered": "Deliveries with an attempt above 1",
    "acked": "Messages acked",
    "nacked": "Messages nacked, silently or not",
    "timeouts": "Leases that ran out",
    "deaths": "Messages that died, for whichever reason",
    "expired": "Messages that died of their TTL",
    "cancellations": "Messages cancelled",
    "redriven": "Dead messages that were run again",
}
QUANTILES = {"0.5": "p50", "0.99": "p99"}
# DQ.GROUPS is asked for so many held groups of a queue; more than that are as alarming.
MOST_HELD = 1000
# And for so many pages at most: it looks at a bounded number of groups a call, held or not.
MOST_PAGES = 10


class Page:
    """Metrics in Prometheus' text format, grouped by name as it demands."""

    def __init__(self):
        self.heads, self.samples = {}, defaultdict(list)

    def add(self, name, kind, help, value, **labels):
        self.heads[name] = f"# HELP {name} {help}.\n# TYPE {name} {kind}\n"
        pairs = ",".join(f'{label}="{escape(text)}"' for label, text in labels.items())
        self.samples[name].append(f"{name}{{{pairs}}} {value}\n" if pairs else f"{name} {value}\n")

    def gauge(self, name, help, value, **labels):
        self.add(name, "gauge", help, value, **labels)

    def counter(self, name, help, value, **labels):
        self.add(name, "counter", help, value, **labels)

    def text(self) -> str:
        return "".join(head + "".join(self.samples[name]) for name, head in self.heads.items())


def escape(text) -> str:
    return str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def readable(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def as_map(reply) -> dict:
    """A map reply with text keys, from RESP2 or RESP3."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    return {readable(name): value for name, value in pairs}


def server_metrics(page: Page, info: dict) -> None:
    """What `INFO dq` says of the whole server."""
    if "dq_queues" not in info:
        raise redis.ResponseError("the server has no dq module")
    build = {name: info.get(f"dq_{name}", "unknown") for name in ("version", "revision")}
    page.gauge("dq_build_info", "Always 1; the labels say which module runs", 1, **build)
    page.gauge("dq_queues", "Queues", info["dq_queues"])
    for state in STATES:
        page.gauge("dq_messages", "Messages of all queues by state", info[f"dq_{state}"], state=state)
    page.gauge("dq_memory_bytes", "Memory of all queues", info["dq_memory"])
    page.gauge("dq_blocked_clients", "Clients that wait for messages", info["dq_blocked_clients"])
    page.counter("dq_skipped_fires_total", "Fire times of schedules that met a full queue", info["dq_skipped_fires"])
    page.counter("dq_timer_slices_total", "Slices of timer work", info["dq_slices"])
    page.gauge("dq_timer_longest_slice_seconds", "The longest slice since start", info["dq_longest_slice_us"] / 1e6)
    page.gauge("dq_timer_lag_seconds", "How late the timer was the last time", info["dq_timer_lag_ms"] / 1e3)
    page.gauge("dq_timer_lag_max_seconds", "How late the timer was at most since start", info["dq_timer_lag_max_ms"] / 1e3)
    lateness = "Time from ready to delivered, over all deliveries"
    for quantile, name in QUANTILES.items():
        page.gauge("dq_lateness_seconds", lateness, info[f"dq_lateness_{name}_ms"] / 1e3, quantile=quantile)
    page.gauge("dq_lateness_max_seconds", "The longest time from ready to delivered", info["dq_lateness_max_ms"] / 1e3)
    for name, calls in info.items():
        if name.startswith("dq_calls_"):
            page.counter("dq_calls_total", "Calls by verb", calls, verb=name.removeprefix("dq_calls_"))


def queue_metrics(page: Page, info: dict, held: int, **at) -> None:
    """What DQ.INFO says of a queue; `at` are the labels that name it."""
    for state in STATES:
        page.gauge("dq_queue_messages", "Messages by state", info[state], **at, state=state)
    page.gauge("dq_queue_payload_bytes", "Payload bytes of pending and running messages", info["bytes"], **at)
    page.gauge("dq_queue_groups", "Groups with messages, settings or a hold", info["groups"], **at)
    page.gauge("dq_queue_held_groups", "Groups that can give nothing and have no lease, 1000 at most", held, **at)
    page.gauge("dq_queue_consumers", "Consumers known by name", info["consumers"], **at)
    page.gauge("dq_queue_blocked_clients", "Clients that wait for messages", info["blocked-clients"], **at)
    page.gauge("dq_queue_paused", "1 while the queue is paused", int(info["paused"]), **at)
    page.gauge("dq_queue_breakers_open", "Groups whose breaker is open", info.get("breakers-open", 0), **at)
    if info["maxlen"]:
        page.gauge("dq_queue_max_messages", "MAXLEN, where it is set", info["maxlen"], **at)
    for name, help in TOTALS.items():
        page.counter(f"dq_queue_{name}_total", help, info[name], **at)
    age = info["oldest-ready-age"] or 0
    page.gauge("dq_queue_oldest_ready_age_seconds", "How long the oldest ready message has waited", age / 1e3, **at)
    if info["next-due-at"] is not None:
        next_due = info["next-due-at"] / 1e3
        page.gauge("dq_queue_next_due_timestamp_seconds", "When the next delayed or retried message is due", next_due, **at)
    if info["lateness-max"] is not None:
        for quantile, name in QUANTILES.items():
            late = info[f"lateness-{name}"] / 1e3
            page.gauge("dq_queue_lateness_seconds", "Time from ready to delivered", late, **at, quantile=quantile)
        late = info["lateness-max"] / 1e3
        page.gauge("dq_queue_lateness_max_seconds", "The longest time from ready to delivered", late, **at)


class Exporter:
    """Collects a page; one at a time, so that an impatient Prometheus does not multiply the work."""

    def __init__(self, args):
        options = {"socket_timeout": args.timeout, "socket_connect_timeout": args.timeout}
        self.args, self.turn, self.found = args, threading.Lock(), {}
        self.clients = {db: redis.Redis.from_url(args.redis, db=db, **options) for db in args.db}
        self.next_scan = 0.0

    def queues(self) -> dict:
        """Database -> keys."""
        if self.args.queue:
            return {db: [name.encode() for name in self.args.queue] for db in self.clients}
        if time.monotonic() >= self.next_scan:
            self.found = {
                db: sorted(set(client.scan_iter(match=self.args.match, count=1000, _type="dqueue-rs")))
                for db, client in self.clients.items()
            }
            self.next_scan = time.monotonic() + self.args.discover
        return self.found

    def held_groups(self, client, key) -> int:
        held, cursor = 0, b"0"
        for _ in range(MOST_PAGES):
            words = ("DQ.GROUPS", key, "CURSOR", cursor, "COUNT", MOST_HELD, "STATE", "blocked")
            cursor, rows = client.execute_command(*words)
            held += len(rows)
            if cursor == b"0" or held >= MOST_HELD:
                break
        return min(held, MOST_HELD)

    def collect(self) -> str:
        """The page; with dq_up 0, and nothing else, where the server gives no answer."""
        page, began = Page(), time.monotonic()
        with self.turn:
            try:
                first = next(iter(self.clients.values()))
                server_metrics(page, first.info("dq"))
                for db, keys in self.queues().items():
                    for key in keys:
                        self.queue(page, db, key)
                up = 1
            except redis.RedisError as error:
                print(f"no figures from the server: {error}", file=sys.stderr, flush=True)
                page, up = Page(), 0
        page.gauge("dq_up", "1 if the server gave its figures", up)
        page.gauge("dq_scrape_duration_seconds", "How long this page took", round(time.monotonic() - began, 6))
        return page.text()

    def queue(self, page, db, key):
        client = self.clients[db]
        try:
            info = as_map(client.execute_command("DQ.INFO", key))
            held = self.held_groups(client, key) if info["groups"] else 0
        except redis.ResponseError as error:
            # A queue that was deleted, or whose name something else has now, since it was found.
            if "no such queue" in str(error) or str(error).startswith("WRONGTYPE"):
                return
            raise
        queue_metrics(page, info, held, db=db, queue=readable(key))


def handler(exporter):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.split("?")[0] != "/metrics":
                self.send_error(404, "metrics are at /metrics")
                return
            body = exporter.collect().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):
            pass

    return Handler


def address(text):
    host, _, port = text.rpartition(":")
    if not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--redis", default="redis://127.0.0.1:6379", help="the server: redis://, rediss://, unix:// (%(default)s)")
    add("--listen", type=address, default=("127.0.0.1", 9122), help="HOST:PORT (127.0.0.1:9122)")
    add("--db", type=int, action="append", help="a database to look at; repeatable (0)")
    add("--queue", action="append", help="a queue by its name, instead of SCAN; repeatable")
    add("--match", default="*", help="pattern of the keys that SCAN looks for (%(default)s)")
    add("--discover", type=float, default=60, help="seconds between two SCANs (%(default)s)")
    add("--timeout", type=float, default=5, help="seconds to wait for the server (%(default)s)")
    args = parser.parse_args()
    args.db = args.db or [0]
    return args


def main():
    args = arguments()
    server = ThreadingHTTPServer(args.listen, handler(Exporter(args)))
    host, port = server.server_address[:2]
    print(f"serving http://{host}:{port}/metrics", file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
