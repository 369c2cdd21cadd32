"""Encrypted payloads and headers: the cases of all languages, and the middleware."""

import json
from base64 import b64decode
from pathlib import Path

import pytest
from dqueue import Queue, Reject, Tasks, connect
from dqueue.testing import ManualQueue

pytest.importorskip("cryptography", reason="needs cryptography: pip install 'dq-queue[secrets]'")

from dqueue.secrets import Secrets  # noqa: E402

GIVEN = json.loads((Path(__file__).resolve().parents[3] / "tests/conformance/secrets.json").read_text())
KEYS = {id: b64decode(key) for id, key in GIVEN["keys"].items()}


def secrets(**options):
    return Secrets(KEYS, headers=GIVEN["headers"], queues=GIVEN["queues"], **options)


@pytest.mark.parametrize("case", GIVEN["cases"], ids=[case["name"] for case in GIVEN["cases"]])
def test_a_message_of_any_language_is_read(case):
    headers = {name: value.encode() for name, value in case["headers"].items()}
    opened = case.get("opened", case["queue"])
    assert secrets().open(opened, case["id"], b64decode(case["sealed"]), case["fields"]) == (b64decode(case["payload"]), headers)
    sealed, fields = secrets().seal(case["queue"], case["id"], b64decode(case["payload"]), case["headers"])
    assert len(sealed) == len(b64decode(case["sealed"])) and fields.keys() == case["fields"].keys() and fields["dq-key"] == "2026"
    assert secrets().open(opened, case["id"], sealed, fields) == (b64decode(case["payload"]), headers)


@pytest.mark.parametrize("case", GIVEN["broken"], ids=[case["name"] for case in GIVEN["broken"]])
def test_what_was_not_sent_so_is_refused(case):
    with pytest.raises(Reject if case["error"] == "reject" else LookupError):
        secrets().open(case["queue"], case["id"], b64decode(case["sealed"]), case["fields"])


def test_plain_messages_are_read_only_where_that_is_allowed():
    assert secrets(plain=True).open("q", "m", b"x", {"a": b"1"}) == (b"x", {"a": b"1"})
    for keys in ({}, {"k": b"short"}):
        with pytest.raises(ValueError):
            Secrets(keys)


def test_tasks_are_encrypted_on_their_way(dq_url):
    queue = ManualQueue(connect(dq_url), "mails")
    tasks = Tasks(Queue(connect(dq_url), "mails"), middleware=[secrets()], headers={"email": "ann", "trace": "1"})
    seen = []

    @tasks.task
    def welcome(name):
        seen.append(name)

    job = welcome.send("ann")
    record = job.record()
    assert b"ann" not in record.payload and record.headers.keys() == {"dq-key", "dq-sealed:email", "trace"}
    tasks.queue.send(record.payload, id="copied", type="welcome", headers=record.headers)
    queue.work(tasks.worker(concurrency=1))
    assert seen == ["ann"] and tasks.queue.get("copied").reason == "rejected"
