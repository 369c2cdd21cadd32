"""An export and its import give the same queue again."""

import json
import signal
import subprocess

import pytest

from tests.harness.server import wait_for

pytest_plugins = ["tests.harness.cli_fixtures"]


@pytest.fixture
def export(dq, tmp_path):
    def write(*queues, **env):
        """Exports to a file; its path and its lines."""
        words = [word for queue in queues for word in ("--queue", queue)]
        ended = dq("export", "jsonl", *words)
        file = tmp_path / "export"
        file.write_text(ended.stdout)
        return file, [json.loads(line) for line in ended.stdout.splitlines()]

    return write


def fill(r):
    r.execute_command("DQ.CREATE", "q", "RETRIES", 5, "BACKOFF", "EXP", 50, "RATE", 1000, "PER", 1000, "ONDEAD", "CONTINUE", "DEDUP", 1000)
    for n in range(30):
        r.execute_command("DQ.SEND", "q", f"p{n}", "ID", f"ready-{n}", "PRIORITY", n % 3)
    r.execute_command("DQ.SEND", "q", b"\xff\x00", "ID", b"\xfe", "HEADERS", 2, "a", "1", b"b", b"\xff", "TYPE", "t", "BATCH", "b", "COST", 3)
    for n in range(20):
        r.execute_command("DQ.SEND", "q", "later", "ID", f"late-{n}", "AT", 4_000_000_000_000 + n, "RETRIES", n % 4)
    for n in range(5):
        r.execute_command("DQ.SEND", "q", "grouped", "ID", f"g-{n}", "GROUP", f"g{n % 2}", "SCORE", 10 - n)
    r.execute_command("DQ.SEND", "q", "bad", "ID", "dead-1", "GROUP", "d")
    [[_, receipt, *_]] = r.execute_command("DQ.FETCH", "q", "GROUP", "d")
    r.execute_command("DQ.NACK", "q", receipt, "FATAL", "ERROR", "no such user")


def test_an_export_and_import_give_the_same_digest(dq, r, export, make_server):
    fill(r)
    file, lines = export("q")
    assert lines[-1]["end"] == 57
    other = make_server()
    r.execute_command("DQ.PAUSE", "q")
    said = dq("import", "jsonl", "--from", file, "--to", f"redis://127.0.0.1:{other.port}", "--json")
    assert json.loads(said.stdout)["queues"][0]["digest"] == lines[-1]["digest"]
    again = dq("--url", f"redis://127.0.0.1:{other.port}", "export", "jsonl", "--queue", "q")
    new = [json.loads(line) for line in again.stdout.splitlines()]
    assert new[-1] == lines[-1]
    assert new[0]["options"] == lines[0]["options"]
    assert not other.client().keys("dq:*")
    dead = other.client(protocol=3).execute_command("DQ.GET", "q", "dead-1")
    assert (dead[b"state"], dead[b"error"]) == (b"dead", b"no such user")


def test_a_killed_import_goes_on_where_it_was(dq, r, export):
    for n in range(3000):
        r.execute_command("DQ.SEND", "q", n)
    file, lines = export("q")
    r.delete("q")
    started = dq.start("import", "jsonl", "--from", file)
    wait_for(lambda: r.exists("q") and r.execute_command("DQ.LEN", "q") > 200, timeout=10)
    started.process.send_signal(signal.SIGKILL)
    started.process.wait()
    # What has come by then is worked off, and its ids are free again.
    done = []
    while batch := r.execute_command("DQ.FETCH", "q", "COUNT", 500):
        done += [message[3] for message in batch]
        r.execute_command("DQ.ACK", "q", *[message[1] for message in batch])
    dq("import", "jsonl", "--from", file)
    while batch := r.execute_command("DQ.FETCH", "q", "COUNT", 500, "NOACK"):
        done += [message[3] for message in batch]
    assert sorted(map(int, done)) == list(range(3000))


def test_a_file_that_was_cut_or_changed_is_refused(dq, r, export, tmp_path):
    fill(r)
    file, lines = export("q")
    text = file.read_text().splitlines()
    for wrong, why in [
        (text[:-1], "its end is missing"),
        (text[:5] + text[6:], "a line is missing"),
        (text[1:], "this is no export of dq"),
        ([text[0].replace('"dq-export":1', '"dq-export":2')], "UNKNOWN"),
        ([text[0], "{"], "line 2: no JSON"),
        ([text[0], '{"id":"a","state":"ready"}'], "no payload"),
    ]:
        file.write_text("\n".join(wrong))
        assert why in dq("import", "jsonl", "--from", file, "--dry-run", code=1).stderr


def test_what_runs_and_schedules_are_named(dq, r, export):
    r.execute_command("DQ.SEND", "q", "runs", "ID", "a")
    r.execute_command("DQ.FETCH", "q")
    r.execute_command("DQ.SCHEDULE", "q", "daily", "EVERY", 60000, "PAYLOAD", "x")
    file, _ = export("q")
    said = dq("import", "jsonl", "--from", file, "--into", "copy-{queue}", code=3)
    assert "RUNNING" in said.stdout and "SCHEDULE daily" in said.stdout
    assert r.execute_command("DQ.LEN", "copy-q") == 0


def test_delete_takes_out_what_the_file_has(dq, r, tmp_path, program):
    fill(r)
    r.execute_command("DQ.SEND", "q", "runs", "ID", "running", "PRIORITY", -9)
    r.execute_command("DQ.FETCH", "q")
    assert "needs a file" in dq("export", "jsonl", "--queue", "q", "--delete", code=1).stderr
    before = r.execute_command("DQ.LEN", "q")
    file = tmp_path / "out"
    with file.open("w") as out:
        command = [str(program), "--url", dq.url, "export", "jsonl", "--queue", "q", "--delete"]
        ended = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 3 and "1 of them run" in ended.stderr
    assert (before, r.execute_command("DQ.LEN", "q")) == (57, 1)
    assert r.execute_command("DQ.LIST", "q", "dead", "IDS")[1] == []
    assert "RUNNING" in dq("import", "jsonl", "--from", file, code=3).stdout
    assert r.execute_command("DQ.LEN", "q") == 57
