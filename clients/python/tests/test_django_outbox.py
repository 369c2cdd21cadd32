"""The outbox of the Django backend, on SQLite. tests/outbox kills programs, and has PostgreSQL and MariaDB."""

import threading

import pytest

BACKEND = pytest.importorskip("clients.python.tests.django_project").BACKEND

from django.core.management import CommandError, call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from django.test import override_settings  # noqa: E402
from dqueue import Queue  # noqa: E402
from dqueue.django.testing import run_tasks  # noqa: E402
from dqueue.drivers.django.outbox.models import OutboxRow  # noqa: E402
from dqueue.drivers.django.tasks import task, task_backends  # noqa: E402

from tests.harness.server import wait_for  # noqa: E402

KEY = "django:default"


@task
def add(a, b):
    return a + b


@pytest.fixture(scope="module")
def table():
    call_command("migrate", verbosity=0)


@pytest.fixture
def backend(table, dq_url):
    OutboxRow.objects.all().delete()
    with override_settings(TASKS={"default": {**BACKEND, "OPTIONS": {"url": dq_url, "outbox": True}}}):
        yield task_backends["default"]


def ids(client):
    return [record.id for record in Queue(client, KEY).peek(100)] if client.exists(KEY) else []


def test_a_task_is_sent_when_its_transaction_is_committed_and_only_then(backend, dq_client):
    with transaction.atomic():
        first = add.enqueue(1, 2)
        with transaction.atomic():
            second = add.using(priority=5).enqueue(3, 4)
        with pytest.raises(LookupError), transaction.atomic():
            add.enqueue("of a savepoint that is rolled back", "")
            raise LookupError
        assert ids(dq_client) == [] and OutboxRow.objects.count() == 2
    assert ids(dq_client) == [second.id, first.id] and OutboxRow.objects.count() == 0
    with pytest.raises(LookupError), transaction.atomic():
        add.enqueue("of a transaction that is rolled back", "")
        raise LookupError
    without = add.enqueue(5, 6)
    assert ids(dq_client) == [second.id, first.id, without.id]
    second.refresh()
    assert second.status == "READY" and second.args == [3, 4]


def test_the_migration_is_that_of_the_model(backend):
    call_command("makemigrations", "dqueue_outbox", check=True, dry_run=True, verbosity=0)


@pytest.mark.parametrize("command", ["dq_worker", "dq_outbox"])
def test_what_a_dead_process_has_left_is_sent_within_a_second(backend, dq_client, monkeypatch, command, request):
    monkeypatch.setattr("dqueue.drivers.django.outbox.rows.DjangoOutbox._committed", lambda _self: None)
    result = add.enqueue(1, 2)
    assert ids(dq_client) == [] and OutboxRow.objects.count() == 1
    if command == "dq_outbox":
        stop = threading.Event()
        thread = threading.Thread(target=backend.outbox.sending.run, args=[stop])
        thread.start()
        request.addfinalizer(lambda: (stop.set(), thread.join()))
        wait_for(lambda: ids(dq_client) == [result.id], 2, "the message")
        wait_for(lambda: OutboxRow.objects.count() == 0, 2, "the end of the row")
    else:
        begins = threading.Event()
        monkeypatch.setattr(backend.outbox.sending, "run", lambda stop: begins.set())
        monkeypatch.setattr("dqueue._sync.worker.Worker.run", lambda _self, **_options: begins.wait(5))
        call_command(command, verbosity=0)
        assert begins.is_set()


def test_the_command_needs_the_option(backend):
    with override_settings(TASKS={"default": BACKEND}), pytest.raises(CommandError, match="option outbox"):
        call_command("dq_outbox")


@pytest.mark.parametrize("outbox", [False, True])
def test_the_arguments_of_tasks_are_encrypted_on_their_way(table, dq_url, dq_client, outbox):
    secrets = pytest.importorskip("dqueue.secrets", reason="needs cryptography").Secrets({"2026": bytes(32)})
    with override_settings(TASKS={"default": {**BACKEND, "OPTIONS": {"url": dq_url, "outbox": outbox, "secrets": secrets}}}):
        result = add.enqueue("se", "cret")
        queue = Queue(dq_client, KEY)
        record = queue.get(result.id)
        assert b"cret" not in record.payload and record.headers == {"dq-key": b"2026"}
        queue.send(record.payload, id="copied", headers=record.headers)
        result.refresh()
        assert result.args == ["se", "cret"]
        run_tasks()
        result.refresh()
        assert (result.status, result.return_value) == ("SUCCESSFUL", "secret")
        assert queue.get("copied").reason == "rejected"
