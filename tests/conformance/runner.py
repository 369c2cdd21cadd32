"""Runs the conformance cases with any client: `cases.json` has the steps, docs/clients.md explains them."""

import json
import re
from itertools import count
from pathlib import Path

CASES = json.loads(Path(__file__).with_name("cases.json").read_text())["cases"]
_numbers = count()


class Failure(Exception):
    """The exception of `do` for an error reply of the server."""


def run(case, do, work=None, durable=None, apply=None):
    """Runs one case.

    `do(words)` sends a command and returns its reply, or raises Failure. `work(key, n, grace, types)` runs the client's
    worker until the n-th message has stopped it; `grace` is in ms, or None for the client's own. The handler is for these
    types, or for all if there are none. `durable(key, verb, *words)` sends or acks by a queue that nobody confirms.
    `apply(key, step)` settles a message with effects, and returns what the client returns, and what was applied.
    """
    known = {"key": f"case:{next(_numbers)}"}
    for step in case["steps"]:
        if "work" in step:
            work(known["key"], step["work"], step.get("grace"), step.get("types", []))
            continue
        if "durable" in step:
            verb, *words = step["durable"]
            durable(known["key"], verb, *(known[word[1:-1]] if word[0] == "<" else word for word in words))
            continue
        if "apply" in step:
            given = json.loads(re.sub(r"<(\w+)>", lambda name: str(known.get(name[1], name[0])), json.dumps(step)))
            try:
                returned, applied = apply(known["key"], given)
            except Failure as failure:
                assert "error" in step and is_error(step["error"], str(failure)), f"{given}: {failure}"
            else:
                assert returned == step["returns"] and matches(step["applied"], applied, known), f"{given}: {returned}, {applied}"
            continue
        words = [re.sub(r"<(\w+)>", lambda name: str(known[name[1]]), str(word)) for word in step["do"]]
        try:
            reply = do(words)
        except Failure as failure:
            assert "error" in step and is_error(step["error"], str(failure)), f"{words}: {failure}"
        else:
            assert "reply" in step and matches(step["reply"], reply, known), f"{words}: {reply!r}, not {step}"


def is_error(expected, text):
    """Whether an error is the expected one, which some clients show without its first word ERR."""
    return text.removeprefix("ERR").lstrip().startswith(expected.removeprefix("ERR").lstrip())


def matches(expected, reply, known):
    """Whether a reply is the one that a step expects. RESP2 has no maps, doubles and booleans of its own."""
    if isinstance(reply, bytes):
        reply = reply.decode()
    if isinstance(expected, str):
        if name := re.fullmatch(r"<(\w+)>", expected):
            return reply is not None and (name[1] == "any" or known.setdefault(name[1], reply) == reply)
        return reply == re.sub(r"<(\w+)>", lambda name: str(known[name[1]]), expected)
    if expected is None or isinstance(expected, bool):
        return reply is None if expected is None else reply in (0, 1) and bool(reply) == expected
    if isinstance(expected, (int, float)):
        return reply is not None and float(reply) == expected
    if isinstance(expected, list):
        return len(reply) == len(expected) and all(matches(e, r, known) for e, r in zip(expected, reply))
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    given = {name.decode(): value for name, value in pairs}
    return all(name in given and matches(value, given[name], known) for name, value in expected.items())
