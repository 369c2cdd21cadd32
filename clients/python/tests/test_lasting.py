"""Nothing depends on the memory of a process: the settings of a driver's queues after FLUSHALL, DEL and a new start."""

import asyncio
import importlib.util
from dataclasses import dataclass
from typing import Any

import pytest
from dqueue import Queue

from tests.harness.server import wait_for

WEEK = 7 * 24 * 3_600_000


@dataclass
class Driver:
    """A driver. `start` begins a program with settings, as it is begun after a change, and returns how it sends a task."""

    module: str
    key: str
    default: dict[str, int]
    """The value that DQ.INFO shows where nothing is set."""
    setting: Any
    """Makes the settings under which DQ.INFO shows this number as deadretain. None means that all settings come with
    each message.
    """


def celery(url, settings):
    import dqueue.kombu  # noqa: F401  makes dq:// known
    from celery import Celery

    app = Celery("lasting", broker=url.replace("redis", "dq", 1), set_as_current=False)
    app.conf.broker_transport_options = settings

    def send():
        with app.connection_for_write() as connection:
            app.send_task("task", queue="lasting", connection=connection)

    return send


def celery_with_one_connection(url, settings):
    import dqueue.kombu  # noqa: F401  makes dq:// known
    from celery import Celery

    app = Celery("lasting", broker=url.replace("redis", "dq", 1), set_as_current=False)
    app.conf.broker_transport_options = settings
    connection = app.connection_for_write()
    return lambda: app.send_task("task", queue="lasting", connection=connection)


def dramatiq(url, settings):
    from dqueue.dramatiq import DqBroker
    from dramatiq import Message

    broker = DqBroker(url=url, middleware=[], namespace="", **settings)
    return lambda: broker.enqueue(Message("lasting", "task", (), {}, {}))


def django(url, settings):
    django_settings = importlib.import_module("django.conf").settings
    if not django_settings.configured:
        django_settings.configure(USE_TZ=True, INSTALLED_APPS=["dqueue.django"], DATABASES={})
        importlib.import_module("django").setup()
    from dqueue.drivers.django.backend import DqBackend
    from dqueue.drivers.django.tasks import task

    backend = DqBackend("default", {"OPTIONS": {"url": url, "prefix": "", **settings}})
    a_task = task()(_nothing)
    return lambda: backend.enqueue(a_task, (), {})


def _nothing():
    pass


def taskiq(url, settings):
    from dqueue.taskiq import DqBroker
    from taskiq.kicker import AsyncKicker

    loop = asyncio.new_event_loop()
    broker = DqBroker(url, "lasting", **settings)
    return lambda: loop.run_until_complete(AsyncKicker("task", broker, {}).kiq())


DRIVERS = {
    celery: Driver("celery", "lasting", {"deadretain": WEEK, "deadcount": 10_000}, lambda n: {"queue_options": {"DEADRETAIN": n}}),
    celery_with_one_connection: Driver("celery", "lasting", {"deadretain": WEEK}, lambda n: {"queue_options": {"DEADRETAIN": n}}),
    dramatiq: Driver("dramatiq", ":lasting", {"deadretain": WEEK}, lambda n: {"dead_message_ttl": n}),
    django: Driver("django", "default", {"deadretain": WEEK, "retain": WEEK // 7}, lambda n: {"dead_retain": n}),
    taskiq: Driver("taskiq", "lasting", {}, None),
}
LOSSES = pytest.mark.parametrize("loss", [("FLUSHALL",), ("DEL",)], ids=str)
MAKING = pytest.mark.parametrize("driver", [one for one in DRIVERS if DRIVERS[one].setting], indirect=True, ids=lambda one: one.__name__)


@pytest.fixture(params=DRIVERS, ids=lambda start: start.__name__)
def driver(request, dq_url, dq_client):
    driver = DRIVERS[request.param]
    if importlib.util.find_spec(driver.module) is None or not _has_tasks(driver.module):
        pytest.skip(f"needs {driver.module}")
    queue = Queue(dq_client, driver.key)
    return driver, lambda **settings: request.param(dq_url, settings), lambda name: queue.info()[name]


def _has_tasks(module):
    """Whether Django has tasks, of its own or by django-tasks."""
    return module != "django" or any(importlib.util.find_spec(name) for name in ("django.tasks", "django_tasks"))


def lose(client, loss, key):
    client.execute_command(*loss, *([key] if loss == ("DEL",) else []))


@LOSSES
def test_the_limit_of_lost_workers_comes_with_each_message(driver, dq_client, loss):
    driver, start, _ = driver
    queue = Queue(dq_client, driver.key)
    # A changed setting takes effect at the next start.
    for limit in (2, 1):
        send = start(lost_workers=limit)
        send()
        lose(dq_client, loss, driver.key)
        send()
        for _ in range(limit):
            assert queue.len("dead") == 0
            queue.touch(1, *queue.fetch(consumer="lost"))
            wait_for(lambda: queue.len("running") == 0)
        assert [record.reason for record in queue.list("dead")] == ["timeouts"]
        lose(dq_client, loss, driver.key)


@MAKING
@LOSSES
def test_the_next_message_makes_the_queue_with_its_settings_again(driver, dq_client, loss):
    driver, start, shows = driver
    for settings, expected in [({}, driver.default), (driver.setting(4321), {"deadretain": 4321})]:
        send = start(**settings)
        for _ in range(2):
            send()
            for name, value in expected.items():
                assert shows(name) == value
            lose(dq_client, loss, driver.key)


@MAKING
def test_a_changed_setting_takes_effect_at_the_next_start(driver):
    driver, start, shows = driver
    for number in (5000, 6000):
        start(**driver.setting(number))()
        assert shows("deadretain") == number


@MAKING
def test_what_is_not_set_is_left_to_alter(driver, dq_client):
    driver, start, shows = driver
    start()()
    dq_client.execute_command("DQ.ALTER", driver.key, "DEADRETAIN", 777)
    start()()
    assert shows("deadretain") == 777


@MAKING
def test_making_the_queue_again_leaves_no_errors_in_the_statistics_of_the_server(driver, dq_client):
    _, start, _ = driver
    start()()
    dq_client.config_resetstat()
    send = start()
    for _ in range(3):
        send()
    stats = dq_client.info("commandstats")
    assert stats["cmdstat_dq.create"]["calls"] >= 3
    assert [name for name, figures in stats.items() if name.startswith("cmdstat_dq.") and figures["failed_calls"]] == []
