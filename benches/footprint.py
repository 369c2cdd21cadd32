"""Measures bytes: the memory of a million messages beyond their payloads, and the size of their snapshot."""

import time
from contextlib import ExitStack
from statistics import median

from bench import median_ratio
from generator import PAYLOAD, Step
from lua_design import LuaDesign
from report import Row
from workloads import HOURS, MILLION, fill

DELAYED = f"DQ.SEND q {{payload}} DELAY {HOURS}"
GROUPED = "DQ.SEND q {payload} GROUP g{seq:TENTH}"
LEASED = "DQ.FETCH q COUNT 1000 LEASE 7200000"

# The kind of entry, the command that sends it, the command that leases it, and the limit of bytes a message beyond the
# payload.
LAYOUTS = [
    ("delayed", DELAYED, None, 80),
    ("ready", "DQ.SEND q {payload}", None, 80),
    ("running", "DQ.SEND q {payload}", LEASED, 80),
    ("delayed, in groups of 10", f"{GROUPED} DELAY {HOURS}", None, 110),
    ("ready, in groups of 10", GROUPED, None, 110),
    ("running, in groups of 10", GROUPED, f"{LEASED} PERGROUP 10", 110),
    ("delayed, ids of 36 bytes given", f"{DELAYED} ID {{uuid}}", None, None),
    ("parked until a signal comes", "DQ.SEND q {payload} PARK", None, 200),
]


def memory(bench):
    """Returns rows of used_memory a message beyond the payload."""
    if not bench.wanted("memory"):
        return []
    section = "Memory, bytes a message over its 100 of payload"
    million = bench.scaled(MILLION)
    with bench.server() as server:
        bench.say("memory: the peers")
        peers = {
            "stream": _over_payload(server, million, lambda: fill(bench, server, "XADD x * f {payload}", million)),
            "Lua design": _over_payload(
                server, million, lambda: bench.generator.run(server, LuaDesign(server).send, million)
            ),
        }
        peer = ", ".join(f"{bytes_:.0f} B {name}" for name, bytes_ in peers.items())
        rows = []
        for what, send, lease, at_most in LAYOUTS:
            bench.say(f"memory: {what}")
            over = _over_payload(server, million, lambda: _hold(bench, server, million, send, lease))
            rows.append(Row(section, what, f"{over:.1f} B", peer, over, "B", at_most=at_most))
    return rows


MEMBER_AT_MOST = 8
"""Bytes that a member of a batch, or a child, may take more than the same message alone."""


def members(bench):
    """Returns rows of the memory that a message of a batch, and a child of one parent, need more than a message
    alone.
    """
    if not bench.wanted("batch"):
        return []
    million = bench.scaled(MILLION)
    kinds = {"alone": "", "in a batch": " BATCH b", "child of one parent": " PARENT parents p"}

    def send(server, options):
        server.client.execute_command("DQ.SEND", "parents", "x", "ID", "p", "CHILDREN", million)
        fill(bench, server, f"DQ.SEND q {{payload}}{options}", million)

    with bench.server() as server:
        bench.say("memory: members of a batch and children")
        over = {kind: _over_payload(server, million, lambda: send(server, options)) for kind, options in kinds.items()}
    alone = over.pop("alone")
    section = "Memory of a million ready messages of a batch, or of one parent, bytes each more than alone"
    return [
        Row(section, kind, f"{bytes_:.1f} B", f"{alone:.1f} B  alone", bytes_ - alone, "B", at_most=MEMBER_AT_MOST)
        for kind, bytes_ in over.items()
    ]


def _over_payload(server, messages, load):
    server.empty()
    before = server.used_memory()
    load()
    return (server.used_memory() - before) / messages - PAYLOAD


def _hold(bench, server, messages, send, lease):
    fill(bench, server, send.replace("TENTH", str(messages // 10)), messages)
    if lease is not None:
        done = bench.generator.run(server, [Step(lease, "receipts")], max(messages // 1000, 1), pipeline=1)
        if done.taken < 0.99 * messages and not bench.quick:
            raise RuntimeError(f"only {done.taken} of {messages} messages are leased")


def snapshot(bench):
    """Returns rows of saving, loading and the size of the file, against a stream with as many payloads."""
    if not bench.wanted("rdb"):
        return []
    million = bench.scaled(MILLION)
    contents = {"dq": DELAYED, "stream": "XADD x * f {payload}"}
    save, load, size = ({name: [] for name in contents} for _ in range(3))
    with ExitStack() as stack:
        servers = {}
        for name, send in contents.items():
            bench.say(f"snapshot: filling, {name}")
            servers[name] = stack.enter_context(bench.server())
            fill(bench, servers[name], send, million)
        for number in range(bench.rounds):
            bench.say(f"snapshot: round {number + 1} of {bench.rounds}")
            for name, server in servers.items():
                start = time.monotonic()
                server.client.save()
                save[name].append(time.monotonic() - start)
                dump = server.dir / "dump.rdb"
                size[name].append(dump.stat().st_size / million)
                with bench.server(dump=dump) as loaded:
                    # The server's log rounds to milliseconds, so a quick run can give 0.
                    load[name].append(max(loaded.loading_seconds(), 0.001))
    section = "RDB of a million delayed messages against a stream of the same payloads"
    return [
        _rdb_row(section, "save", "s", save, 1.0),
        _rdb_row(section, "load", "s", load, 2.0),
        _rdb_row(section, "bytes a message", "B", size, 1.3),
    ]


def _rdb_row(section, what, unit, values, at_most):
    text = {name: f"{median(of):.2f} {unit}" for name, of in values.items()}
    ratio = median_ratio(values["dq"], values["stream"])
    return Row(section, what, text["dq"], f"{text['stream']}  stream", ratio, at_most=at_most)
