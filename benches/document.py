"""Builds the page that a full run writes: docs/benchmarks.md."""

import os
import platform
import subprocess
import sys
from pathlib import Path

from report import summary, targets
from section import found
from server import CLIENT_CORE, SERVER_CORE

# The rows of the page, by section: the beginning of a title, and of its peer where there are several. Rows that miss their
# target are on it too; `make bench` prints them all.
SHOWN = {
    "Commands": (
        ("SEND, due now", "XADD"), ("SEND, random delay", "ZADD"), ("MSEND", "XADD"), ("FETCH, ACK: two commands", "XREADGROUP COUNT 1 + XACK + XDEL"),
        ("FETCH COUNT 1 ACK 1", "XREADGROUP"), ("FETCH, ACK, SEND with EVENTS, one", ""),
    ),
    "Groups": (("FETCH, ACK: two commands, 100,000 groups", "FETCH, ACK: two commands"),),
    "With AOF": (("SEND, due now", "XADD"), ("FETCH, ACK: two commands", "XREADGROUP COUNT 1 + XACK + XDEL")),
    "Bytes a message": (("SEND, due now + FETCH", ""),),
    "10,000,000": (("SEND, FETCH, ACK", ""), ("MSEND 10", "")),
    "Memory, bytes": (("delayed", ""), ("running", ""), ("parked", "")),
    "Memory of a million": (("child", ""),),
    "RDB": (("save", ""), ("bytes", "")),
    "1,000,000 messages": (("no consumer", ""),),
    "Lateness": (("100,000 over 10 s, 50 consumers: p50", ""), ("100,000 over 10 s, 50 consumers: p99", "")),
    "Many queues": (("10,000 queues, a message each due in one millisecond: the last", ""), ("2,000 messages", "")),
    "Idle": (("1,000 blocked", ""),),
}  # fmt: skip

TEXT = """\
# Benchmarks

Written by `make bench BENCH_FLAGS='--write docs/benchmarks.md'`; the figures are of one run on one machine. Absolute
figures are the machine's; what carries over are the ratios.

{summary}
{disturbance}
## Against the peers

CPU is the processor time of the server's main thread, by the kernel's accounting, divided by the messages: 1 s divided
by it is the ceiling of one server. Each figure is the median of {rounds} rounds in which all rows take turns (at most 3
for stall and lateness; 1 for memory and idle). A result with x is the median of the ratios of the rounds. Commands run
from 50 connections with 64 in flight on each. The table has the rows that most people ask for, and all that miss their
target; `make bench` prints the others.

{targets}

## Batches and FIND

Measured at another time, in one round of `make load LOAD_FLAGS=--searches`: the longest PING while 1,000,000 messages are
sent into one batch and end was 1.02 ms, of which 0.62 ms is that of an idle server; while FIND looks with a PAYLOAD pattern
through 10,000,000 messages it was 0.57 ms. A message that a batch of three holds is given to a waiting consumer 0 ms (p50)
and 1 ms (p99) after the last of them has ended.

## Event streams, and memory that was not used

Each of the four events of a message is an entry of a stream, which alone costs 1.3 us in pipelines, where the message
itself costs 2.5. Streams of 10,000 entries and more, the default, are trimmed by 32 at least, because XADD with an exact
MAXLEN takes 5.0 us. FETCH, ACK and SEND with EVENTS take 1.4 times as long as without, one at a time, and 3.2 times in
pipelines.

Some hosts of virtual machines take the page tables of a machine back when it has not used its memory for some hundred
milliseconds. Then each first use of a page costs 7 to 20 us, whichever program does it, and a queue with a message is one
page. So on such a host 1,000 queues that have slept for a while take 20 to 30 ms, and 10,000 take 100 to 300 ms; the
benchmark reads the queues shortly before.

## dq web

Measured by `make bench-web`: 10,000 queues with 10,000,000 messages, half of them in one queue in all states. "Longest
command" is the longest of five rounds that the page, or the figures that `dq web` keeps new meanwhile, took the server, by
its SLOWLOG. The limit is 2 ms for the round at the median, and for each PING.

| page or action | time until the reader has it | commands | longest command |
|---|---|---|---|
| the figures of five seconds, no page | | 31,477 | 2.83 ms DQ.INFO |
| overview, also sorted or with a condition | 11 to 19 ms | 1 to 208 | 0.25 ms DQ.INFO |
| queue, each choice of groups | 4 to 6 ms | 17 to 103 | 1.96 ms DQ.GROUPS |
| errors, of a queue or of all | 1,507 ms | 9,401 | 2.56 ms SCAN |
| messages by type, batch, group, id, error or payload | 11 to 1,003 ms | 165 to 12,606 | 1.91 ms DQ.LIST |
| count before an action, with a condition | 1,504 ms | 19,020 | 2.68 ms DQ.INFO |
| redrive 500,000 dead messages | 0.4 s | 4,504 | 0.50 ms DQ.FIND |
| cancel 500,000 messages by their type | 4.0 s | 44,831 | 1.85 ms DQ.INFO |

A page with conditions looks for one second at most, and a count and the errors for one and a half. Of 67,258 PINGs, one
each millisecond, 99 % took at most 0.43 ms. Six took more than 2 ms, the longest 2.93 ms, of which a processor was absent
for 2.65 ms. `dq web` itself took 78 MiB at most.

{frameworks}## Why rows miss

- The whole life of a message: the server must wake in each millisecond in which something falls due, a thousand times for
  these messages. A module that keeps and gives in order by time, wakes so, and has no clock, ids, leases or counts by
  state, was below both limits too, at 8.8 to 9.4 and 16.7 to 17.4.
- SEND over 100,000 groups: the two words of the option take 0.09 to 0.10 us, most of it the server's, and one wait for what
  is known of the group 0.17: among 100,000 it lies in no cache. XADD over as many streams is what users of streams do
  for the order of each user.
- SEND and CANCEL beside ten million messages: the same steps as beside ten thousand; place, message and id are then in
  memory that no cache has. A sorted set grows by far more.
- Bytes of SEND in the log: the 160 bytes that XADD writes hold the 100 of the payload, so that no SEND can write 0.6
  times as much; the sum over send, fetch and ack is what the two can be compared by.
- RDB: half of the time to save is the server's compression, which random payloads do not repay, a twelfth the module's.
- Stall and lateness: each is at most as good as the host, which takes most from who keeps both processors busy, as 50
  consumers at full speed do. The rows say what is left without the times when a processor was absent.

## How it was measured

| | |
|---|---|
| machine | {machine} |
| system | {system} |
| server | {server}, on core {server_core} alone; `--save ""`, no AOF unless the row says so |
| module | dq {module}{built} |
| load | `benches/load`: one thread on core {client_core}, 50 connections over loopback, payloads of 100 random bytes |
| command line | `{command}` |

- Peers and ours run on the same server process, which has the module loaded.
- *Lua design* is the layout of the Go library HDT3213/delayqueue (a string per message, a sorted set of pending, a list
  of ready, a sorted set of unacked, a hash of retries left) in scripts written for this benchmark
  (`benches/lua_design.py`); they make fewer round trips than the library. Its stall is one promotion script.
- What is sent to be due now, fetched or acked is of the time that the clock showed last, if that was 8 to 32 us ago at the
  most by the processor's counter: several commands share a reading.
- Where there is no AOF, no replica and no backlog for one, the module makes no records, as the server makes none of its
  own commands; in the rows with AOF it does.
- A whole life in tens is MSEND of 10 with a delay of 0.5 to 1.5 s and FETCH COUNT 10 ACK 10. The Lua design does one by one:
  its library has no batches.
- What a message takes beyond its payload: 48 bytes of its own, 1 to 3 for the chunks in which payloads lie one behind the
  other, 16 in the index by time; 25 while it runs. In a group it takes 12 more, 24 in one of more than 64 messages. What
  was delivered again, failed, or has options of its own takes 96 more for what DQ.GET tells.
- A wait in the stall rows is that of a process of its own that sends a PING each millisecond; *idle* is its longest wait
  over as long a time without a burst. Off each wait are taken the times when a processor was absent, whatever runs on it
  (`tests/harness/absence.c`). *Whole* is with them.
- Lateness is measured by the consumers: the wall clock when the message is in their hands minus its due time.

## Other measurements

`make` lists them: `bench-instructions` (the instructions of whole commands and of their peers, which a busy machine does not
change), `bench-steps` (those of the library without a server), `bench-web`,
`bench-frameworks`, `bench-bullmq`, `load` and `soak`. benches/README.md says what each is about.
"""


