"""The terminal program `dq`: finding messages, batches, breakers, notes, families and clusters."""

import json

import pytest

from tests.harness.cli import Cli, Screen
from tests.harness.optional import needs

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.timeout(600)


def ids(text):
    """The ids of a printed table."""
    return [line.split()[0] for line in text.splitlines()[1:]]


@pytest.fixture
def dead(r3):
    """Five dead messages: of two types and groups, with an error each, one with a header."""
    do = r3.execute_command
    for n in range(5):
        headers = ["HEADERS", 1, "tenant", "t1"] if n == 3 else []
        do("DQ.SEND", "q", f"pay {n}", "ID", f"m{n}", "TYPE", "ab"[n % 2], "GROUP", f"g{n % 2}", *headers)
    for _ in range(3):
        for id, receipt, *_ in do("DQ.FETCH", "q", "COUNT", 10):
            do("DQ.NACK", "q", receipt, "FATAL", "ERROR", f"HTTP 50{id.decode()[-1]}")
    assert do("DQ.LEN", "q", "dead") == 5
    return r3


@pytest.mark.parametrize(
    "options, expected",
    [
        ((), "m0 m1 m2 m3 m4"),
        (("--type", "b"), "m1 m3"),
        (("--group", "g0", "--id", "m[24]"), "m2 m4"),
        (("--error", "*503"), "m3"),
        (("--payload", "pay [01]"), "m0 m1"),
        (("--header", "tenant=t1"), "m3"),
        (("--since", "1h"), "m0 m1 m2 m3 m4"),
        (("--until", "2020-01-01T00:00:00Z"), ""),
        (("--batch", "none"), ""),
    ],
)
def test_find_prints_what_all_conditions_apply_to(dq, dead, options, expected):
    text = dq("find", "q", "dead", *options).stdout
    assert sorted(ids(text)) == expected.split() if expected else text.startswith("no such messages: dead, ")
    told = json.loads(dq("find", "q", "dead", *options, "--json").stdout)
    assert sorted(message["id"] for message in told) == expected.split()
    assert dq("find", "q", "dead", *options, "--tally").stdout == f"{len(expected.split())}\n"


def test_find_knows_the_children_of_a_message(dq, r3):
    do = r3.execute_command
    do("DQ.SEND", "videos", "publish", "ID", "v7", "CHILDREN", 2)
    do("DQ.SEND", "images", "small", "ID", "s", "PARENT", "videos", "v7")
    do("DQ.SEND", "images", "large", "ID", "l", "PARENT", "videos", "v7", "TYPE", "slow")
    do("DQ.SEND", "images", "other", "ID", "o", "PARENT", "videos", "v8")
    do("DQ.SEND", "images", "alone", "ID", "a")
    assert sorted(ids(dq("find", "images", "ready", "--parent", "videos", "v7").stdout)) == ["l", "s"]
    assert ids(dq("find", "images", "ready", "--parent", "videos", "v7", "--type", "slow").stdout) == ["l"]
    assert dq("find", "images", "ready", "--parent", "videos", "v9").stdout == "no such messages: ready, parent videos v9\n"
    assert "2 values required" in dq("find", "images", "ready", "--parent", "videos", code=2).stderr
    assert dq("find", "images", "ready", "--parent", "videos", "v8", "--act", "cancel", "-y").stdout == "1 message cancelled\n"
    assert do("DQ.LEN", "images") == 3


def test_find_has_a_limit_and_another_order(dq, dead):
    oldest = ids(dq("find", "q", "dead").stdout)
    assert ids(dq("find", "q", "dead", "--newest").stdout) == oldest[::-1]
    lines = dq("find", "q", "dead", "-n", "2", "--newest").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == oldest[::-1][:2]
    assert lines[3].startswith("... there may be more")


def test_find_acts_on_what_it_finds(dq, dead):
    do = dead.execute_command
    assert dq("find", "q", "dead", "--type", "a", "--act", "redrive", "-n", "2", "--yes").stdout == "2 messages pending again\n"
    assert do("DQ.LEN", "q") == 2
    assert json.loads(dq("find", "q", "ready", "--act", "cancel", "--all", "--yes", "--json").stdout) == {"cancel": 2}
    assert dq("find", "q", "dead", "--error", "*503", "--act", "purge", "-y").stdout == "1 message removed\n"
    assert do("DQ.LEN", "q", "dead") == 2
    for options, why in [((), "--all is needed"), (("--yes",), "--all is needed"), (("--all",), "--yes is needed")]:
        assert why in dq("find", "q", "dead", "--act", "purge", *options, code=1).stderr
    assert do("DQ.LEN", "q", "dead") == 2
    refused = dq("find", "q", "ready", "--act", "redrive", code=1).stderr
    assert refused == "dq: redrive does nothing to messages that are ready\n"
    assert "possible values" in dq("find", "q", "asleep", code=2).stderr
    assert dq("find", "nope", "dead", code=1).stderr == "dq: nope: no such queue\n"


