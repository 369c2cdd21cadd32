"""What the server calls runs in the guard, so that a panic ends a command and not the server."""

import re

from tests.harness.server import ROOT

# What may stand outside of `contain`: it reads a static or an argument, or is a guard itself.
HARMLESS = {
    "Some", "Err", "api!", "matches!", "c_text", "CStr::from_ptr", "String::from_utf8_lossy", "super::name::string_bytes",
    "Args::new", "Name::new", "Reply::new", "null_mut", "woke",
}  # fmt: skip
# They have a guard of their own, or keep a number.
GUARDED = {
    "crate::redis::on_load", "dispatch", "run", "is_async_loading", "assume_followers", "followers::assume_present",
    "followers::check", "replays::check",
}  # fmt: skip


def end_of(text: str, at: int) -> int:
    """The place behind the bracket that closes the one at this place."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if not depth:
            return place + 1
    raise AssertionError(text[at : at + 80])


def entries(text: str):
    """The name and the body of each function that the server calls."""
    for found in re.finditer(r'extern "C" fn (\w+)[^;{(]*\(', text):
        end = end_of(text, found.end() - 1)
        begin = end + re.match(r"[^;{]*", text[end:]).end()
        if text[begin] == "{":
            yield found[1], text[begin : end_of(text, begin)]


def unguarded(body: str) -> set:
    """The functions that a body calls outside of the guard."""
    while found := re.search(r"\bcontain\w*\(", body):
        body = body[: found.start()] + body[end_of(body, found.end() - 1) :]
    return {call for call in re.findall(r"(?<![.\w:])([a-zA-Z_][\w:]*!?)\(", body) if not call.startswith("RedisModule_")}


def test_what_the_server_calls_runs_in_the_guard():
    found, wrong = 0, {}
    for path in sorted((ROOT / "src").rglob("*.rs")):
        for name, body in entries(re.sub(r"//.*", "", path.read_text())):
            found += 1
            if calls := unguarded(body) - HARMLESS - GUARDED:
                wrong[f"{path.name}: {name}"] = calls
    assert found > 25 and not wrong


def test_no_command_runs_while_a_stream_is_open_for_writing():
    """The server looks the key up anew, which it must not do while a change is on its way."""
    source = (ROOT / "src/redis/stream/mod.rs").read_text()
    calls = re.findall(r"    fn (\w+)\(&mut self[^{]*\{(?:(?!\n    fn ).)*?RedisModule_Call\b", source, re.DOTALL)
    assert calls == ["last_given"]
    body = source[source.index("fn last_given") :]
    assert -1 < body.find("self.close();") < body.find("RedisModule_Call")
