"""Builds the page that a full run writes: docs/benchmarks.md."""

import os
import platform
import subprocess
import sys
from pathlib import Path

from bench import INSTRUCTIONS
from core_figures import core_figures
from report import summary, targets
from server import CLIENT_CORE, SERVER_CORE

TEXT = """\
# Benchmarks

Written by `make bench BENCH_FLAGS='--write docs/benchmarks.md'`; every figure below is of one run on one machine.
Absolute figures are the machine's; what carries over are the ratios. Rows that miss their target say so.

This page is about the server. Two more are about what runs beside it: [workers](benchmarks-workers.md) of each client,
and [frameworks](benchmarks-frameworks.md) on dq.

{summary}
{disturbance}
## Against the peers

CPU is the processor time of the server's main thread, by the kernel's accounting, divided by the messages: 1 s divided
by it is the ceiling of one server. Each figure is the median of {rounds} rounds in which all rows take turns (at most 3
for stall and lateness; 1 for memory and idle). A result with x is the median of the ratios of the rounds. Commands run
from 50 connections with 64 in flight on each.

{targets}
{details}{instructions}{core}
## Batches and FIND

Measured at another time, in one round of `make load LOAD_FLAGS=--searches`. Waits are those of a PING each millisecond.

| what | messages | longest PING, absences taken off | of an idle server | longest command, CPU |
|---|---|---|---|---|
| sent into one batch, in hundreds | 1,000,000 | 0.55 ms | 0.41 ms | 0.36 ms |
| the members end, in hundreds | 999,999 | 1.02 ms | 0.62 ms | 1.02 ms |
| the last member ends, the held message is released | 1 | 0.38 ms | 0.51 ms | 0.29 ms |
| FIND with a PAYLOAD pattern, COUNT 1,000 | 10,000,000 | 0.57 ms | 1.07 ms | 0.60 ms |

A message that a batch of three holds is given to a waiting consumer 0 ms (p50) and 1 ms (p99) after the last of them has
ended (500 batches, whole milliseconds of the server).

## Event streams, and memory that was not used

Each of the four events of a message is an entry of a stream, which alone costs 1.3 us in pipelines, where the message
itself costs 2.5. Trimming by single entries would cost far more: XADD with an exact MAXLEN takes 5.0 us. So streams of
10,000 entries and more, the default, are trimmed by 32 at least. On another machine of the same kind, FETCH, ACK and SEND
with EVENTS took 1.2 to 1.4 times as long as without, one at a time, and 1.8 to 1.9 times with exact trimming; in pipelines
3.1 and 7.1 times.

**Memory that has not been used.** Some hosts of virtual machines take the page tables of a machine back when it has not
used its memory for some hundred milliseconds. Then each first use of a page costs 7 to 20 us, whichever program does it
(on this host, 10,000 random reads of 64 MiB took 2 ms when they were done again at once, 8 ms after 0.1 s, 60 to 200 ms after
1.5 s). A queue with a message is one page. So on such a host 1,000 queues that have slept for a while take 20 to 30 ms,
and 10,000 take 100 to 300 ms; the benchmark reads the queues shortly before.

## dq web

Measured by `make bench-web` within the hour of the table above, on the same server: 10,000 queues with 10,000,000 messages,
half of them in one queue in all states. "Longest command" is the longest of five rounds that the page, or the figures that
`dq web` keeps new meanwhile, took the server, by its SLOWLOG. The limit is 2 ms for the round at the median, and for each
PING.

| page or action | time until the reader has it | commands | longest command |
|---|---|---|---|
| the figures of five seconds, no page | | 31,477 | 2.83 ms DQ.INFO |
| overview, also sorted or with a condition | 11 to 19 ms | 1 to 208 | 0.25 ms DQ.INFO |
| family | 2 ms | 1 | at most 0.05 ms |
| queue, each choice of groups | 4 to 6 ms | 17 to 103 | 1.96 ms DQ.GROUPS |
| errors, of a queue or of all | 1,507 ms | 9,401 | 2.56 ms SCAN |
| run times | 53 ms | 332 | 0.63 ms DQ.LIST |
| search for an id in all queues | 49 ms | 10,267 | 0.22 ms DQ.GET |
| server; JSON of all queues; of a day | 1 ms; 12 ms; 1 ms | 1 | at most 0.05 ms |
| messages of a state | 2 to 5 ms | 3 to 61 | 0.29 ms DQ.LIST |
| messages of a family of 64 | 6 ms | 75 | 0.35 ms DQ.NINFO |
| messages by type, batch, group, id, error or payload | 11 to 1,003 ms | 165 to 12,606 | 1.91 ms DQ.LIST |
| message | 1 ms | 4 | 0.06 ms DQ.INFO |
| count before an action, with a condition | 1,504 ms | 19,020 | 2.68 ms DQ.INFO |
| pause and resume, a queue; a family of 64 | 9 ms; 18 ms | 100; 265 | 0.22 ms DQ.INFO |
| redrive 500,000 dead messages | 0.4 s | 4,504 | 0.50 ms DQ.FIND |
| cancel 500,000 messages by their type | 4.0 s | 44,831 | 1.85 ms DQ.INFO |
| remove 500,000 ready messages | 1.5 s | 15,518 | 0.41 ms DQ.FIND |
| remove the ready messages of a family | 0.05 s | 391 | 0.31 ms DQ.FIND |
| remove everything of the large queue | 5 ms | 4 | 0.13 ms DQ.PURGE |

A page with conditions looks for one second at most, and a count and the errors for one and a half. Of 67,258 PINGs, one
each millisecond, 99 % took at most 0.43 ms. Six took more than 2 ms, the longest 2.93 ms, of which a processor was absent
for 2.65 ms; without such absences, which come from the machine under this one, the longest took 1.17 ms. `dq web` itself
took 78 MiB at most. Before it asked the server for sections of `INFO dq`, the longest PING took 26 to 36 ms: `INFO dq` adds
up all queues ([operations](operations.md#watching)).

## Why rows miss

A row whose limit lies under what the baseline module takes (`benches/baseline`, rows of that name) cannot hold. Of the
instructions of a FETCH and an ACK with a log 15 % are the module's own (callgrind, by shared object): the rest is the
server's, reading commands, writing replies and the log, keeping memory.

- Commands with a log: next to all of what a command takes more than without a log is the server's, which makes a
  record of it and writes it. In the millisecond of the change before it a command is logged as it came, which spares the
  server the look-up of another command and its strings. FETCH and ACK as one command take 0.29 to 0.30 of their peer
  with a log, the baseline module 0.21 to 0.22: so near to the limit, a noisy run can miss it. What they take above the
  baseline is mostly their own; a part is chance: the string in which the server puts a record together doubles as it fills,
  once more for ours of 64 bytes than for the baseline's of 67, whose words have other lengths.
- Profile-guided optimisation: turn by turn with the module of `make build` on this machine, SEND takes 10 to 14 % less,
  FETCH and ACK as one command 10 to 14 %, as two 12 to 15 %, with a log 8 to 9 % each. Why is inferred: in
  simulated caches a command misses 600 lines of code, half of them the module's, and hardly any data. The baseline module
  gains next to nothing by it (0 to 3 %) and is built without. Redis is as Debian builds it.
- SEND with a random delay: most of the module's part is finding the place among a million by time, in memory that no
  cache has. The baseline module does that by the ordered map of Rust's standard library, and ends close to the limit.
- The whole life of a message: the baseline module, which keeps and gives in order by time, and has no clock, ids,
  leases or counts by state, comes to about what the limits ask for: 9.7 to 10.6 times less one by one in several
  runs, and 22 to 24 in tens. But the server must wake in each millisecond in which something falls due, a thousand
  times for these messages; the baseline module that does so, and nothing when it wakes, is below both limits, at
  8.8 to 9.4 and 16.7 to 17.4.
- SEND over 100,000 groups: the limit is about what names cost any module. One that reads the two words of the option,
  finds the name in a hash table, and notes in a list of that name which payload is its, adds 0.27 to 0.47 us and
  makes 1.42 to 1.64 of a SEND, of which the limit leaves half for a group, some 0.35 us: the row of the sum. The less
  a SEND without a group takes, the less is left: ours was 1.55 to 1.87 in a queue by itself, and up to 2.20 among the
  other rows, the most where the machine's memory was slow. The two words of the option take 0.09 to 0.10 us, most of
  it the server's, and one wait for what is known of the group 0.17: among 100,000 it lies in no cache, and nothing
  can ask for it before the name is read and found. The row of SEND with a group in 1,000 shows the rest. To ask for
  that memory as early as can be, and to reply while it comes, took 3 to 5 % off, which is not enough, and would have
  had every operation tell of itself before it was done. XADD over as many streams is what users of streams do for the
  order of each user.
- FETCH and ACK over groups that were sent to at random: nothing lies where the last one lay. Group, list, message, place
  by time and payload are waited for in the FETCH, and with thousands in flight most of them in the ACK again. Where one
  group was sent to after the other, as in the rows with a limit, neighbours share what is fetched.
- SEND and CANCEL beside ten million messages: the same steps as beside ten thousand; place, message and id are then in
  memory that no cache has. A sorted set grows by far more and the baseline module about as much, with half as many
  members and only one of their two steps at a random place.
- Bytes of SEND in the log: the 160 bytes that XADD writes hold the 100 of the payload, so that no SEND can write 0.6
  times as much; the sum over send, fetch and ack is what the two can be compared by.
- RDB: half of the time to save is the server's compression, which random payloads do not repay, a twelfth the module's.
  How long the compression takes depends on the blocks that it is given: 2 KiB each, one behind the other through 8 MiB of
  memory, are saved in the time of a stream, give or take 2 %.
- Stall and lateness, where they miss: each is at most as good as the host, which takes most from who keeps both
  processors busy, as 50 consumers at full speed do: 99 % of 100,000 came within 2.4 ms in a run of which the host took
  less than 1 %, within 284 in one of which it took 7. The rows say what is left without the times when a processor was
  absent; where there are very many short ones, some of that is the host's still.
- ACKSEND within one queue: after this table was made, the queue is opened once for it and not three times. By itself it
  then took 1.02 of ACK and SEND, and 0.98 with a log, and 1.00 and 0.94 of their instructions.
- SEND beside a million snoozed messages and 100,000 open breakers: the same instructions within 0.2 % as in an empty
  queue. What differs is memory that the caches do not hold, and what the machine does: 1.06 in an earlier run.

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
  (`benches/lua_design.py`); they make fewer round trips than the library.
- With fewer groups than fetches in flight (1 and 1,000 groups), GROUPCONCURRENCY is 100,000: with one lease a group the
  row would measure empty answers. From 100,000 groups on it is the default of 1.
- In instructions of the core, a million messages waiting, over 1, 1,000 and 100,000 groups: SEND 3,271, 3,181, 2,685;
  FETCH 3,535, 3,364, 3,405; ACK 3,076, 3,056, 3,168 (`make bench-steps`).
- *The baseline module* (`benches/baseline`) is a module whose commands do what no queue in a module can do without: they
  find the key, keep or give a payload, log what ours log in the same form, and reply as much as ours do. No ids, no
  clock, no leases, and an order by time only where the row says so: by the ordered map of Rust's standard library. Its
  groups are, beside the list of all, a list for each name of which are its. What is below its figures no module can
  reach.
- What is sent to be due now, fetched or acked is of the time that the clock showed last, if that was 8 to 32 us ago at the
  most by the processor's counter: several commands share a reading.
- Where there is no AOF, no replica and no backlog for one, the module makes no records, as the server makes none of its
  own commands; in the rows with AOF it does.
- A whole life one by one is SEND with a delay of 0.5 to 1.5 s and FETCH COUNT 1 ACK 1; in tens it is MSEND of 10 and FETCH
  COUNT 10 ACK 10. The Lua design does one by one in both: its library has no batches.
- What a message takes beyond its payload: 48 bytes of its own (where its payload lies, times, group, its delivery while
  that is the only one), 1 to 3 for the chunks of 14 KiB in which payloads of up to 1.75 KiB lie one behind the other, 16
  in the index by time. While it runs 25 to find its lease by receipt and by end, instead of the 16; 40 where leases of
  other lengths end out of the order of their receipts. In a group it takes 12 more for its place there, 24 in one of
  more than 64 messages. What was delivered again, failed, or has options of its own takes 96 more for what DQ.GET
  tells.
- Memory is the growth of `used_memory`. Loading is what the server's log says. The Lua design's stall is one promotion
  script over the same million messages.
- A wait in the stall rows is that of a process of its own that sends a PING each millisecond; *idle* is its longest wait
  over as long a time without a burst: with nothing to do, with 50 consumers that wait in vain, or with 50 that take
  messages due long before as fast as they can. Off each wait are taken the times when a processor was absent, whatever
  runs on it (`tests/harness/absence.c`); those below a tenth of a millisecond are not seen. *Whole* is with them.
- Lateness is measured by the consumers: the wall clock when the message is in their hands minus its due time. It is
  judged whole.
{commands}"""

