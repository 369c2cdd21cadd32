"""The section of docs/benchmarks-workers.md that a run writes."""

from statistics import median

from contenders import BARE, OURS, PEER
from report import Row, summary, table, targets

CONCURRENCIES = (1, 10, 100)
EARLY = -2
"""Milliseconds before its time at which a job is early. Due times are whole milliseconds, and stamps microseconds."""

TEXT = """\
## A worker from end to end

Written by `make bench-workers BENCH_FLAGS='--write docs/benchmarks-workers.md'`: what a user sees who replaces a job queue.
One worker process of each on core {worker_core}, {server} on core {server_core}, {rounds}.{load}

{summary}

{targets}

### Jobs a second

*Empty* is a handler that only counts, with a payload of 16 bytes. *1 ms* sleeps for a millisecond. *1 KB* is empty with
a payload of 1,024 bytes. The number is the concurrency: how many jobs the process handles at a time. A bare loop has
no handlers at all: it fetches so many messages and acks them with the next fetch, which is the ceiling of the language
and its Redis client.

{rates}

### What a job costs, and how late it is

Server CPU is that of sending and doing an empty job, *send* is the part of it that sending takes, and worker CPU is
that of the worker process, all in us a job, at the concurrency of the column. Bytes are those of the server for a job
of 16 bytes that waits. *Start* is from the send to the handler, while one job is sent each 10 ms to an idle worker.
*Late* is from the time when a delayed job is due to the handler. Both are ms, at concurrency 10 where it has that.

{costs}
{notes}"""

NOTES = """
- All Python contenders but arq have redis-py 8.1 with hiredis. arq needs redis-py 5. It looks for jobs twice a second, and
  at concurrency 1 takes one of them each time.
- Celery runs with `acks_late`, as all others do: a job is acked when it is done. It has one process, with the pool `solo`
  at concurrency 1 and `threads` above. Delayed jobs wait in the memory of the worker.
- RQ is its SimpleWorker, which does not fork, with its scheduler. taskiq has a stream as its broker, and its scheduler
  in the same process. Laravel's worker waits with `block_for` 1, Symfony's sleeps for a second when it finds nothing.
  All three do one job at a time, as PHP does.
- Of HDT3213/delayqueue the commands and scripts are measured, written anew from its documentation
  (`benches/workers/go/delayqueue.go`), because the library could not be had. Jobs may come up to a second early, as its times
  are whole seconds.
- `Dq\\Worker` handles one message at a time. The number is then how many a FETCH takes.

Why rows miss, where they do:

- One round differs from the next. The server is idle between the commands of one worker, and what it costs to wake up
  is the machine's: in three runs on a quiet machine the row of taskiq at concurrency 1 was 52, 52 and 85 us, and Node
  at concurrency 1 did 2.5, 2.3 and 1.8 times what BullMQ does, for 0.34, 0.36 and 0.53 of its server CPU.
- Server CPU in Python: a job costs what it costs in the bare loop, and no worker can cost less. Most of it is the
  send, one command for each job, as all contenders do it. Without the send a job takes 34 us at concurrency 1, 6 at
  10 and 1 at 100, and one of taskiq 28, 23 and 22: taskiq reads a hundred entries of its stream at a time, acks each
  by itself, and leaves them in the stream when they are done. A worker of dq at concurrency 1 takes one message at a
  time, so that those behind a slow one go to other workers, and that is one round trip for each.
- Concurrency 1 in Python: a message is one round trip, as in the bare loop, and the rest is Python's: 15 words to
  pack, the record of the message, the handler, its lease, and with asyncio a task for the handler, so that it can be
  cancelled.
"""


