"""The pytest helper: real handlers, virtual time."""

from datetime import datetime, timedelta, timezone

import pytest
from dqueue import Follow, Handlers, Next, Retry, Snooze

HOUR = 3_600_000


def collecting(fail_first=0):
    handlers, seen = Handlers(), []

    @handlers.handler()
    def handle(message):
        seen.append(message.attempt)
        if message.attempt <= fail_first:
            raise Retry("not yet")

    return handlers, seen


def test_a_delayed_message_is_handled_after_advance(manual_queue):
    handlers, _ = collecting()
    mails = manual_queue()
    mails.send("remind ann", delay=HOUR)
    assert mails.work(handlers) == []
    assert mails.advance(HOUR - 1)["due"] == 0
    assert mails.work(handlers) == []
    assert mails.advance(1)["due"] == 1
    assert [message.text for message in mails.work(handlers)] == ["remind ann"]


def test_backoffs_take_no_real_time(manual_queue):
    handlers, seen = collecting(fail_first=5)
    q = manual_queue(retries=5, backoff=("EXP", timedelta(hours=1)), retain=timedelta(days=365))
    id = q.send("x")
    handled = q.run(handlers, timedelta(days=30))
    assert seen == [1, 2, 3, 4, 5, 6]
    assert len(handled) == 6
    assert q.get(id).started_at == (1 + 2 + 4 + 8 + 16) * HOUR
    assert q.now == 30 * 24 * HOUR


def test_schedules_pauses_and_rates_work_in_manual_time(manual_queue):
    handlers, _ = collecting()
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    q = manual_queue(start=start)
    q.schedule("nightly", "report", cron="0 3 * * *", type="report")
    assert q.now == int(start.timestamp() * 1000)
    assert len(q.run(handlers, timedelta(days=31))) == 31
    q.unschedule("nightly")
    q.alter(rate=(2, HOUR))
    q.send_many(["x"] * 6)
    q.pause(for_=HOUR)
    assert len(q.run(handlers, 3 * HOUR - 1)) == 4
    assert len(q.run(handlers, 1)) == 2


def test_snoozes_and_follow_ups_are_those_of_a_worker(manual_queue):
    q = manual_queue(retries=0)
    handlers, seen = Handlers(), []

    @handlers.handler("busy")
    def busy(message):
        seen.append(q.now)
        if q.now < 2 * HOUR:
            raise Snooze("429", pause=("QUEUE", HOUR))
        return Follow(Next("told", type="tell"))

    handlers.handler("tell")(lambda message: seen.append(message.text))
    q.send("x", type="busy")
    assert len(q.run(handlers, 2 * HOUR)) == 4
    assert seen == [0, HOUR, 2 * HOUR, "told"]


def test_a_message_after_a_batch_knows_how_the_batch_ended(manual_queue):
    q = manual_queue()
    handlers, seen = Handlers(), []
    handlers.handler()(lambda message: seen.append((message.batch, message.after and message.after["finished"])))
    q.send_many(["1", "2"], batch="b")
    q.send("all", after="b")
    q.work(handlers)
    assert seen == [("b", None), ("b", None), (None, 2)]


def test_handlers_can_be_coroutines(manual_queue):
    handlers = Handlers()

    @handlers.handler("a")
    async def a(message):
        return "from a coroutine"

    q = manual_queue(retain=HOUR)
    id = q.send("x", type="a")
    q.work(handlers)
    assert q.get(id).result == "from a coroutine"


def test_endless_work_is_an_error(manual_queue):
    handlers, _ = collecting(fail_first=10**9)
    q = manual_queue(retries=-1)
    q.send("x")
    with pytest.raises(AssertionError, match="after 50"):
        q.work(handlers, limit=50)
