"""python -m tests.load.pages: every page and action of dq web on a server with very many queues and messages.

One queue has half of the messages, in all states, the others share the rest. Each page is asked for several times, while
dq web keeps its figures new as always. The table says how long a page took its reader, how many commands it and the
figures cost, and which of them took the server the longest, as the server's own SLOWLOG counts it: from the moment it
begins a command until it has the reply ready. A PING each millisecond is the view from outside, except while this program
reads the SLOWLOG. The exit status is 1 where a command is beyond the limit in more than half of the rounds, where a PING is
beyond it though no processor was absent, where a page is not there at once, a search takes too long to find something, or
the exporter to answer, or where dq web takes too much memory. The exporter comes last, without PINGs and a limit for its
commands: INFO dq adds up all queues in one.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, median_low

from tests.harness.absence import Absences
from tests.harness.cli import Cli, build
from tests.harness.exporter import Exporter
from tests.harness.server import wait_for
from tests.harness.web import Web
from tests.harness.wire import encode
from tests.load.large_queues import FAR, PAYLOAD, fill, fill_groups
from tests.load.probe import Probe, Waits
from tests.load.server import TimedServer

# Shorter commands are ignored, in us.
SHORT = 50
# Commands of this program, which are not those of dq web, and the section of INFO that only it asks for.
OURS = ("PING", "SLOWLOG", "CONFIG")
CALLS = "commandstats"
# The queue with half of the messages, and the family.
BIG = "orders"
FAMILY = "mails"
# The children of one message of that queue.
CHILDREN = 10_000
HEAD = f"{'':<46}{'ms':>8}{'longest':>9}{'commands':>10}   longest command"


@dataclass
class Row:
    """A page or an action: its time for the reader, its cost, and the longest command of each round."""

    name: str
    seconds: list = field(default_factory=list)
    # The option with the most ms for its reader. A page is there at once; what is "found" looks for something until it has
    # it, or a time is over. None: an action takes as long as it takes.
    most: str | None = "page"
    commands: int = 0
    longest: list = field(default_factory=list)
    ended: float = 0.0

    def page_ms(self) -> float:
        """The time for the reader, of the round at the median."""
        return median(self.seconds) * 1000

    def ms(self) -> float:
        """The longest command, of the round at the median."""
        return median_low(ms for ms, _ in self.longest)

    def __str__(self) -> str:
        ms, command = max(self.longest)
        times = f"{median(self.seconds) * 1000:>8.1f}{max(self.seconds) * 1000:>9.1f}"
        return f"{self.name:<46}{times}{self.commands / len(self.seconds):>10.0f}   {ms:.2f} ms {command}"


class Pages:
    """A server with many queues and messages, `dq web` on it, and a visitor of its pages."""

    def __init__(self, queues: int, messages: int, rounds: int):
        self.queues, self.messages, self.rounds = queues, messages, rounds
        self.partitions = 64 if queues >= 128 else 16
        self.busy: list[tuple[float, float]] = []
        self._open = ExitStack()

    def __enter__(self) -> "Pages":
        try:
            return self._begin()
        except BaseException:
            self._open.close()
            raise

    def _begin(self) -> "Pages":
        self.server = TimedServer(slowlog_max_len="100000", slowlog_log_slower_than=str(SHORT)).start()
        self._open.callback(self.server.close)
        self.client = self.server.client(socket_timeout=600)
        self.do = self.client.execute_command
        self._fill()
        log = Path(self._open.enter_context(tempfile.TemporaryDirectory())) / "web.log"
        web = Web(Cli(build(), f"redis://127.0.0.1:{self.server.port}"), log)
        self.me = self._open.enter_context(web).visitor()
        self.exporter = self._open.enter_context(Exporter(self.server))
        # All queues are known, and the figures of each have been asked for at least once.
        self.web = web
        all_known = f"{self.queues - self.partitions} queues and 1 family"
        wait_for(lambda: all_known in self.me.get("").words(), 180, all_known)
        time.sleep(2)
        return self

    def __exit__(self, *_) -> None:
        self._open.close()

    def _fill(self) -> None:
        half = self.messages // 2
        part = half // 10
        self.do("DQ.CREATE", BIG, "RETRIES", 0, "RETAIN", FAR, "RETAINCOUNT", 0)
        # Each of these states has a tenth of the messages, and the rest is delayed.
        fill(self.server, BIG, part)
        while self.do("DQ.LEN", BIG, "dead") < part:
            given = self.do("DQ.FETCH", BIG, "COUNT", 1000, "CONSUMER", "c")
            self.do(
                "DQ.NACK",
                BIG,
                *[receipt for _, receipt, *_ in given],
                "FATAL",
                "ERROR",
                "HTTP 500",
            )
        fill(self.server, BIG, part)
        done = []
        while self.do("DQ.LEN", BIG, "finished") < part:
            acks = ["ACK", len(done), *done] if done else []
            done = [receipt for _, receipt, *_ in self.do("DQ.FETCH", BIG, "COUNT", 1000, *acks)]
        fill(self.server, BIG, part)
        self.do("DQ.FETCH", BIG, "COUNT", 10_000, "LEASE", FAR, "CONSUMER", "c")
        fill_groups(self.server, BIG, part // 10, 10)
        fill(self.server, BIG, part, "BATCH", "album", "DELAY", FAR)
        fill(self.server, BIG, part, "TYPE", "mail", "DELAY", FAR)
        fill(self.server, BIG, half - 6 * part, "DELAY", FAR)
        self.do("DQ.SEND", BIG, "x", "ID", "parent", "CHILDREN", CHILDREN)
        fill(self.server, BIG, CHILDREN, "PARENT", BIG, "parent", "DELAY", FAR)
        self.do("DQ.SCHEDULE", BIG, "nightly", "CRON", "0 3 * * *", "PAYLOAD", "x")
        names = [f"queue-{n:05}" for n in range(self.queues - 1 - self.partitions)]
        names += self.do("DQ.PARTITIONS", FAMILY, self.partitions)
        with self.server.wire(protocol=2, timeout=600) as wire:
            each = half // len(names)
            for name in names:
                left = each
                while left > 0:
                    n = min(left, 1000)
                    wire.sock.sendall(encode(["DQ.MSEND", name, n, *[PAYLOAD] * n]))
                    assert len(wire.recv()) == n
                    left -= n

    def rows(self):
        """Every row, one by one as it is measured."""
        get = self.me.get
        # All other work updates the figures, as before and after.
        yield self.row("the figures of five seconds, no page", lambda: time.sleep(5), most=None)
        yield self.row("overview", lambda: get(""))
        yield self.row("overview, by dead messages, page 3", lambda: get("", sort="dead", page=3))
        yield self.row("overview, names that match", lambda: get("", q="queue-00"))
        yield self.row("family", lambda: get("family", family=FAMILY))
        for groups in ("blocked", "running", "ready", "all"):
            yield self.row(
                f"queue, groups {groups}",
                lambda groups=groups: get("queue", queue=BIG, groups=groups),
            )
        yield self.row("errors, of the queue", lambda: get("errors", queue=BIG))
        yield self.row("errors, of all queues", lambda: get("errors"))
        yield self.row("history, 7 days of 8 queues", lambda: get("history", span="7d", pick="queue-0000*"))
        yield self.row("workers", lambda: get("workers"), most="found")
        yield self.row("schedules", lambda: get("schedules"), most="found")
        yield self.row("find, by type in all queues", lambda: get("messages", queues="*", type="mail"), most="found")
        yield self.row("find, by payload in all queues", lambda: get("messages", queues="*", payload="*y*"), most="found")
        yield self.row("run times", lambda: get("types", queue=BIG))
        yield self.row("search for an id", lambda: get("search", find="no such id"), most="found")
        yield self.row("server", lambda: get("server"))
        yield self.row("all figures as JSON", lambda: get("api/queues"))
        yield self.row("queue as JSON", lambda: get("api/queue", queue=BIG))
        yield self.row("history as JSON", lambda: get("api/history", span="7d"))
        yield self.row("queue, a small one", lambda: get("queue", queue="queue-00007"))
        for state in ("ready", "delayed", "running", "dead", "finished"):
            yield self.row(
                f"messages, {state}",
                lambda state=state: get("messages", queue=BIG, state=state),
            )
        yield self.row("messages, the next page of those", lambda: self.following("delayed"))
        yield self.row(
            "messages of a family",
            lambda: get("messages", family=FAMILY, state="ready"),
        )
        for words in (
            {"type": "mail"},
            {"batch": "album"},
            {"payload": "*y*"},
            {"error": "HTTP 4*"},
            {"id": "zz*"},
            {"newest": "1", "group": "g7"},
        ):
            state = "dead" if "error" in words else "ready" if "group" in words else "delayed"
            name = ", ".join(f"{name} {value}" for name, value in words.items())
            yield self.row(
                f"messages, {state}, {name}",
                lambda words=words, state=state: get("messages", queue=BIG, state=state, **words),
                most="found",
            )
        _, [dead] = self.do("DQ.LIST", BIG, "dead", "COUNT", 1)
        id = dict(zip(dead[::2], dead[1::2]))[b"id"] if isinstance(dead, list) else dead[b"id"]
        yield self.row("message", lambda: get("message", queue=BIG, id=id))
        yield self.row(f"message with {CHILDREN:,} children", lambda: get("message", queue=BIG, id="parent"))
        yield self.row(f"the flow of {CHILDREN:,} children", lambda: get("tree", queue=BIG, id="parent"))
        yield self.row(
            "count, all dead",
            lambda: get("confirm", act="redrive", queue=BIG, state="dead"),
        )
        yield self.row(
            "count, a condition",
            lambda: get("confirm", act="purge", queue=BIG, state="delayed", type="mail"),
            most="found",
        )
        act = self.act
        yield self.row(
            "pause and resume",
            lambda: (act(act="pause", queue=BIG), act(act="resume", queue=BIG)),
            most=None,
        )
        yield self.row(
            "pause and resume a family",
            lambda: (act(act="pause", family=FAMILY), act(act="resume", family=FAMILY)),
            most=None,
        )
        yield self.row(
            "redrive all dead",
            lambda: act(act="redrive", queue=BIG, state="dead"),
            rounds=1,
        )
        yield self.row(
            "cancel by type",
            lambda: act(act="cancel", queue=BIG, state="delayed", type="mail"),
            rounds=1,
        )
        yield self.row(
            "remove all ready",
            lambda: act(act="purge", queue=BIG, state="ready"),
            rounds=1,
        )
        yield self.row(
            "remove all of a family that are ready",
            lambda: act(act="purge", family=FAMILY, state="ready"),
            rounds=1,
        )
        yield self.row("remove everything", lambda: act(act="empty", queue=BIG), rounds=1)

    def exported(self) -> Row:
        return self.row("exporter", self.exporter.page, most="exporter")

    def memory(self) -> int:
        """The memory of dq web at most, in MiB."""
        status = Path(f"/proc/{self.web.process.pid}/status").read_text()
        [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(peak) // 1024

    def following(self, state) -> None:
        page = self.me.get("messages", queue=BIG, state=state)
        self.me.get(page.links()["next page ›"])

    def act(self, **fields) -> None:
        """Confirms an action, and requests its page every second until it has ended, like the browser."""
        asked = self.me.get("confirm", **fields)
        done = self.me.ask(asked.form(), {"csrf": asked.csrf()})
        while "so far" in done.words():
            time.sleep(1)
            done = self.me.ask(done.address)
        assert "Not done" not in done.words() and done.status == 200, done.words()

    def row(self, name, look, rounds=None, most="page") -> Row:
        # What changes something has one round, and asks before.
        row = Row(name, most=most if rounds is None else None)
        for _ in range(rounds or self.rounds):
            with self._ours():
                before = self._calls()
                self.do("SLOWLOG", "RESET")
            began = time.monotonic()
            look()
            row.seconds.append(time.monotonic() - began)
            with self._ours():
                row.commands += self._calls() - before
                slow = [(entry[2] / 1000, entry[3][0].decode()) for entry in self._slow()]
            row.longest.append(
                max(
                    slow,
                    default=(SHORT / 1000, f"at most, {SHORT} us are not looked at"),
                )
            )
        row.ended = time.time()
        return row

    @contextmanager
    def _ours(self) -> Iterator[None]:
        """Notes a time in which this program itself keeps the server busy: SLOWLOG is one long command."""
        began = time.time()
        yield
        self.busy.append((began, time.time()))

    def undisturbed(self, pings: list) -> list:
        """Returns the PINGs, by time and wait, that overlap none of those times."""
        return [
            (sent, waited)
            for sent, waited in pings
            if not any(sent < until and sent + waited > began for began, until in self.busy)
        ]

    def _slow(self) -> list:
        with self.server.wire(protocol=2, timeout=60) as wire:
            entries = wire.call("SLOWLOG", "GET", -1)
        return [entry for entry in entries if entry[3][0].upper().decode() not in OURS and CALLS.encode() not in entry[3]]

    def _calls(self) -> int:
        """The number of commands so far, without those of this program."""
        calls = self.client.info(CALLS)
        return sum(row["calls"] for name, row in calls.items() if name.removeprefix("cmdstat_").split("|")[0].upper() not in OURS)


def main(words=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load.pages", description=__doc__.splitlines()[0])
    parser.add_argument("--queues", type=int, default=10_000, help="queues (%(default)s)")
    parser.add_argument(
        "--messages",
        type=int,
        default=10_000_000,
        help="messages in them (%(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="how often each page is asked for (%(default)s)",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=2,
        help="ms of a command or a PING that are too many (%(default)s)",
    )
    parser.add_argument("--page", type=float, default=100, help="ms of a page that are too many (%(default)s)")
    parser.add_argument("--found", type=float, default=1000, help="ms of a search that are too many (%(default)s)")
    parser.add_argument("--exporter", type=float, default=2000, help="ms of the exporter that are too many (%(default)s)")
    parser.add_argument(
        "--memory",
        type=int,
        default=60,
        help="MiB of dq web that are too many (%(default)s)",
    )
    args = parser.parse_args(words)
    rows = []
    memory = 0
    with Pages(args.queues, args.messages, args.rounds) as pages:
        info = pages.server.info("server")
        print(
            f"server {info.get('valkey_version') or info['redis_version']}, {args.queues:,} queues, {args.messages:,} messages"
        )
        print(HEAD, flush=True)
        with Absences() as absences, Probe(pages.server.port, pid=pages.server.pid) as probe:
            for row in pages.rows():
                rows.append(row)
                print(row, flush=True)
        exported = pages.exported()
        print(exported, flush=True)
        probe.pings = pages.undisturbed(probe.pings)
        memory = pages.memory()
        slice_us = pages.client.info("dq")["dq_longest_slice_us"]
    waits = Waits.of(absences, probe)
    began, _ = max(probe.pings, key=lambda ping: ping[1])
    meanwhile = next((row.name for row in rows if began < row.ended), "the end")
    print(f"{waits.count:,} PINGs meanwhile: 99 % within {waits.p99:.2f} ms, the longest {waits.longest:.2f} ms,")
    print("without the time for which the server itself waited for a processor behind other programs,")
    print(f"of which a processor was absent for {waits.absent:.2f} ms; the longest without absences {waits.own:.2f} ms;")
    beyond = sum(waited * 1000 > args.limit for _, waited in probe.pings)
    print(f"the longest was during: {meanwhile}; {beyond} took more than {args.limit:g} ms")
    print(f"the longest slice of the module's timer took {slice_us / 1000:.2f} ms")
    print(f"dq web took {memory} MiB at most, the limit is {args.memory}")
    slow = [f"{row.name}: a command of {row.ms():.2f} ms, the limit is {args.limit:g}" for row in rows if row.ms() > args.limit]
    for row in [*rows, exported]:
        most = vars(args).get(row.most)
        if most and row.page_ms() > most:
            slow.append(f"{row.name}: {row.page_ms():.0f} ms, the limit is {most:g}")
    print(*slow, sep="\n")
    if held_up := waits.own > args.limit:
        print(f"a PING took {waits.own:.2f} ms without absences, the limit is {args.limit:g}")
    return 1 if slow or held_up or memory > args.memory else 0


if __name__ == "__main__":
    sys.exit(main())
