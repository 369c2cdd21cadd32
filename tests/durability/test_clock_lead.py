"""Queues from servers whose clocks are ahead or behind: their time, their receipts, and those of all others."""

import pytest

from tests.harness.replies import Queue, as_maps, digest
from tests.harness.server import now_ms, wait_for
from tests.harness.topology import wait_replicated
from tests.torture.preload import WallClock
from tests.torture.target import Rigged

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
# The greatest error of a lead that is cut: the time that the test takes.
SLACK = 20 * SECOND


class Wrong(Rigged):
    """A server whose clock is ahead (or behind, where `ahead` is negative)."""

    def __init__(self, folder, ahead, **conf):
        folder.mkdir(exist_ok=True)
        self.wall = WallClock(folder / "offset")
        super().__init__(env=self.wall.env, **conf)
        self.wall.step(ahead)


@pytest.fixture
def wrong(tmp_path):
    """Makes and starts servers whose clocks are wrong: wrong(ahead_ms, appendonly="yes")."""
    made = []

    def make(ahead=0, **conf):
        server = Wrong(tmp_path / f"clock-{len(made)}", ahead, **conf)
        made.append(server)
        return server.start()

    yield make
    for server in made:
        server.close()


def move(source, target, key):
    """The steps of MIGRATE."""
    dump = source.client().dump(key)
    assert target.client().restore(key, 0, dump) in (b"OK", True)
    settled(Queue(target.client(), key))


def settled(q):
    """Waits until a large lead was cut."""
    wait_for(lambda: q.info()["clock-lead"] <= MINUTE, 10, "the cut")


def near(at, expected):
    """Whether a time is the expected one, or earlier by no more than the test took."""
    return expected - SLACK <= at <= expected + SLACK


@pytest.mark.parametrize("ahead", [45 * SECOND, 10 * MINUTE, 3 * DAY])
def test_a_queue_from_a_server_that_is_ahead_moves_no_other_queue(wrong, make_server, ahead):
    source, target = wrong(ahead), make_server()
    own = Queue(target.client(), "own")
    own.send("in five minutes", "ID", "m", "DELAY", 5 * MINUTE)
    own.send("r", "ID", "r")
    receipt = own.one("LEASE", MINUTE).receipt
    guest = Queue(source.client(), "guest")
    guest.send("x")
    guest.one()
    move(source, target, "guest")
    Queue(target.client(), "guest").send("y")
    Queue(target.client(), "guest").one()
    other = Queue(target.client(), "other")
    other.send("x")
    assert other.one().receipt < (now_ms() + SECOND) * 1000
    for again in (lambda: target.client().execute_command("DEBUG", "RELOAD"), restarted(target)):
        again()
        own = Queue(target.client(), "own")
        assert own.fetch() == []
        assert own.info()["clock-lead"] == 0
        assert abs(own.info()["now"] - now_ms()) < SLACK
        assert own.touch(MINUTE, receipt) == 1
        assert own.state("m") == "delayed"


def restarted(server):
    def again():
        server.client().execute_command("SAVE")
        server.restart()

    return again


@pytest.mark.parametrize("ahead", [10 * MINUTE, 3 * DAY])
def test_a_large_lead_is_cut_and_spans_keep_what_is_left_of_them(wrong, make_server, ahead):
    source, target = wrong(ahead), make_server()
    q = Queue(source.client(), "q")
    q.do("CREATE", "BACKOFF", "FIXED", HOUR, "RETAIN", HOUR)
    q.send("delayed", "ID", "delayed", "DELAY", HOUR)
    q.send("short", "ID", "short", "TTL", HOUR)
    receipts = {m.id: m.receipt for m in q.fetch("LEASE", HOUR)}
    q.send("retry", "ID", "retry")
    q.nack(q.one().receipt)
    q.send("done", "ID", "done")
    q.ack(q.one().receipt)
    q.do("PAUSE", "FOR", HOUR)
    last = max(receipts.values())
    move(source, target, "q")
    now, q = now_ms(), Queue(target.client(), "q")
    info = q.info()
    assert info["clock-lead"] == 0
    assert near(info["now"], now)
    assert near(q.get("delayed")["due-at"], now + HOUR)
    assert near(q.get("retry")["due-at"], now + HOUR)
    assert near(q.get("short")["lease-until"], now + HOUR)
    assert near(q.get("done")["finished-at"], now)
    assert q.touch(HOUR, receipts[b"short"]) == 1
    assert q.do("RESUME") in (1, True, b"OK")
    # A new delay is as long as on any other queue, and receipts only grow.
    q.send("soon", "ID", "soon", "DELAY", 300)
    message = q.one("BLOCK", 10_000)
    assert message.id == b"soon"
    assert message.receipt > last
    assert "ahead of this server's: its lead was cut" in wait_for_line(target)


def wait_for_line(server, count=1):
    wait_for(lambda: server.log().count("ahead of this server") >= count, 10, "a line in the log")
    lines = [line for line in server.log().splitlines() if "ahead of this server" in line]
    assert len(lines) == count, lines
    return lines[-1]


