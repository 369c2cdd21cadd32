"""The backend for the tasks of Django, and its worker, against a real server."""

import os
import signal
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from dqueue import Queue, connect
from dqueue.testing import ManualQueue

django = pytest.importorskip("django")
BACKEND = pytest.importorskip("clients.python.tests.django_project").BACKEND

from django.core.management import CommandError, call_command  # noqa: E402
from django.test import override_settings  # noqa: E402
from dqueue.django import effects  # noqa: E402
from dqueue.drivers.django.tasks import (  # noqa: E402
    TaskResultStatus,
    exceptions,
    signals,
    task,
    task_backends,
)
from dqueue.drivers.django.worker import TaskWorker  # noqa: E402

from clients.python.tests.blocks import effects_of  # noqa: E402
from tests.harness.server import wait_for  # noqa: E402

# The name is another one in django-tasks.
InvalidTask = getattr(exceptions, "InvalidTask", None) or exceptions.InvalidTaskError
TaskResultDoesNotExist, TaskResultMismatch = exceptions.TaskResultDoesNotExist, exceptions.TaskResultMismatch
task_enqueued, task_finished, task_started = signals.task_enqueued, signals.task_finished, signals.task_started
IMMEDIATE = f"{task_backends.__class__.__module__.partition('.handler')[0]}.backends.immediate.ImmediateBackend"

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/drivers/django_shop.py"
HOUR = 3_600_000
FAILURES = []


@task
def add(a, b=1):
    return a + b


@task
async def add_later(a, b):
    return {"sum": a + b}


@task(takes_context=True)
def attempt(context):
    return [context.attempt, context.task_result.id]


@task
def fail(message):
    raise LookupError(message)


@task
def fail_once():
    if not FAILURES:
        FAILURES.append(1)
        raise LookupError("once")
    return "done"


@task
def pay(how, url):
    effects().incrby("paid", 5)
    if how == "fails":
        raise LookupError(how)
    if how == "is refused":
        effects().if_missing("paid")
    if how == "is lost":
        queue = Queue(connect(url), "django:default")
        queue.cancel(next(queue.list("running")).id)


@pytest.fixture
def backend(dq_url):
    """Makes a backend with options, which is the default one."""
    overridden = []

    def make(**options):
        url = dq_url.replace("redis://", "dq://")
        override = override_settings(TASKS={"default": {**BACKEND, "OPTIONS": {"url": url, **options}}})
        override.enable()
        overridden.append(override)
        return task_backends["default"]

    yield make
    for override in reversed(overridden):
        override.disable()


@pytest.fixture
def q(dq_client):
    """The default queue as any client sees it. Its clock moves only where a test says so."""
    return ManualQueue(dq_client, "django:default", retain=HOUR)


def work(q, backend):
    """Runs the tasks that can be run now, like the worker."""
    worker = TaskWorker(backend, "default", concurrency=1, grace=1000).worker
    return q.work(worker)


def test_a_task_runs_and_its_result_is_kept(backend, q):
    backend = backend()
    result = add.enqueue(1, b=2)
    assert (result.status, result.attempts, result.is_finished) == (TaskResultStatus.READY, 0, False)
    assert result.enqueued_at.tzinfo is not None
    work(q, backend)
    result.refresh()
    assert (result.status, result.return_value, result.attempts, result.errors) == ("SUCCESSFUL", 3, 1, [])
    assert result.finished_at >= result.started_at and result.last_attempted_at is not None
    again = add.get_result(result.id)
    assert (again.return_value, again.args, again.kwargs) == (3, [1], {"b": 2})
    with pytest.raises(TaskResultMismatch):
        fail.get_result(result.id)
    for unknown in ("", "x", "x:mails"):
        with pytest.raises(TaskResultDoesNotExist):
            add.get_result(unknown)


