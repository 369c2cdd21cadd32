"""The broker and the schedules for taskiq against a real server."""

import asyncio
import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import redis
from dqueue import Queue
from dqueue.testing import ManualQueue

taskiq = pytest.importorskip("taskiq", reason="needs taskiq: pip install 'dq-queue[taskiq]'")

from dqueue.taskiq import DqBroker, DqScheduleSource, effects  # noqa: E402
from taskiq.acks import AcknowledgeType  # noqa: E402
from taskiq.exceptions import ScheduledTaskCancelledError  # noqa: E402
from taskiq.receiver import Receiver  # noqa: E402

from clients.python.tests.blocks import effects_of  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/drivers/taskiq_shop.py"
HOUR = 3_600_000


@pytest.fixture
def q(dq_client):
    """The queue `taskiq` as any client sees it. Its clock moves only where a test says so."""
    return ManualQueue(dq_client, "taskiq")


@pytest.fixture
def run(dq_url):
    """Runs a coroutine function with a broker, in a loop of its own."""

    def run(test, **options):
        async def main():
            broker = DqBroker(dq_url.replace("redis://", "dq://"), **{"block": 50, **options})
            await broker.startup()
            try:
                await asyncio.wait_for(test(broker), 30)
            finally:
                await broker.shutdown()

        asyncio.run(main())

    return run


def task_of(broker, done=None):
    @broker.task("shop:add")
    async def add(n):
        if done is not None:
            done.append(n)
        return n

    return add


async def work(broker, until, **options):
    """Runs a worker until the condition holds."""
    finish = asyncio.Event()
    receiver = asyncio.create_task(Receiver(broker, max_async_tasks=4, run_startup=False, **options).listen(finish))
    while not until():
        await asyncio.sleep(0.01)
    finish.set()
    await receiver


NO_TASKS = {
    "bytes": b"hello \xff",
    "a number": b"5",
    "an empty map": b"{}",
    "deep JSON": b"[" * 100_000,
    "a function": {"task_name": "os.system", "args": ["exit 1"]},
    "a number as name": {"task_name": 5},
    "a number as arguments": {"args": 5},
    "a list as keywords": {"kwargs": [1]},
    "a number as labels": {"labels": 5},
    "a text as types": {"labels": {"a": 1}, "labels_types": {"a": "x"}},
}


def test_what_is_no_task_is_dead_and_ends_no_worker(run, q):
    done = []
    whole = {"task_id": "i", "task_name": "shop:add", "labels": {}, "labels_types": {}, "args": [1], "kwargs": {}}

    async def test(broker):
        task_of(broker, done)
        for id, bad in NO_TASKS.items():
            q.send(bad if isinstance(bad, bytes) else json.dumps(whole | bad), id=id)
            q.send(json.dumps(whole | {"args": [id]}))
        await work(broker, lambda: q.len() == 0)

    run(test)
    assert done == [*NO_TASKS]
    assert {record.id: (record.reason, bool(record.error)) for record in q.list("dead")} == dict.fromkeys(NO_TASKS, ("rejected", True))


def test_tasks_run_and_are_acked(run, dq_client):
    done = []

    async def test(broker):
        add = task_of(broker, done)
        for n in range(20):
            await add.kiq(n)
        await work(broker, lambda: len(done) == 20)

    run(test)
    assert sorted(done) == [*range(20)]
    assert dq_client.execute_command("DQ.LEN", "taskiq") == 0


@pytest.mark.parametrize("ack", ["when_executed", "when_saved", "when_received"])
@pytest.mark.parametrize("is_async", [False, True])
def test_the_effects_of_a_task_go_with_its_ack_and_only_with_that(run, dq_client, ack, is_async):
    queue, done, ends = Queue(dq_client, "taskiq"), [], ["returns", "fails", "is refused", "is lost"]

    def pay(how):
        try:
            effects().incrby("paid", 5)
        except RuntimeError as error:
            done.append(str(error))
            return
        done.append(how)
        if how == "fails":
            raise LookupError(how)
        if how == "is refused":
            effects().if_missing("paid")
        if how == "is lost":
            [running] = queue.list("running")
            queue.cancel(running.id)

    async def pay_later(how):
        pay(how)

    async def test(broker):
        task = broker.task("shop:pay")(pay_later if is_async else pay)
        for number, how in enumerate(ends, start=1):
            await task.kiq(how)
            await work(broker, lambda number=number: len(done) == number, ack_type=AcknowledgeType(ack))

    run(test)
    assert queue.len() == 0
    if ack == "when_received":
        assert done == ["the task was acked before it ran: effects need the ack type when_executed or when_saved"] * 4
        return
    assert (done, dq_client.get("paid")) == (ends, b"5")
    [dead] = queue.list("dead")
    assert dead.error.startswith("its effects were refused: CONDITION 1")


