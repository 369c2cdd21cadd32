"""What can go wrong: one line that names what and where, exit 1 or 3, and nothing is lost."""

import json
import re
import subprocess
import time

import pytest

from tests.harness.faulty import FaultyProxy
from tests.harness.server import wait_for
from tests.takeover.peers import Bullmq, bullmq
from tests.takeover.test_bullmq import VERSIONS, fetched

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.slow

MAILS = ["bullmq", "--queue", "mails"]


@pytest.fixture(scope="module")
def newest():
    return Bullmq(bullmq(VERSIONS[-1]))


@pytest.fixture
def refused(move):
    """Runs an import that fails with one line, which has these words."""

    def run(*words, peer="bullmq", queue="mails", ledger="l", **ends):
        ended = move.run(peer, "--queue", queue, "--ledger", ledger, code=1, **ends)
        last = [line for line in ended.stderr.splitlines() if line][-1]
        assert all(word in last for word in words), ended.stderr
        return last

    return run


def test_keys_that_are_no_queue(move, newest, refused):
    move.new.client().set("bull:text", "x")
    refused("TYPE TARGET", "bull:text", queue="text")
    move.old.client().hset("bull:odd:meta", "version", "bullmq:9.0.0")
    refused("UNKNOWN odd", "bullmq:9.0.0", queue="odd")
    newest.run(move.old.port, "many", 5)
    move.old.client().set("bull:mails:prioritized", "x")
    refused("TYPE SOURCE")
    move.old.client().delete("bull:mails:prioritized")
    move.run(*MAILS, "--ledger", "l")
    assert fetched(move.new.client()) == list(range(5))


@pytest.mark.parametrize(
    "peer, queue, key",
    [
        ("bull", "mails", "bull:mails:wait"),
        ("celery", "celery", "celery"),
        ("dramatiq", "default", "dramatiq:default.DQ"),
        ("laravel", "default", "queues:default:delayed"),
        ("delayqueue", "orders", "dp:orders:retry"),
    ],
)
def test_a_key_of_another_type_of_each_peer(move, refused, peer, queue, key):
    move.old.client().set(key, "x")
    refused("TYPE SOURCE", peer=peer, queue=queue)
    assert move.old.client().get(key) == b"x"


def test_fields_that_are_not_known_stay(move, newest):
    newest.run(move.old.port, "many", 5)
    move.old.client().hset("bull:mails:3", "tomorrow", "x")
    said = json.loads(move.run(*MAILS, "--json", code=3).stdout)
    assert said["queues"][0]["stayed"] == {"UNKNOWN field tomorrow": 1} and fetched(move.new.client()) == [0, 1, 3, 4]
    assert move.old.client().lrange("bull:mails:wait", 0, -1) == [b"3"]


def test_ends_that_are_not_what_they_should_be(move, newest, refused, make_server):
    newest.run(move.old.port, "many", 5)
    plain = make_server(load_module=False)
    refused("has not loaded the dq module", new=plain.port)
    refused("no connection", "127.0.0.1:1 (--from)", old=1)
    refused("no connection", "127.0.0.1:1 (--to)", new=1)
    for server, option in ((move.old, "--from"), (move.new, "--to")):
        with server.wire() as wire:
            wire.ok("CONFIG", "SET", "requirepass", "secret")
            refused("wants a password", option)
            wire.ok("CONFIG", "SET", "requirepass", "")
    for server, end, right in ((move.old, "SOURCE", "evalsha"), (move.new, "TARGET", "evalsha")):
        with server.wire() as wire:
            wire.ok("ACL", "SETUSER", "default", "-" + right)
            refused(end, "NOPERM", right)
            wire.ok("ACL", "SETUSER", "default", "+@all")
    move.run(*MAILS, "--ledger", "l")
    assert fetched(move.new.client()) == list(range(5))


def test_a_wrong_password(move):
    for server in (move.old, move.new):
        command = [part.replace(f"127.0.0.1:{server.port}", f"me:wrong@127.0.0.1:{server.port}") for part in move.command(*MAILS)]
        ended = subprocess.run(command, cwd=move.folder, capture_output=True, text=True, timeout=30)
        assert ended.returncode == 1 and "WRONGPASS" in ended.stderr and f":{server.port}" in ended.stderr and "wrong" not in ended.stderr


def test_a_replica_is_no_source_but_can_be_looked_at(move, newest, refused, make_server):
    newest.run(move.old.port, "many", 20)
    replica = make_server(load_module=False, replicaof=f"127.0.0.1 {move.old.port}")
    wait_for(lambda: replica.client().llen("bull:mails:wait") == 20, timeout=20)
    [place] = json.loads(move.run(*MAILS, "--dry-run", "--json", old=replica.port).stdout)["places"]
    assert place["jobs"] == 20 and place["bytes_there"] > 20 * 100
    refused("SOURCE", "READONLY", old=replica.port)


def waits(move, says, ends):
    """Starts an import that waits for its target and says so, and lets it end."""
    process = move.start(*MAILS)
    time.sleep(2)
    assert process.poll() is None
    ends()
    _, error = process.communicate(timeout=30)
    assert process.returncode == 0 and f"dq: TARGET bull:mails: {says}" in error, error
    assert len(error.splitlines()) < 8, error


