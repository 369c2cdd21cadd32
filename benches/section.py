"""A section of a page in Markdown: from a heading of the second level to the next one."""

from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Puts the text in the place of the section that begins with the same heading, or at the end of the page."""
    heading = text.splitlines()[0]
    before, _, rest = path.read_text().partition(f"{heading}\n")
    _, found, after = rest.partition("\n## ")
    path.write_text(before + text + ("\n## " + after if found else ""))


def found(path: Path, heading: str) -> str:
    """The section of the page that begins with this heading, with a blank line behind it; empty where there is none."""
    text = path.read_text() if path.exists() else ""
    _, there, rest = text.partition(f"{heading}\n")
    return f"{heading}\n{rest.split(chr(10) + '## ')[0].rstrip()}\n\n" if there else ""
