"""The clock of a server that runs is set back: new queues follow it at once, and the others as if they had just arrived."""

import pytest

from tests.durability.test_clock_lead import (  # noqa: F401
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    near,
    settled,
    wait_for_line,
    wrong,
)
from tests.harness.replies import Queue, as_maps, digest
from tests.harness.server import now_ms, wait_for
from tests.harness.topology import wait_replicated

# The steps back to the right time, of a server that was ahead.
AHEAD = [10 * SECOND, HOUR, 3 * DAY]


def put_right(server):
    """Sets the clock of the server back to the right time; it notices at its next turn."""
    client = server.client()
    server.wall.step(-server.wall.offset)
    wait_for(lambda: abs(client.time()[0] * 1000 - now_ms()) < 5 * SECOND, 10, "the time")


@pytest.mark.parametrize("ahead", AHEAD)
def test_a_queue_that_is_made_after_a_step_back_has_the_right_time(wrong, ahead):  # noqa: F811
    server = wrong(ahead)
    old = Queue(server.client(), "old")
    old.send("x")
    last = old.one("LEASE", DAY).receipt
    put_right(server)
    q = Queue(server.client(), "q")
    q.send("soon", "ID", "soon", "DELAY", 1000)
    q.send("now", "ID", "now")
    message = q.one("LEASE", MINUTE)
    assert message.receipt > last
    info = q.info()
    assert info["clock-lead"] == 0
    assert abs(info["now"] - now_ms()) < 5 * SECOND
    assert near(q.get("soon")["due-at"], now_ms())
    assert near(q.get("now")["lease-until"], now_ms() + MINUTE)
    q.do("SCHEDULE", "s", "EVERY", 200, "PAYLOAD", "fired")
    assert q.one("BLOCK", 20_000).payload in (b"fired", b"soon")
    wait_for(lambda: q.info()["sent"] >= 6, 20, "four fires")


@pytest.mark.parametrize("ahead", AHEAD[1:])
def test_a_large_step_back_is_cut_from_queues_that_are_there(wrong, make_server, ahead):  # noqa: F811
    server = wrong(ahead, appendonly="yes")
    replica = make_server()
    replica.client().execute_command("REPLICAOF", "127.0.0.1", server.port)
    q = Queue(server.client(), "q")
    q.send("delayed", "ID", "delayed", "DELAY", HOUR)
    q.send("running", "ID", "running")
    running = q.one("LEASE", HOUR)
    at = now_ms() + ahead + 10 * MINUTE
    q.send("later", "ID", "later", "AT", at)
    q.do("SCHEDULE", "s", "EVERY", MINUTE, "PAYLOAD", "x")
    q.do("SCHEDULE", "often", "EVERY", 300, "MISSED", "SKIP", "PAYLOAD", "y")
    put_right(server)
    wait_for(lambda: q.info()["clock-lead"] == 0, 10, "the cut, which no command asks for")
    assert near(q.get("delayed")["due-at"], now_ms() + HOUR)
    assert near(q.get("running")["lease-until"], now_ms() + HOUR)
    assert q.get("later")["due-at"] == at
    next_at = {schedule["name"]: schedule["next-at"] for schedule in as_maps(q.do("SCHEDULES"))}
    assert now_ms() - 20 * SECOND < next_at[b"s"] <= now_ms() + MINUTE
    # No fire of the new time is taken for one that was missed.
    sent = q.info()["sent"]
    wait_for(lambda: q.info()["sent"] >= sent + 4, 20, "four fires")
    assert q.touch(MINUTE, running.receipt) == 1
    assert "its lead was cut" in wait_for_line(server)
    q.do("PAUSE")
    q.do("SCHEDULES", "PAUSE", "often")
    wait_replicated(server, replica)
    same = digest(server.client(), "q")
    assert digest(replica.client(), "q") == same
    server.client().execute_command("DEBUG", "LOADAOF")
    assert digest(server.client(), "q") == same


def test_a_small_step_back_slows_only_the_queues_that_are_there(wrong):  # noqa: F811
    server = wrong(30 * SECOND)
    old, new = Queue(server.client(), "old"), Queue(server.client(), "new")
    old.send("x", "DELAY", 200)
    put_right(server)
    old.send("y")
    new.send("y")
    assert 20 * SECOND < old.info()["clock-lead"] <= 30 * SECOND
    assert new.info()["clock-lead"] == 0
    assert old.one("BLOCK", 10_000).payload == b"y"
    assert old.one("BLOCK", 10_000).payload == b"x"


def test_a_thousand_queues_go_on_after_a_step_back(wrong):  # noqa: F811
    server = wrong(HOUR)
    w = server.wire()
    keys = [f"q{n}" for n in range(1000)]
    # A message that is due before the clock is put right keeps its lead. A slow machine takes over a second until then.
    w.send_many([("DQ.SEND", key, "x", "DELAY", 5000) for key in keys])
    assert all(w.recv() for _ in keys)
    put_right(server)
    wait_for(lambda: server.info("dq")["dq_ready"] == "1000", 20, "all messages to be due")
    for key in keys[::97]:
        assert Queue(server.client(), key).info()["clock-lead"] == 0
    settled(Queue(server.client(), keys[-1]))


def test_a_step_back_while_timers_fire_does_not_stop_the_server(wrong):  # noqa: F811
    """While the server runs its timers it goes by a time that it has read once, which a step back has made the future."""
    server = wrong(0)
    client = server.client()
    # Nearly all the time the server has timers to run, so some of the steps come in the middle of that.
    with client.pipeline(transaction=False) as pipe:
        for n in range(500):
            pipe.execute_command("DQ.SCHEDULE", f"q{n}", "s", "EVERY", 1, "PAYLOAD", "x", "MISSED", "SKIP")
        pipe.execute()
    for _ in range(300):
        server.wall.step(HOUR)
        assert client.ping()
        server.wall.step(-HOUR)
        assert client.ping()