def test_the_effects_of_a_task_go_with_its_ack_and_only_with_that(backend, q, dq_url):
    backend = backend(retries=1)
    q.alter(backoff=("FIXED", 1))
    results = [pay.enqueue(how, dq_url) for how in ("returns", "is refused", "is lost", "fails")]
    work(q, backend)
    q.advance(1)
    work(q, backend)
    for result in results:
        result.refresh()
    assert [result.status for result in results] == ["SUCCESSFUL", "FAILED", "FAILED", "FAILED"]
    assert [result.attempts for result in results] == [1, 2, 1, 2]
    assert "CONDITION 1" in results[1].errors[0].traceback
    assert q.client.get("paid") == b"5"
    with pytest.raises(RuntimeError):
        effects()


def test_the_effects_of_the_page_are_done(backend, q, tmp_path, monkeypatch):
    backend = backend()
    example = effects_of("django")
    (tmp_path / "paying.py").write_text(example if django.VERSION >= (6, 0) else example.replace("django.tasks", "django_tasks"))
    monkeypatch.syspath_prepend(tmp_path)
    __import__("paying").pay.enqueue("ann", 500)
    work(q, backend)
    assert (q.client.hget("user:ann", "paid"), q.client.xlen("outbox")) == (b"500", 1)


def test_coroutines_and_tasks_with_a_context_run(backend, q):
    backend = backend()
    first, second = add_later.enqueue(1, b=2), attempt.enqueue()
    work(q, backend)
    first.refresh()
    second.refresh()
    assert first.return_value == {"sum": 3}
    assert second.return_value == [1, second.id]


def test_a_task_that_raises_has_failed(backend, q):
    backend = backend()
    result = fail.enqueue("x" * 5000)
    work(q, backend)
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    [error] = result.errors
    assert error.exception_class is LookupError
    assert "x" * 5000 in error.traceback and "in fail" in error.traceback
    with pytest.raises(ValueError):
        result.return_value  # noqa: B018


def test_a_task_is_run_again_where_the_options_say_so(backend, q):
    backend = backend(retries=1)
    FAILURES.clear()
    result = fail_once.enqueue()
    work(q, backend)
    result.refresh()
    assert (result.status, result.attempts, result.return_value) == ("SUCCESSFUL", 2, "done")
    worse = fail.enqueue("no")
    work(q, backend)
    worse.refresh()
    assert (worse.status, worse.attempts) == ("FAILED", 2)


def test_run_after_waits_in_the_server(backend, q):
    backend = backend()
    result = add.using(run_after=datetime.fromtimestamp(3600, timezone.utc)).enqueue(1)
    assert work(q, backend) == []
    assert q.get(result.id).due_at == HOUR
    q.advance(HOUR)
    assert len(work(q, backend)) == 1
    with pytest.raises(InvalidTask):
        add.using(run_after=datetime(2030, 1, 1))


def test_higher_priorities_go_first(backend, q):
    backend()
    for priority in (-100, 0, 100):
        add.using(priority=priority).enqueue(priority)
    assert [record.priority for record in q.peek(3)] == [-100, 0, 100]
    assert add.get_result(q.peek()[0].id).task.priority == 100


def test_a_running_task_and_one_of_a_lost_worker(backend, q):
    backend()
    result = add.enqueue(1)
    q.fetch(consumer="lost", lease=5)
    result.refresh()
    assert (result.status, result.worker_ids) == (TaskResultStatus.RUNNING, ["lost"])
    q.advance(5)
    result.refresh()
    assert result.status == TaskResultStatus.READY


def test_a_task_that_takes_its_workers_with_it_is_given_up(backend, q):
    backend()
    result = add.enqueue(1)
    for _ in range(3):
        q.fetch(consumer="lost", lease=5)
        q.advance(5)
    result.refresh()
    assert (result.status, result.errors[0].traceback) == (TaskResultStatus.FAILED, "timeouts")


def test_a_task_whose_function_is_gone_has_failed(backend, q):
    backend = backend()
    q.send('{"task": "nowhere.add", "args": [], "kwargs": {}}', id="gone")
    work(q, backend)
    [record] = q.list("dead")
    assert "ModuleNotFoundError" in record.error


