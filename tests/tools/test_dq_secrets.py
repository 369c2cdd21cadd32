"""Payloads that clients have encrypted, compressed or put elsewhere: what `dq` and `dq web` show of them, with and without keys."""

import base64
import json
from pathlib import Path

import pytest

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(600)

GOLDEN = json.loads((Path(__file__).parents[1] / "conformance" / "secrets.json").read_text())
# One case has no id, which no message can have.
CASES = [case for case in GOLDEN["cases"] if case["id"]]
# A frame of zstd with one block that is not compressed.
PACKED = bytes.fromhex("28b52ffd2005290000") + b"hello"


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys"
    path.write_text("".join(f"{id} {key}\n" for id, key in GOLDEN["keys"].items()))
    path.chmod(0o600)
    return path


@pytest.fixture
def mails(r3):
    """A queue with a message in clear, two that clients have encrypted, a packed one, and one whose payload is elsewhere."""

    def send(queue, id, payload, fields):
        pairs = [part for pair in fields.items() for part in pair]
        r3.execute_command("DQ.SEND", queue, payload, "ID", id, *(["HEADERS", len(fields), *pairs] if pairs else []))

    for case in CASES:
        send(case["queue"], case["id"], base64.b64decode(case["sealed"]), case["fields"])
    send("mails", "plain", "in clear", {})
    send("mails", "packed", PACKED, {"dq-encoding": "zstd"})
    send("mails", "away", "", {"dq-offload": "mails/away/1"})
    return {case["name"]: case for case in CASES}


def test_without_keys_only_the_key_is_told(dq, mails):
    shown = dq("peek", "mails").stdout
    for words in ("(encrypted, key 2026)", "(encrypted, key 2025)", "in clear", "hello", "(kept elsewhere, key mails/away/1)"):
        assert words in shown
    case = mails["bytes and headers"]
    shown = dq("show", case["queue"], case["id"]).stdout
    assert "(encrypted, key " in shown and "ann@example.com" not in shown
    assert "hello" not in dq("show", "mails", "m1").stdout


def test_with_keys_the_clear_text_is_shown(dq, mails, keys):
    shown = dq("--secrets", keys, "find", "mails", "any").stdout
    assert "encrypted" not in shown and shown.count("hello") == 2
    case = mails["bytes and headers"]
    assert "email=ann@example.com" in dq("--secrets", keys, "show", case["queue"], case["id"]).stdout
    # JSON is what the server has.
    assert "hello" not in dq("--secrets", keys, "--json", "show", "mails", "m1").stdout


def test_jobs_of_bullmq_are_shown_the_same_way(dq, start, r3, keys):
    """Its driver puts what is encrypted into the JSON of a job: its data, its changed data, and what it returns."""
    case = next(case for case in CASES if case["fields"]["dq-key"] == "2026" and set(case["fields"]) == {"dq-key"})
    text = base64.b64decode(case["payload"]).decode()
    envelope = {"dq-key": "2026", "dq-sealed": case["sealed"]}
    job = json.dumps({"name": "welcome", "data": envelope})
    queue, id = case["queue"], case["id"]
    r3.execute_command("DQ.CREATE", queue, "RETAIN", 60_000)
    r3.execute_command("DQ.SEND", queue, job, "ID", id)
    locked, unlocked = start().visitor(), start("--secrets", str(keys)).visitor()
    for page in (locked.sees("messages", "(encrypted, key 2026)", queue=queue, state="ready"), locked.sees("message", queue=queue, id=id)):
        assert case["sealed"] not in page.text and "welcome" in page.text
    page = unlocked.sees("message", text, "welcome", queue=queue, id=id)
    assert "Edit payload" not in page.words() and "Duplicate" not in page.words()
    [[_, receipt, *_]] = r3.execute_command("DQ.FETCH", queue)
    r3.execute_command("DQ.ACK", queue, receipt, "RESULT", json.dumps(envelope))
    shown = dq("show", queue, id).stdout
    assert shown.count("(encrypted, key 2026)") == 2 and case["sealed"] not in shown and text not in shown
    shown = dq("--secrets", keys, "show", queue, id).stdout
    assert shown.count(text) == 2 and "encrypted" not in shown


def test_a_file_that_has_no_keys_is_refused(dq, mails, tmp_path):
    bad = tmp_path / "bad"
    bad.write_text("2026 c2hvcnQ=\n")
    bad.chmod(0o600)
    assert "line 1 is no id with a key of 32 bytes" in dq("--secrets", bad, "peek", "mails", code=1).stderr
    assert "c2hvcnQ" not in dq("--secrets", bad, "peek", "mails", code=1).stderr


def test_the_pages_say_the_same(start, mails, keys):
    locked, unlocked = start().visitor(), start("--secrets", str(keys)).visitor()
    locked.sees("messages", "(encrypted, key 2026)", "in clear", "hello", "(kept elsewhere", queue="mails", state="ready")
    page = locked.sees("message", "encrypted, key 2026", "Save what the server has", queue="mails", id="m1")
    assert "Duplicate" not in page.words() and "Edit payload" not in page.words()
    page = unlocked.sees("message", "hello", queue="mails", id="m1")
    assert "encrypted" not in page.words() and "Duplicate" not in page.words() and "Edit payload" not in page.words()
    assert "Duplicate" in locked.sees("message", "hello", queue="mails", id="packed").words()
    case = mails["bytes and headers"]
    unlocked.sees("message", "ann@example.com", queue=case["queue"], id=case["id"])
    assert "ann@example.com" not in locked.sees("message", "encrypted", queue=case["queue"], id=case["id"]).text
    locked.get("edit", queue="mails", id="packed", status=400)
