#!/usr/bin/env python3
"""Updates the figures of the tables in the README files from docs/benchmarks.md. The names of the rows stay."""

import re

from bench import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")
# Each row in the page: the beginning of its section, the beginning of its name, and the end of its peer.
COMMANDS = (
    ("Commands", "SEND, due now", "XADD"),
    ("Commands", "SEND, random delay", "into 1M"),
    ("Commands", "MSEND of 100", "XADD"),
    ("Commands", "FETCH, ACK: two", "XDEL"),
    ("Commands", "FETCH COUNT 1 ACK 1", "XACK"),
    ("Commands", "FETCH COUNT 10 ACK 10", "XDEL"),
    ("Whole life", "send, fall due, fetch, ack: in tens", ""),
    ("Memory", "delayed", ""),
    ("1,000,000 messages fall", "no consumer", ""),
    ("Bytes a message in the AOF", "SEND, due now +", ""),
)
WORKERS = (
    ("Jobs a second", "Python, threads, 1 ", ""),
    ("Jobs a second", "Python, threads, 10 ", ""),
    ("Jobs a second", "Python, asyncio, 10 ", ""),
    ("Jobs a second", "Node, 10 ", ""),
    ("Jobs a second", "PHP, 1 ", ""),
    ("Jobs a second", "Go, 10 ", ""),
    ("Server CPU a job", "Python, threads, 10 ", ""),
    ("Server CPU a job", "Node, 10 ", ""),
    ("Server CPU a job", "PHP, 1 ", ""),
    ("How late", "Node", ""),
)
# The tables by the first cell of their heads: nothing, or the words for a worker.
TABLES = ((r"", COMMANDS), (r"[^|\n]+ ", WORKERS))


def cells(line):
    return [cell.strip() for cell in line.strip("|").split(" |")]


def measured(page):
    """Yields section, name, our figure, the peer's, result, limit and verdict of each row of the page."""
    section = ""
    for line in page.splitlines():
        row = cells(line) if line.startswith("|") else []
        if row and row[0].startswith("**"):
            section = row[0].strip("*")
        elif len(row) >= 6:
            yield section, *row[:6]


def updated(text, head, names_of, rows):
    """Returns the text of a README with the figures of one table."""
    shown = []
    for section, name, peer in names_of:
        found = (row for row in rows if row[0].startswith(section) and row[1].startswith(name) and row[3].endswith(peer))
        shown.append(next(found)[2:])
    pattern = re.compile(rf"(^\| {head}\| dq \|.*\n\|[-|]+\n)((?:\|.*\n)+)", re.MULTILINE)
    start, table = pattern.search(text).groups()
    names = [cells(line)[0] for line in table.splitlines()]
    lines = [" ".join(["|", *(f"{cell} |" if cell else "|" for cell in (name, *row))]) for name, row in zip(names, shown)]
    return text.replace(start + table, start + "\n".join(lines) + "\n")


def main():
    rows = list(measured(PAGE.read_text()))
    for path in READMES:
        text = path.read_text()
        for head, names_of in TABLES:
            text = updated(text, head, names_of, rows)
        path.write_text(text)


if __name__ == "__main__":
    main()
