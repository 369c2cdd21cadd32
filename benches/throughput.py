"""Measures commands: messages a second and server CPU per message, in rounds in which all commands take turns."""

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from bench import median_ratio
from report import Row, rate, table
from workloads import (
    BESIDE,
    GOING_ON,
    GROUP_COUNTS,
    GROUPED,
    MANY_GROUPS,
    OURS,
    PEERS,
    STREAMS,
    prepare_millions,
)


@dataclass
class Comparison:
    """A workload of ours against a peer's, by server CPU per message."""

    ours: str
    peer: str
    at_most: float | None = None
    without: str | None = None
    """A workload with which both workloads begin, whose cost is subtracted from both."""
    pipeline: int = 64
    """The commands in flight on each connection."""

    def names(self):
        return {name for name in (self.ours, self.peer, self.without) if name}

    def title(self, workloads, name):
        less = f", less its {workloads[self.without].title}" if self.without else ""
        return workloads[name].title + less + (", one at a time" if self.pipeline == 1 else "")


PLAIN = [
    Comparison("send", "xadd", 1.0),
    Comparison("send-delayed", "zadd", 0.4),
    Comparison("msend", "xadd", 0.5),
    Comparison("fetch-ack", "xread1", 0.45),
    Comparison("fetch-ack", "xread1-xdel", 0.33),
    Comparison("fetch1-ack1", "xread1", 0.3),
    Comparison("fetch10-ack10", "xread10", 0.5),
    Comparison("fetch10-ack10", "xread10-xdel"),
    Comparison("send", "lua-send"),
    Comparison("fetch1-ack1", "lua-fetch"),
    Comparison("send", "ping"),
    Comparison("send", "set"),
    Comparison("send", "lpush"),
    Comparison("fetch1-ack1", "rpop"),
]

OVER_GROUPS = [
    Comparison(f"{verb}-groups-{groups}", verb, 1.5 if groups == MANY_GROUPS else None)
    for verb in ("send", "fetch-ack")
    for groups in GROUP_COUNTS
]
OVER_GROUPS.append(Comparison(f"fetch-ack-random-groups-{MANY_GROUPS}", "fetch-ack"))
OVER_GROUPS += [Comparison(f"send-groups-{groups}", f"xadd-streams-{groups}") for groups in GROUP_COUNTS]
GROUPS_SECTION = "Groups against no groups and against a stream a group, server CPU a message"

COSTLESS = [Comparison(f"{verb}-beside", verb, 1.1) for verb in ("send", "fetch-ack")]
COSTLESS += [Comparison("fetch-ack-limits", "fetch-ack", 1.1)]
# In pipelines the entries of the stream alone cost more than the message.
COSTLESS += [Comparison("ack-send-events", "ack-send", 2.0, pipeline=1), Comparison("ack-send-events", "ack-send")]
GOES_ON = Comparison("acksend", "ack-send", 1.15, without="fetch")

LOGGED = [
    Comparison("send", "xadd", 1.0),
    Comparison("fetch-ack", "xread1", 0.45),
    Comparison("fetch-ack", "xread1-xdel", 0.33),
    Comparison("fetch1-ack1", "xread1", 0.3),
    Comparison("fetch10-ack10", "xread10", 0.5),
    Comparison("fetch10-ack10", "xread10-xdel"),
    Comparison("send", "lua-send"),
    Comparison("fetch1-ack1", "lua-fetch"),
    GOES_ON,
]

LOG_BYTES_AT_MOST = 0.6

ALL = [*PEERS, *OURS, *GOING_ON, *BESIDE, *STREAMS, *GROUPED]


class Figures:
    """The measurements of one workload at one pipeline: one value a round."""

    def __init__(self):
        self.per_second = []
        self.cpu_us = []
        self.log_bytes = []


