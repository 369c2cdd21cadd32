"""The outbox with SQLAlchemy on SQLite. tests/outbox kills programs, and has PostgreSQL and MariaDB."""

import base64
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from dqueue import NotConfirmed, Queue, Tasks, connect, connect_cluster
from dqueue.drivers import outbox as core
from dqueue.drivers.outbox import Row

sqlalchemy = pytest.importorskip("sqlalchemy", reason="needs SQLAlchemy: pip install 'dq-queue[sqlalchemy]'")

from dqueue.sqlalchemy import Outbox  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

CASES = json.loads((Path(__file__).resolve().parents[3] / "tests/conformance/outbox.json").read_text())["rows"]


@pytest.fixture
def engine(tmp_path):
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/shop.sqlite")
    yield engine
    engine.dispose()


@pytest.fixture
def outbox(dq_client, engine):
    made = Outbox(dq_client, sqlalchemy.MetaData())
    made.table.metadata.create_all(engine)
    return made


@pytest.fixture
def rows(engine, outbox):
    """What is in the table."""

    def read():
        with engine.connect() as connection:
            return connection.scalars(sqlalchemy.select(outbox.table.c.message_id).order_by(outbox.table.c.seq)).all()

    return read


def payloads(client, key):
    return [message.text for message in Queue(client, key).fetch(count=1000)]


def raw(word):
    return base64.b64decode(word["base64"]) if isinstance(word, dict) else word.encode()


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_row_is_that_of_all_languages(case):
    row = Row.of(case["queue"], raw(case["payload"]), case["id"], case["options"])
    assert (row.message_id, row.queue, row.line) == (case["id"], case["queue"], case["line"])
    assert json.loads(row.message) == case["message"]
    assert [core.encode(word) for word in row.command()] == [raw(word) for word in case["command"]]


def test_what_is_committed_is_sent_at_once_and_what_is_rolled_back_never(outbox, engine, dq_client, rows):
    with Session(engine) as session:
        with session.begin():
            outbox.send(session, "mails", "1", group="ann")
            with session.begin_nested():
                outbox.send(session, "mails", "2", group="ann")
            inner = session.begin_nested()
            outbox.send(session, "mails", "of a savepoint that is rolled back", group="ann")
            inner.rollback()
            assert dq_client.exists("mails") == 0
        outbox.send(session, "mails", "of a transaction that is rolled back")
        session.rollback()
        session.commit()
    assert (payloads(dq_client, "mails"), rows(), Queue(dq_client, "mails").len()) == (["1"], [], 2)
    assert outbox.relay(engine) == 0


def test_a_connection_leaves_its_messages_to_the_relay(outbox, engine, dq_client, rows):
    with engine.begin() as connection:
        id = outbox.send(connection, "mails", b"\xff\x00", headers={"trace": "1"}, delay=60_000)
    assert rows() == [id] and outbox.relay(engine) == 1 and rows() == []
    record = Queue(dq_client, "mails").get(id)
    assert (record.payload, record.headers, record.state) == (b"\xff\x00", {"trace": b"1"}, "delayed")
    assert abs(record.due_at - time.time() * 1000 - 60_000) < 30_000


