"""Handlers that end in odd ways: the message fails with its error, and the worker continues. tests/faults has those
that end the process.
"""

import asyncio
import logging
import sys

import pytest
from dqueue import Queue, Worker, connect
from dqueue import asyncio as aq

from tests.harness.server import wait_for
from tests.harness.threads import running


class Odd(BaseException):
    """An error that is no Exception."""


class Unprintable(Exception):
    """An error that cannot be written down."""

    def __str__(self):
        raise Odd("no text")


ENDS = {
    "exit": (lambda: sys.exit(3), "SystemExit: 3"),
    "interrupt": (lambda: _raise(KeyboardInterrupt()), "KeyboardInterrupt: "),
    "generator": (lambda: _raise(GeneratorExit()), "GeneratorExit: "),
    "base": (lambda: _raise(Odd("why")), "Odd: why"),
    "unprintable": (lambda: _raise(Unprintable()), "Unprintable: its text raised Odd"),
    "surrogate": (lambda: _raise(ValueError("\ud800")), "ValueError: \\ud800"),
    "long": (lambda: _raise(ValueError("x" * 5000)), "ValueError: xxx"),
}


def _raise(error):
    raise error


@pytest.fixture
def q(dq_url, monkeypatch):
    # pytest-xdist cannot send half of a surrogate pair, which the log has, either.
    monkeypatch.setattr(logging.getLogger("dqueue"), "disabled", True)
    q = Queue(connect(dq_url), "jobs")
    q.create(retries=0, dead_retain=3_600_000)
    for name in (*ENDS, "next"):
        q.send(name, id=name)
    return q


def check(q):
    assert q.len("dead") == len(ENDS)
    for name, (_, error) in ENDS.items():
        assert q.get(name).error.startswith(error), name


def test_however_a_handler_ends_its_message_fails_and_the_next_one_runs(q):
    worker = Worker(q, block=200)

    @worker.handler()
    def handle(message):
        if message.text in ENDS:
            ENDS[message.text][0]()

    with running(worker):
        wait_for(lambda: q.len() == 0)
    check(q)


def test_however_an_async_handler_ends_its_message_fails_and_the_next_one_runs(q, dq_url):
    async def work():
        client = aq.connect(dq_url)
        worker = aq.Worker(aq.Queue(client, "jobs"), block=200)

        @worker.handler()
        async def handle(message):
            if message.text in ENDS:
                ENDS[message.text][0]()

        task = asyncio.create_task(worker.run(signals=False))
        while await asyncio.to_thread(q.len):
            assert not task.done()
            await asyncio.sleep(0.02)
        worker.stop()
        await task
        await client.aclose()

    asyncio.run(work())
    check(q)


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "asyncio"])
@pytest.mark.parametrize(("lost_workers", "ends"), [(3, "dead"), (4, "finished"), (0, "finished")])
def test_a_message_without_limit_that_kills_its_workers_is_given_up(dq_url, is_async, lost_workers, ends):
    q = Queue(connect(dq_url), "killers")
    q.create(dead_retain=3_600_000, retain=3_600_000)
    q.send("x", id="killer", retries=-1)
    for _ in range(3):
        # A worker that is lost.
        assert len(q.fetch(lease=1, block=5000)) == 1
        wait_for(lambda: q.len("running") == 0)
    if is_async:
        asyncio.run(_work_async(dq_url, q, lost_workers))
    else:
        worker = Worker(q, block=200, lost_workers=lost_workers)
        worker.handler()(lambda message: None)
        with running(worker):
            wait_for(lambda: q.len() == 0)
    record = q.get("killer")
    assert (record.state, record.error) == (ends, "given up: 3 workers were lost with it" if ends == "dead" else record.error)


async def _work_async(url, q, lost_workers):
    client = aq.connect(url)
    worker = aq.Worker(aq.Queue(client, "killers"), block=200, lost_workers=lost_workers)

    @worker.handler()
    async def handle(message):
        pass

    task = asyncio.create_task(worker.run(signals=False))
    while await asyncio.to_thread(q.len):
        await asyncio.sleep(0.02)
    worker.stop()
    await task
    await client.aclose()
