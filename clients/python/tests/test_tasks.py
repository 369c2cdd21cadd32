"""Tasks: functions whose calls are sent, their options, results, schedules and middleware."""

import pickle
from contextlib import contextmanager
from datetime import timedelta

import pytest
from dqueue import (
    Family,
    Follow,
    Middleware,
    Next,
    Queue,
    Reject,
    Retry,
    TaskFailed,
    Tasks,
    Worker,
    connect,
    current_message,
)
from dqueue.testing import ManualQueue

from tests.harness.threads import running

HOUR = 3_600_000


@pytest.fixture
def q(dq_client):
    return ManualQueue(dq_client, "jobs", retain=HOUR)


@pytest.fixture
def tasks(q):
    return Tasks(q)


def test_a_call_is_sent_handled_and_its_result_read(q, tasks):
    @tasks.task
    def add(a, b, *, c=0):
        return {"sum": a + b + c}

    job = add.send(1, 2, c=3)
    assert job.added and q.get(job.id).type == "add"
    assert len(q.work(tasks)) == 1
    assert job.result() == {"sum": 6}
    assert add.job(job.id).result() == {"sum": 6}
    assert add(1, 1) == {"sum": 2}


def test_none_is_a_result(q, tasks):
    @tasks.task
    def nothing():
        return None

    job = nothing.send()
    q.work(tasks)
    assert job.result() is None


def test_a_call_that_the_function_does_not_take_is_refused_where_it_is_sent(q, tasks):
    @tasks.task
    def greet(name):
        return name

    with pytest.raises(TypeError, match="missing a required argument: 'name'"):
        greet.send()
    assert q.len() == 0


def test_a_payload_that_is_no_call_is_dead_at_once(q, tasks):
    @tasks.task
    def greet(name):
        return name

    for payload in ("[]", "no json", '{"args": [], "kwargs": {}}'):
        q.send(payload, type="greet")
    q.work(tasks)
    assert [record.reason for record in q.list("dead")] == ["rejected"] * 3
    assert all(record.error.startswith("greet cannot be called with the payload") for record in q.list("dead"))


def test_options_of_all_tasks_of_one_and_of_a_send(q):
    tasks = Tasks(q, retries=7, priority=2)

    @tasks.task(name="mail", priority=5)
    def send_mail():
        return None

    first, second, third = (
        send_mail.send(),
        send_mail.send_with_options(priority=-1, delay=timedelta(seconds=1), group="ann", headers={"a": "1"}),
        send_mail.with_options(delay=500).send(),
    )
    record = q.get(first.id)
    assert (record.type, record.retries_left, record.priority) == ("mail", 7, 5)
    record = q.get(second.id)
    assert (record.priority, record.due_at, record.group, record.headers) == (-1, 1000, "ann", {"a": b"1"})
    assert q.get(third.id).due_at == 500


def test_an_id_that_is_taken_adds_nothing(tasks):
    @tasks.task
    def once():
        return "done"

    assert once.send_with_options(id="a").added
    again = once.send_with_options(id="a")
    assert not again.added and again.id == "a"
    assert once.send_with_options(id="a", replace=True).added


def test_two_tasks_of_one_name_are_refused(tasks):
    @tasks.task
    def one():
        return None

    with pytest.raises(ValueError, match="already"):
        tasks.task(name="one")(lambda: None)


def test_a_coroutine_function_is_refused(tasks):
    with pytest.raises(TypeError, match="dqueue.asyncio.Tasks"):

        @tasks.task
        async def one():
            return None


def test_what_handlers_may_raise_and_return_tasks_may_too(q, tasks):
    seen = []

    @tasks.task(retries=3)
    def again():
        seen.append(current_message().attempt)
        if len(seen) < 2:
            raise Retry("busy", delay=1000)

    @tasks.task
    def never():
        raise Reject("makes no sense")

    @tasks.task
    def steps():
        return Follow(Next("plain", type="other"), result='"first"')

    jobs = again.send(), never.send(), steps.send()
    tasks.handler()(lambda message: seen.append(message.text))
    q.run(tasks, 60_000)
    assert seen == [1, "plain", 2]
    assert jobs[0].record().status == "finished"
    with pytest.raises(TaskFailed, match="dead: makes no sense") as failed:
        jobs[1].result()
    assert (failed.value.state, failed.value.error) == ("dead", "makes no sense")
    assert jobs[2].result() == "first"
    assert current_message() is None