def test_the_effects_of_the_page_are_done(dq_url, dq_client):
    async def main():
        names = {"__name__": __name__}
        exec(effects_of("taskiq").replace("redis://localhost:6379/0", dq_url), names)
        await names["broker"].startup()
        await names["pay"].kiq("ann", 500)
        await asyncio.wait_for(work(names["broker"], lambda: dq_client.xlen("outbox") == 1), 30)
        await names["broker"].shutdown()

    asyncio.run(main())
    assert dq_client.hget("user:ann", "paid") == b"500"


def test_labels_are_options_of_the_message(run, q):
    async def test(broker):
        add = task_of(broker)
        for labels in ({"delay": 3600}, {"delay": "-1", "priority": 5}, {"priority": 999, "group": "ann"}):
            await add.kicker().with_labels(**labels).kiq(1)

    run(test)
    [delayed] = q.list("delayed")
    assert (delayed.due_at, delayed.type, delayed.retries_left) == (HOUR, "shop:add", -1)
    assert [(record.priority, record.group) for record in q.peek(9)] == [(-128, "ann"), (-5, None)]


def test_a_retry_of_a_task_that_is_not_acked_yet_is_sent(run, q):
    async def test(broker):
        add = task_of(broker)
        for _ in range(2):
            await add.kicker().with_task_id("same").kiq(1)

    run(test)
    assert q.len() == 2


def test_a_retry_does_not_wait_for_the_first_delay_again(run, q):
    tried = []

    async def test(broker):
        broker.add_middlewares(taskiq.SimpleRetryMiddleware(default_retry_label=True))

        @broker.task("shop:fail", max_retries=2)
        async def fail():
            tried.append(1)
            raise LookupError

        await fail.kicker().with_labels(delay=3600).kiq()
        q.advance(HOUR)
        # The clock of the queue does not move, so a retry that waited again would not come.
        await work(broker, lambda: len(tried) == 2)

    run(test)


def test_a_task_whose_lease_may_not_be_renewed_runs_all_the_same(run, q, caplog):
    done = []

    async def test(broker):
        add = task_of(broker, done)
        # The queue's clock does not move, so the lease does not end, but the worker takes it for almost over.
        broker.lease = 1
        await add.kiq(7)
        q.client.execute_command("ACL", "SETUSER", "default", "-dq.touch")
        try:
            await work(broker, lambda: done == [7])
        finally:
            q.client.execute_command("ACL", "SETUSER", "default", "+@all")

    run(test)
    assert q.info()["acked"] == 1
    assert "could not be renewed" in caplog.text


def test_queues_can_be_chosen(run):
    done = []

    async def test(broker):
        add = task_of(broker, done)
        await add.kicker().with_labels(queue_name="other").kiq(2)
        await work(broker, lambda: done == [2])

    run(test, additional_queues=["other"])


def test_leases_are_renewed_and_end_with_their_worker(run, q):
    async def test(broker):
        await task_of(broker).kiq(1)
        listening = broker.listen()
        await anext(listening)
        q.advance(200)
        before = next(q.list("running")).lease_until
        while next(q.list("running")).lease_until == before:
            await asyncio.sleep(0.01)

    run(test, lease=300)
    q.advance(300)
    assert q.len("ready") == 1


def test_a_connection_that_is_closed_under_a_renewal_ends_no_lease(run, q):
    errors = [ValueError("I/O operation on closed file."), redis.ConnectionError("reset")]

    async def test(broker):
        execute = broker.client.execute_command

        async def closed(*words):
            if words[0] == "DQ.TOUCH" and errors:
                raise errors.pop(0)
            return await execute(*words)

        broker.client.execute_command = closed
        await task_of(broker).kiq(1)
        await anext(broker.listen())
        q.advance(200)
        before = next(q.list("running")).lease_until
        while next(q.list("running")).lease_until == before:
            await asyncio.sleep(0.01)

    run(test, lease=300)
    assert not errors


