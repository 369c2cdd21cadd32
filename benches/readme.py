#!/usr/bin/env python3
"""Updates the figures of the ten rows in the README files from docs/benchmarks.md. The names of the rows stay."""

import re

from bench import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")
# Each of them in the page: the beginning of its section, the beginning of its name, and the end of its peer.
SHOWN = (
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
TABLE = re.compile(r"(^\| \| dq \|.*\n\|[-|]+\n)((?:\|.*\n)+)", re.MULTILINE)


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


def main():
    rows = list(measured(PAGE.read_text()))
    shown = []
    for section, name, peer in SHOWN:
        found = (row for row in rows if row[0].startswith(section) and row[1].startswith(name) and row[3].endswith(peer))
        shown.append(next(found)[2:])
    for path in READMES:
        text = path.read_text()
        head, table = TABLE.search(text).groups()
        names = [cells(line)[0] for line in table.splitlines()]
        lines = [" ".join(["|", *(f"{cell} |" if cell else "|" for cell in (name, *row))]) for name, row in zip(names, shown)]
        path.write_text(text.replace(head + table, head + "\n".join(lines) + "\n"))


if __name__ == "__main__":
    main()
