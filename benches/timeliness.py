"""Measures time: how long a burst stalls the server, how late messages are, and what an idle server costs."""

import resource
import socket
import time
from contextlib import ExitStack
from statistics import median

from generator import CONNECTIONS, Step
from lua_design import LuaDesign
from report import Row
from server import CORES
from workloads import HOURS, MILLION, fill

from tests.harness.absence import Absences
from tests.load.probe import Probe, Waits

# The slowest rows take 15 s a round, and more than three rounds show nothing new.
MOST_ROUNDS = 3
# Number of fetches of ten messages that take a million messages.
ALL = MILLION // 10
# The consumers during the burst: none; some that wait for one message each; some that take all of it as fast as they
# can. To compare with, the last ones take as many messages that were due before.
STALLS = (
    ("stall-alone", "no consumer waiting", None),
    ("stall-waiting", "50 consumers waiting, for a message each", CONNECTIONS),
    ("stall-draining", "50 consumers that take it all, above the same with messages due long before", ALL),
)


def stall(bench):
    """Returns rows of the longest wait of a PING while a million messages fall due in one millisecond."""
    rows = []
    section = "1,000,000 messages fall due at once: longest wait of a PING above the idle maximum"
    with bench.server() as server:
        lua = None
        for key, name, fetches in STALLS:
            if not bench.wanted(key):
                continue
            lua = lua or _lua_stall(bench, server)
            idle, burst = [], []
            for number in range(min(bench.rounds, MOST_ROUNDS)):
                bench.say(f"stall, {name}: round {number + 1}")
                bench.look_around()
                idle.append(_watch(bench, server, fetches, burst=False))
                burst.append(_watch(bench, server, fetches, burst=True))
            rows.append(_stall_row(section, name, idle, burst, f"{lua:.0f} ms  Lua design, one promotion"))
    return rows


def _stall_row(section, name, idle, burst, peer):
    """Returns the row of one stall.

    `idle` and `burst` have a pair for each round: the longest wait without and with the absences of processors.
    """
    (own, whole), (own_idle, whole_idle) = ([median(each) for each in zip(*pairs)] for pairs in (burst, idle))
    worst = max(own for own, _ in burst)
    ours = f"{own:.2f} ms (idle {own_idle:.2f}; at worst {worst:.2f}); whole {whole:.2f} (idle {whole_idle:.2f})"
    beyond = median(busy - quiet for (busy, _), (quiet, _) in zip(burst, idle))
    return Row(section, name, ours, peer, beyond, "ms", at_most=2)


def _watch(bench, server, fetches, *, burst):
    """Returns the longest wait within 4 s in ms, without and with the absences. A burst begins after one second.

    Without a burst the consumers take messages that were due before, if they are to take everything, or wait in vain.
    """
    millions = bench.scaled(MILLION)
    takes_all = fetches == ALL
    window = 1 if bench.quick else 4
    due = int((time.time() + (1.5 if bench.quick else 7)) * 1000)
    if burst or takes_all:
        when = f"AT {due}" if burst else ""
        fill(bench, server, f"DQ.MSEND q 100 {{payload:100}} {when}", millions, batch=100, pipeline=8)
    if burst and time.time() > due / 1000 - 1:
        raise RuntimeError("the messages could not be sent before they were due")
    consume = Step(f"DQ.FETCH q COUNT 10 BLOCK {window * 2000} [ ACK {{count}} {{taken}} ]", "receipts")
    consumers = None
    if fetches and burst:
        consumers = _consumers(bench, server, consume, fetches)
    if burst:
        time.sleep(max(due / 1000 - time.time() - window / 4, 0))
    with Absences(CORES) as absences, Probe(server.port) as probe:
        over = time.monotonic() + window
        if fetches and not burst:
            time.sleep(window / 4 if takes_all else 0)
            consumers = _consumers(bench, server, consume, fetches)
        time.sleep(max(over - time.monotonic(), 0))
    if consumers is not None:
        bench.generator.finish(consumers)
    server.empty()
    waits = Waits.of(absences, probe)
    return waits.own, waits.longest


def _consumers(bench, server, consume, fetches):
    return bench.generator.start(server, [consume], min(fetches, bench.scaled(ALL)), pipeline=1)


def _lua_stall(bench, server):
    bench.say("stall: the Lua design")
    design = LuaDesign(server)
    bench.generator.run(server, design.send, bench.scaled(MILLION))
    with Absences(CORES) as absences, Probe(server.port) as probe:
        design.promote()
    server.empty()
    return Waits.of(absences, probe).own


def lateness(bench):
    """Returns rows of how late messages reach consumers that wait for them."""
    rows = []
    seconds = 1 if bench.quick else 10
    with bench.server() as server:
        for consumers, messages, median_limit in ((50, 100_000, 1), (4, 10_000, None)):
            if not bench.wanted(f"lateness-{consumers}"):
                continue
            found = []
            for number in range(min(bench.rounds, MOST_ROUNDS)):
                bench.say(f"lateness, {consumers} consumers: round {number + 1}")
                bench.look_around()
                with Absences(CORES) as absences:
                    late = bench.generator.lateness(server, "q", bench.scaled(messages), seconds, consumers)
                found.append((late, late.without(absences)))
                server.empty()
            section = "Lateness: from the due time to the hands of a blocked consumer"
            what = f"{messages:,} over 10 s, {consumers} consumers"
            for name, percent, at_most in (("p50", 50, median_limit), ("p99", 99, 5), ("max", 100, None)):
                late, own = (median(some.percentile(percent) for some in each) for each in zip(*found))
                peer = f"{own:.2f} ms, absences taken off"
                rows.append(Row(section, f"{what}: {name}", f"{late:.2f} ms", peer, late, "ms", at_most=at_most))
            earliest = min(whole.percentile(0) for whole, _ in found)
            rows.append(Row(section, f"{what}: earliest", f"{earliest:.2f} ms", "", earliest, "ms", at_least=0))
    return rows


def idle(bench):
    """Returns rows of the CPU of an idle server with blocked clients, above that of a server without the module."""
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
