"""The terminal program `dq`: its commands that send, change and remove, and their errors."""

import json
import os
import re
import subprocess
import time

import pytest

from tests.harness.cli import Cli
from tests.harness.server import ROOT, free_port

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.timeout(600)


def test_send_sends_a_message_with_its_options(dq, r3):
    do = r3.execute_command
    refused = dq("send", "q", "x", code=1).stderr
    assert refused == "dq: q: no such queue (--new makes it)\n" and not r3.exists("q")
    id = dq("send", "q", "hällo", "--new").stdout.strip()
    assert do("DQ.GET", "q", id)[b"payload"] == "hällo".encode()
    options = "--id m1 --type mail --group g --score -1.5 --priority -3 --header a=b --header c=d=e --batch b --lease 2m"
    options += " --retries -1 --ttl 1h --retain 1d --delay 10m"
    assert dq("send", "q", "x", *options.split(), "--backoff", "EXP 1s").stdout == "m1\n"
    got = do("DQ.GET", "q", "m1")
    assert (got[b"type"], got[b"group"], got[b"score"], got[b"priority"]) == (b"mail", b"g", -1.5, -3)
    assert got[b"headers"] == {b"a": b"b", b"c": b"d=e"} and got[b"batch"] == b"b" and got[b"retries-left"] == -1
    assert got[b"due-at"] - got[b"sent-at"] == 600_000
    assert dq("send", "q", "x", "--id", "m1", code=1).stderr == "dq: the id is taken\n"
    assert json.loads(dq("send", "q", "y", "--id", "m1", "--replace", "--json").stdout) == {"id": "m1"}
    assert do("DQ.GET", "q", "m1")[b"payload"] == b"y"
    at = int(time.time() * 1000) + 3_600_000
    dq("send", "q", "x", "--id", "m2", "--at", at)
    assert do("DQ.GET", "q", "m2")[b"due-at"] == at
    for bad in [("--delay", "soon"), ("--at", "2h"), ("--score", "1"), ("--header", "x")]:
        dq("send", "q", "x", *bad, code=2)


def piped(dq, text: bytes, *args):
    return subprocess.run([dq.program, *args], env=dq.env(), input=text, capture_output=True, timeout=60)


