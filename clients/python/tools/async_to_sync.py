"""Writes the generated modules of dqueue/_sync: those of dqueue/_async without the words that wait.

    python clients/python/tools/async_to_sync.py            # writes them
    python clients/python/tools/async_to_sync.py --check    # fails if one of them is not up to date

A line that ends in `# asyncio only` is left out. Code that differs by more than words is in modules that are written by
hand: dqueue/_async/runtime.py and dqueue/_sync/runtime.py, for example.
"""

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src/dqueue"
MODULES = ("caller", "confirming", "family", "queue", "settling", "tasks")
RULES = {
    r"^.*# asyncio only\n": "",
    r"\bawait ": "",
    r"\basync (def|for|with) ": r"\1 ",
    r"\bCoroutine\[Any, Any, (\w+)\]": r"\1",
    r"\bTask\[P, R, \w+\]": "Task[P, R]",
    r"\bTask\[Any, Any, Any\]": "Task[Any, Any]",
    r"\bGeneric\[P, R, C\]": "Generic[P, R]",
    r"(-> |result: )C\b": r"\1R",
    r"\bAsync(Client|Iterator|Nodes)\b": r"\1",
    r"\bAsyncHandlers\b": "SyncHandlers",
    r"\basynccontextmanager\b": "contextmanager",
    r"\baclose\b": "close",
    r"\bdqueue\._async\b": "dqueue._sync",
    r"\bseveral tasks\b": "several threads",
    # The lines that were left out must not leave gaps.
    r"\n{3,}(?= )": "\n\n",
}


def translated(name: str) -> str:
    """Returns the text of a generated module."""
    text = (PACKAGE / f"_async/{name}.py").read_text()
    for pattern, words in RULES.items():
        text = re.sub(pattern, words, text, flags=re.MULTILINE)
    text = re.sub(r"^from (\S+) import (?:\(([^)]*)\)|(.*))$", sorted_import, text, flags=re.MULTILINE)
    return f"# Generated from _async/{name}.py by tools/async_to_sync.py. Change that file, and run the script.\n{text}"


def sorted_import(found: re.Match[str]) -> str:
    """Returns an import as ruff wants it: constants, classes and functions, in several lines if it is long."""
    # Without asyncio a method returns no coroutine.
    names = {name.strip() for name in (found[2] or found[3]).split(",")} - {"", "Coroutine"}
    order = sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    line = f"from {found[1]} import {', '.join(order)}"
    return line if len(line) <= 88 else f"from {found[1]} import (\n    " + ",\n    ".join(order) + ",\n)"


def main() -> int:
    texts = {PACKAGE / f"_sync/{name}.py": translated(name) for name in MODULES}
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"error: {path.relative_to(PACKAGE.parents[1])} is stale: run clients/python/tools/async_to_sync.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(texts[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