def test_a_message_cannot_make_the_worker_import_what_is_not_of_the_project(backend, q, tmp_path, monkeypatch):
    backend = backend(modules=["shop_tasks"])
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "deed.py").write_text(f"open({str(tmp_path / 'done')!r}, 'w')\ndef add(): pass\n")
    (tmp_path / "shop_tasks.py").write_text("from dqueue.drivers.django.tasks import task\n@task\ndef add(): return 5\n")
    q.send('{"task": "deed.add", "args": [], "kwargs": {}}', id="foreign")
    q.send('{"task": "shop_tasks.add", "args": [], "kwargs": {}}', id="named")
    work(q, backend)
    assert not (tmp_path / "done").exists()
    assert "SuspiciousOperation" in q.get("foreign").error
    assert q.get("named").result == "5"


def test_a_message_can_run_only_tasks(backend, q):
    backend = backend()
    ran = []
    monkey = type("Monkey", (), {"using": lambda self, **_: self, "takes_context": False, "call": lambda self: ran.append(1)})
    sys.modules[__name__].monkey = monkey()
    q.send(f'{{"task": "{__name__}.monkey", "args": [], "kwargs": {{}}}}', id="no task")
    work(q, backend)
    assert (ran, "SuspiciousOperation" in q.get("no task").error) == ([], True)


def test_signals_are_sent(backend, q):
    backend = backend()
    seen = []

    def receiver(signal, task_result, **_):
        seen.append((signal, task_result.status))

    for sent in (task_enqueued, task_started, task_finished):
        sent.connect(receiver)
    try:
        add.enqueue(1)
        fail.enqueue("x")
        work(q, backend)
    finally:
        for sent in (task_enqueued, task_started, task_finished):
            sent.disconnect(receiver)
    assert [status for _, status in seen] == ["READY", "READY", "RUNNING", "SUCCESSFUL", "RUNNING", "FAILED"]


def test_the_command_works_on_all_queues_until_it_is_stopped(backend):
    backend = backend()
    done = threading.Event()
    left = {"default", "mails"}

    def finished(task_result, **_):
        left.discard(task_result.task.queue_name)
        if not left and not done.is_set():
            done.set()
            os.kill(os.getpid(), signal.SIGTERM)

    task_finished.connect(finished)
    try:
        results = [add.enqueue(1), add.using(queue_name="mails").enqueue(2)]
        call_command("dq_worker", concurrency=2)
    finally:
        task_finished.disconnect(finished)
    for result in results:
        result.refresh()
    assert [result.return_value for result in results] == [2, 3]


def test_the_command_refuses_what_it_cannot_do(backend):
    backend()
    with pytest.raises(CommandError):
        call_command("dq_worker", concurrency=0)
    with override_settings(TASKS={"default": {"BACKEND": IMMEDIATE}}):
        with pytest.raises(CommandError):
            call_command("dq_worker")


def test_records_are_kept_for_as_long_as_the_options_say(backend, dq_client):
    backend(retain=timedelta(minutes=1), prefix="shop:")
    add.enqueue(1)
    info = Queue(dq_client, "shop:default").info()
    assert (info["retain"], info["deadretain"]) == (60_000, 7 * 24 * HOUR)


def test_results_are_kept_after_the_server_has_lost_everything(backend, q, dq_client):
    backend = backend()
    add.enqueue(1)
    dq_client.flushall()
    result = add.enqueue(2)
    worker = TaskWorker(backend, "default", concurrency=1, grace=1000).worker
    threading.Thread(target=lambda: (wait_for(lambda: Queue(dq_client, "django:default").len() == 0), worker.stop())).start()
    worker.run(signals=False)
    result.refresh()
    assert (result.status, result.return_value) == ("SUCCESSFUL", 3)


@pytest.mark.slow
@pytest.mark.skipif(django.VERSION < (6, 0), reason="the example is one for Django 6")
def test_the_example_survives_the_kill_of_its_worker(dq_url, tmp_path):
    env = {**os.environ, "DQ_URL": dq_url, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, EXAMPLE], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
