"""Time: how long a burst holds the server, how late messages are, what an idle server costs."""

import resource
import socket
import time
from contextlib import ExitStack
from statistics import median

from bench import Taken
from generator import CONNECTIONS, Step
from lua_design import LuaDesign
from report import Row
from workloads import HOURS, MILLION, fill

# The slowest rows take 15 s a round: three rounds tell as much as more would.
MOST_ROUNDS = 3


def stall(bench):
    """Rows of the longest wait of a PING while a million messages fall due in one millisecond."""
    rows = []
    section = "1,000,000 messages fall due at once: longest wait of a PING above the idle maximum"
    with bench.server() as server:
        lua = None
        for waiting in (False, True):
            name = "50 consumers waiting" if waiting else "no consumer waiting"
            if not bench.wanted("stall-waiting" if waiting else "stall-alone"):
                continue
            lua = lua or _lua_stall(bench, server)
            idle, burst = [], []
            for number in range(min(bench.rounds, MOST_ROUNDS)):
                bench.say(f"stall, {name}: round {number + 1}")
                bench.look_around()
                idle.append(_watch(bench, server, waiting, burst=False))
                burst.append(_watch(bench, server, waiting, burst=True))
            rows.append(
                Row(
                    section,
                    name,
                    f"{median(burst):.2f} ms (idle {median(idle):.2f}; at worst {max(burst):.2f}, idle {max(idle):.2f})",
                    f"{lua:.0f} ms  Lua design, one promotion",
                    median(busy - quiet for busy, quiet in zip(burst, idle)),
                    "ms",
                    at_most=2,
                )
            )
    return rows


def _watch(bench, server, waiting, *, burst):
    """Milliseconds of the longest wait within 4 s; with a burst, it begins in the second of them."""
    millions = bench.scaled(MILLION)
    window = 1 if bench.quick else 4
    lead = 1.5 if bench.quick else 7
    due = int((time.time() + lead) * 1000)
    if burst:
        fill(bench, server, f"DQ.MSEND q 100 {{payload:100}} AT {due}", millions, batch=100, pipeline=8)
        if time.time() > due / 1000 - 1:
            raise RuntimeError("the messages could not be sent before they were due")
    consumers = None
    if waiting:
        drain = "DQ.FETCH q COUNT 10 BLOCK 8000 [ ACK {count} {taken} ]"
        wait = f"DQ.FETCH q BLOCK {window}500"
        steps = [Step(drain if burst else wait, "receipts")]
        consumers = bench.generator.start(server, steps, millions // 10 if burst else CONNECTIONS, pipeline=1)
    if burst:
        time.sleep(max(due / 1000 - time.time() - window / 4, 0))
    else:
        time.sleep(0.2)
    longest = bench.generator.finish_probe(bench.generator.start_probe(server, window))["max_us"] / 1000
    if consumers is not None:
        bench.generator.finish(consumers)
    server.empty()
    return longest


def _lua_stall(bench, server):
    bench.say("stall: the Lua design")
    design = LuaDesign(server)
    bench.generator.run(server, design.send, bench.scaled(MILLION))
    probe = bench.generator.start_probe(server, 4)
    time.sleep(0.5)
    design.promote()
    longest = bench.generator.finish_probe(probe)["max_us"] / 1000
    server.empty()
    return longest


def lateness(bench):
    """Rows of how late messages reach consumers that wait for them."""
    rows = []
    seconds = 1 if bench.quick else 10
    with bench.server() as server:
        for consumers, messages, median_limit in ((50, 100_000, 1), (4, 10_000, None)):
            if not bench.wanted(f"lateness-{consumers}"):
                continue
            found, taken = [], []
            for number in range(min(bench.rounds, MOST_ROUNDS)):
                bench.say(f"lateness, {consumers} consumers: round {number + 1}")
                bench.look_around()
                with Taken() as by_host:
                    found.append(bench.generator.lateness(server, "q", bench.scaled(messages), seconds, consumers))
                taken.append(by_host.percent)
                server.empty()
            host = f"the host took {median(taken):.1f} % of the processors away"
            section = "Lateness: from the due time to the hands of a blocked consumer"
            what = f"{messages:,} over 10 s, {consumers} consumers"
            for field, at_most in (("p50_us", median_limit), ("p99_us", 5), ("max_us", None)):
                late = median(one[field] for one in found) / 1000
                title = f"{what}: {field.removesuffix('_us')}"
                rows.append(Row(section, title, f"{late:.2f} ms", host, late, "ms", at_most=at_most))
            earliest = min(one["min_us"] for one in found) / 1000
            rows.append(Row(section, f"{what}: earliest", f"{earliest:.2f} ms", "", earliest, "ms", at_least=0))
    return rows


def idle(bench):
    """Rows of the CPU of a server that only waits, above that of a bare one."""
    if not bench.wanted("idle"):
        return []
    return [_idle(bench, clients) for clients in (100, 1_000)]


def _idle(bench, clients):
    bench.say(f"idle: a million delayed messages, {clients:,} blocked clients")
    connections = bench.scaled(clients)
    with ExitStack() as stack:
        ours = stack.enter_context(bench.server())
        bare, lists = (stack.enter_context(bench.bare_server()) for _ in range(2))
        fill(bench, ours, f"DQ.SEND q {{payload}} DELAY {HOURS}", bench.scaled(MILLION))
        for server, command in ((ours, "DQ.FETCH q BLOCK 0"), (lists, "BLPOP l 0")):
            for connection in _blocked(connections, server, command):
                stack.enter_context(connection)
        time.sleep(1)
        servers = (ours, bare, lists)
        before = [server.cpu() for server in servers]
        start = time.monotonic()
        time.sleep(2 if bench.quick else 20)
        elapsed = time.monotonic() - start
        share = [(server.cpu() - at) / elapsed * 100 for server, at in zip(servers, before)]
    return Row(
        "Idle server with 1,000,000 delayed messages: CPU of one core above a bare server",
        f"{clients:,} blocked clients",
        f"{share[0]:.2f} %",
        f"{share[1]:.2f} % bare, {share[2]:.2f} % with {clients:,} clients in BLPOP",
        share[0] - share[1],
        "%",
        at_most=0.2,
    )


def _blocked(number, server, command):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for _ in range(number):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(command.encode() + b"\r\n")
        yield connection
