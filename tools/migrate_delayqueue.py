#!/usr/bin/env python3
"""Moves the live messages of a queue of the Go library HDT3213/delayqueue into a DQ queue.

    python3 -m venv .venv && .venv/bin/pip install 'redis>=5'
    .venv/bin/python tools/migrate_delayqueue.py --from redis://old:6379 --queue orders --to redis://new:6379 --key orders --dry-run
    .venv/bin/python tools/migrate_delayqueue.py --from redis://old:6379 --queue orders --to redis://new:6379 --key orders

Stop the library's consumers first; producers may go on until they are switched over, then run this once more.

A message keeps its id, payload, due time and remaining retries. It is removed from the old queue only after the new
one has it. The ids make a repeated send harmless, and while this runs the new queue remembers the ids of what its
consumers have finished (DEDUP), so it may be killed and started again at any point: nothing is lost or doubled.
What the library's consumers still hold is moved when its time there is over.

Exit code: 0 all moved, 1 something was left (the table tells what), 2 the servers refused or could not be reached,
130 interrupted. docs/coming-from.md says how to do the whole change.
"""

import argparse
import shutil
import sys
import time
from dataclasses import dataclass, field

import redis

# Longer than any migration should take, interruptions included.
GUARD_MS = 7 * 24 * 3600 * 1000
# In the order in which the library itself would deliver what is due.
PLACES = ("ready", "pending", "retry", "unack", "garbage")


@dataclass
class OldQueue:
    """Where the library keeps a queue. The prefix does not hold for the payload keys: the library always uses dp there."""

    name: str
    prefix: str
    hash_tag: bool

    def key(self, part: str) -> str:
        stem = f"{self.prefix}:{self.name}"
        return f"{{{stem}}}:{part}" if self.hash_tag else f"{stem}:{part}"

    def payload(self, id: bytes) -> bytes:
        stem = f"dp:{self.name}"
        stem = f"{{{stem}}}" if self.hash_tag else stem
        return f"{stem}:msg:".encode() + id

    @property
    def counts(self) -> str:
        return self.key("retry:cnt")


@dataclass
class Entry:
    """A message as one place of the old queue has it."""

    id: bytes
    # Unix ms; None: due now.
    due: int | None = None
    payload: bytes | None = None
    # How many more failures the library would forgive; None: it would not deliver the message again.
    retries: int | None = None
    # Remaining life of the payload key in ms; None: without end.
    life: int | None = None


@dataclass
class Tally:
    """What became of the entries of one place."""

    found: int = 0
    moved: int = 0
    there: int = 0
    gone: int = 0
    intercepted: int = 0
    given_up: int = 0
    conflicts: list = field(default_factory=list)
    held: int = 0

    def row(self):
        return (self.found, self.moved, self.there, self.gone, self.intercepted, self.given_up, len(self.conflicts), self.held)


COLUMNS = ("found", "moved", "there already", "payload gone", "intercepted", "given up", "id in use", "still held")