def page(results, handlers, rounds, server, load, cores):
    """Returns the section for the results of a run, by contender."""
    handlers = [one for one in handlers if any(one == done for result in results.values() for done, _ in result.speeds)]
    rows = _rows(results)
    text = TEXT.format(
        summary=summary(rows),
        targets=targets(rows),
        rates=_rates(results, handlers),
        costs=_costs(results),
        rounds="one round" if rounds == 1 else f"median of {rounds} rounds",
        server=server,
        load=load,
        server_core=cores[0],
        worker_core=cores[1],
        notes=NOTES,
    )
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _rows(results):
    """Compares each worker of dq with the best peer of its language, and with the bare loop."""
    rows = []
    for ours, result in results.items():
        if ours.kind != OURS:
            continue
        peers = {name: other for name, other in results.items() if name.kind == PEER and name.language == ours.language}
        bare = next(
            (other for name, other in results.items() if name.kind == BARE and _alike(name, ours)),
            None,
        )
        title = ours.language + ours.name.removeprefix("dq")
        for concurrency in CONCURRENCIES:
            rows += _speeds(title, concurrency, result, peers, bare)
        # Libraries whose delays are whole seconds come early.
        late = {name.name: other.lateness.p99 for name, other in peers.items() if other.lateness.earliest > EARLY}
        if result.lateness:
            best = min(late, key=late.get, default=None)
            peer = f"{late[best]:,.2f} ms  {best}" if best else ""
            value = result.lateness.p99
            rows.append(
                Row(
                    "How late a delayed job begins, p99",
                    title,
                    f"{value:.2f} ms",
                    peer,
                    value,
                    "ms",
                    at_most=5,
                )
            )
    order = (
        "Jobs a second, empty handler",
        "Server CPU a job",
        "How late a delayed job begins, p99",
    )
    return sorted(rows, key=lambda row: order.index(row.section))


def _speeds(title, concurrency, result, peers, bare):
    cell = ("empty", concurrency)
    ours = result.speeds.get(cell)
    # A peer that does one job at a time has the figure of that concurrency at any concurrency.
    theirs = {name.name: other.speeds.get(cell) or other.speeds.get(("empty", 1)) for name, other in peers.items()}
    theirs = {name: speed for name, speed in theirs.items() if speed}
    if not ours or not theirs:
        return
    what = f"{title}, {concurrency} at a time"
    best = max(theirs, key=lambda name: theirs[name].rate)
    share = ""
    if bare and cell in bare.speeds:
        share = f" ({ours.rate / bare.speeds[cell].rate:.0%} of the bare loop)"
    yield Row(
        "Jobs a second, empty handler",
        what,
        f"{ours.rate:,.0f}{share}",
        f"{theirs[best].rate:,.0f}  {best}",
        ours.rate / theirs[best].rate,
        at_least=2,
    )
    least = min(theirs, key=lambda name: theirs[name].server_us)
    yield Row(
        "Server CPU a job",
        what,
        f"{ours.server_us:.1f} us",
        f"{theirs[least].server_us:.1f} us  {least}",
        ours.server_us / theirs[least].server_us,
        at_most=0.5,
    )


def _alike(bare, ours):
    return bare.language == ours.language and ("asyncio" in bare.name) == ("asyncio" in ours.name)


def _rates(results, handlers):
    heads = [
        "worker",
        *(f"{handler}, {n}" for handler in handlers for n in CONCURRENCIES),
    ]
    return table(
        heads,
        [
            [
                _title(contender),
                *(_figure(result, (handler, n)) for handler in handlers for n in CONCURRENCIES),
            ]
            for contender, result in results.items()
        ],
    )


def _figure(result, cell):
    speed = result.speeds.get(cell)
    return f"{speed.rate:,.0f}" if speed else ""


def _costs(results):
    heads = [
        "worker",
        "send",
        *(f"server, {n}" for n in CONCURRENCIES),
        *(f"worker, {n}" for n in CONCURRENCIES),
    ]
    heads += ["bytes", "start p50", "start p99", "late p50", "late p99", "earliest"]
    rows = []
    for contender, result in results.items():
        cells = [result.speeds.get(("empty", n)) for n in CONCURRENCIES]
        first = next(filter(None, cells), None)
        sends = [cell.send_us for cell in cells if cell]
        row = [_title(contender), f"{median(sends):.1f}" if sends else ""]
        row += [f"{cell.server_us:.1f}" if cell else "" for cell in cells]
        row += [f"{cell.worker_us:.1f}" if cell else "" for cell in cells]
        row.append(f"{first.bytes:.0f}" if first else "")
        row += [f"{late:.2f}" for late in (result.latency.p50, result.latency.p99)]
        row += [
            f"{late:.2f}"
            for late in (
                result.lateness.p50,
                result.lateness.p99,
                result.lateness.earliest,
            )
        ]
        rows.append(row)
    return table(heads, rows)


def _title(contender):
    return f"{contender.language}: {contender.name}"
