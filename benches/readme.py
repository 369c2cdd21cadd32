#!/usr/bin/env python3
"""Writes the ten rows of the README files anew, from docs/benchmarks.md; their names stay as they are there."""

import re

from bench import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")
# The section, the row and the peer that each of them is of: how these begin, begin and end.
TOLD = (
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
    """Section, name, ours, the peer's, result, limit and verdict of each row of the page."""
    section = ""
    for line in page.splitlines():
        row = cells(line) if line.startswith("|") else []
        if row and row[0].startswith("**"):
            section = row[0].strip("*")
        elif len(row) >= 6:
            yield section, *row[:6]


def main():
    rows = list(measured(PAGE.read_text()))
    told = []
    for section, name, peer in TOLD:
        found = (row for row in rows if row[0].startswith(section) and row[1].startswith(name) and row[3].endswith(peer))
        told.append(next(found)[2:])
    for path in READMES:
        text = path.read_text()
        head, table = TABLE.search(text).groups()
        names = [cells(line)[0] for line in table.splitlines()]
        lines = [" ".join(["|", *(f"{cell} |" if cell else "|" for cell in (name, *row))]) for name, row in zip(names, told)]
        path.write_text(text.replace(head + table, head + "\n".join(lines) + "\n"))


if __name__ == "__main__":
    main()