def shown(section, what, peer) -> bool:
    """Whether a row that holds is on the page."""
    choices = next((rows for begin, rows in SHOWN.items() if section.startswith(begin)), ())
    peer = peer.split("  ")[-1]
    return any(what.startswith(title) and (peer == name or peer.startswith(name) and "+" not in name) for title, name in choices)


def document(bench, rows, path):
    """Returns the whole page. The section of frameworks, which another program writes, stays as it is in `path`."""
    with bench.server() as server:
        version, module = server.version(), _module_version(server)
    return TEXT.format(
        summary=summary(rows),
        disturbance=f"\n{bench.disturbance()}\n" if bench.disturbance() else "",
        rounds=bench.rounds,
        targets=targets([row for row in rows if row.verdict() == "MISS" or shown(row.section, row.what, row.peer)]),
        frameworks=found(path, "## Frameworks on dq"),
        machine=_machine(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}",
        server=version,
        module=module,
        built=f", by {bench.built}" if bench.built else "",
        server_core=SERVER_CORE,
        client_core=CLIENT_CORE,
        command=_command_line(),
    )


def _command_line():
    """Returns the command line without the paths of this machine."""
    words = []
    arguments = iter(sys.argv[1:])
    for word in arguments:
        if word in ("--module", "--built", "--generator", "--redis-server"):
            next(arguments, None)
        else:
            words.append(word)
    # A bar would end the cell of the table.
    flags = " ".join(words).replace("|", "\\|")
    return f"make bench BENCH_FLAGS='{flags}'" if flags else "make bench"


def _machine():
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {gigabytes:.0f} GiB"


def _module_version(server):
    for module in server.client.module_list():
        fields = {_text(name): _text(value) for name, value in module.items()}
        if fields.get("name") == "dq":
            number = int(fields["ver"])
            return f"{number // 10000}.{number // 100 % 100}.{number % 100}{_revision()}"
    return "unknown"


def _revision():
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return f" ({asked.stdout.strip()})" if asked.returncode == 0 else ""


def _text(value):
    return value.decode() if isinstance(value, bytes) else value