COUNTED = """
## In instructions

Written by `make bench-instructions`, at another time: the instructions of server and module together (callgrind), for
20,000 messages of each row, 50 connections with 64 in flight, a million of the titles being 100,000 here. They leave
out what waiting for memory, the network and the disk costs, but a busy machine does not change them: where a row
above is near its limit, this one tells.

{table}"""

CORE = """
## The core by itself

Written by `make bench-core` (Criterion), on the same machine at another time: operations of the core and their records,
without a server and without profile-guided optimisation. A queue that is only sent to grows all the while, so that each of its messages is in new memory.

{figures}
"""


def document(bench, rows, details, commands):
    """Returns the whole page."""
    with bench.server() as server:
        version, module = server.version(), _module_version(server)
    return TEXT.format(
        summary=summary(rows),
        disturbance=f"\n{bench.disturbance()}\n" if bench.disturbance() else "",
        rounds=bench.rounds,
        targets=targets(rows),
        details=f"\n## Every command by itself\n\nMessages a second by pipeline depth, and CPU at depth 64.\n\n{details}\n"
        if details
        else "",
        instructions=COUNTED.format(table=INSTRUCTIONS.read_text()) if INSTRUCTIONS.exists() else "",
        core=CORE.format(figures=core) if (core := core_figures()) else "",
        machine=_machine(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}",
        server=version,
        module=module,
        built=f", by {bench.built}" if bench.built else "",
        server_core=SERVER_CORE,
        client_core=CLIENT_CORE,
        command=_command_line(),
        commands=f"\n## What is sent\n\n{commands}\n" if commands else "",
    )


def _command_line():
    """Returns the command line without the paths of this machine."""
    words = []
    arguments = iter(sys.argv[1:])
    for word in arguments:
        if word in ("--module", "--built", "--generator", "--baseline", "--redis-server"):
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
