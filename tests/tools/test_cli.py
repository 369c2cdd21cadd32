"""The terminal program `dq` with a real server: its output, its changes, and its rights.

DQ_CLI names the program; without it, it is built from cli/. The live view is tested in test_cli_top.py.
"""

import json
import re
import subprocess
import time

import pytest

from tests.harness.cli import Cli
from tests.harness.server import ROOT, free_port, wait_for

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def shop(r3):
    """A queue with a blocked group, a running, a dead and a delayed message, and another queue."""
    do = r3.execute_command
    do("DQ.CREATE", "shop", "BACKOFF", "FIXED", 60000, "RETAIN", 60000)
    for id, group in [("a1", "ann"), ("a2", "ann"), ("b1", "bob"), ("b2", "bob")]:
        do("DQ.SEND", "shop", f"pay {id}", "ID", id, "GROUP", group)
    do("DQ.SEND", "shop", "x", "ID", "dead", "RETRIES", 0, "TYPE", "mail")
    do("DQ.SEND", "shop", "x", "ID", "later", "DELAY", 3600000)
    for _ in range(2):
        for id, receipt, *_ in do("DQ.FETCH", "shop", "COUNT", 10, "CONSUMER", "worker-1"):
            if id == b"dead":
                do("DQ.NACK", "shop", receipt, "ERROR", "no such mailbox")
            if id == b"a1":
                do("DQ.NACK", "shop", receipt, "ERROR", "HTTP 500")
    do("DQ.SEND", "mails", "hello")
    return r3


def test_ls_shows_the_figures_of_every_queue(dq, shop):
    lines = dq("ls").stdout.splitlines()
    assert lines[0].split() == (
        "QUEUE READY DELAYED RETRY BLOCKED HELD RUNNING DEAD GROUPS WAITERS OLDEST P99 TROUBLE".split()
    )
    rows = {line.split()[0]: line.split()[1:9] for line in lines[1:]}
    assert rows == {"mails": list("10000000"), "shop": list("01120112")}
    assert [line.split()[0] for line in dq("ls", "--match", "sh*").stdout.splitlines()[1:]] == ["shop"]
    assert [line.split()[0] for line in dq("ls", "mails").stdout.splitlines()[1:]] == ["mails"]
    assert [line.split()[0] for line in dq("ls", "s*", "mai?s").stdout.splitlines()[1:]] == ["shop", "mails"]
    assert [line.split()[0] for line in dq("ls", "--sort", "trouble").stdout.splitlines()[1:]] == ["shop", "mails"]
    assert dq("ls", "x*", code=1).stderr == "dq: x*: no queue matches\n"


def test_ls_without_queues_says_so(dq, r3):
    r3.set("plain", "text")
    assert dq("ls").stdout == "no queues\n"
    assert json.loads(dq("ls", "--json").stdout) == []


def test_ls_finds_queues_among_many_keys(dq, r3):
    r3.mset({f"key:{i}": i for i in range(20000)})
    for i in range(700):
        r3.execute_command("DQ.SEND", f"q{i}", "x")
    assert len(dq("ls").stdout.splitlines()) == 701


def test_ls_json_shows_the_values_of_info(dq, shop):
    told = {queue.pop("queue"): queue for queue in json.loads(dq("ls", "--json").stdout)}
    info = shop.execute_command("DQ.INFO", "shop")
    expected = {k.decode(): v.decode() if isinstance(v, bytes) else v for k, v in info.items()}
    for moving in ("now", "oldest-ready-age", "oldest-due-age"):
        told["shop"].pop(moving), expected.pop(moving)
    assert told["shop"] == expected
    assert set(told) == {"shop", "mails"}


def test_show_of_a_queue_shows_its_options_groups_and_consumers(dq, shop):
    text = dq("show", "shop").stdout
    assert "backoff            FIXED 60000" in text
    assert "retain             60000  (1m)" in text
    held = next(line for line in text.splitlines() if line.startswith("ann"))
    assert held.split()[1:3] == ["2", "a1"] and "backoff:" in held
    consumer = next(line for line in text.splitlines() if line.startswith("worker-1"))
    assert consumer.split()[1:5] == ["1", "3", "0", "2"]
    shop.execute_command("DQ.SCHEDULE", "shop", "nightly", "CRON", "0 3 * * *", "PAYLOAD", "x")
    assert "nightly" in dq("show", "shop").stdout
    assert set(json.loads(dq("show", "shop", "--json").stdout)) == {"info", "consumers", "schedules"}


