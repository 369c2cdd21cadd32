"""The tables of a run, and the section of docs/benchmarks.md that it writes."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from textwrap import fill

from benches.frameworks.one_side import Side

INTRO = """\
Written by `make bench-frameworks BENCH_FLAGS='--write docs/benchmarks.md'`: a framework with our driver beside its own
transport, one after the other on the same machine, each with one server."""

TEXT = """\
## Frameworks on dq

{intro}

{tables}

- Workers are killed with SIGKILL while they run tasks of 0.1 s, with `acks_late` or what the framework has for it. A
  task counts as run again after its ack only if the reply to the ack had reached the worker, and as lost if it is not
  done 400 s after the last kill.
- Etas are spread over 20 s, and a worker waits for them with four threads or processes.
- Processor time and tasks a second are medians of three rounds: 5,000 tasks that do nothing are sent one by one, and
  done by one worker that does one at a time. What counts is how many round trips a task takes. With dq each task is sent
  by one. A worker acks two tasks of Celery or Dramatiq by another, which brings the next two, and one job of Laravel,
  which brings the next one.
- What Celery and Laravel do themselves after a commit of the database is in [outbox.md](outbox.md#how-it-is-tested), under kills.
"""


@dataclass(frozen=True)
class Row:
    """A row of the table. `holds` says whether our figure, beside the stock one, meets the aim."""

    key: str
    title: str
    form: str
    aim: str = ""
    holds: Callable[[float, float], bool] = lambda ours, stock: True


ROWS = [
    Row("kills", "workers killed (SIGKILL) at their work", "{:.0f}"),
    Row("lost", "tasks lost", "{:.0f}", "0", lambda ours, stock: ours == 0),
    Row("after_ack", "tasks run again after their ack", "{:.0f}", "0", lambda ours, stock: ours == 0),
    Row("again_p50", "a killed worker's task runs again after, p50", "{:.1f} s"),
    Row("again_max", "the same, at most", "{:.1f} s"),
    Row("late_p99", "lateness of etas, p99", "{:.1f} ms", "< 20 ms", lambda ours, stock: ours < 20),
    Row("late_missing", "etas that did not come", "{:.0f}", "0", lambda ours, stock: ours == 0),
    Row("memory", "growth of a worker by 100,000 etas", "{:.1f} MB", "< 5 MB", lambda ours, stock: ours < 5),
    Row("cpu", "server CPU a task, sent and done", "{:.0f} us", "half", lambda ours, stock: ours <= stock / 2),
    Row("jobs", "tasks a second of a worker process", "{:,.0f}", "not less", lambda ours, stock: ours >= stock * 0.97),
    Row("woken_max", "woken from two queues, at most", "{:.1f} ms", "< 5 ms", lambda ours, stock: ours < 5),
]


def table(ours: Side, stock: Side) -> tuple[list[str], bool]:
    """Returns the lines of a table, and whether our side meets all of its aims."""
    lines = [
        f"| | {ours.name} | {stock.name} | aim | |",
        "|---|---|---|---|---|",
        f"| settings | {ours.settings} | {stock.settings} | | |",
    ]
    met = True
    for row in ROWS:
        if row.key not in ours.rows and row.key not in stock.rows:
            continue
        mine, other = ours.rows.get(row.key, math.nan), stock.rows.get(row.key, math.nan)
        holds = row.holds(mine, other)
        met = met and holds
        verdict = ("PASS" if holds else "MISS") if row.aim else ""
        lines.append(f"| {row.title} | {_shown(row, mine)} | {_shown(row, other)} | {row.aim} | {verdict} |")
    return lines, met


def _shown(row: Row, value: float) -> str:
    return "-" if math.isnan(value) else row.form.format(value)


def page(tables: Iterable[list[str]], system: str, note: str) -> str:
    """Returns the section. `note` says how the figures were taken."""
    shown = "\n\n".join("\n".join(lines) for lines in tables)
    intro = fill(" ".join([INTRO, *([note] if note else []), f"{system}."]), 120, break_on_hyphens=False)
    return TEXT.format(intro=intro, tables=shown)
