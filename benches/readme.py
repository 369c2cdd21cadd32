#!/usr/bin/env python3
"""Updates the figures of the tables in the README files from docs/benchmarks.md. The names of the rows stay."""

import re

from bench import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")
# Each row in the page: the beginning of its section, the beginning of its name, and the end of its peer.
ROWS = (
    ("Commands", "SEND, due now", "XADD"),
    ("Commands", "FETCH, ACK: two", "XDEL"),
    ("Whole life", "send, fall due, fetch, ack: in tens", ""),
    ("Memory", "delayed", ""),
    ("1,000,000 messages fall", "no consumer", ""),
)


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


def updated(text, rows):
    """Returns the text of a README with the figures of the page."""
    shown = []
    for section, name, peer in ROWS:
        found = (row for row in rows if row[0].startswith(section) and row[1].startswith(name) and row[3].endswith(peer))
        shown.append(next(found)[2:])
    pattern = re.compile(r"(^\| \| dq \|.*\n\|[-|]+\n)((?:\|.*\n)+)", re.MULTILINE)
    start, table = pattern.search(text).groups()
    names = [cells(line)[0] for line in table.splitlines()]
    lines = [" ".join(["|", *(f"{cell} |" if cell else "|" for cell in (name, *row))]) for name, row in zip(names, shown)]
    return text.replace(start + table, start + "\n".join(lines) + "\n")


def main():
    rows = list(measured(PAGE.read_text()))
    for path in READMES:
        path.write_text(updated(path.read_text(), rows))


if __name__ == "__main__":
    main()