def lose_a_fetch(broker):
    """Loses the reply that has a message."""
    execute = broker.client.execute_command

    async def losing(*words):
        reply = await execute(*words)
        if words[0] == "DQ.MFETCH" and reply:
            broker.client.execute_command = execute
            raise redis.ConnectionError("reset")
        return reply

    broker.client.execute_command = losing


def test_the_message_of_a_lost_reply_is_given_again(run, q):
    done = []

    async def test(broker):
        await task_of(broker, done).kiq(1)
        lose_a_fetch(broker)
        # The clock of the queue does not move, so no lease ends.
        await work(broker, lambda: done)

    run(test)
    assert (done, q.info()["delivered"], q.len()) == ([1], 1, 0)


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_listener_that_is_closed_gives_back_what_it_was_getting(run, q, is_lost):
    async def test(broker):
        if is_lost:
            lose_a_fetch(broker)
        listening = broker.listen()
        waiting = asyncio.create_task(anext(listening))
        while not q.info()["blocked-clients"]:
            await asyncio.sleep(0.01)
        waiting.cancel()
        await task_of(broker).kiq(1)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert [(record.state, record.attempt) for record in q.peek()] == [("ready", 0)]

    run(test, block=5000)


def test_two_who_listen_have_two_names(run, q):
    async def test(broker):
        # A listener that starts later takes the name of one that has ended, so the second round sees the same two.
        for _ in range(2):
            listening = [broker.listen() for _ in range(2)]
            waiting = [asyncio.create_task(anext(one)) for one in listening]
            for n in range(2):
                await task_of(broker).kiq(n)
            await asyncio.wait(waiting)
            assert {one.name for one in q.consumers()} == {broker.consumer_name, f"{broker.consumer_name}:2"}
            for one in listening:
                await one.aclose()

    run(test)


def test_the_server_fires_schedules(run, q):
    async def test(broker):
        add, source = task_of(broker), DqScheduleSource(broker)
        daily = await add.schedule_by_cron(source, "0 3 * * *", 1)
        await add.kicker().with_schedule_id("often").schedule_by_interval(source, timedelta(hours=8), 2)
        once = await add.schedule_by_time(source, datetime.now(timezone.utc) + timedelta(days=400), 3)
        assert len(await source.get_schedules()) == 3
        assert q.get(once.schedule_id).state == "delayed"
        with pytest.raises(ScheduledTaskCancelledError):
            source.pre_send(daily.task)
        q.advance(24 * HOUR)
        assert q.len("ready") == 4
        await once.unschedule()
        await daily.unschedule()
        assert [one.schedule_id for one in await source.get_schedules()] == ["often"]
        assert [schedule.name for schedule in q.schedules()] == ["often"]
        assert q.len("delayed") == 0
        listening = broker.listen()
        messages = [broker.formatter.loads((await anext(listening)).data) for _ in range(4)]
        assert sorted(message.args[0] for message in messages) == [1, 2, 2, 2]
        assert len({message.task_id for message in messages}) == 4

    run(test)


@pytest.mark.parametrize(
    "offset, zone", [(None, "UTC"), ("Europe/Berlin", "Europe/Berlin"), (timedelta(hours=5), "Etc/GMT-5")]
)
def test_cron_rules_have_a_time_zone(run, q, offset, zone):
    async def test(broker):
        source = DqScheduleSource(broker, missed="SKIP", overlap="SKIP")
        await source.add_schedule(
            taskiq.ScheduledTask(
                task_name="shop:add", labels={"delay": 5}, args=[1], kwargs={}, cron="0 3 * * *", cron_offset=offset
            )
        )

    run(test)
    [schedule] = q.schedules()
    assert zone == "UTC" or zone in schedule.definition


@pytest.mark.slow
def test_the_example_survives_the_kill_of_its_worker(dq_url, tmp_path):
    env = {**os.environ, "DQ_URL": dq_url, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, EXAMPLE], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_task_whose_ack_did_not_get_through_comes_back(run, q):
    async def test(broker):
        await task_of(broker).kiq(1)
        listening = broker.listen()
        message = await anext(listening)

        async def lost(*command):
            raise ConnectionError("the server is away")

        persist, broker._persist = broker._persist, lost
        with pytest.raises(ConnectionError):
            await message.ack()
        broker._persist = persist
        # Several heartbeats, none of which may renew the lease.
        q.advance(200)
        await asyncio.sleep(0.5)
        q.advance(101)
        assert q.len("ready") == 1
        await listening.aclose()

    run(test, lease=300)