class Throughput:
    """Measures the workloads of the comparisons that are asked for."""

    def __init__(self, bench):
        self._bench = bench
        self._workloads = {workload.name: workload for workload in ALL}
        self._plain = defaultdict(Figures)
        self._logged = defaultdict(Figures)

    def measure(self):
        """Returns the rows of all comparisons."""
        plain = self._wanted([*PLAIN, GOES_ON, *COSTLESS], "command")
        grouped = self._wanted(OVER_GROUPS, "groups")
        logged = self._wanted(LOGGED, "aof")
        self._measure_plain(self._needed(plain + grouped))
        self._measure_logged(self._needed(logged))
        rows = [self._row("Commands, server CPU a message", pair, self._plain) for pair in plain]
        rows += [self._row(GROUPS_SECTION, pair, self._plain) for pair in grouped]
        rows += [self._row("With AOF everysec, server CPU a message", pair, self._logged) for pair in logged]
        for pair in logged:
            limit = pair.at_most if pair is GOES_ON else pair.at_most and LOG_BYTES_AT_MOST
            rows.append(self._bytes_row([pair.ours], [pair.peer], limit, pair.without))
        if {"send", "fetch-ack"} <= {pair.ours for pair in logged}:
            rows.append(self._bytes_row(["send", "fetch-ack"], ["xadd", "xread1"], LOG_BYTES_AT_MOST))
        return rows

    def details(self):
        """Returns a table of every workload: throughput at each pipeline and CPU, without and with the log.

        Returns None if nothing ran.
        """
        rows = []
        for name, workload in self._workloads.items():
            at = [self._plain.get((name, pipeline)) for pipeline in (1, 16, 64)]
            log = self._logged.get((name, 64))
            if at[2] is None and log is None:
                continue
            cells = [f"{rate(median(one.per_second))}" if one else "" for one in at]
            cells.append(f"{median(at[2].cpu_us):.2f}" if at[2] else "")
            cells += [rate(median(log.per_second)), f"{median(log.cpu_us):.2f}"] if log else ["", ""]
            cells.append(f"{median(log.log_bytes):.0f}" if log else "")
            rows.append([workload.title, *cells])
        heads = ["command", "P=1", "P=16", "P=64", "CPU us", "AOF: P=64", "CPU us", "AOF bytes"]
        return table(heads, rows) if rows else None

    def _wanted(self, comparisons, kind):
        return [pair for pair in comparisons if self._bench.wanted(kind, f"{kind}-{pair.ours}", f"{kind}-{pair.peer}")]

    def _needed(self, comparisons):
        names = {name for pair in comparisons for name in pair.names()}
        return [workload for name, workload in self._workloads.items() if name in names]

    def _measure_plain(self, workloads):
        if not workloads:
            return
        with self._bench.server() as server:
            if any(workload.database == 1 for workload in workloads):
                self._bench.say("filling: a million members, a million delayed messages")
                prepare_millions(self._bench, server)
            for number in range(self._bench.rounds):
                self._bench.say(f"commands: round {number + 1} of {self._bench.rounds}")
                for workload in workloads:
                    for pipeline in workload.pipelines:
                        self._run(server, workload, pipeline, self._plain[workload.name, pipeline])

    def _measure_logged(self, workloads):
        for number in range(self._bench.rounds if workloads else 0):
            self._bench.say(f"commands with AOF: round {number + 1} of {self._bench.rounds}")
            # A new server each round keeps the log short.
            with self._bench.server(aof=True) as server:
                for workload in workloads:
                    self._run(server, workload, 64, self._logged[workload.name, 64], log=True)

    def _run(self, server, workload, pipeline, figures, log=False):
        # With few commands in flight the kernel is the bottleneck, so fewer commands are enough for the same time.
        share = {1: 6, 16: 2, 64: 1}[pipeline]
        commands = max(self._bench.scaled(workload.messages) // workload.batch // share, 100)
        steps = workload.steps
        if workload.prepare is not None:
            steps = workload.prepare(self._bench, server, commands * workload.batch) or steps
        before = server.aof_bytes() if log else 0
        done = self._bench.generator.run(server, steps, commands, pipeline=pipeline, db=workload.database)
        messages = done.taken if workload.takes() else done.commands * workload.batch
        if messages < 0.9 * commands * workload.batch:
            raise RuntimeError(f"{workload.title}: only {messages} messages of {commands * workload.batch}")
        figures.per_second.append(messages / done.seconds)
        figures.cpu_us.append(done.server_us / messages)
        if log:
            figures.log_bytes.append((server.aof_bytes() - before) / messages)
        if workload.database == 0:
            server.empty()

    def _row(self, section, pair, figures):
        ours, peer = (figures[name, pair.pipeline].cpu_us for name in (pair.ours, pair.peer))
        if pair.without:
            common = figures[pair.without, pair.pipeline].cpu_us
            ours, peer = ([one - less for one, less in zip(of, common)] for of in (ours, peer))
        return Row(
            section,
            pair.title(self._workloads, pair.ours),
            f"{median(ours):.2f} us",
            f"{median(peer):.2f} us  {pair.title(self._workloads, pair.peer)}",
            median_ratio(ours, peer),
            at_most=pair.at_most,
        )

    def _bytes_row(self, ours, peers, at_most, without=None):
        def sums(names):
            found = [sum(of_round) for of_round in zip(*(self._logged[name, 64].log_bytes for name in names))]
            if without:
                found = [one - less for one, less in zip(found, self._logged[without, 64].log_bytes)]
            return found

        def titles(names):
            less = f", less its {self._workloads[without].title}" if without else ""
            return " + ".join(self._workloads[name].title for name in names) + less

        return Row(
            "Bytes a message in the AOF, its 100 of payload included",
            titles(ours),
            f"{median(sums(ours)):.0f} B",
            f"{median(sums(peers)):.0f} B  {titles(peers)}",
            median_ratio(sums(ours), sums(peers)),
            at_most=at_most,
        )
