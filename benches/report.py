"""Tables of figures and their limits that read well in a terminal and in Markdown."""

from dataclasses import dataclass


@dataclass
class Row:
    """One comparison with a peer, or one figure with a limit of its own.

    `ours` and `peer` are texts with their units. `value` is what the limit is about: a ratio (`unit` x) or a figure.
    A row with neither `at_most` nor `at_least` is shown for comparison only.
    """

    section: str
    what: str
    ours: str
    peer: str
    value: float
    unit: str = "x"
    at_most: float | None = None
    at_least: float | None = None

    def verdict(self):
        if self.at_most is not None:
            return "PASS" if self.value <= self.at_most else "MISS"
        if self.at_least is not None:
            return "PASS" if self.value >= self.at_least else "MISS"
        return ""

    def limit(self):
        if self.at_most is not None:
            return f"<= {self.at_most:g} {self.unit}"
        if self.at_least is not None:
            return f">= {self.at_least:g} {self.unit}"
        return ""

    def cells(self):
        return [self.what, self.ours, self.peer, f"{figure(self.value)} {self.unit}", self.limit(), self.verdict()]


HEADS = ["what", "dq", "peer", "result", "must be", ""]


def figure(value):
    """Returns a number with three significant digits, or as an integer from 100 on."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3f}"


def rate(per_second):
    """Returns messages a second in a short form, such as 1.23M or 456k."""
    return f"{per_second / 1e6:.2f}M" if per_second >= 1e6 else f"{per_second / 1e3:.0f}k"


def table(heads, rows):
    """Returns a Markdown table with aligned columns."""
    rows = [heads, *rows]
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(heads))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def targets(rows):
    """Returns one table of all rows. Each section begins with a line of its own."""
    cells = []
    section = None
    for row in rows:
        if row.section != section:
            section = row.section
            cells.append([f"**{section}**", "", "", "", "", ""])
        cells.append(row.cells())
    return table(HEADS, cells)


def summary(rows):
    """Returns how many targets hold, and lists those that do not."""
    missed = [row for row in rows if row.verdict() == "MISS"]
    judged = sum(row.verdict() != "" for row in rows)
    lines = [f"{judged - len(missed)} of {judged} targets hold" + ("; missed:" if missed else ".")]
    if missed:
        lines.append("")
    for row in missed:
        lines.append(f"- {row.section}: {row.what}: {figure(row.value)} {row.unit}, must be {row.limit()}")
    return "\n".join(lines)
