#!/usr/bin/env python3
"""Serves the figures of dq queues to Prometheus.

    python3 -m venv .venv && .venv/bin/pip install redis prometheus-client
    .venv/bin/python monitoring/dq_exporter.py --redis redis://127.0.0.1:6379 --listen 127.0.0.1:9122

On Debian the packages python3-redis and python3-prometheus-client are enough, without a virtual environment.

GET /metrics asks the server at that moment: one INFO dq, and for each queue one DQ.INFO, and DQ.GROUPS, DQ.LIMITS, DQ.BATCHES,
DQ.LIST and DQ.EXPLAIN where they can tell more. With --sums it asks for INFO dq alone. Queues are found by SCAN, once a
minute (--discover), or named (--queue, as often as you like), which spares a server of many other keys the SCAN. The queues of a family (--family) are added up by the server, one DQ.NINFO for each node, and have no figures
of their own. If the server is a node of a cluster, all of its primaries are asked. The rights that the exporter needs:
+info +dq.info +dq.groups +dq.limits +dq.list +dq.batches +dq.explain +dq.ninfo +scan +select, in a cluster also
+cluster|slots +command, and %R~* on the keys. Without some of them, its figures are left out.

All metrics, with their meaning, are listed in docs/monitoring.md.
"""

import argparse
import os
import socket
import sys
import threading
import time
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import redis
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from redis.cluster import RedisCluster

STATES = ("delayed", "ready", "blocked", "retry", "held", "running", "finished", "dead", "cancelled")
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
# The number of limits and batches of a queue, and of its oldest held messages, that are looked at.
MOST_LIMITS, MOST_STUCK = 100, 20
# The number of queues about which one round trip asks.
AT_ONCE = 200
# The number of connections that are served at the same time. Others wait until one of them ends.
MOST_CONNECTIONS = 20
# A connection says nothing for so long, or takes so long in all, and then it is closed: seconds.
SILENCE, PATIENCE = 10, 60


class Page:
    """Metrics, grouped by name as Prometheus demands."""

    def __init__(self):
        self.families = {}

    def add(self, kind, name, help, value, labels) -> None:
        family = self.families.get(name)
        if family is None:
            family = self.families[name] = kind(name, help, labels=tuple(labels))
        family.add_metric([str(text) for text in labels.values()], value)

    def gauge(self, name, help, value, **labels) -> None:
        self.add(GaugeMetricFamily, name, help, value, labels)

    def counter(self, name, help, value, **labels) -> None:
        self.add(CounterMetricFamily, name, help, value, labels)


def readable(name: bytes) -> str:
    """The name as text. A backslash is doubled, so that no two names become the same text: one series each."""
    return name.replace(b"\\", b"\\\\").decode(errors="backslashreplace")


