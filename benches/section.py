"""A section of a page in Markdown: from a heading of the second level to the next one."""

from pathlib import Path


def section(path: Path, heading: str) -> str:
    """Returns the section of the page with the heading, or nothing if the page or the section is not there."""
    _, found, rest = (path.read_text() if path.exists() else "").partition(f"{heading}\n")
    return f"{found}{rest.partition(chr(10) + '## ')[0]}"


def replace(path: Path, text: str) -> None:
    """Puts the text in the place of the section that begins with the same heading, or at the end of the page."""
    heading = text.splitlines()[0]
    before, _, rest = path.read_text().partition(f"{heading}\n")
    _, found, after = rest.partition("\n## ")
    path.write_text(before + text + ("\n## " + after if found else ""))