def test_show_of_a_message_shows_its_fields(dq, shop):
    fields = dict(line.split(maxsplit=1) for line in dq("show", "shop", "dead").stdout.splitlines())
    assert (fields["state"], fields["reason"], fields["error"]) == ("dead", "retries", "no such mailbox")
    assert fields["finished-at"].endswith("ago)")
    told = json.loads(dq("show", "shop", "dead", "--json").stdout)
    assert (told["id"], told["failures"], told["group"]) == ("dead", 1, None)


def test_explain_shows_code_time_and_cause(dq, shop):
    lines = dq("explain", "shop", "a2").stdout.splitlines()
    assert lines[0].startswith("behind-head: ")
    assert lines[1].startswith("until 20") and lines[1].endswith("s)")
    assert lines[2] == "by a1"
    assert json.loads(dq("explain", "shop", "b1", "--json").stdout)["code"] == "running"


def test_peek_shows_what_can_be_delivered(dq, shop):
    assert dq("peek", "shop").stdout == "nothing can be delivered now\n"
    row = dq("peek", "mails").stdout.splitlines()[1].split()
    assert row[1:] == ["-", "0", "0", "-", "hello"]
    assert json.loads(dq("peek", "mails", "--json").stdout)[0]["payload"] == "hello"


def test_peek_takes_a_count_and_a_width(dq, r3):
    for n in range(12):
        r3.execute_command("DQ.SEND", "q", "0123456789" * 10)
    assert len(dq("peek", "q").stdout.splitlines()) == 11
    assert len(dq("peek", "q", "--count", 12).stdout.splitlines()) == 13
    short, long = (dq("peek", "q", "-n", 1, "--width", width).stdout for width in (20, 100))
    assert "0123456789" * 10 in long and "0123456789" * 2 not in short and "012345678" in short


def test_redrive_makes_dead_messages_pending(dq, shop):
    do = shop.execute_command
    assert dq("redrive", "shop", "dead", "nobody").stdout == "1 message pending again\n"
    assert do("DQ.LEN", "shop", "dead") == 0
    for _ in range(3):
        do("DQ.SEND", "mails", "x", "RETRIES", 0)
    for _, receipt, *_ in do("DQ.FETCH", "mails", "COUNT", 10):
        do("DQ.NACK", "mails", receipt, "FATAL")
    refused = dq("redrive", "mails", "--all", code=1).stderr
    assert refused == "dq: Redrive 4 dead messages of mails? Without a terminal to ask on, --yes is needed\n"
    assert dq("redrive", "mails", "--all", "-n", 2, "--yes").stdout == "2 messages pending again\n"
    assert json.loads(dq("redrive", "mails", "--all", "--yes", "--json").stdout) == {"redriven": 2}


def test_pause_and_resume_take_a_queue_or_a_group(dq, shop):
    do = shop.execute_command
    assert dq("pause", "mails").stdout == "mails is paused\n"
    assert do("DQ.FETCH", "mails") == []
    assert dq("ls", "mails").stdout.splitlines()[1].endswith(" paused")
    assert dq("resume", "mails").stdout == "mails goes on\n"
    assert dq("pause", "shop", "--group", "bob", "--for", "10m").stdout == "group bob of shop is paused for 10m0s\n"
    _, groups = do("DQ.GROUPS", "shop", "STATE", "paused")
    assert [group[b"group"] for group in groups] == [b"bob"]
    assert dq("resume", "shop", "--group", "bob").stdout == "group bob of shop goes on\n"
    assert do("DQ.GROUPS", "shop", "STATE", "paused")[1] == []


@pytest.mark.parametrize(
    "args",
    [
        ("show", "nope"),
        ("ls", "nope"),
        ("explain", "nope", "id"),
        ("peek", "nope"),
        ("tail", "nope"),
        ("redrive", "nope", "--all"),
        ("pause", "nope"),
        ("resume", "nope"),
    ],
    ids=lambda args: args[0],
)
def test_a_wrong_queue_name_is_an_error_and_creates_no_queue(dq, r3, args):
    failed = dq(*args, code=1)
    assert failed.stderr == "dq: nope: no such queue\n"
    assert failed.stdout == ""
    assert r3.exists("nope") == 0


def test_show_says_first_what_stands_still(dq, r3):
    do = r3.execute_command
    do("DQ.SEND", "q", "x", "ID", "a")
    do("DQ.SEND", "q", "x", "GROUP", "g")
    do("DQ.PAUSE", "q", "GROUP", "g")
    assert re.search(r"^g +1 +\S+ +paused", dq("show", "q").stdout, re.MULTILINE)
    do("DQ.PAUSE", "q")
    assert dq("show", "q").stdout.startswith("q is paused: nothing is delivered\n\n")
    assert dq("show", "q", "a").stdout.startswith("why                queue-paused: ")
    do("DQ.RESUME", "q")
    assert "nothing is delivered" not in dq("show", "q").stdout


