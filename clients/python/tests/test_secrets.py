"""Encrypted payloads and headers: the cases of all languages, and the middleware."""

import asyncio
import json
from base64 import b64decode
from pathlib import Path

import pytest
from dqueue import Layers, Queue, Reject, Tasks, connect
from dqueue.testing import ManualQueue

pytest.importorskip("cryptography", reason="needs cryptography: pip install 'dq-queue[secrets]'")
pytest.importorskip("dqueue.compression", reason="needs zstd: pip install 'dq-queue[zstd]'", exc_type=ImportError)

from dqueue.compression import Compression  # noqa: E402
from dqueue.offload import Offload  # noqa: E402
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


LAYERS = GIVEN["layers"]


class Shelf(dict):
    """A store of payloads."""

    def put(self, key, payload):
        self[key] = payload

    delete = dict.__delitem__


def layers(client, shelf, **options):
    return Layers(Compression(most=LAYERS["most"]), secrets(), Offload(shelf, client, above=LAYERS["above"], **options))


@pytest.mark.parametrize("case", LAYERS["cases"], ids=[case["name"] for case in LAYERS["cases"]])
def test_layers_of_any_language_are_read(dq_client, case):
    shelf = Shelf({key: b64decode(payload) for key, payload in case["store"].items()})
    coding, plain = layers(dq_client, shelf), b64decode(case["payload"]) * case.get("times", 1)
    assert coding.open("mails", "m", b64decode(case["sealed"]), case["fields"]) == (plain, {})
    sealed, fields = coding.seal("mails", "m", plain)
    assert fields.keys() == case["fields"].keys() and len(shelf) == 2 * len(case["store"])
    assert coding.open("mails", "m", sealed, fields) == (plain, {})


@pytest.mark.parametrize("case", LAYERS["broken"], ids=[case["name"] for case in LAYERS["broken"]])
def test_layers_that_cannot_be_read_are_refused(dq_client, case):
    with pytest.raises(Reject if case["error"] == "reject" else LookupError):
        layers(dq_client, Shelf()).open("mails", "m", b64decode(case["sealed"]), case["fields"])


def test_what_is_kept_elsewhere_goes_with_its_record(dq_client):
    shelf, q = Shelf(), Queue(dq_client, "mails")
    offload = Offload(shelf, dq_client, above=10, queues=["dead"])
    for id, queue in (("gone", None), ("waits", q), ("moved", Queue(dq_client, "dead"))):
        payload, headers = offload.seal("mails", id, b"x" * 11)
        assert queue is None or queue.send(payload, id=id, headers=headers)
    assert offload.sweep("mails") == 0 and offload.sweep("mails", after=-1000) == 1
    assert sorted(key.split("/")[1] for key in shelf) == ["moved", "waits"]
    q.purge()
    assert offload.sweep("mails", after=-1000) == 1 and [*shelf] == [key.decode() for key in dq_client.zrange("mails:offload", 0, -1)]


@pytest.mark.parametrize("case", GIVEN["offload"]["queues"], ids=[str(case["deadto"]) for case in GIVEN["offload"]["queues"]])
def test_what_a_worker_has_opened_goes_with_its_record(dq_client, case):
    given, shelf, q = GIVEN["offload"], Shelf(), Queue(dq_client, "mails")
    q.create(deadto=case["deadto"] or None)
    offload = Offload(shelf, dq_client, above=given["above"], queues=given["named"])
    payload, headers = offload.seal("mails", "first", given["payload"])
    q.send(payload, id="first", headers=headers)
    [message] = q.fetch()
    assert offload.open("mails", "first", message.payload, message.headers)[0] == given["payload"].encode()
    [first] = shelf
    offload.seal("mails", "second", given["payload"])
    assert first in shelf
    q.ack(message)
    offload.seal("mails", "third", given["payload"])
    assert (first not in shelf) == case["goes"]
    assert (dq_client.zscore("mails:offload", first) is None) == case["goes"]


def test_celery_messages_are_encrypted(dq_url, dq_client):
    kombu = pytest.importorskip("kombu")
    pytest.importorskip("dqueue.kombu")
    url, q = dq_url.replace("redis://", "dq://"), Queue(dq_client, "celery")
    with kombu.Connection(url, transport_options={"secrets": secrets()}) as connection, connection.SimpleQueue("celery") as queue:
        queue.put({"to": "ann"})
        [record] = q.list("ready")
        assert b"ann" not in record.payload and record.headers["dq-key"] == b"2026"
        q.send(record.payload, id="copied", headers=record.headers)
        message = queue.get(timeout=5)
        assert message.payload == {"to": "ann"}
        message.ack()
        with pytest.raises(queue.Empty):
            queue.get(timeout=0.2)
    assert q.get("copied").reason == "rejected"


def test_dramatiq_messages_are_encrypted(dq_url, dq_client):
    dramatiq = pytest.importorskip("dramatiq")
    from dqueue.dramatiq import DqBroker

    broker, seen = DqBroker(url=dq_url, secrets=secrets()), []
    actor = dramatiq.actor(seen.append, actor_name="mail", broker=broker)
    actor.send("ann")
    q = broker.queue("default")
    [record] = q.list("ready")
    assert b"ann" not in record.payload and record.headers["dq-key"] == b"2026"
    q.send(record.payload, id="copied", headers=record.headers, retries=0)
    worker = dramatiq.Worker(broker, worker_timeout=50)
    worker.start()
    broker.join("default", timeout=10_000)
    worker.stop()
    assert seen == ["ann"] and q.get("copied").reason == "rejected"


def test_taskiq_tasks_are_encrypted(dq_url, dq_client):
    pytest.importorskip("taskiq")
    from dqueue.taskiq import DqBroker

    q = Queue(dq_client, "taskiq")

    async def main():
        broker = DqBroker(dq_url, block=50, secrets=secrets())
        await broker.startup()

        @broker.task
        async def mail(name): ...

        await mail.kiq("ann")
        [record] = q.list("ready")
        assert b"ann" not in record.payload and record.headers["dq-key"] == b"2026"
        q.send(record.payload, id="copied", headers=record.headers)
        async for message in broker.listen():
            assert b"ann" in message.data
            await message.ack()
            break
        listening = broker.listen()
        waiting = asyncio.ensure_future(anext(listening))
        await asyncio.sleep(0.3)
        waiting.cancel()
        await broker.shutdown()

    asyncio.run(main())
    assert q.get("copied").reason == "rejected"