def test_a_result_that_does_not_come_in_time_and_one_that_is_not_kept(dq_url):
    q = Queue(connect(dq_url), "jobs")
    tasks = Tasks(q)

    @tasks.task
    def slow():
        return 1

    job = slow.send_with_options(delay=HOUR)
    with pytest.raises(TimeoutError, match="has not ended, it is delayed"):
        job.result(timeout=5)
    assert job.cancel() and not job.cancel()
    with pytest.raises(LookupError, match="option retain"):
        job.result(timeout=5)


def test_waiting_for_a_result_may_take_longer_than_the_socket_timeout(dq_url):
    q = Queue(connect(dq_url, socket_timeout=0.2), "jobs")
    tasks = Tasks(q, retain=HOUR)

    @tasks.task
    def later():
        return current_message().type

    job = later.with_options(delay=600).send()
    with running(tasks.worker(block=50)):
        assert job.result(timeout=20_000) == "later"


def test_another_serializer_writes_arguments_and_results(q):
    tasks = Tasks(q, serializer=pickle)

    @tasks.task
    def double(values):
        return {value * 2 for value in values}

    job = double.send({1, 2})
    q.work(tasks)
    assert job.result() == {2, 4}


def test_schedules_are_declared_when_a_worker_begins(q):
    tasks = Tasks(q)

    @tasks.task(every=timedelta(minutes=1))
    def tick(name="all"):
        return name

    @tasks.task(cron="0 3 * * *", tz="Europe/Berlin")
    def nightly():
        return None

    with running(tasks.worker(block=50)):
        pass
    assert {one.name: one.next_at for one in q.schedules()} == {"tick": 60_000, "nightly": 2 * HOUR}
    tick.schedule("tick:ann", args=["ann"], every=90_000, priority=3)
    q.run(tasks, 180_000)
    # One message at 0 of each schedule, then 3 and 2. The worker above may have handled the first one.
    assert q.len("finished") == 7
    assert {record.result for record in q.list("finished")} == {'"all"', '"ann"'}


class Traced(Middleware):
    def __init__(self, name, seen):
        self.name = name
        self.seen = seen

    @contextmanager
    def around(self, what):
        self.seen.append(f"{self.name} {what}")
        try:
            yield
        except ValueError as error:
            self.seen.append(f"{self.name} {error}")
            raise
        self.seen.append(f"{self.name} {what} over")

    def send(self, sending):
        sending.add_headers({self.name: sending.type})
        return self.around("send")

    def handle(self, message):
        return self.around("handle")

    def work(self):
        return self.around("work")


def test_middleware_is_around_sends_handlers_and_the_worker(q):
    seen = []
    tasks = Tasks(q, middleware=[Traced("a", seen), Traced("b", seen)], retries=0)

    @tasks.task
    def fail():
        seen.append(sorted(current_message().headers))
        raise ValueError("no")

    job = fail.send()
    assert seen == ["a send", "b send", "b send over", "a send over"]
    seen.clear()
    worker = Worker(q, block=50, middleware=[Traced("w", seen)])
    worker.include(tasks)
    with running(worker):
        with pytest.raises(TaskFailed):
            job.result(5000)
    assert seen[:3] == ["w work", "a work", "b work"]
    assert seen[3:9] == ["w handle", "a handle", "b handle", ["a", "b"], "b no", "a no"]
    assert seen[9:] == ["w no", "b work over", "a work over", "w work over"]


def test_own_handlers_come_before_included_ones_and_those_without_a_type_last(q, tasks):
    worker = Worker(q)
    worker.include(tasks)
    seen = []
    worker.handler()(lambda message: seen.append("all"))
    tasks.handler("a")(lambda message: seen.append("included"))
    q.send("x", type="a")
    q.send("x", type="b")
    q.work(worker)
    worker.handler("a")(lambda message: seen.append("own"))
    q.send("x", type="a")
    q.work(worker)
    assert seen == ["included", "all", "own"]


def test_a_family_has_tasks_too(dq_url):
    family = Family("jobs", 4, connect(dq_url))
    tasks = Tasks(family, retain=HOUR)

    @tasks.task
    def pay(order):
        return f"{order} of {current_message().group}"

    jobs = [pay.with_options(group=f"g{number}").send(number) for number in range(8)]
    jobs.append(pay.send(8))
    with running(tasks.worker(concurrency=2, block=100)):
        assert [job.result() for job in jobs] == [f"{number} of g{number}" for number in range(8)] + ["8 of None"]
    assert not jobs[0].cancel()
    assert pay.job(jobs[3].id, group="g3").result() == "3 of g3"