def test_an_unknown_message_is_an_error(dq, shop):
    assert dq("show", "shop", "zz", code=1).stderr == "dq: no message with the id zz\n"
    assert dq("explain", "shop", "zz", code=1).stderr == "dq: no message with the id zz\n"
    shop.set("plain", "text")
    assert "WRONGTYPE" in dq("show", "plain", code=1).stderr


def test_wrong_usage_is_an_error(dq):
    for args in [("redrive", "q"), ("redrive", "q", "id", "--all"), ("pause", "q", "--for", "0"), ("peek", "q", "-n", "0")]:
        assert dq(*args, code=2).stderr.startswith("error: "), args


def test_names_and_payloads_cannot_control_the_terminal(dq, r3):
    evil = b"\x1b[2J\x07\r\n\xff\xc2\x9b"
    r3.execute_command("DQ.SEND", b"evil" + evil, b"pay" + evil, "ID", b"id" + evil, "GROUP", b"g" + evil)
    r3.execute_command("DQ.SEND", "q", b"pay" + evil, "ID", b"id" + evil, "TYPE", b"t" + evil)
    for args in [("ls",), ("peek", "q"), ("show", "q"), ("ls", "--json"), ("peek", "q", "--json")]:
        told = dq(*args, text=False).stdout
        assert not [byte for byte in told if byte < 32 and byte != 10 or byte in (0x7F, 0x9B, 0xFF)], args
    assert "pay\\x1b[2J\\x07\\r\\n\\xff\\u{9b}" in dq("peek", "q").stdout


def test_tail_shows_how_messages_end(dq, shop):
    do = shop.execute_command
    do("CONFIG", "RESETSTAT")
    with dq.start("tail", "shop", "--interval", "1500ms", "-n", "3") as tail:
        # `dq tail` has read each of the three lists once; it sees all that ends from now on in its next read.
        wait_for(lambda: shop.info("commandstats").get("cmdstat_dq.list", {}).get("calls") == 3, what="the first look")
        for _ in range(3):
            do("DQ.SEND", "shop", "x", "TYPE", "mail")
        for i, (_, receipt, *_) in enumerate(do("DQ.FETCH", "shop", "COUNT", 3, "CONSUMER", "worker-2")):
            time.sleep(0.002)  # so that no two end in the same millisecond
            if i == 1:
                do("DQ.NACK", "shop", receipt, "FATAL", "ERROR", "broken")
            else:
                do("DQ.ACK", "shop", receipt, "RESULT", f"ok {i}")
        lines = [line.split(maxsplit=4) for line in tail.output().splitlines()]
    assert [line[2] for line in lines] == ["finished", "dead", "finished"]
    assert "type mail, consumer worker-2, 1 attempt" in lines[0][4] and lines[0][4].endswith("result: ok 0")
    assert "reason rejected" in lines[1][4] and lines[1][4].endswith("error: broken")


def test_tail_all_shows_every_message(dq, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "RETAIN", 600000, "RETAINCOUNT", 0)
    sent = do("DQ.MSEND", "q", 2500, *["x"] * 2500)
    do("DQ.FETCH", "q", "COUNT", 2500, "NOACK")
    told = [json.loads(line) for line in dq("tail", "q", "--all", "-n", 2500, "--json").stdout.splitlines()]
    assert sorted(message["id"].encode() for message in told) == sorted(sent)


def test_tail_events_shows_keyspace_events(dq, r3):
    r3.execute_command("DQ.SEND", "q", "x")
    assert "notify-keyspace-events" in dq("tail", "q", "--events", code=1).stderr
    r3.config_set("notify-keyspace-events", "Kd")
    try:
        with dq.start("tail", "q", "--events", "-n", "2") as tail:
            wait_for(r3.pubsub_channels, what="the subscription")
            _, receipt, *_ = r3.execute_command("DQ.FETCH", "q")[0]
            r3.execute_command("DQ.ACK", "q", receipt)
            assert [line.split()[1] for line in tail.output().splitlines()] == ["dq.delivered", "dq.acked"]
    finally:
        r3.config_set("notify-keyspace-events", "")


def test_bench_measures_and_removes_its_queues(dq, r3):
    lines = dq("bench", "-n", 3001, "--size", 20).stdout.splitlines()
    # The columns behind the name: messages, seconds, rate, two times with their unit.
    assert [int(line.split()[-7]) for line in lines[1:6]] == [2000, 2000, 3001, 1501, 1500]
    assert r3.dbsize() == 0
    assert dq("bench", "-n", 100, "--batch", 1, "--pipeline", 1)
    rounds = json.loads(dq("bench", "-n", 1, "--json").stdout)
    assert len(rounds) == 5 and rounds[0]["per-second"] > 0