def test_payloads_come_from_the_standard_input(dq, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q")
    payload = bytes(range(256))
    id = piped(dq, payload, "send", "q").stdout.strip()
    assert do("DQ.GET", "q", id)[b"payload"] == payload
    lines = b"\n".join(b"line %d" % n for n in range(1200)) + b"\n"
    assert piped(dq, lines, "send", "q", "--lines", "--type", "t").stdout == b"1200 messages sent\n"
    assert do("DQ.LEN", "q") == 1201
    assert piped(dq, b"", "send", "q", "--lines").stdout == b"0 messages sent\n"
    assert piped(dq, payload[::-1], "update", "q", id, "-").returncode == 0
    assert do("DQ.GET", "q", id)[b"payload"] == payload[::-1]


def test_messages_are_cancelled_rescheduled_and_updated(dq, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "RETAIN", 60000)
    for id in ("a", "b"):
        do("DQ.SEND", "q", "x", "ID", id, "DELAY", 3_600_000)
    assert dq("reschedule", "q", "a", "--now").stdout == "a: rescheduled\n"
    assert do("DQ.LEN", "q", "ready") == 1
    dq("reschedule", "q", "a", "--delay", "2h")
    assert do("DQ.GET", "q", "a")[b"state"] == b"delayed"
    at = int(time.time() * 1000) + 7_000_000
    dq("reschedule", "q", "a", "--at", at)
    assert do("DQ.GET", "q", "a")[b"due-at"] == at
    assert dq("update", "q", "a", "new").stdout == "a: updated\n"
    assert do("DQ.GET", "q", "a")[b"payload"] == b"new"
    assert "nothing was changed" in dq("update", "q", "nope", "x", code=1).stderr
    assert "nothing was changed" in dq("reschedule", "q", "nope", "--now", code=1).stderr
    assert dq("cancel", "q", "a", "b").stdout == "a: was delayed, is cancelled\nb: was delayed, is cancelled\n"
    told = dq("cancel", "q", "a", "nope", code=1)
    assert told.stdout == "a: was cancelled before\nnope: no such message\n"
    assert told.stderr == "dq: q: 1 of the messages are unknown\n"
    for wrong in [("reschedule", "q", "a"), ("reschedule", "q", "a", "--now", "--delay", "1s"), ("cancel", "q")]:
        dq(*wrong, code=2)


def test_messages_are_parked_signalled_and_run_once_more(dq, r3):
    do = r3.execute_command
    dq("send", "q", "x", "--new", "--id", "a", "--park=30d", "--limit", "api", "--limit", "user-7", "--cost", "3")
    got = do("DQ.GET", "q", "a")
    assert (got[b"state"], got[b"limits"], got[b"cost"]) == (b"held", [b"api", b"user-7"], 3)
    assert dq("explain", "q", "a").stdout.startswith("parked: It waits for a signal")
    assert "limits             api user-7\n" in dq("show", "q", "a").stdout
    assert dq("signal", "q", "a", "approved").stdout == "a: signalled\n"
    [[_, receipt, _, _, meta]] = do("DQ.FETCH", "q", "WITHMETA")
    assert meta[b"signal"] == b"approved"
    assert dq("send", "q", "y", "--id", "a", "--replace", "--rerun").stdout == "a\n"
    do("DQ.ACK", "q", receipt)
    assert do("DQ.GET", "q", "a")[b"payload"] == b"y"
    assert json.loads(dq("signal", "q", "a", "--json").stdout) == {"signalled": "a"}
    assert dq("signal", "q", "b", "x", code=1).stderr == "dq: b has ended or does not exist: nothing was changed\n"
    dq("send", "q", "z", "--id", "c", "--park")
    assert do("DQ.EXPLAIN", "q", "c")[b"until"] is None
    dq("send", "q", "x", "--id", "a", "--rerun", code=2)


def test_children_are_sent_and_listed(dq, r3):
    do = r3.execute_command
    do("DQ.CREATE", "parts", "RETAIN", 60_000, "RETRIES", 0)
    dq("send", "q", "publish", "--new", "--id", "p", "--children", "2")
    dq("send", "parts", "1", "--id", "a", "--parent", "q", "p")
    dq("send", "parts", "2", "--id", "b", "--parent", "q", "p", "--on-dead", "GO")
    assert do("DQ.EXPLAIN", "q", "p")[b"code"] == b"children-open"
    [[_, first, *_], [_, second, *_]] = do("DQ.FETCH", "parts", "COUNT", 2)
    do("DQ.ACK", "parts", first, "RESULT", "done")
    do("DQ.NACK", "parts", second, "ERROR", "broken")
    rows = [line.split() for line in dq("children", "q", "p").stdout.splitlines()[1:]]
    assert rows == [["parts", "a", "finished", "done", "-"], ["parts", "b", "dead", "-", "broken"]]
    assert [one["id"] for one in json.loads(dq("children", "q", "p", "--json").stdout)] == ["a", "b"]
    assert "more than these 1" in dq("children", "q", "p", "-n", "1").stdout
    assert dq("children", "q", "x").stdout == "it has no children, or they have left no record\n"
    dq("send", "q", "x", "--on-dead", "GO", code=2)


def test_limits_are_set_and_listed(dq, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "CLOCK", "MANUAL", 1000)
    assert dq("limits", "q").stdout == "no limit is set or used\n"
    assert dq("limit", "q", "tokens", "rate", "1000", "per", "1m", "weight").stdout == "tokens is limited\n"
    dq("limit", "q", "user-*", "concurrency", "1")
    for id in ("a", "b"):
        do("DQ.SEND", "q", "x", "ID", id, "LIMITS", 2, "tokens", "user-7", "COST", 600)
    do("DQ.FETCH", "q", "COUNT", 2)
    lines = [line.split("  ") for line in dq("limits", "q").stdout.splitlines()[1:]]
    rows = {row[0].strip(): [cell.strip() for cell in row[1:] if cell.strip()] for row in lines}
    assert rows["tokens"][:3] == ["tokens", "1", "600 of 1000 (cost) in 1m"]
    assert rows["user-7"][:2] == ["user-*", "1 of 1"]
    listed = {one["limit"]: one for one in json.loads(dq("limits", "q", "--json").stdout)}
    assert listed["tokens"]["rates"] == [[1000, 60_000, 600]]
    dq("limit", "q", "tokens", "rate", "500", "per", "1m", "weight")
    assert re.search(r"^tokens .* never$", dq("limits", "q").stdout, re.MULTILINE)
    assert dq("limit", "q", "user-*", "--remove").stdout == "user-* is removed\n"
    assert "user-*" not in dq("limits", "q").stdout
    dq("limit", "q", "tokens", code=2)
    assert "no such queue" in dq("limits", "nowhere", code=1).stderr


def test_purge_wants_to_know_what_and_whether(dq, r3):
    do = r3.execute_command
    do("DQ.MSEND", "q", 3, "a", "b", "c", "GROUP", "g")
    do("DQ.SEND", "q", "x", "DELAY", 60000)
    dq("purge", "q", "--yes", code=2)
    told = dq("purge", "q", "--state", "delayed", code=1).stderr
    assert told.startswith("dq: Remove 1 delayed message of q?") and "--yes is needed" in told
    assert do("DQ.LEN", "q") == 4
    assert dq("purge", "q", "--state", "delayed", "--yes").stdout == "1 message removed\n"
    assert dq("purge", "q", "--group", "g", "-y").stdout == "3 messages removed\n"
    do("DQ.SEND", "q", "x")
    assert json.loads(dq("purge", "q", "--all", "--yes", "--json").stdout) == {"purge": 1}
    for n in range(2):
        do("DQ.SEND", f"f:{{{n}}}", "x")
    assert "Remove 2 messages of f:{*}?" in dq("purge", "f", "--family", "--all", code=1).stderr
    assert dq("purge", "f", "--family", "--all", "-y").stdout == "2 messages removed\n"


def test_queues_are_made_and_altered_with_times_for_people(dq, r3):
    do = r3.execute_command
    assert dq("create", "q", "lease", "2m", "RETRIES", "-1", "backoff", "EXP", "1s", "retain=1d").stdout == "q is made\n"
    info = do("DQ.INFO", "q")
    assert (info[b"lease"], info[b"retries"], info[b"backoff"], info[b"retain"]) == (120_000, -1, b"EXP 1000", 86_400_000)
    assert "already exists" in dq("create", "q", code=1).stderr
    assert dq("alter", "q", "rate", "10", "per", "1m").stdout == "q is changed\n"
    assert do("DQ.INFO", "q")[b"rate"] == b"10 PER 60000"
    assert dq("alter", "q", "laese", "2m", code=1).stderr.startswith("dq: q: ")
    assert dq("alter", "nope", "lease", "2m", code=1).stderr == "dq: nope: no such queue\n"
    dq("alter", "q", code=2)


def test_schedules_are_made_and_removed(dq, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q")
    told = dq("schedule", "q", "nightly", "--cron", "0 3 * * *", "--tz", "Europe/Berlin", "report", "--type", "t", "--overlap", "skip")
    assert re.fullmatch(r"nightly sends first at 20\S+ 0[12]:00:00\.000Z\n", told.stdout)
    dq("schedule", "q", "tick", "--every", "90s", "x", "--missed", "all")
    rules = {one[b"name"]: one[b"definition"] for one in do("DQ.SCHEDULES", "q")}
    assert b"TZ Europe/Berlin" in rules[b"nightly"] and b"EVERY 90000" in rules[b"tick"]
    assert "cron" in dq("schedule", "q", "bad", "--cron", "x y", "p", code=1).stderr
    assert dq("schedule", "nope", "s", "--every", "1s", "x", code=1).stderr == "dq: nope: no such queue\n"
    assert dq("unschedule", "q", "tick").stdout == "tick is removed; what it has sent stays\n"
    assert dq("unschedule", "q", "tick", code=1).stderr == "dq: no schedule with the name tick\n"
    for wrong in [("--every", "1s", "--cron", "* * * * *"), (), ("--every", "1s", "--tz", "UTC")]:
        dq("schedule", "q", "s", *wrong, "x", code=2)


def test_schedules_are_listed_paused_and_resumed(dq, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "CLOCK", "MANUAL", 1_760_000_000_000)
    assert dq("schedules", "q").stdout == "no schedules\n"
    limits = ["--until", "2026-01-01", "--times", "3", "--jitter", "90s"]
    dq("schedule", "q", "tick", "--every", "1m", "x", *limits)
    dq("schedule", "q", "once", "--every", "1h", "x", "--times", "1", "--overlap", "skip")
    found = {one[b"name"]: one for one in do("DQ.SCHEDULES", "q")}
    assert [found[b"tick"][field] for field in (b"until", b"times", b"jitter")] == [1_767_225_600_000, 3, 90_000]
    head, once, tick = dq("schedules", "q").stdout.splitlines()
    assert head.split() == ["SCHEDULE", "RULE", "FIRED", "SKIPPED", "NEXT", "LAST"]
    assert "EVERY 60000, until 2026-01-01 00:00:00.000Z, 3 times more, up to 1m30s later" in tick and " in 1m" in tick
    assert "EVERY 3600000, once more" in once
    assert dq("schedules", "q", "--pause", "tick").stdout == "tick is paused: it sends nothing\n"
    assert do("DQ.SCHEDULES", "q")[1][b"paused"] is True
    assert " 0  paused" in dq("schedules", "q").stdout and "3 times more" in dq("show", "q").stdout
    assert json.loads(dq("schedules", "q", "--resume", "tick", "--json").stdout) == {"schedule": "tick", "paused": False}
    assert [one["paused"] for one in json.loads(dq("schedules", "q", "--json").stdout)] == [False, False]
    assert dq("schedules", "q", "--pause", "nope", code=1).stderr == "dq: no schedule with the name nope\n"
    assert dq("schedules", "nope", code=1).stderr == "dq: nope: no such queue\n"
    dq("schedules", "q", "--pause", "a", "--resume", "b", code=2)


TIMES = [
    ("create", "new", "lease", "{}"),
    ("create", "new", "LEASE={}"),
    ("create", "new", "backoff", "EXP", "{}"),
    ("create", "new", "rate", "10", "per", "{}"),
    ("alter", "q", "retain", "{}"),
    ("alter", "q", "breaker", "5", "PER", "1m", "OPEN", "{}"),
    ("limit", "q", "user-*", "rate", "10", "per", "{}"),
    ("send", "q", "x", "--delay", "{}"),
    ("send", "q", "x", "--ttl", "{}"),
    ("send", "q", "x", "--lease", "{}"),
    ("send", "q", "x", "--backoff", "FIXED {}"),
    ("send", "q", "x", "--park={}"),
    ("reschedule", "q", "a", "--delay", "{}"),
    ("pause", "q", "--for", "{}"),
    ("schedule", "q", "tick", "x", "--every", "{}"),
    ("schedule", "q", "tick", "x", "--every", "1m", "--jitter", "{}"),
    ("find", "q", "ready", "--since", "{}"),
    ("tail", "q", "--interval", "{}"),
    ("top", "--interval", "{}"),
    ("web", "--interval", "{}"),
]


@pytest.mark.parametrize("words", TIMES, ids=lambda words: " ".join(words[:1] + words[-2:]))
def test_a_time_without_a_unit_is_an_error_that_shows_units(program, dq, r3, words):
    r3.execute_command("DQ.CREATE", "q")
    r3.execute_command("DQ.SEND", "q", "x", "ID", "a")
    command = [program, *(word.format(5) for word in words)]
    done = subprocess.run(command, env=dq.env(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    assert done.returncode in (1, 2) and "5s" in done.stderr and "5ms" in done.stderr, done
    assert not r3.exists("new") and r3.execute_command("DQ.LEN", "q") == 1


def test_zero_needs_no_unit(dq, r3):
    dq("create", "q", "retain", "0", "backoff", "FIXED", "0", "ttl=0")
    dq("send", "q", "x", "--delay", "0", "--ttl", "0")
    assert r3.execute_command("DQ.LEN", "q", "ready") == 1


# ---- errors name the address


def test_an_error_of_the_connection_names_the_address_and_a_reason(program, server, tls_url, certificates):
    port = free_port()
    told = Cli(program, f"redis://me:secret@127.0.0.1:{port}")("ls", code=1).stderr
    assert told == f"dq: no connection: 127.0.0.1:{port} (DQ_URL): Connection refused\n"
    plain = Cli(program, f"rediss://127.0.0.1:{server.port}")("ls", "--cacert", certificates / "ca.crt", code=1).stderr
    assert "does it speak TLS there?" in plain and f"127.0.0.1:{server.port}" in plain
    tls_port = re.search(r":(\d+)$", tls_url)[1]
    assert "rediss://" in Cli(program, f"redis://127.0.0.1:{tls_port}")("ls", code=1).stderr
    told = Cli(program, "x")("ls", "--url", "http://a", code=1).stderr
    assert told == "dq: the URL (--url) is none of a Redis server\n"


def test_an_http_server_is_no_redis_server(program, tmp_path):
    with subprocess.Popen(
        ["python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as http:
        port = re.search(r"port (\d+)", http.stdout.readline())[1]
        told = Cli(program, f"redis://127.0.0.1:{port}")("ls", code=1).stderr
        http.kill()
    assert told.startswith(f"dq: no connection: 127.0.0.1:{port} (DQ_URL)") and "Redis server" in told, told


def test_a_missing_password_and_a_missing_module_are_named(program, make_server):
    server = make_server()
    server.client().config_set("requirepass", "secret")
    told = Cli(program, f"redis://127.0.0.1:{server.port}")("ls", code=1).stderr
    assert "wants a password" in told and "--auth-file" in told and f"127.0.0.1:{server.port}" in told
    bare = make_server(load_module=False)
    dq = Cli(program, f"redis://127.0.0.1:{bare.port}")
    for args in [("ls",), ("show", "q"), ("ls", "q"), ("send", "q", "x")]:
        assert "this server has not loaded the dq module" in dq(*args, code=1).stderr, args


# ---- help, completion, manual


def test_options_of_the_connection_have_a_heading_of_their_own(program):
    for verb in ([], ["ls"], ["find"]):
        text = Cli(program, "")(*verb, "--help").stdout
        options, connection = text.split("\nConnection:\n")
        for option in ("--url", "--auth-file", "--cacert", "--cert", "--key"):
            assert option in connection and option not in options
    usage = Cli(program, "redis://x")("find", code=2).stderr
    assert "--url" not in usage


def test_shells_complete_its_words(program, tmp_path):
    script = tmp_path / "dq.bash"
    script.write_text(Cli(program, "")("completion", "bash").stdout)
    line = f'. {script}; COMP_WORDS=(dq resch); COMP_CWORD=1; _dq dq resch dq; echo "${{COMPREPLY[@]}}"'
    told = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["reschedule"]
    for shell in ("zsh", "fish"):
        assert "reschedule" in Cli(program, "")("completion", shell).stdout


def test_there_is_a_manual_page_for_each_command(program, tmp_path):
    Cli(program, "")("man", tmp_path / "man1")
    pages = {path.name for path in (tmp_path / "man1").iterdir()}
    assert {"dq.1", "dq-ls.1", "dq-find.1", "dq-web.1"} <= pages
    assert "\\-\\-auth\\-file" in (tmp_path / "man1/dq-ls.1").read_text()


def test_it_is_installed_where_it_is_wanted(program, tmp_path):
    env = {**os.environ, "DESTDIR": str(tmp_path), "PREFIX": "/usr", "DQ_CLI": str(program)}
    subprocess.run([ROOT / "scripts/cli.sh", "install"], env=env, check=True, capture_output=True)
    for path in [
        "bin/dq",
        "share/man/man1/dq.1",
        "share/man/man1/dq-top.1",
        "share/bash-completion/completions/dq",
        "share/zsh/site-functions/_dq",
        "share/fish/vendor_completions.d/dq.fish",
    ]:
        assert (tmp_path / "usr" / path).is_file(), path