def test_a_relay_that_dies_before_it_deletes_sends_nothing_twice(outbox, engine, dq_client, rows, monkeypatch):
    with engine.begin() as connection:
        for number in range(5):
            outbox.send(connection, "mails", str(number), group="ann")

    def dies(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dqueue.drivers.sqlalchemy.TableRows.delete", dies)
        with pytest.raises(KeyboardInterrupt):
            outbox.relay(engine)
    queue, got = Queue(dq_client, "mails"), []
    for _ in range(5):
        (message,) = queue.fetch()
        queue.ack(message)
        got.append(message.text)
    assert got == ["0", "1", "2", "3", "4"] and len(rows()) == 5
    outbox.relay(engine)
    assert queue.fetch() == [] and rows() == []


def test_without_a_server_a_commit_succeeds_and_the_relay_sends_in_order_later(outbox, engine, server, dq_client, rows):
    server.stop()
    began = time.monotonic()
    with Session(engine) as session:
        for number in range(250):
            with session.begin():
                outbox.send(session, "mails", str(number), group=f"g{number % 2}")
    assert len(rows()) == 250 and time.monotonic() - began < 20
    with pytest.raises(redis.ConnectionError):
        outbox.relay(engine)
    server.start()
    assert outbox.relay(engine) == 250 and rows() == []
    queue, got = Queue(dq_client, "mails"), []
    for _ in range(250):
        (message,) = queue.fetch()
        queue.ack(message)
        got.append((message.group, int(message.text)))
    for group in ("g0", "g1"):
        numbers = [number for one, number in got if one == group]
        assert numbers == sorted(numbers) and len(numbers) == 125


def test_a_message_that_the_server_refuses_holds_only_its_group(outbox, engine, dq_client, rows, caplog):
    with engine.begin() as connection:
        for payload, options in (("1", {"group": "ann"}), ("bad", {"priority": 1000}), ("x", {"group": "ann", "priority": 1000})):
            outbox.send(connection, "mails", payload, id=payload, **options)
        outbox.send(connection, "mails", "2", id="2", group="ann")
        outbox.send(connection, "mails", "3", id="3", group="ben")
    for _ in range(2):
        outbox.relay(engine)
    assert rows() == ["bad", "x", "2"]
    assert [record.id for record in Queue(dq_client, "mails").peek(5)] == ["1", "3"]
    assert sum("refuses the message bad" in one.message for one in caplog.records) == 1


def test_a_queue_knows_the_ids_for_long_enough(outbox, engine, dq_client):
    known = {"new": None, "short": 1000, "long": 100_000_000}
    for key, dedup in known.items():
        if dedup:
            Queue(dq_client, key).create(dedup=dedup, retries=7)
        with Session(engine) as session, session.begin():
            outbox.send(session, key, "x")
    assert [Queue(dq_client, key).info()["dedup"] for key in known] == [3_600_000, 3_600_000, 100_000_000]
    assert Queue(dq_client, "short").info()["retries"] == 7


def test_a_row_is_not_sent_that_was_read_long_ago(outbox, engine, dq_client, monkeypatch):
    # Its id may be forgotten, if others have sent it meanwhile.
    with engine.begin() as connection:
        outbox.send(connection, "mails", "x")
    times = iter([0, 3000])
    monkeypatch.setattr(core, "time", SimpleNamespace(monotonic=lambda: next(times)))
    assert outbox.relay(engine) == 0
    assert dq_client.exists("mails") == 0


def test_a_row_stays_until_its_message_is_confirmed(engine, dq_client):
    durable = Outbox(dq_client, sqlalchemy.MetaData(), durable=core.Durable(replicas=1, in_memory=True, timeout=10))
    durable.table.metadata.create_all(engine)
    with engine.begin() as connection:
        id = durable.send(connection, "mails", "x")
    for _ in range(2):
        with pytest.raises(NotConfirmed):
            durable.relay(engine)
    assert Queue(dq_client, "mails").info()["duplicates"] == 1 and Queue(dq_client, "mails").get(id) is not None


def test_a_call_of_a_task_is_sent_with_the_transaction(outbox, engine, dq_url):
    tasks = Tasks(Queue(connect(dq_url), "calls"), retain=60_000)

    @tasks.task
    def welcome(name: str, *, polite: bool = True) -> str:
        return f"{polite} {name}"

    with Session(engine) as session, session.begin():
        id = outbox.send_task(session, welcome.with_options(priority=3), "ann", polite=False)
    assert tasks.queue.get(id).type == "welcome" and tasks.queue.get(id).priority == 3
    with pytest.raises(TypeError), Session(engine) as session:
        outbox.send_task(session, welcome, 1, 2)


def test_a_row_of_a_cluster_goes_to_the_node_of_its_queue(cluster, engine):
    outbox = Outbox(connect_cluster(f"redis://127.0.0.1:{cluster.nodes[0].port}"), sqlalchemy.MetaData())
    outbox.table.metadata.create_all(engine)
    keys = [f"q{number}" for number in range(6)]
    with engine.begin() as connection:
        for key in keys:
            outbox.send(connection, key, "x")
    assert outbox.relay(engine) == 6
