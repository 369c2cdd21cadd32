"""Files as every version of the encodings has written them, and their content. They must load for ever.

The folder of a version is made once, by `python -m tests.golden v1`, and never again after the release that has it. A
change of the format is a new version: the constant in crates/queue/src/codec/snapshot, a reader that reads both, and a
folder of its own, `v2`. Fields that the description of an older version lacks, because later versions added them, must
be EMPTY.
"""

import json
from pathlib import Path

from tests.harness.replies import Queue, as_map, as_maps

FOLDER = Path(__file__).parent
# A queue with every kind of state and option on a manual clock, one on the server's clock, and one of random traffic.
KEYS = ("manual", "server", "traffic")
# The values of new fields where they do not apply.
EMPTY = (None, 0, [], "OFF")
STATES = "delayed ready blocked retry running finished dead cancelled held".split()
# Fields that depend on the moment of the request and not on the queue.
MOMENTARY = ("now", "oldest-ready-age", "oldest-due-age", "blocked-clients")


def versions() -> list:
    """The names of all folders."""
    return sorted(path.name for path in FOLDER.iterdir() if (path / "description.json").exists())


def describe(client) -> dict:
    """All that a client can see of the queues, as JSON has it."""
    return {key: plain(queue(Queue(client, key))) for key in KEYS}


def queue(q) -> dict:
    """Returns all fields of one queue that a client can see."""
    info = q.info()
    momentary = MOMENTARY if q.key == "server" else MOMENTARY[1:]
    seen = {"info": {name: value for name, value in info.items() if name not in momentary}}
    for state in STATES:
        seen[state] = listed(q, state)
        assert len(seen[state]) == info[state], state
        assert seen[state] == [q.get(message["id"]) for message in seen[state]], state
    seen["next"] = [message["id"] for message in q.peek("COUNT", 1000)]
    seen["groups"] = as_maps(q.do("GROUPS", "COUNT", 1000)[1])
    seen["consumers"] = as_maps(q.do("CONSUMERS"))
    seen["batches"] = as_maps(q.do("BATCHES", "COUNT", 1000)[1])
    seen["schedules"] = as_maps(q.do("SCHEDULES"))
    seen["limits"] = as_maps(q.do("LIMITS", "COUNT", 1000)[1])
    seen["children"] = as_maps(q.do("CHILDREN", "parent", "COUNT", 1000)[1])
    return seen


def listed(q, state) -> list:
    cursor, found = b"0", []
    while True:
        cursor, some = q.do("LIST", state, "CURSOR", cursor, "COUNT", 7)
        found += as_maps(some)
        if cursor == b"0":
            return found


def plain(value):
    """The value as JSON gives it back: maps with text keys, bytes as Latin-1."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in as_map(value).items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def without_new(seen, held):
    """The seen state, without those fields of maps that the version of `held` did not have and that hold nothing."""
    if isinstance(seen, dict) and isinstance(held, dict):
        return {k: without_new(v, held.get(k)) for k, v in seen.items() if k in held or v not in EMPTY}
    if isinstance(seen, list) and isinstance(held, list) and len(seen) == len(held):
        return [without_new(one, other) for one, other in zip(seen, held, strict=True)]
    return seen


def description(version: str) -> dict:
    """The state in the files of a version."""
    return json.loads((FOLDER / version / "description.json").read_text())
