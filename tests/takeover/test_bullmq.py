"""BullMQ, of each major version, and Bull: what its own package has added runs once with BullMQ 6 on dq, as its own API shows it."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time

import pytest
import redis

from tests.drivers.faults.workers import Node
from tests.harness.faulty import FaultyProxy
from tests.harness.server import wait_for
from tests.takeover.conftest import digest, numbers
from tests.takeover.peers import BULL, HERE, Bullmq, bullmq, tried

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.slow

VERSIONS = ["4.17.0", "5.81.5", "6.7.0"]


@pytest.fixture(scope="module", params=[*tried(VERSIONS), BULL])
def old(request):
    """BullMQ or Bull of a version, on Redis."""
    return Bullmq(bullmq(request.param))


@pytest.fixture(scope="module")
def newest():
    """BullMQ of the newest version, on Redis."""
    return Bullmq(bullmq(VERSIONS[-1]))


class Bullmq6(Node):
    program = "bullmq.mjs"


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """BullMQ 6 on dq."""
    folder = tmp_path_factory.mktemp("new")
    shutil.copy(HERE / "bullmq.mjs", folder)
    Bullmq6("BullMQ").command(folder)
    return Bullmq(folder / "node", backend="bull")


def worked(side: Bullmq, port: int, queue: str, file, count: int) -> list[int]:
    """Lets a worker run until so many jobs have run; their numbers in order."""
    worker = side.start(port, "work", queue, file)
    try:
        wait_for(lambda: len(numbers(file)) >= count, timeout=40)
        time.sleep(0.3)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(20)
    return numbers(file)


def test_each_job_runs_once_in_its_place(move, old, new, tmp_path):
    old.run(move.old.port, "fill", 4000)
    plan = json.loads(move.run(old.peer, "--queue", "*", "--dry-run", "--json").stdout)
    before = digest(move.old.client())
    jobs = {(p["queue"], p["place"]): p["jobs"] for p in plan["places"]}
    waiting = [jobs["mails", place] for place in ("wait", "prioritized") if ("mails", place) in jobs]
    assert jobs["fails", "failed"] == 1 and waiting in ([32, 3], [33, 3], [35]), plan
    assert digest(move.old.client()) == before
    said = json.loads(move.run(old.peer, "--queue", "mails", "--queue", "fails", "--json").stdout)
    assert said["stayed"] == 0, said
    shown = json.loads(new.run(move.new.port, "show", "fails"))
    [dead], [retried] = shown["failed"], shown["delayed"]
    assert (dead["data"], dead["failedReason"], dead["attemptsMade"]) == ('{"n":90}', "no 90", 2)
    assert dead["stacktrace"].count("Error: no 90") == 2 and len(shown["logs"]) == 2
    assert (retried["attemptsMade"], retried["opts"]["attempts"]) == (1, 5)
    schedulers = json.loads(new.run(move.new.port, "show", "mails"))["schedulers"]
    assert {(s["name"], s.get("pattern"), s.get("tz"), s.get("every")) for s in schedulers} >= {("night", "0 3 * * *", "Europe/Berlin", None)}
    assert {int(s["every"]) for s in schedulers if s.get("every")} <= {7_200_000}
    ran = worked(new, move.new.port, "mails", tmp_path / "ran", 30 + 1 + 3 + 10 + 1)
    waiting = [n for n in ran if n < 50 and n not in (33, 35, 39)]
    assert waiting == [30, *range(30)]
    assert [n for n in ran if n in (33, 35, 39)] == [33, 35, 39]
    # In Bull those with a priority go before the others, in BullMQ after them.
    assert (ran[:4] == [33, 35, 39, 30]) == (old.peer == "bull"), ran
    later = [n for n in ran if 50 <= n < 60]
    assert sorted(later) == list(range(50, 60))
    assert 70 not in ran and 72 not in ran and ran.count(71) == 1
    assert len(ran) == len(set(ran)), ran


def test_old_producers_go_on_with_their_ids(move, old, tmp_path):
    old.run(move.old.port, "fill")
    move.run(old.peer, "--queue", "mails")
    old.run(move.old.port, "again")
    data = [json.loads(value)["n"] for key, value in fields(move.old.client(), "data").items()]
    # What had this id is not there any more, so neither is swallowed.
    assert sorted(data) == [170, 171]
    ended = move.run(old.peer, "--queue", "mails", code=3)
    assert "ID TAKEN" in ended.stdout, "its message still waits at the target"


def fields(client: redis.Redis, name: str) -> dict:
    jobs = [key for key in client.keys("bull:mails:*") if client.type(key) == b"hash" and client.hexists(key, name)]
    return {key: client.hget(key, name) for key in jobs}


def test_a_paused_queue_is_paused(move, old, new):
    old.run(move.old.port, "fill")
    old.run(move.old.port, "pause")
    move.run(old.peer, "--queue", "mails", "--queue", "fails", "--queue", "mails")
    assert [json.loads(new.run(move.new.port, "show", name))["paused"] for name in ("mails", "fails")] == [True, False]


def own(key: bytes) -> bool:
    """What BullMQ writes by itself, at any time."""
    return key.rsplit(b":", 1)[-1] in (b"events", b"marker", b"stalled-check", b"pc")


def test_undo_leaves_every_key_as_it_was(move, old):
    old.run(move.old.port, "fill")
    before = digest(move.old.client(), own)
    move.run(old.peer, "--queue", "*", "--ledger", "l")
    assert len(digest(move.old.client(), own)) < len(before) / 4
    assert move.run(None, "--undo", "l").stdout.endswith("0 of the ledger had been delivered, changed or removed\n")
    assert digest(move.old.client(), own) == before
    assert not [key for key in move.new.client().keys("*:import:*")]
    assert int(move.new.client().execute_command("DQ.LEN", "bull:mails")) == 0


def test_undo_goes_backwards_over_queues_that_took_turns(move, newest):
    """The ledger has jobs of two queues in turns, and of several runs."""
    queues, client = ("mails", "other"), move.old.client()
    for _ in range(3):
        for queue in queues:
            newest.run(move.old.port, "many", 70, 0, queue)
        move.run("bullmq", *[word for queue in queues for word in ("--queue", queue)], "--ledger", "l")
    assert not [key for key in client.keys("bull:*:wait")]
    # What a new worker has got by then is left out, wherever it was.
    got = move.new.client().execute_command("DQ.FETCH", "bull:other", "COUNT", 100)
    assert move.run(None, "--undo", "l").stdout.startswith("320 jobs put back, 100 of")
    ids = {queue: [int(id) for id in reversed(client.lrange(f"bull:{queue}:wait", 0, -1))] for queue in queues}
    assert ids == {"mails": list(range(1, 211)), "other": list(range(101, 211))} and len(got) == 100


def test_flows_stay_and_are_named(move, newest):
    newest.run(move.old.port, "flow")
    before = digest(move.old.client(), own)
    assert move.run("bullmq", "--queue", "mails", code=3).stdout.count("FLOW") == 2
    assert digest(move.old.client(), own) == before


def test_an_active_job_stays_with_its_worker(move, old, tmp_path):
    old.run(move.old.port, "add", 667)
    worker = old.start(move.old.port, "work", "mails", tmp_path / "ran")
    wait_for(lambda: move.old.client().llen("bull:mails:active") == 1, timeout=20)
    move.run(old.peer, "--queue", "mails", "--running", "leave", code=3)
    assert numbers(tmp_path / "ran") == []
    move.run(old.peer, "--queue", "mails")
    assert numbers(tmp_path / "ran") == [667]
    worker.send_signal(signal.SIGTERM)
    worker.wait(20)


@pytest.mark.parametrize("version", [VERSIONS[-1], BULL])
def test_a_job_whose_worker_was_killed_is_named_and_taken(move, version, tmp_path):
    side, client = Bullmq(bullmq(version)), move.old.client()
    side.run(move.old.port, "add", 666)
    worker = side.start(move.old.port, "work", "mails", tmp_path / "ran")
    wait_for(lambda: client.llen("bull:mails:active") == 1, timeout=20)
    worker.kill()
    worker.wait()
    # The job of the other queue has the same id, and a worker that ends it.
    side.run(move.old.port, "add", 667, "other")
    worker = side.start(move.old.port, "work", "other", tmp_path / "ran")
    wait_for(lambda: client.llen("bull:other:active") == 1, timeout=20)
    said = json.loads(move.run(side.peer, "--queue", "mails", "--queue", "other", "--json", code=3).stdout)
    worker.send_signal(signal.SIGTERM)
    worker.wait(20)
    assert [queue["lost"] for queue in said["queues"]] == [["1"], []] and numbers(tmp_path / "ran") == [667]
    before = digest(move.old.client(), own)
    take = [side.peer, "--queue", "mails", "--running", "take", "--max-stalled", 0, "--ledger", "l", "--json"]
    assert json.loads(move.run(*take).stdout)["queues"][0]["moved"] == {"active": 1}
    [dead] = move.new.client(protocol=3).execute_command("DQ.LIST", "bull:mails", "dead")[1]
    assert dead[b"error"] == b"job stalled more than allowable limit"
    move.run(None, "--undo", "l")
    assert digest(move.old.client(), own) == before


def test_keys_of_bull_and_bullmq_are_told_apart(move, newest):
    newest.run(move.old.port, "many", 5)
    assert "those of BullMQ" in move.run("bull", "--queue", "mails", code=1).stderr
    bull = Bullmq(bullmq(BULL))
    move.old.client().flushall()
    bull.run(move.old.port, "many", 5)
    assert "those of Bull:" in move.run("bullmq", "--queue", "mails", code=1).stderr
    newest.run(move.old.port, "many", 5)
    bull.run(move.old.port, "fill")
    assert "--peer-version" in move.run("bull", "--queue", "mails", code=1).stderr
    assert "up to bull 4" in move.run("bull", "--queue", "mails", "--peer-version", 5, code=1).stderr
    move.run("bull", "--queue", "mails", "--peer-version", 4)


COMMANDS = rb"\n(EVAL|EVALSHA|SET|DEL|HSET|LRANGE|LLEN|DQ.ALTER|DQ.CREATE)\r"
"""What an import sends, beside questions before it begins."""


class Counting(FaultyProxy):
    """Cuts the connection before the n-th command, or before its reply, and then strikes."""

    def __init__(self, port, nth, reply, strike):
        super().__init__(port)
        self.nth, self.seen = nth, 0
        self.sprung = self.trap(COMMANDS, reply=reply, strike=strike).sprung

    def _caught(self, data):
        if not re.search(COMMANDS, data):
            return None
        self.seen += 1
        return super()._caught(data) if self.seen == self.nth else None


@pytest.mark.parametrize("side", ["old", "new"])
@pytest.mark.parametrize("reply", [False, True])
def test_a_kill_between_any_two_commands_loses_and_doubles_nothing(move, newest, side, reply, tmp_path):
    count = 110
    source = move.old.client()
    newest.run(move.old.port, "many", count)
    added = {key: source.dump(key) for key in source.keys("*")}
    for nth in range(1, 80):
        for end in (move.old, move.new):
            end.client().flushall()
        for key, value in added.items():
            source.restore(key, 0, value)
        killed = []
        proxy = Counting(getattr(move, side).port, nth, reply, lambda: killed[0].kill())
        killed.append(move.start("bullmq", "--queue", "mails", "--rate", 500, "--ledger", f"l{side}{nth}", **{side: proxy.port}))
        killed[0].wait(30)
        proxy.close()
        client = move.new.client()
        taken = fetched(client)
        (tmp_path / f"l{side}{nth}").unlink(missing_ok=not proxy.sprung.is_set())
        # Without its ledger, the lease has to end; so this run has the one of the first.
        move.old.client().delete("bull:mails:dq:lease")
        move.run("bullmq", "--queue", "mails", "--ledger", f"m{side}{nth}")
        taken += fetched(client)
        assert sorted(taken) == list(range(count)), (nth, len(taken))
        assert not list(client.scan_iter("dq:*")) and not list(move.old.client().scan_iter("*:dq:*"))
        if not proxy.sprung.is_set():
            assert nth > 6
            return
    pytest.fail("it never ended")


@pytest.mark.parametrize("side", ["old", "new"])
@pytest.mark.parametrize("reply", [False, True])
def test_an_undo_may_be_killed_between_any_two_commands(move, newest, side, reply):
    """Every key is as it was, whenever that was, and nothing is left at the target."""
    newest.run(move.old.port, "fill")
    newest.run(move.old.port, "many", 60, 0, "other")
    source, target = move.old.client(), move.new.client()
    before = digest(source, own)
    queues = [word for queue in ("mails", "fails", "other") for word in ("--queue", queue)]
    for nth in range(1, 80):
        move.run("bullmq", *queues, "--ledger", f"u{nth}")
        killed = []
        proxy = Counting(getattr(move, side).port, nth, reply, lambda: killed[0].kill())
        killed.append(move.start(None, "--undo", f"u{nth}", **{side: proxy.port}))
        killed[0].communicate(timeout=30)
        proxy.close()
        move.old.client().delete(*(f"bull:{queue}:dq:lease" for queue in ("mails", "fails", "other")))
        move.run(None, "--undo", f"u{nth}")
        assert digest(source, own) == before, nth
        assert [int(target.execute_command("DQ.LEN", f"bull:{queue}")) for queue in ("mails", "fails", "other")] == [0, 0, 0], nth
        assert not list(target.scan_iter("dq:*")) and not list(source.scan_iter("*:dq:*")), nth
        if not proxy.sprung.is_set():
            assert nth > 6
            return
    pytest.fail("it never ended")


def fetched(client: redis.Redis) -> list[int]:
    """Takes what a queue has, and ends it: then its ids are free again."""
    if not client.exists("bull:mails"):
        return []
    got = []
    while batch := client.execute_command("DQ.FETCH", "bull:mails", "COUNT", 1000):
        got += [json.loads(message[3])["data"]["n"] for message in batch]
        client.execute_command("DQ.ACK", "bull:mails", *[message[1] for message in batch])
    client.execute_command("DQ.PURGE", "bull:mails", "STATE", "finished")
    return got


def test_old_producers_go_on_under_follow(move, newest):
    client = move.new.client()
    process = move.start("bullmq", "--queue", "mails", "--follow")
    try:
        wait_for(lambda: client.exists("bull:mails"), timeout=10)
        producer = newest.start(move.old.port, "produce", 300)
        late, seen = [], []
        while len(seen) < 300:
            batch = client.execute_command("DQ.FETCH", "bull:mails", "COUNT", 100, "BLOCK", 10_000)
            assert batch, f"{len(seen)} have come"
            now = time.time() * 1000
            for message in batch:
                data = json.loads(message[3])["data"]
                seen.append(data["n"])
                late.append(now - data["due"])
            client.execute_command("DQ.ACK", "bull:mails", *[message[1] for message in batch])
        assert producer.wait(20) == 0
        assert sorted(seen) == list(range(300))
        assert min(late) >= -1, "nothing is early"
        # On a busy machine; make bench-takeover measures.
        assert sorted(late)[297] < 2000, sorted(late)[-10:]
    finally:
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=20)
    assert process.returncode == 0, (out, error)


def test_progress_is_a_bar_on_a_terminal_and_json_elsewhere(move, newest):
    newest.run(move.old.port, "many", 900)
    slow = ["bullmq", "--queue", "mails", "--rate", 200]
    lines = move.run(*slow, "--json").stderr.splitlines()
    shown = [json.loads(line) for line in lines if line.startswith("{")]
    assert len(shown) >= 3 and all(line["moved"] + line["left"] == 900 for line in shown), lines
    newest.run(move.old.port, "many", 300)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(move.command(*slow), cwd=move.folder, stdout=subprocess.PIPE, stderr=theirs)
    process.communicate(timeout=30)
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    assert re.search(r"\[#+ *\] \d+ moved, \d+ left, \d+ a second", text), text


def test_dead_jobs_wait_for_the_limits_of_the_target(move, newest):
    newest.run(move.old.port, "fill")
    client = move.new.client(protocol=3)
    client.execute_command("DQ.CREATE", "bull:fails", "RETRIES", -1, "RATE", 1, "PER", 1500)
    client.execute_command("DQ.SEND", "bull:fails", "x")
    [[_, receipt, *_]] = client.execute_command("DQ.FETCH", "bull:fails")
    client.execute_command("DQ.ACK", "bull:fails", receipt)
    assert "PAUSED or limited" in move.run("bullmq", "--queue", "fails").stderr
    assert len(client.execute_command("DQ.LIST", "bull:fails", "dead")[1]) == 1