def test_a_closed_pipe_is_no_error(dq, r3):
    for i in range(3000):
        r3.execute_command("DQ.SEND", f"queue-with-a-long-name-{i}", "x")
    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {dq.program} ls | head -n 1"], env=dq.env(), capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_url_can_name_another_database(program, server, r3):
    r3.execute_command("SELECT", 3)
    r3.execute_command("DQ.SEND", "third", "x")
    dq = Cli(program, f"redis://127.0.0.1:{server.port}/3")
    assert "third" in dq("ls").stdout
    assert dq("tail", "third", "--all", "--events", code=2)


def test_a_missing_server_or_a_bad_url_is_an_error(program):
    port = free_port()
    assert Cli(program, f"redis://127.0.0.1:{port}")("ls", code=1).stderr.startswith("dq: no connection: ")
    told = Cli(program, "http://me:secret@127.0.0.1")("ls", code=1).stderr
    assert "URL" in told and "secret" not in told
    told = Cli(program, "redis://127.0.0.1")("--cacert", "x.pem", "ls", code=1).stderr
    assert "rediss" in told


def test_a_limited_user_sees_and_does_only_what_is_allowed(program, server, r3):
    r3.execute_command("DQ.SEND", "mine:a", "x")
    r3.execute_command("DQ.SEND", "other:b", "x")
    r3.execute_command(
        *"ACL SETUSER viewer on >pa55 %R~mine:* -@all +scan +hello +dq.info +dq.get +dq.list +dq.explain".split()
    )
    try:
        dq = Cli(program, f"redis://viewer:pa55@127.0.0.1:{server.port}")
        assert [line.split()[0] for line in dq("ls").stdout.splitlines()[1:]] == ["mine:a"]
        # Without rights for groups and consumers, the rest is shown.
        assert "delayed" in dq("show", "mine:a").stdout
        refused = dq("pause", "mine:a", code=1).stderr
        assert "NOPERM" in refused and "dq.pause" in refused
        assert "NOPERM" in dq("show", "other:b", code=1).stderr
        wrong = Cli(program, f"redis://viewer:wrong-one@127.0.0.1:{server.port}")("ls", code=1).stderr
        assert "wrong-one" not in wrong and "WRONGPASS" in wrong
    finally:
        r3.execute_command("ACL", "DELUSER", "viewer")


def test_connections_work_over_tls(program, tls_url, certificates):
    url = tls_url
    ca = ("--cacert", certificates / "ca.crt")
    own = ("--cert", certificates / "own.crt", "--key", certificates / "own.key")
    assert "q " in Cli(program, url)("ls", *ca, *own).stdout
    # An unknown authority and a missing certificate of the client fail; a server whose certificate is not checked works.
    assert Cli(program, url)("ls", *own, code=1).stderr.startswith("dq: no connection")
    assert "q " in Cli(program, url + "/#insecure")("ls", *ca, *own).stdout
    assert Cli(program, url)("ls", *ca, code=1).stderr.startswith("dq: no connection")
    wrong = Cli(program, url.replace("pa55", "wrong"))("ls", *ca, *own, code=1).stderr
    assert "WRONGPASS" in wrong and "rediss" not in wrong


# ---- what is documented


def verbs(program):
    """The commands that the program knows, with their options."""
    told = Cli(program, "")("--help").stdout
    names = re.findall(r"^  (\w+) ", told[told.index("Commands:") : told.index("Options:")], re.MULTILINE)
    helps = {name: Cli(program, "")(name, "--help").stdout for name in names if name != "help"}
    return {name: set(re.findall(r"--[a-z]+|-[a-z]\b", text)) for name, text in helps.items()}


def test_the_documentation_has_every_command_and_no_unknown_option(program):
    known = verbs(program)
    page = (ROOT / "docs/cli.md").read_text()
    table = re.findall(r"^\| (`dq .*?) \| ", page, re.MULTILINE)
    assert {verb for row in table for verb in re.findall(r"`dq (\w+)", row)} == set(known)
    code = re.findall(r"`(dq [^`]+)`", page) + re.findall(r"^(?:\$ )?(dq [^|\n]+)", page, re.MULTILINE)
    assert len(code) > 15
    for line in code:
        words = line.split("#")[0].split()
        verb = next((word for word in words[1:] if word in known), None)
        options = {word for word in words if re.fullmatch("--[a-z]+|-[a-z]", word)}
        assert options <= (known[verb] if verb else set().union(*known.values())), line
    every = set().union(*known.values())
    assert set(re.findall(r"(?<=[`\s])--[a-z]+\b", page)) <= every