class Bar:
    """Progress on stderr: a bar on a terminal, a line every five seconds elsewhere."""

    def __init__(self, total: int):
        self.total, self.done, self.began = total, 0, time.monotonic()
        self.tty = sys.stderr.isatty()
        self.shown = -1.0

    def add(self, n: int, place: str):
        self.done += n
        # Producers may add while this runs.
        self.total = max(self.total, self.done)
        now = time.monotonic()
        if now - self.shown < (0.1 if self.tty else 5) and self.done < self.total:
            return
        self.shown = now
        share = self.done / self.total
        speed = self.done / max(now - self.began, 1e-9)
        left = (self.total - self.done) / speed if speed else 0
        text = f"{share:4.0%} {self.done:,} of {self.total:,}  {speed:,.0f}/s  {left:.0f} s left  {place}"
        if self.tty:
            # Never longer than the line: what wraps could not be overwritten.
            width = max(0, min(30, shutil.get_terminal_size().columns - len(text) - 4))
            print(f"\r[{'#' * int(share * width):<{width}}] {text}\033[K", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def end(self):
        if self.tty and self.done:
            print(file=sys.stderr)


class Refused(Exception):
    """The new queue did not take a message; what it took before is moved."""


class Migration:
    def __init__(self, source, target, old: OldQueue, args):
        self.source, self.target, self.old, self.args = source, target, old, args
        self.tallies = {place: Tally() for place in PLACES}
        self.guard = f"dq-migration:{{{args.key}}}"

    # ---- reading the old queue

    def size(self, place: str) -> int:
        key = self.old.key(place)
        if place in ("ready", "retry"):
            return self.source.llen(key)
        return self.source.scard(key) if place == "garbage" else self.source.zcard(key)

    def page(self, place: str, skip: int) -> list:
        """The next entries of a place, in the order in which the library would deliver them, after `skip`."""
        key, count = self.old.key(place), self.args.batch
        if place in ("ready", "retry"):
            # The library pushes at the head and takes from the tail.
            ids = self.source.lrange(key, -(skip + count), -(skip + 1))
            return [Entry(id) for id in reversed(ids)]
        if place == "pending":
            rows = self.source.zrange(key, skip, skip + count - 1, withscores=True)
            return [Entry(id, due=max(0, round(seconds * 1000))) for id, seconds in rows]
        if place == "unack":
            now = self.source.time()[0]
            return [Entry(id) for id in self.source.zrangebyscore(key, "-inf", now, start=skip, num=count)]
        return [Entry(id) for id in sorted(self.source.smembers(key))[skip : skip + count]]

    def complete(self, place: str, entries: list) -> None:
        """Reads payload, remaining retries and remaining life of these."""
        pipe = self.source.pipeline(transaction=False)
        for entry in entries:
            pipe.get(self.old.payload(entry.id))
            pipe.pttl(self.old.payload(entry.id))
            pipe.hget(self.old.counts, entry.id)
        replies = pipe.execute()
        for entry, payload, life, count in zip(entries, replies[::3], replies[1::3], replies[2::3]):
            entry.payload = payload
            entry.life = life if life >= 0 else None
            entry.retries = self.remaining(place, count)

    @staticmethod
    def remaining(place: str, count: bytes | None) -> int | None:
        if place == "garbage":
            return 0
        if count is None:
            # An intercepted message that was out at that moment has lost its count: it must not come again. One that
            # was never out can only have lost it by accident, and then the library delivers it once.
            return None if place in ("unack", "retry") else 0
        left = max(0, int(count))
        # The library counts a failure when it takes a message back from unack; that is what happens to it now.
        return max(0, left - 1) if place == "unack" else left

    # ---- moving

    def send_words(self, entry: Entry, now: int) -> list:
        words = ["DQ.SEND", self.args.key, entry.payload, "ID", entry.id, "RETRIES", entry.retries]
        if entry.due is not None:
            words += ["AT", entry.due]
        if self.args.keep_ttl and entry.life is not None:
            # TTL counts from the due time, and a past one is taken as now.
            words += ["TTL", max(1, now + entry.life - max(entry.due or 0, now))]
        return words

    def send(self, place: str, entries: list) -> list:
        """Sends what can be sent; the entries that the new queue has now, or had before."""
        tally = self.tallies[place]
        seconds, micros = self.source.time()
        now = seconds * 1000 + micros // 1000
        pipe = self.target.pipeline(transaction=False)
        for entry in entries:
            pipe.execute_command(*self.send_words(entry, now))
        kept, refused = [], None
        for entry, reply in zip(entries, pipe.execute(raise_on_error=False)):
            if isinstance(reply, Exception):
                refused = refused or reply
            elif reply is not None:
                tally.moved += 1
                kept.append(entry)
            elif self.is_ours(entry):
                tally.there += 1
                kept.append(entry)
            else:
                tally.conflicts.append(entry.id)
        self.remove(place, kept)
        if refused:
            raise Refused(f"the new queue says: {refused}")
        return kept

    def is_ours(self, entry: Entry) -> bool:
        """Whether an id is taken by this very message, from a run before this one, and not by somebody else's."""
        row = self.target.execute_command("DQ.GET", self.args.key, entry.id)
        if row is None:
            return True
        row = row if isinstance(row, dict) else dict(zip(row[::2], row[1::2]))
        return row[b"payload"] == entry.payload

    def remove(self, place: str, entries: list) -> None:
        if not entries:
            return
        key = self.old.key(place)
        pipe = self.source.pipeline(transaction=True)
        for entry in entries:
            if place in ("ready", "retry"):
                pipe.lrem(key, -1, entry.id)
            elif place == "garbage":
                pipe.srem(key, entry.id)
            else:
                pipe.zrem(key, entry.id)
        pipe.hdel(self.old.counts, *[entry.id for entry in entries])
        pipe.delete(*[self.old.payload(entry.id) for entry in entries])
        pipe.execute()

    def sort(self, place: str, entries: list) -> list:
        """Counts what has nothing to be delivered; the rest."""
        tally = self.tallies[place]
        tally.found += len(entries)
        live = []
        for entry in entries:
            if entry.payload is None:
                tally.gone += 1
            elif entry.retries is None:
                tally.intercepted += 1
            elif place == "garbage" and not self.args.send_given_up:
                tally.given_up += 1
            else:
                live.append(entry)
        return live

    def walk(self, place: str, bar: Bar) -> None:
        """Moves all of one place, or with a dry run only counts it."""
        skip = 0
        while entries := self.page(place, skip):
            self.complete(place, entries)
            live = self.sort(place, entries)
            if self.args.dry_run:
                self.tallies[place].moved += len(live)
                skip += len(entries)
            else:
                skip += len(entries) - len(self.send(place, live))
            bar.add(len(entries), place)

    def wait_for_leases(self, bar: Bar) -> None:
        """What the library's consumers hold is moved when their time is over, unless it was acked by then."""
        key, tally = self.old.key("unack"), self.tallies["unack"]
        while True:
            seconds, micros = self.source.time()
            held = self.source.zrangebyscore(key, f"({seconds}", "+inf", start=0, num=1, withscores=True)
            if not held or self.args.dry_run or self.args.no_wait:
                tally.held = self.source.zcount(key, f"({seconds}", "+inf")
                return
            wait = max(0.2, held[0][1] - seconds - micros / 1e6)
            print(f"the library's consumers hold messages for another {wait:.0f} s or more; waiting", file=sys.stderr)
            time.sleep(min(wait, 5))
            # Earlier rounds may have left some in place. They are found, and counted, again.
            self.tallies["unack"] = tally = Tally(moved=tally.moved, there=tally.there, found=tally.moved + tally.there)
            self.walk("unack", bar)

    # ---- the whole

    def raise_guard(self) -> None:
        """Lets the new queue remember finished ids while this runs. Where a run was killed, the old value is still noted."""
        if not self.target.execute_command("EXISTS", self.args.key):
            self.target.execute_command("DQ.CREATE", self.args.key)
        info = self.target.execute_command("DQ.INFO", self.args.key)
        info = info if isinstance(info, dict) else dict(zip(info[::2], info[1::2]))
        self.target.set(self.guard, int(info[b"dedup"]), nx=True)
        if int(info[b"dedup"]) < GUARD_MS:
            self.target.execute_command("DQ.ALTER", self.args.key, "DEDUP", GUARD_MS)

    def lower_guard(self) -> None:
        before = self.target.get(self.guard)
        if before is not None:
            self.target.execute_command("DQ.ALTER", self.args.key, "DEDUP", int(before))
            self.target.delete(self.guard)

    def run(self) -> None:
        bar = Bar(sum(self.size(place) for place in PLACES))
        if not self.args.dry_run:
            self.raise_guard()
        try:
            for place in PLACES:
                self.walk(place, bar)
            self.wait_for_leases(bar)
        finally:
            bar.end()
        if not self.args.dry_run:
            self.lower_guard()

    def report(self) -> bool:
        """Prints the table; whether nothing was left that should have been moved."""
        print(f"{'':10}" + "".join(f"{name:>15}" for name in COLUMNS))
        for place, tally in self.tallies.items():
            print(f"{place:10}" + "".join(f"{n:>15,}" for n in tally.row()))
        if self.args.dry_run:
            print("dry run: nothing was changed; `moved` is what would be")
        for place, tally in self.tallies.items():
            for id in tally.conflicts[:20]:
                print(f"left in {place}: the new queue has another message of the id {id.decode(errors='replace')}")
        return self.args.dry_run or not any(tally.conflicts or tally.held for tally in self.tallies.values())


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--from", dest="source", default="redis://127.0.0.1:6379", help="URL of the old server (%(default)s)")
    add("--queue", required=True, help="name of the library's queue")
    add("--prefix", default="dp", help="what UseCustomPrefix was given (%(default)s)")
    add("--hash-tag", action="store_true", help="the queue was made with UseHashTagKey")
    add("--to", dest="target", help="URL of the server with the dq module (default: the old one)")
    add("--key", required=True, help="key of the DQ queue; made with default options where it is missing")
    add("--keep-ttl", action="store_true", help="messages expire when their payload keys would have (then dead, not gone)")
    add("--send-given-up", action="store_true", help="also send what had used up its retries, for one more attempt")
    add("--no-wait", action="store_true", help="leave what the library's consumers hold for another run")
    add("--batch", type=int, default=500, help="messages a round trip (%(default)s)")
    add("--dry-run", action="store_true", help="count, and change nothing")
    args = parser.parse_args()
    if args.batch < 1:
        parser.error("--batch must be at least 1")
    return args


def main() -> int:
    args = arguments()
    source = redis.Redis.from_url(args.source)
    target = redis.Redis.from_url(args.target or args.source)
    migration = Migration(source, target, OldQueue(args.queue, args.prefix, args.hash_tag), args)
    try:
        migration.run()
    except (Refused, redis.RedisError) as error:
        migration.report()
        print(f"error: {error}\nWhat is not moved is where it was. Run this again to go on.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        migration.report()
        print("interrupted: run this again to go on", file=sys.stderr)
        return 130
    return 0 if migration.report() else 1


if __name__ == "__main__":
    sys.exit(main())