def test_find_goes_on_over_many_steps(dq, r3):
    r3.execute_command("DQ.MSEND", "q", 3000, *["x"] * 2999, "needle")
    assert dq("find", "q", "ready", "--payload", "needle", "--tally").stdout == "1\n"
    assert len(ids(dq("find", "q", "ready", "--payload", "x", "-n", 1700, "--width", 5).stdout)) == 1701
    assert dq("find", "q", "ready", "--payload", "x", "--act", "purge", "--yes").stdout == "2999 messages removed\n"


def test_find_of_a_state_needs_only_the_right_to_list(program, server, dead):
    dead.execute_command(*"ACL SETUSER viewer on >pa55 %R~* -@all +hello +dq.info +dq.list".split())
    try:
        dq = Cli(program, f"redis://viewer:pa55@127.0.0.1:{server.port}")
        assert len(ids(dq("find", "q", "dead", "--type", "a").stdout)) == 3
        assert "NOPERM" in dq("find", "q", "dead", "--id", "m*", code=1).stderr
    finally:
        dead.execute_command("ACL", "DELUSER", "viewer")


def test_batches_and_notes_are_shown(dq, r3):
    do = r3.execute_command
    do("DQ.MSEND", "q", 3, "a", "b", "c", "BATCH", "album")
    do("DQ.SEND", "q", "publish", "ID", "last", "AFTER", "album")
    [[id, receipt, *_]] = do("DQ.FETCH", "q")
    do("DQ.TOUCH", "q", 60000, receipt, "NOTE", "page 7")
    assert dq("batches", "q").stdout.splitlines()[1].split() == ["album", "2", "1", "0", "0", "0", "1"]
    assert json.loads(dq("batches", "q", "--json").stdout)[0]["held"] == 1
    fields = dict(line.split(maxsplit=1) for line in dq("show", "q", id.decode()).stdout.splitlines())
    assert (fields["note"], fields["batch"]) == ("page 7", "album")
    fields = dict(line.split(maxsplit=1) for line in dq("show", "q", "last").stdout.splitlines())
    assert fields["state"] == "held" and "batch=album" in fields["after"]
    assert dq("explain", "q", "last").stdout.startswith("batch-open: ")
    batch = next(line for line in dq("show", "q").stdout.splitlines() if line.startswith("album"))
    assert batch.split() == ["album", "0", "3", "0", "1"]
    assert dq("ls").stdout.splitlines()[1].split()[:6] == ["q", "2", "0", "0", "0", "1"]
    do("DQ.CREATE", "empty")
    assert dq("batches", "empty").stdout == "no batch is open\n"


def test_an_open_breaker_is_shown(dq, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "BREAKER", 1, "PER", 60000, "OPEN", 60000, "BACKOFF", "FIXED", 0)
    do("DQ.MSEND", "q", 2, "a", "b", "GROUP", "partner")
    do("DQ.NACK", "q", do("DQ.FETCH", "q")[0][1])
    lines = dq("show", "q").stdout.splitlines()
    assert any(line.split() == ["breakers-open", "1"] for line in lines)
    held = next(line for line in lines if line.startswith("partner"))
    assert "open, ends in" in held and "breaker-open:" in held
    assert dq("resume", "q", "--group", "partner").stdout == "group partner of q goes on\n"
    assert "breakers-open      0" in dq("show", "q").stdout


def fill(do, family="mails", partitions=4):
    """Sends 2 messages to the first partition of a family, 3 to the next and so on, one of each dead."""
    for i, key in enumerate(do("DQ.PARTITIONS", family, partitions)):
        do("DQ.MSEND", key, i + 2, *["x"] * (i + 2))
        do("DQ.NACK", key, do("DQ.FETCH", key)[0][1], "FATAL")


def check_family(dq):
    """The output of the program about a family that `fill` has filled."""
    assert ids(dq("ls").stdout) == [f"mails:{{{n}}}" for n in range(4)] + ["other"]
    [row] = dq("ls", "--family").stdout.splitlines()[1:]
    assert row.split()[:8] == ["mails:{*}", "10", "0", "0", "0", "0", "0", "4"]
    told = json.loads(dq("ls", "--family", "mails", "--json").stdout)
    assert (told[0]["family"], told[0]["queues"], told[0]["ready"]) == ("mails", 4, 10)
    text = dq("show", "mails", "--family").stdout
    assert "queues             4" in text and "mails:{3}" in text
    assert dq("find", "mails", "dead", "--family", "--tally").stdout == "4\n"
    told = json.loads(dq("find", "mails", "dead", "--family", "--json").stdout)
    assert {message["queue"] for message in told} == {f"mails:{{{n}}}" for n in range(4)}
    assert dq("redrive", "mails", "--all", "--family", "-n", 3, "--yes").stdout == "3 messages pending again\n"
    assert dq("redrive", "mails", "--all", "--family", "-y").stdout == "1 message pending again\n"
    assert dq("pause", "mails", "--family", "--for", "10m").stdout == "mails:{*} is paused for 10m0s\n"
    assert dq("ls").stdout.count("paused") == 4
    assert dq("resume", "mails", "--family").stdout == "mails:{*} goes on\n"
    assert dq("find", "mails", "ready", "--family", "--act", "purge", "--all", "--yes").stdout == "14 messages removed\n"
    assert dq("show", "nope", "--family", code=1).stderr == "dq: no queue of such a family\n"