def test_a_full_target_is_waited_for(move, newest):
    newest.run(move.old.port, "many", 300)
    client = move.new.client()
    client.execute_command("DQ.CREATE", "bull:mails", "RETRIES", -1, "MAXLEN", 120)
    waits(move, "QUEUEFULL", lambda: client.execute_command("DQ.ALTER", "bull:mails", "MAXLEN", 0))
    assert fetched(client) == list(range(300))


def test_a_target_without_memory_is_waited_for(move, newest):
    newest.run(move.old.port, "many", 300)
    client = move.new.client()
    client.execute_command("DQ.CREATE", "bull:mails")
    try:
        client.config_set("maxmemory", 1)
        refused = move.run(*MAILS, code=1)
        assert "TARGET" in refused.stderr and "OOM" in refused.stderr
        client.config_set("maxmemory", 0)
        process = move.start(*MAILS, "--rate", 100)
        wait_for(lambda: int(client.execute_command("DQ.LEN", "bull:mails")) > 20)
        client.config_set("maxmemory", 1)
        time.sleep(2)
        assert process.poll() is None
    finally:
        client.config_set("maxmemory", 0)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 0 and "OOM" in error
    assert fetched(client) == list(range(300))


def test_a_closed_target(move, newest, refused):
    newest.run(move.old.port, "many", 30)
    client = move.new.client()
    client.execute_command("DQ.CREATE", "bull:mails", "SENDS", "OFF")
    refused("TARGET bull:mails", "QUEUECLOSED")
    client.execute_command("DQ.ALTER", "bull:mails", "SENDS", "ON")
    move.run(*MAILS, "--ledger", "l")
    assert fetched(client) == list(range(30))


@pytest.mark.parametrize("side", ["old", "new"])
def test_an_end_that_dies(move, newest, side, make_server):
    conf = {"appendonly": "yes", "appendfsync": "always"}
    ends = {"old": make_server(load_module=False, **conf), "new": make_server(**conf)}
    newest.run(ends["old"].port, "many", 1000)
    ports = {name: server.port for name, server in ends.items()}
    process = move.start(*MAILS, "--rate", 500, **ports)
    wait_for(lambda: ends["new"].client().exists("bull:mails") and ends["new"].client().execute_command("DQ.LEN", "bull:mails") > 100)
    ends[side].kill9()
    _, error = process.communicate(timeout=30)
    assert process.returncode == 1 and {"old": "SOURCE", "new": "TARGET"}[side] in error.splitlines()[-1], error
    ends[side].start()
    move.run(*MAILS, **ports)
    assert fetched(ends["new"].client()) == list(range(1000))


@pytest.mark.parametrize("side", ["old", "new"])
@pytest.mark.parametrize("reply", [False, True])
def test_a_link_that_is_cut_in_the_middle_of_a_pipeline(move, newest, side, reply):
    newest.run(move.old.port, "many", 500)
    proxy = FaultyProxy(getattr(move, side).port)
    # Some bytes of the pipeline, or of the replies, still come through.
    proxy.trap(rb"\r\n(take|DQ.SEND)\r\n", reply=reply, bytes=300)
    ended = move.run(*MAILS, code=1, **{side: proxy.port})
    assert {"old": "SOURCE", "new": "TARGET"}[side] in ended.stderr.splitlines()[-1], ended.stderr
    move.run(*MAILS, **{side: proxy.port})
    proxy.close()
    assert fetched(move.new.client()) == list(range(500))


def test_a_second_import_names_the_first(move, newest):
    newest.run(move.old.port, "many", 2000)
    slow = move.start(*MAILS, "--rate", "200", "--ledger", "one")
    wait_for(lambda: move.old.client().exists("bull:mails:dq:lease"), timeout=10)
    for ledger in ("two", "one"):
        ended = move.run(*MAILS, "--ledger", ledger, code=1)
        assert re.search(r"BUSY .*one", ended.stderr), ended.stderr
    slow.terminate()
    assert slow.wait(20) in (0, 3)
    # An import with the same ledger goes on at once.
    move.run(*MAILS, "--ledger", "one")
    assert int(move.new.client().execute_command("DQ.LEN", "bull:mails")) == 2000


def test_one_database_wants_another_key(move, newest):
    """Source and target are one: the new queue has a key of its own, and may not have the old one's."""
    newest.run(move.new.port, "many", 20)
    one = {"old": move.new.port, "new": move.new.port}
    ended = move.run(*MAILS, "--into", "bull:{queue}", code=1, **one)
    assert "one database" in ended.stderr and "--into" in ended.stderr
    move.run(*MAILS, **one)
    assert int(move.new.client().execute_command("DQ.LEN", "dq:mails")) == 20
    move.run(None, "--undo", "dq-import-bullmq.ledger", **one)
    assert move.new.client().llen("bull:mails:wait") == 20


def test_dead_jobs_may_be_left(move, newest):
    newest.run(move.old.port, "fill")
    said = json.loads(move.run("bullmq", "--queue", "fails", "--dead", "leave", "--json").stdout)
    assert said["queues"][0]["moved"] == {"delayed": 1}
    assert move.old.client().zcard("bull:fails:failed") == 1