def test_a_point_of_time_stays_where_it_is_and_is_never_early_by_the_new_clock(wrong, make_server):
    source, target = wrong(HOUR), make_server()
    q = Queue(source.client(), "q")
    q.do("CREATE", "RETAIN", HOUR)
    at = now_ms() + 90 * MINUTE
    q.send("later", "ID", "later", "AT", at)
    # The message is due by this server's clock, and not by the clocks of the others.
    passed = now_ms() + HOUR + 200
    q.send("passed", "ID", "passed", "AT", passed)
    q.send("grouped", "ID", "grouped", "AT", passed, "GROUP", "g")
    q.send("ready", "ID", "ready")
    q.send("expires", "ID", "expires", "EXPIREAT", now_ms() + HOUR + 10 * MINUTE, "DELAY", DAY)
    wait_for(lambda: q.state("grouped") == "ready", 10, "the due time")
    move(source, target, "q")
    q = Queue(target.client(), "q")
    assert q.get("later")["due-at"] == at
    assert q.get("passed")["due-at"] == passed
    assert [q.state(id) for id in ("later", "passed", "grouped", "ready")] == ["delayed", "delayed", "delayed", "ready"]
    assert q.ids("COUNT", 10) == [b"ready"]
    # By the new clock more than an hour is left, and not ten minutes.
    assert q.state("expires") == "delayed"


@pytest.mark.parametrize("rule", [["CRON", "* * * * *"], ["EVERY", MINUTE], ["EVERY", MINUTE, "START", 0]])
def test_a_schedule_goes_on_by_the_new_clock(wrong, make_server, rule):
    source, target = wrong(HOUR), make_server()
    q = Queue(source.client(), "q")
    q.do("SCHEDULE", "s", *rule, "PAYLOAD", "x")
    move(source, target, "q")
    [schedule] = as_maps(Queue(target.client(), "q").do("SCHEDULES"))
    next_at = schedule["next-at"]
    assert now_ms() - SLACK < next_at <= now_ms() + MINUTE


@pytest.mark.parametrize("conf", [{}, {"appendonly": "yes"}], ids=["rdb", "aof"])
def test_a_clock_that_is_put_right_while_the_server_is_down_is_right_after_it(wrong, conf):
    server = wrong(HOUR, **conf)
    q = Queue(server.client(), "q")
    q.send("x")
    q.ack(q.one().receipt)
    q.send("kept", "ID", "kept", "DELAY", 10 * MINUTE)
    server.client().execute_command("SAVE")
    server.stop()
    server.wall.step(-HOUR)
    server.start()
    q = Queue(server.client(), "q")
    settled(q)
    assert near(q.get("kept")["due-at"], now_ms() + 10 * MINUTE)
    at = now_ms() + 30 * MINUTE
    q.send("later", "ID", "later", "AT", at)
    assert q.fetch() == []
    assert q.get("later")["due-at"] == at
    q.do("SCHEDULE", "s", "CRON", "* * * * *", "PAYLOAD", "x")
    assert q.info()["clock-lead"] == 0


def test_a_small_lead_melts_away_at_half_speed(wrong, make_server):
    source, target = wrong(30 * SECOND), make_server()
    q = Queue(source.client(), "q")
    q.send("x", "DELAY", 31 * SECOND)
    q.send("y")
    receipt = q.one().receipt
    move(source, target, "q")
    q = Queue(target.client(), "q")
    first = q.info()
    assert 25 * SECOND < first["clock-lead"] <= 30 * SECOND
    assert "half speed" in wait_for_line(target)
    later = wait_for(lambda: (info := q.info())["clock-lead"] <= first["clock-lead"] - 500 and info, 20, "a smaller lead")
    assert later["now"] >= first["now"] + 400
    q.send("soon", "DELAY", 200)
    message = q.one("BLOCK", 10_000)
    assert message.payload == b"soon"
    assert message.receipt > receipt


@pytest.mark.parametrize("behind", [5 * SECOND, DAY])
def test_a_queue_from_a_server_that_is_behind_follows_the_new_clock(wrong, make_server, behind):
    source, target = wrong(-behind), make_server()
    q = Queue(source.client(), "q")
    q.send("x", "ID", "x", "DELAY", HOUR + behind)
    at = now_ms() + HOUR
    q.send("y", "ID", "y", "AT", at)
    q.send("z")
    receipt = q.one("LEASE", HOUR + behind).receipt
    move(source, target, "q")
    q = Queue(target.client(), "q")
    assert near(q.info()["now"], now_ms())
    assert q.info()["clock-lead"] == 0
    assert q.get("y")["due-at"] == at
    assert near(q.get("x")["due-at"], now_ms() + HOUR)
    q.send("w")
    assert q.one().receipt > receipt


@pytest.mark.parametrize("ahead", [30 * SECOND, HOUR])
def test_no_receipt_of_a_queue_that_was_ahead_is_given_out_again(wrong, make_server, ahead):
    source, target = wrong(ahead), make_server()
    q = Queue(source.client(), "q")
    for _ in range(3):
        q.send("x")
    q.one()
    move(source, target, "q")
    dump = target.client().dump("q")
    q = Queue(target.client(), "q")
    last = q.one().receipt
    target.client().restore("q", 0, dump, replace=True)
    settled(q)
    assert (again := q.one().receipt) > last
    target.client().delete("q")
    q.send("x")
    assert q.one("BLOCK", 1000).receipt > again