def as_map(reply) -> dict:
    """A map reply with text keys, from RESP2 or RESP3."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    return {readable(name): value for name, value in pairs}


def server_metrics(page: Page, info: dict, **at) -> None:
    """The samples of a whole server from `INFO dq`; `at` names the server."""
    if "dq_queues" not in info:
        raise redis.ResponseError("the server has no dq module")
    build = {name: info.get(f"dq_{name}", "unknown") for name in ("version", "revision")}
    page.gauge("dq_build_info", "Always 1; the labels say which module runs", 1, **at, **build)
    unapplied = info["dq_unapplied_entries"]
    page.counter("dq_unapplied_entries_total", "Log entries that could not be applied since start", unapplied, **at)
    page.counter("dq_internal_errors_total", "Internal errors since start", info["dq_internal_errors"], **at)
    page.gauge("dq_queues", "Queues", info["dq_queues"], **at)
    for state in STATES:
        page.gauge("dq_messages", "Messages of all queues by state", info[f"dq_{state}"], **at, state=state)
    page.gauge("dq_memory_bytes", "Memory of all queues", info["dq_memory"], **at)
    page.gauge("dq_blocked_clients", "Clients that wait for messages", info["dq_blocked_clients"], **at)
    page.counter("dq_skipped_fires_total", "Fire times of schedules that met a full queue", info["dq_skipped_fires"], **at)
    page.counter("dq_timer_slices_total", "Slices of timer work", info["dq_slices"], **at)
    page.gauge("dq_timer_longest_slice_seconds", "The longest slice since start", info["dq_longest_slice_us"] / 1e6, **at)
    page.gauge("dq_timer_lag_seconds", "How late the timer was the last time", info["dq_timer_lag_ms"] / 1e3, **at)
    lag = info["dq_timer_lag_max_ms"] / 1e3
    page.gauge("dq_timer_lag_max_seconds", "How late the timer was at most since start", lag, **at)
    for quantile, name in QUANTILES.items():
        late = info[f"dq_lateness_{name}_ms"] / 1e3
        page.gauge("dq_lateness_seconds", "Time from ready to delivered, over all deliveries", late, **at, quantile=quantile)
    late = info["dq_lateness_max_ms"] / 1e3
    page.gauge("dq_lateness_max_seconds", "The longest time from ready to delivered", late, **at)
    for name, calls in info.items():
        if name.startswith("dq_calls_"):
            page.counter("dq_calls_total", "Calls by verb", calls, **at, verb=name.removeprefix("dq_calls_"))


def load_metrics(page: Page, kind: str, info: dict, **at) -> None:
    """The samples of a queue from DQ.INFO, and of a family from DQ.NINFO: what there is, and how long it waits."""
    for state in STATES:
        page.gauge(f"dq_{kind}_messages", "Messages by state", info[state], **at, state=state)
    page.gauge(f"dq_{kind}_blocked_clients", "Clients that wait for messages", info["blocked-clients"], **at)
    age = (info["oldest-ready-age"] or 0) / 1e3
    page.gauge(f"dq_{kind}_oldest_ready_age_seconds", "How long the oldest ready message has waited", age, **at)
    age = (info["oldest-due-age"] or 0) / 1e3
    page.gauge(f"dq_{kind}_oldest_due_age_seconds", "How long the oldest message is due that was not delivered", age, **at)
    if info["lateness-max"] is not None:
        for quantile, name in QUANTILES.items():
            late = info[f"lateness-{name}"] / 1e3
            page.gauge(f"dq_{kind}_lateness_seconds", "Time from ready to delivered", late, **at, quantile=quantile)
        late = info["lateness-max"] / 1e3
        page.gauge(f"dq_{kind}_lateness_max_seconds", "The longest time from ready to delivered", late, **at)


def queue_metrics(page: Page, info: dict, held: int, **at) -> None:
    """The samples of a queue from DQ.INFO; `at` are the labels that name it."""
    load_metrics(page, "queue", info, **at)
    page.gauge("dq_queue_payload_bytes", "Payload bytes of pending and running messages", info["bytes"], **at)
    packed, memory = info.get("packed-bytes", 0), info.get("packed-memory", 0)
    page.gauge("dq_queue_packed_bytes", "Bytes of payloads that are packed, as they were sent", packed, **at)
    page.gauge("dq_queue_packed_memory_bytes", "Memory that the packed payloads take, with dictionaries", memory, **at)
    page.gauge("dq_queue_groups", "Groups with messages, settings or a hold", info["groups"], **at)
    page.gauge("dq_queue_held_groups", "Groups that can give nothing and have no lease, 1000 at most", held, **at)
    waits = {"children": info.get("parents", 0), "signal": info.get("parked", 0)}
    waits["batch"] = info["held"] - sum(waits.values())
    for reason, count in waits.items():
        page.gauge("dq_queue_held_messages", "Held messages by what they wait for", count, **at, reason=reason)
    page.gauge("dq_queue_batches", "Batches of which a message has not ended", info["batches"], **at)
    page.gauge("dq_queue_consumers", "Consumers known by name", info["consumers"], **at)
    page.gauge("dq_queue_paused", "1 while the queue is paused", int(info["paused"]), **at)
    page.gauge("dq_queue_closed", "1 while the queue takes no new messages", int(info["sends"] == "OFF"), **at)
    page.gauge("dq_queue_breakers_open", "Groups whose breaker is open", info["breakers-open"], **at)
    moved = info.get("deadto-moved", 0)
    page.counter("dq_queue_deadto_moved_total", "Dead messages that went to the queue of DEADTO", moved, **at)
    stuck = int(info.get("deadto-error") is not None)
    page.gauge("dq_queue_deadto_stuck", "1 while dead messages cannot go to the queue of DEADTO", stuck, **at)
    stopped = int(info.get("events-error") is not None)
    page.gauge("dq_queue_events_stopped", "1 while nothing can be added to the stream of EVENTS", stopped, **at)
    waits = info.get("waits-for-slot", 0)
    page.gauge("dq_queue_waits_for_slot", "1 while what is due waits for other keys of its slot", waits, **at)
    if info["maxlen"]:
        page.gauge("dq_queue_max_messages", "MAXLEN, where it is set", info["maxlen"], **at)
    for name, help in TOTALS.items():
        page.counter(f"dq_queue_{name}_total", help, info[name], **at)
    if info["next-due-at"] is not None:
        due = info["next-due-at"] / 1e3
        page.gauge("dq_queue_next_due_timestamp_seconds", "When the next delayed or retried message is due", due, **at)


class Node:
    """One server: its name, and a client of each database."""

    def __init__(self, name: str, clients: dict):
        self.name, self.clients = name, clients


class Exporter:
    """Collects a page; one at a time, so that an impatient Prometheus does not multiply the work."""

    def __init__(self, args):
        self.args, self.turn = args, threading.Lock()
        options = {"socket_timeout": args.timeout, "socket_connect_timeout": args.timeout}
        if args.password_file:
            options["password"] = password(args.password_file)
        self.clients = {db: redis.Redis.from_url(args.redis, db=db, **options) for db in args.db}
        self.options, self.cluster = options, None
        self.nodes, self.found, self.next_look = [], {}, 0.0

    def look(self) -> None:
        """Finds the primaries of the cluster, if it is one. The queues are then looked for anew."""
        first = next(iter(self.clients.values()))
        if self.cluster is not None:
            self.cluster.close()
            self.cluster = None
        if first.info("cluster")["cluster_enabled"]:
            self.cluster = RedisCluster.from_url(self.args.redis, **self.options)
            primaries = sorted(self.cluster.get_primaries(), key=lambda node: node.name)
            self.nodes = [Node(node.name, {0: self.cluster.get_redis_connection(node)}) for node in primaries]
        else:
            at = first.connection_pool.connection_kwargs
            name = at.get("path") or f"{at.get('host', 'localhost')}:{at.get('port', 6379)}"
            self.nodes = [Node(name, self.clients)]
        self.found, self.next_look = {}, time.monotonic() + self.args.discover

    def is_of_family(self, key: bytes) -> bool:
        return any(key.startswith(name.encode() + b":{") and key.endswith(b"}") for name in self.args.family)

    def queues(self, node: Node) -> dict:
        """Database -> keys."""
        if self.args.queue:
            return {db: [name.encode() for name in self.args.queue] for db in node.clients}
        if node.name not in self.found:
            self.found[node.name] = {
                db: sorted(
                    key
                    for key in set(client.scan_iter(match=self.args.match, count=1000, _type="dqueue-rs"))
                    if not self.is_of_family(key)
                )
                for db, client in node.clients.items()
            }
        return self.found[node.name]

    def held_groups(self, client, key, cursor, held) -> int:
        """Goes on with the groups of a queue behind the first page, which had `held` of them."""
        for _ in range(MOST_PAGES - 1):
            if cursor == b"0" or held >= MOST_HELD:
                break
            words = ("DQ.GROUPS", key, "CURSOR", cursor, "COUNT", MOST_HELD, "STATE", "blocked")
            cursor, rows = client.execute_command(*words)
            held += len(rows)
        return min(held, MOST_HELD)

    def collect(self) -> list:
        """The metrics; with dq_up 0, and nothing else, where a server gives no answer."""
        page, began = Page(), time.monotonic()
        with self.turn:
            try:
                if began >= self.next_look:
                    self.look()
                for node in self.nodes:
                    self.node(page, node)
                up = 1
            except (redis.RedisError, OSError) as error:
                print(f"no figures from the server: {error}", file=sys.stderr, flush=True)
                # A node may be gone for ever, so the next call looks for those that there are.
                page, up, self.next_look = Page(), 0, 0.0
        page.gauge("dq_up", "1 if the server gave its figures", up)
        page.gauge("dq_scrape_duration_seconds", "How long this page took", round(time.monotonic() - began, 6))
        return list(page.families.values())

    def node(self, page, node) -> None:
        first = next(iter(node.clients.values()))
        server_metrics(page, first.info("dq"), node=node.name)
        for name in self.args.family:
            for db, client in node.clients.items():
                info = as_map(client.execute_command("DQ.NINFO", name))
                at = {"db": db, "family": name, "node": node.name}
                page.gauge("dq_family_queues", "Queues of the family on this node", info["queues"], **at)
                load_metrics(page, "family", info, **at)
        if self.args.sums:
            return
        for db, keys in self.queues(node).items():
            for start in range(0, len(keys), AT_ONCE):
                self.some_queues(page, db, node.clients[db], keys[start : start + AT_ONCE])

    def some_queues(self, page, db, client, keys) -> None:
        infos = {}
        for key, [reply] in ask(client, {key: [("DQ.INFO", key)] for key in keys}).items():
            if reply is not None:
                infos[key] = as_map(reply)
        wanted = {key: list(looks(key, info)) for key, info in infos.items()}
        found = ask(client, wanted)
        for key, info in infos.items():
            replies = dict(zip((words[0] for words in wanted[key]), found[key]))
            at, held = {"db": db, "queue": readable(key)}, 0
            if (groups := replies.get("DQ.GROUPS")) is not None:
                held = self.held_groups(client, key, groups[0], len(groups[1]))
            queue_metrics(page, info, held, **at)
            limit_metrics(page, as_maps(replies.get("DQ.LIMITS")), **at)
            messages, batches = as_maps(replies.get("DQ.LIST")), as_maps(replies.get("DQ.BATCHES"))
            stuck_metrics(page, client, key, info, messages, batches, **at)


def ask(client, wanted: dict) -> dict:
    """Asks for several commands for each queue, in one round trip. None is the reply of a queue that was deleted, moved to
    another node, or whose name something else has now, and of what the user may not ask for."""
    pipeline = client.pipeline(transaction=False)
    for commands in wanted.values():
        for words in commands:
            pipeline.execute_command(*words)
    replies, found = iter(pipeline.execute(raise_on_error=False)), {}
    for key, commands in wanted.items():
        found[key] = []
        for words in commands:
            reply = next(replies)
            if isinstance(reply, Exception):
                is_elsewhere = isinstance(reply, redis.exceptions.AskError)
                is_gone = is_elsewhere or "no such queue" in str(reply) or str(reply).startswith("WRONGTYPE")
                is_refused = isinstance(reply, redis.exceptions.NoPermissionError) and words[0] != "DQ.INFO"
                if not (is_gone or is_refused):
                    raise reply
                reply = None
            found[key].append(reply)
    return found


def looks(key, info: dict):
    """The commands that tell more of a queue, as far as there can be anything."""
    if info["groups"]:
        yield "DQ.GROUPS", key, "COUNT", MOST_HELD, "STATE", "blocked"
    if info["ready"] or info["running"]:
        yield "DQ.LIMITS", key, "COUNT", MOST_LIMITS
    if info["held"]:
        yield "DQ.LIST", key, "held", "COUNT", MOST_STUCK
        yield "DQ.BATCHES", key, "COUNT", MOST_LIMITS


def as_maps(reply) -> list:
    """The maps of a page."""
    return [as_map(one) for one in reply[1]] if reply else []


def limit_metrics(page: Page, limits: list, **at) -> None:
    """The figures of DQ.LIMITS by rule. The names of a pattern are added up: there may be one for each user."""
    rules = {}
    for limit in limits:
        if limit["rule"] is not None:
            rules.setdefault(limit["rule"], []).append(limit)
    for rule, names in rules.items():
        at["limit"] = readable(rule)
        running = sum(one["running"] for one in names)
        page.gauge("dq_queue_limit_running", "Messages that run under a limit", running, **at)
        waiting = sum(one["waiting"] for one in names)
        page.gauge("dq_queue_limit_waiting_groups", "Groups that wait for a limit", waiting, **at)
        never = sum(one["next-free"] == b"never" for one in names)
        help = "Names of a limit for which the first that waits costs more than it ever allows"
        page.gauge("dq_queue_limit_never", help, never, **at)


def stuck_metrics(page, client, key, info, messages, batches, **at) -> None:
    """How long the oldest held message waits for what never comes by itself."""
    now, oldest = info["now"], {}
    dead = {one["batch"] for one in batches if one["dead"] and not one["pending"] + one["running"]}
    whys = ask(client, {key: [("DQ.EXPLAIN", key, one["id"]) for one in messages]})[key] if messages else []
    for one, why in zip(messages, whys):
        why = as_map(why) if why else {}
        children = as_map(one["children"]) if one.get("children") else {"pending": 1}
        reason = None
        if why.get("code") == b"parked":
            reason = "parked" if why["until"] is None else None
        elif why.get("code") == b"batch-open":
            reason = "dead-batch" if why["by"] in dead else None
        elif not children["pending"] and children["dead"]:
            reason = "dead-child"
        if reason:
            oldest[reason] = max(oldest.get(reason, 0), now - one["sent-at"])
    for reason, age in oldest.items():
        page.gauge("dq_queue_stuck_seconds", "How long a message is held by what does not end by itself", age / 1e3, **at, reason=reason)


class Handler(WSGIRequestHandler):
    """Answers one request. Who says nothing has gone."""

    timeout = SILENCE

    def log_message(self, format, *args):
        pass


class Server(ThreadingMixIn, WSGIServer):
    """Serves a bounded number of connections at once, each for a bounded time."""

    daemon_threads = True

    def __init__(self, host, port, app):
        self.address_family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0][0]
        self.places, self.open, self.lock = threading.Semaphore(MOST_CONNECTIONS), {}, threading.Lock()
        super().__init__((host, port), Handler)
        self.set_app(app)

    def process_request(self, request, client_address):
        while not self.places.acquire(timeout=0.5):
            self.service_actions()
        with self.lock:
            self.open[request] = time.monotonic()
        try:
            super().process_request(request, client_address)
        except Exception:
            self.leave(request)
            raise

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.leave(request)

    def leave(self, request):
        with self.lock:
            self.open.pop(request, None)
        self.places.release()

    def service_actions(self):
        """Ends the connections that take too long, such as those that send a byte now and then."""
        late = time.monotonic() - PATIENCE
        with self.lock:
            for request, since in self.open.items():
                if since < late:
                    try:
                        request.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        # It has ended by itself meanwhile.
                        pass

    def handle_error(self, request, client_address):
        """A connection that ends early is no error of ours."""


def password(path):
    """The first line of a file. Everybody may not change it, and had better not read it."""
    mode = os.stat(path).st_mode
    if mode & 0o002:
        sys.exit(f"{path}: everybody may change this file: chmod o-w {path}")
    if mode & 0o004:
        print(f"warning: {path}: everybody may read this file: chmod o-r {path}", file=sys.stderr, flush=True)
    with open(path) as file:
        return file.readline().rstrip("\r\n")


def address(text):
    host, _, port = text.rpartition(":")
    if not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    server = os.environ.get("DQ_EXPORTER_REDIS", "redis://127.0.0.1:6379")
    add("--redis", default=server, help="the server: redis://, rediss://, unix:// (DQ_EXPORTER_REDIS, or 127.0.0.1:6379)")
    file = os.environ.get("DQ_EXPORTER_PASSWORD_FILE")
    add("--password-file", default=file, help="a file with the server's password, instead of the URL (DQ_EXPORTER_PASSWORD_FILE)")
    add("--listen", type=address, default=("127.0.0.1", 9122), help="HOST:PORT (127.0.0.1:9122)")
    add("--db", type=int, action="append", help="a database to look at; repeatable (0)")
    add("--queue", action="append", help="a queue by its name, instead of SCAN; repeatable")
    add("--family", action="append", default=[], help="a family, whose queues are added up; repeatable")
    add("--sums", action="store_true", help="no figures of single queues, only those of servers and families")
    add("--match", default="*", help="pattern of the keys that SCAN looks for (%(default)s)")
    add("--discover", type=float, default=60, help="seconds between two SCANs (%(default)s)")
    add("--timeout", type=float, default=5, help="seconds to wait for the server (%(default)s)")
    args = parser.parse_args()
    # A database, queue or family that is named twice is one series.
    args.db = list(dict.fromkeys(args.db or [0]))
    args.queue = list(dict.fromkeys(args.queue or ()))
    args.family = list(dict.fromkeys(args.family))
    return args


def main():
    args = arguments()
    # A registry of its own, so that the page has the figures of the queues only, not of this program.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Exporter(args))
    host, port = args.listen
    server = Server(host, port, make_wsgi_app(registry))
    print(f"serving http://{host}:{port}/metrics", file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