def test_a_family_is_added_up_and_steered_as_one(dq, r3):
    fill(r3.execute_command)
    r3.execute_command("DQ.SEND", "other", "x")
    check_family(dq)


def test_a_family_with_tags_of_its_own_is_found(dq, r3):
    r3.execute_command("DQ.SEND", "mails:{a}", "x")
    r3.execute_command("DQ.SEND", "mails:{b}", "x")
    r3.execute_command("DQ.SEND", "mails:{c}:not", "x")
    assert dq("find", "mails", "ready", "--family", "--tally").stdout == "2\n"


def test_a_cluster_is_one_server(program, cluster):
    def do(name, key, *args):
        owner = cluster.owner(key) if name != "DQ.PARTITIONS" else cluster.nodes[0]
        return owner.client(protocol=3).execute_command(name, key, *args)

    fill(do)
    do("DQ.SEND", "other", "x", "ID", "o1")
    for node in cluster.nodes:
        dq = Cli(program, f"redis://127.0.0.1:{node.port}")
        assert len(ids(dq("ls").stdout)) == 5
        assert "payload            x" in dq("show", "other", "o1").stdout
    check_family(dq)
    # A slot that moves between two commands is followed.
    source = cluster.owner("other")
    target = next(node for node in cluster.nodes if node is not source)
    cluster.move_slot(cluster.slot("other"), source, target)
    assert dq("pause", "other").stdout == "other is paused\n"
    assert "cluster" in dq("tail", "other", "--events", code=1).stderr


@needs("tmux")
def test_top_shows_a_family_of_a_cluster(program, cluster):
    for key in cluster.nodes[0].client().execute_command("DQ.PARTITIONS", "mails", 4):
        cluster.owner(key).client().execute_command("DQ.SEND", key, "x")
    with Screen(Cli(program, f"redis://127.0.0.1:{cluster.nodes[1].port}"), "top", "--interval", "200ms") as screen:
        screen.sees("4 queues, 4 pending", ">mails:{*} x4", "── mails:{*}: 4 queues ──")
        screen.press("p")
        screen.sees("Pause mails:{*}?")
        screen.press("y")
        screen.sees("mails:{*} is paused", "PAUSED")
        screen.press("Enter")
        screen.sees("── mails:{0} - PAUSED")
        screen.press("Down")
        screen.sees("── mails:{1} - PAUSED")
        screen.press("Escape")
        screen.sees("── mails:{*}: 4 queues")


@needs("tmux")
def test_top_has_colours_unless_they_are_not_wanted(dq, r3, monkeypatch):
    r3.execute_command("DQ.SEND", "a", "x")
    r3.execute_command("DQ.SEND", "b", "x")
    r3.execute_command("DQ.PAUSE", "b")
    yellow = "\x1b[38;5;3m"
    with Screen(dq, "top") as screen:
        screen.sees(" b", "PAUSED")
        assert any(yellow in line for line in screen.styled_lines())
    monkeypatch.setenv("NO_COLOR", "1")
    with Screen(dq, "top") as screen:
        screen.sees(" b", "PAUSED")
        assert not any(yellow in line for line in screen.styled_lines())


def test_the_line_of_a_traceback_that_says_what_went_wrong_is_shown(dq, r3):
    do = r3.execute_command
    do("DQ.SEND", "q", "x")
    error = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: no such card'
    do("DQ.NACK", "q", do("DQ.FETCH", "q")[0][1], "FATAL", "ERROR", error)
    shown = dq("find", "q", "dead").stdout
    assert "ValueError: no such card" in shown and "Traceback" not in shown


def test_find_looks_into_many_queues_and_all_states(dq, dead):
    dead.execute_command("DQ.SEND", "other", "pay 9", "ID", "m9", "GROUP", "g1")
    text = dq("find", "*", "any", "--group", "g1").stdout
    rows = [line.split()[:3] for line in text.splitlines()]
    assert rows[0] == ["ID", "QUEUE", "STATE"] and sorted(rows[1:]) == [["m1", "q", "dead"], ["m3", "q", "dead"], ["m9", "other", "ready"]]
    told = json.loads(dq("find", "o*", "any", "--json").stdout)
    assert [(message["queue"], message["id"]) for message in told] == [("other", "m9")]
    assert dq("find", "*", "any", "--id", "m9").stdout.splitlines()[1].startswith("m9  other  ready")
    assert dq("find", "q", "any", "--tally").stdout == "5\n"
    assert "--all is needed" in dq("find", "*", "any", "--act", "cancel", "-y", code=1).stderr
    assert dq("find", "*", "any", "--group", "g1", "--act", "redrive", "-y").stdout == "2 messages pending again\n"
