"""A short run under each kind of fault; `make torture` runs all of them for ten minutes."""

import logging
import random
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.checker.check import check
from tests.checker.history import Delivery, History, Send, clock
from tests.harness.aof import increments
from tests.harness.replies import Queue
from tests.harness.server import now_ms
from tests.torture import family_actors
from tests.torture.faults import FAULTS
from tests.torture.preload import Power, WallClock
from tests.torture.run import run
from tests.torture.target import Rigged
from tests.torture.workload import ORDERS

# One fault of each kind; each takes its seconds and about three more for draining.
SHORT = {
    "kill9-always": 3, "power-always": 3, "torn-tail": 3, "reload": 2,
    "lost-replies": 2, "cut-replies": 3, "failover": 3, "slot-migration": 3, "clock-steps": 3, "clocks-apart": 5, "sigstop": 3,
    "jobs-kill9": 3, "jobs-slot-migration": 3, "family-resharded": 3, "family-doubled": 4, "kill9-many-queues": 2, "failed-save": 2,
}  # fmt: skip


def few(workloads) -> tuple:
    """With fewer processes."""
    return tuple(replace(workload, producers=min(2, workload.producers), consumers=workload.consumers * 2 // 3) for workload in workloads)


@pytest.mark.slow
@pytest.mark.parametrize("fault", SHORT)
def test_the_promises_hold_under_faults(fault):
    target = FAULTS[fault](7)
    target.workloads = few(target.workloads)
    row = run(fault, target, SHORT[fault], 7)
    assert row.violations == []
    assert row.operations > 100
    assert row.injected > 0


# ---- the tools themselves: a fault that is not done would prove nothing ------------------------------------------


def test_a_power_failure_loses_only_what_was_not_synced(tmp_path):
    power = Power(tmp_path / "table")
    server = Rigged(env=power.env, appendonly="yes", appendfsync="no").start()
    try:
        q = Queue(server.client(), "q")
        server.client().config_set("appendfsync", "always")
        q.send("synced", "ID", "synced")
        server.client().config_set("appendfsync", "no")
        safe = increments(server)[0].stat().st_size
        for n in range(50):
            q.send("not synced", "ID", n)
        server.kill9()
        gone = power.fail(server.dir, random.Random(4))
        assert gone > 0
        assert increments(server)[0].stat().st_size >= safe
        server.start()
        q = Queue(server.client(), "q")
        assert q.get("synced") is not None
        assert q.len() < 51
    finally:
        server.close()


def test_the_wall_clock_of_a_server_can_be_stepped(tmp_path):
    wall = WallClock(tmp_path / "offset")
    server = Rigged(env=wall.env).start()
    try:
        client = server.client()
        for ms in (3_600_000, -7_200_000):
            wall.step(ms)
            # Valkey 9 reads the wall clock once in a millisecond.
            time.sleep(0.002)
            seconds, us = client.time()
            assert abs(seconds * 1000 + us // 1000 - now_ms() - wall.offset) < 5_000
    finally:
        server.close()


def test_a_log_replayed_on_another_server_gives_the_same_state():
    target = FAULTS["kill9-always"](3)
    target.open()
    try:
        q = Queue(target.server.client(), target.key)
        q.do("MSEND", 20, *range(20))
        q.fetch("COUNT", 5)
        frozen = target.freeze(target.server)
        assert target.replayed(target.server) == frozen
        assert set(frozen) != {ord("0")}
    finally:
        target.close()


def test_the_checker_finds_the_messages_lost_without_a_log():
    """A run in which messages are lost for certain must fail."""

    class Forgetful(FAULTS["kill9-always"]):
        workloads = (replace(ORDERS, producers=1, consumers=2),)
        conf = {"appendonly": "no"}

        def inject(self):
            self.server.restart(crash=True)

        def finish(self):
            """This fault has no log to compare with."""

    row = run("forgetful", Forgetful(5), 2, 5)
    assert any(violation.startswith("nothing_lost") for violation in row.violations)


@pytest.mark.slow
def test_the_checker_finds_an_event_that_somebody_has_removed():
    """The next event may tell of the same change, too, for example the `ready` before a delivery. So there are more."""

    class Removed(FAULTS["jobs-kill9"]):
        def inject(self):
            """Removes one of the newest events from the stream."""
            client, key = self.server.client(), self.keys[-1]
            for id, _ in client.xrevrange(key, count=1):
                client.xdel(key, id)

    def found(seed):
        target = Removed(seed)
        target.workloads = few(target.workloads)
        return run("removed", target, 2, seed).violations

    rules = ("events_tell_the_state", "what_was_answered_is_told")
    assert any(violation.startswith(rules) for seed in range(6, 10) for violation in found(seed))


@pytest.mark.slow
def test_the_checker_finds_the_attempts_that_lost_replies_cost_without_a_token():
    """The fault of lost replies costs nothing with a token. A run on a busy machine may lose too few replies, so
    there are more.
    """

    class Tokenless(FAULTS["lost-replies"]):
        workloads = (replace(ORDERS, producers=1, consumers=2),)
        # A repeated fetch takes less time than a lease, and a lease less than the patience of the consumers.
        lease = 1_500
        ways = FAULTS["cut-replies"].ways | {"tokens": False}

    rows = (run("tokenless", Tokenless(seed), 3, seed) for seed in range(5, 10))
    assert any(violation.startswith("attempts_exact") for row in rows for violation in row.violations)


def test_what_a_family_gives_back_too_late_counts_as_lost_since_its_call(tmp_path, monkeypatch):
    """A consumer without processor time learns that a lease was over after its message has gone to another one."""
    connections, log = family_actors.NodeConnections, logging.getLogger("dqueue")
    monkeypatch.setattr(connections, "_call", connections._call)
    for name in ("handlers", "propagate"):
        monkeypatch.setattr(log, name, getattr(log, name))
    monkeypatch.setattr(family_actors, "family_of", lambda *_: None)
    path = tmp_path / "c0.jsonl"
    family_actors.Consumer([1], "q", path, "c0", 1, 300, 0)
    before = clock()
    node = SimpleNamespace(execute_command=lambda *_: [])
    fetch = SimpleNamespace(words=(), read=list)
    connections._call(SimpleNamespace(_fetch=lambda _: fetch), node, 300)
    time.sleep(0.02)
    again = clock()
    time.sleep(0.02)
    log.warning("1 of 1 messages came too late to be given back")

    sent = Send(id="a", group="", score=0, begin=before, end=before)
    second = Delivery(
        id="a", group="", receipt=1, attempt=2, begin=again - 1, end=again, lease=300, batch="b", consumer="c1"
    )  # fmt: skip
    history = History.read([path], sends=[sent], deliveries=[second])
    assert not [text for text in check(history) if text.startswith("attempts_exact")]
    history.lost = [(again + 1, again + 1)]
    assert [text for text in check(history) if text.startswith("attempts_exact")] == ["attempts_exact: a: attempt 2, expected [1]"]
