"""python fuzz/dictionary.py (in the root of the repository): writes the words that the fuzzer of the arguments knows, from
the COMMAND DOCS of a server with the built module."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.harness.server import Server  # noqa: E402
from tests.harness.verbs import commands, options  # noqa: E402

DICTIONARY = Path(__file__).parent / "arguments.dict"
# Words of the fuzz target itself (they move its clock and close its connection), the greatest numbers, and what separates
# arguments.
OTHERS = ["CLOSE", "STAND", "~", r"\x1f", "1700000000000001", "9007199254740991", "-1"]


def dictionary(server) -> str:
    """The text of the dictionary: every command, option and other word, a line each."""
    wire = server.wire(3)
    verbs = commands(wire)
    words = set(verbs).union(*(options(wire, verb, values=True) for verb in verbs), OTHERS)
    return "# Words that commands know, for libFuzzer's -dict. fuzz/dictionary.py writes them.\n" + "".join(
        f'"{word}"\n' for word in sorted(words)
    )


if __name__ == "__main__":
    server = Server().start()
    try:
        DICTIONARY.write_text(dictionary(server))
    finally:
        server.close()
