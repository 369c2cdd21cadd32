"""python -m tests.load.tenants: the effect on the others of one tenant that floods a queue, under named limits.

Tenants send jobs to one queue with `LIMITS 2 user-<n> all`; workers fetch, run and ack them. It is done twice with
the same arrivals: without the flood, and with one tenant that sends `--flood` times as much as each other one and whose
jobs run `--slow` times as long. The time is virtual (CLOCK MANUAL), so the waits are exact and the same in each run.

The event stream of the queue says what happened. From it, an exact checker (tests/checker/limits.py) counts how many jobs of
each name ran at once and how many began within each window. The exit status is 1 if a limit was ever exceeded, if less than 99 % of the limit
`all` was used while there was work for it, or if the p99 wait of the others grew by more than `--ratio`.
"""

import argparse
import heapq
import random
import sys
from collections import Counter, deque
from dataclasses import dataclass, field

from tests.checker import stream
from tests.checker.limits import Limit, Limits
from tests.harness.server import Server

START = 1_000_000_000
KEY, STREAM = "jobs", "events"


@dataclass(frozen=True)
class Job:
    """A job: its tenant, its time, and its duration, in ms."""

    user: int
    comes: int
    runs: int


@dataclass
class Seen:
    """The findings in the event stream."""

    # The time from the send to the first delivery, in ms, of all jobs but those of the flood.
    waits: list = field(default_factory=list)
    # The jobs that began while there was work for the limit `all`, as a share of those that could have.
    used: float = 1.0
    # The values above a limit, in words.
    faults: list = field(default_factory=list)

    def p99(self) -> int:
        return sorted(self.waits)[len(self.waits) * 99 // 100]


def rules_of(args) -> dict:
    """The limits of the queue."""
    return {"user-*": Limit(concurrency=args.limit), "all": Limit(concurrency=args.workers, rates=((args.rate, args.per),))}


def arrivals(args, flood: bool) -> list:
    """The jobs of all tenants by the time at which they come. The jobs of the other tenants are the same with the
    flood.
    """
    chance = random.Random(args.seed)
    jobs = [
        Job(user, chance.randrange(args.ms), chance.randrange(args.runs // 2, args.runs * 3 // 2))
        for user in range(1, args.tenants)
        for _ in range(args.each)
    ]
    if flood:
        jobs += [Job(0, chance.randrange(args.ms), args.runs * args.slow) for _ in range(args.each * args.flood)]
    return sorted(jobs, key=lambda job: job.comes)


def run(client, args, jobs) -> Seen:
    """Runs the jobs under virtual time, and returns the findings in the event stream."""
    client.flushall()
    client.execute_command("DQ.CREATE", KEY, "CLOCK", "MANUAL", START, "EVENTS", STREAM, "EVENTSLEN", 8 * len(jobs))
    for name, limit in rules_of(args).items():
        client.execute_command("DQ.LIMIT", KEY, name, *limit.words())
    lasts = {str(number).encode(): job.runs for number, job in enumerate(jobs)}
    coming = deque(enumerate(jobs))
    done, free, now = [], args.workers, 0
    # Only the jobs of the other tenants count, so the run ends when these have ended: a flood may last for hours.
    left = sum(job.user > 0 for job in jobs)
    others = {str(number).encode() for number, job in enumerate(jobs) if job.user > 0}
    while left:
        pipe = client.pipeline(transaction=False)
        pipe.execute_command("DQ.TICK", KEY, "TO", START + now)
        while coming and coming[0][1].comes <= now:
            number, job = coming.popleft()
            names = ("LIMITS", 2, f"user-{job.user}", "all")
            pipe.execute_command("DQ.SEND", KEY, "x", "ID", number, *names)
        while done and done[0][0] <= now:
            _, receipt, id = heapq.heappop(done)
            pipe.execute_command("DQ.ACK", KEY, 1, receipt)
            free += 1
            left -= id in others
        if free:
            pipe.execute_command("DQ.FETCH", KEY, "COUNT", free, "LEASE", 10 * args.ms * args.slow)
        for id, receipt, *_ in pipe.execute()[-1] if free else pipe.execute() and ():
            heapq.heappush(done, (now + lasts[id], receipt, id))
            free -= 1
        next_of = [job.comes for _, job in list(coming)[:1]] + [end for end, *_ in done[:1]]
        # A window of `all` that moves on lets the next job begin, so no millisecond is left out.
        now = now + 1 if client.execute_command("DQ.LEN", KEY, "ready") else max(now + 1, min(next_of, default=0))
    return check(client, args, jobs)


def check(client, args, jobs) -> Seen:
    """Reads the event stream."""
    seen, limits = Seen(), Limits(rules_of(args))
    sent, waiting, last = {}, Counter(), 0
    # The tenants that have a job which waits though their own limit has room, and for how many ms there was
    # such a tenant, and for how many of these the limit `all` was full.
    able, had_work, was_full = set(), 0, 0
    for event in stream.read(client, STREAM):
        at, id = event.at, event.id
        if able:
            had_work += at - last
            was_full += full_for(limits, last, at)
        job, last = jobs[int(id)], at
        name = f"user-{job.user}"
        if event.kind == "sent":
            sent[id] = at
            waiting[name] += 1
        elif event.kind == "delivered":
            limits.begins(at, id, (name, "all"))
            waiting[name] -= 1
            if job.user:
                seen.waits.append(at - sent[id])
        elif event.kind in stream.ENDS:
            limits.ends(id, (name, "all"))
        has_room = waiting[name] > 0 and limits.used(name) < args.limit
        (able.add if has_room else able.discard)(name)
    seen.faults = limits.faults
    seen.used = was_full / had_work if had_work else 1.0
    return seen


def full_for(limits, since: int, until: int) -> int:
    """The part of these ms, in which nothing begins or ends, for which no job of `all` could begin."""
    frees = limits.free_at("all", since)
    return until - since if frees is None else max(0, min(until, frees) - since)


def measured(args) -> tuple:
    """The latencies without the flood, and with it."""
    server = Server().start()
    try:
        client = server.client(socket_timeout=600)
        return tuple(run(client, args, arrivals(args, flood)) for flood in (False, True))
    finally:
        server.close()


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.load.tenants", description=__doc__.splitlines()[0])
    parser.add_argument("--tenants", type=int, default=10_000, help="tenants, the first of which floods (%(default)s)")
    parser.add_argument("--each", type=int, default=2, help="jobs of each other tenant (%(default)s)")
    parser.add_argument("--flood", type=int, default=1000, help="how many times as many the first one sends (%(default)s)")
    parser.add_argument("--slow", type=int, default=50, help="how many times as long its jobs run (%(default)s)")
    parser.add_argument("--limit", type=int, default=2, help="jobs of one tenant at once (%(default)s)")
    parser.add_argument("--workers", type=int, default=1000, help="workers, and jobs of all at once (%(default)s)")
    parser.add_argument("--rate", type=int, default=1100, help="jobs of all that may begin within --per ms (%(default)s)")
    parser.add_argument("--per", type=int, default=1000, help="the window of that, in ms (%(default)s)")
    parser.add_argument("--ms", type=int, default=20_000, help="for how long jobs come (%(default)s)")
    parser.add_argument("--runs", type=int, default=1000, help="how long a job runs on average, in ms (%(default)s)")
    parser.add_argument("--ratio", type=float, default=1.2, help="by how much the p99 wait may grow (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    return parser


def main(words=None) -> int:
    args = parser().parse_args(words)
    without, flooded = measured(args)
    for name, seen in (("without the flood", without), ("with the flood", flooded)):
        print(f"{name}: {len(seen.waits):,} jobs of the others, p99 wait {seen.p99():,} ms, all used for {seen.used:.2%} of the ms with work")
        for fault in seen.faults[:5]:
            print(f"    above a limit: {fault}")
    ratio = flooded.p99() / max(1, without.p99())
    print(f"the p99 wait of the others with the flood is {ratio:.2f} of that without it (at most {args.ratio})")
    is_bad = any(seen.faults or seen.used < 0.99 for seen in (without, flooded)) or ratio > args.ratio
    return 1 if is_bad else 0


if __name__ == "__main__":
    sys.exit(main())