def test_a_cut_is_the_same_on_replicas_and_after_a_crash(wrong, make_server):
    source = wrong(HOUR)
    conf = {"appendonly": "yes"}
    target, replica = make_server(**conf), make_server()
    replica.client().execute_command("REPLICAOF", "127.0.0.1", target.port)
    wait_for(lambda: replica.info("replication")["master_link_status"] == "up", 20, "the first synchronisation")
    q = Queue(source.client(), "q")
    for n in range(50):
        options = [["AT", now_ms() + HOUR + 100], ["DELAY", 5 * MINUTE], ["GROUP", f"g{n % 4}"]][n % 3] if n < 40 else []
        q.send("x", *options)
    q.fetch("COUNT", 5, "LEASE", HOUR)
    wait_for(lambda: q.info()["delayed"] < 30, 10, "the due times")
    move(source, target, "q")
    q = Queue(target.client(), "q")
    assert len(q.fetch("COUNT", 3)) == 3
    wait_replicated(target, replica)
    same = digest(target.client(), "q")
    assert digest(replica.client(), "q") == same
    target.client().execute_command("DEBUG", "LOADAOF")
    assert digest(target.client(), "q") == same
    target.restart(crash=True)
    assert Queue(target.client(), "q").len("running") == 8


def test_the_lead_of_a_queue_is_cut_when_a_replica_is_promoted(wrong, make_server):
    primary, replica = wrong(HOUR), make_server()
    replica.client().execute_command("REPLICAOF", "127.0.0.1", primary.port)
    q = Queue(primary.client(), "q")
    q.send("x", "ID", "x", "DELAY", 10 * MINUTE)
    wait_for(lambda: Queue(replica.client(), "q").len() == 1, 20, "replication")
    q.send("y")
    last = q.one("LEASE", 10 * MINUTE).receipt
    # One queue was loaded as a whole, and the other one was made by the log.
    second = Queue(primary.client(), "second")
    second.send("x", "ID", "x", "DELAY", 10 * MINUTE)
    wait_replicated(primary, replica)
    replica.client().execute_command("REPLICAOF", "NO", "ONE")
    for key in ("q", "second"):
        promoted = Queue(replica.client(), key)
        settled(promoted)
        assert near(promoted.get("x")["due-at"], now_ms() + 10 * MINUTE)
    assert Queue(replica.client(), "q").touch(MINUTE, last) == 1
    Queue(replica.client(), "q").send("z")
    assert Queue(replica.client(), "q").one().receipt > last


def test_a_load_of_many_queues_that_are_ahead_gives_one_line(wrong):
    server = wrong(HOUR)
    for n in range(200):
        Queue(server.client(), f"q{n}").send("x")
    server.client().execute_command("SAVE")
    server.stop()
    server.wall.step(-HOUR)
    server.start()
    line = wait_for_line(server)
    assert "200 queues" in line


@pytest.mark.parametrize("ahead", [40 * SECOND, HOUR])
def test_a_clock_that_is_put_right_before_a_promotion_moves_nothing(wrong, make_server, ahead):
    primary, replica = make_server(), wrong(-ahead)
    replica.client().execute_command("REPLICAOF", "127.0.0.1", primary.port)
    q = Queue(primary.client(), "q")
    q.send("x", "ID", "x", "DELAY", 10 * MINUTE)
    q.send("y", "ID", "y")
    wait_for(lambda: Queue(replica.client(), "q").len() == 2, 20, "replication")
    q.one("LEASE", 10 * MINUTE)
    wait_replicated(primary, replica)
    replica.wall.step(ahead)
    replica.client().execute_command("REPLICAOF", "NO", "ONE")
    promoted = Queue(replica.client(), "q")
    promoted.send("z", "DELAY", 1)
    assert promoted.one("BLOCK", 10_000).payload == b"z"
    assert promoted.info()["clock-lead"] <= SECOND
    assert near(promoted.get("x")["due-at"], now_ms() + 10 * MINUTE)
    assert near(promoted.get("y")["lease-until"], now_ms() + 10 * MINUTE)
    assert abs(promoted.info()["now"] - now_ms()) < 5 * SECOND


def test_what_falls_due_after_a_promotion_wakes_waiters_though_the_clock_was_ahead(wrong, make_server):
    primary, replica = wrong(20 * SECOND), make_server()
    replica.client().execute_command("REPLICAOF", "127.0.0.1", primary.port)
    for n in range(50):
        Queue(primary.client(), f"q{n}").send("x", "DELAY", 1500)
    wait_for(lambda: Queue(replica.client(), "q49").len() == 1, 20, "replication")
    replica.client().execute_command("REPLICAOF", "NO", "ONE")
    # No command touches the queues: by the clock of the new primary they would be due 20 seconds later.
    wait_for(lambda: replica.info("dq")["dq_ready"] == "50", 15, "all to be due")
