"""Sources of other kinds: Redis 5, one without HELLO, a cluster, a primary that Sentinels name; and a target that tells of its disk."""

import json
import os
import subprocess

import pytest

from tests.harness.server import engine, free_port, wait_for
from tests.harness.topology import Cluster
from tests.takeover.conftest import digest
from tests.takeover.peers import BULL, Bullmq, bullmq, tried
from tests.takeover.test_bullmq import VERSIONS, fetched, own

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.slow

MAILS = ["bullmq", "--queue", "mails"]


@pytest.fixture(scope="module")
def newest():
    return Bullmq(bullmq(VERSIONS[-1]))


def of(name: str) -> str:
    """The program of another server, which scripts/engines.sh gets. The test is skipped without it."""
    cache = os.environ.get("DQ_ENGINES") or f"{os.environ.get('XDG_CACHE_HOME', os.path.expanduser('~/.cache'))}/dq-engines"
    if not os.path.exists(f"{cache}/{name}/bin/redis-server"):
        pytest.skip(f"scripts/engines.sh path {name} has not been called here")
    return f"{cache}/{name}/bin/redis-server"


@pytest.mark.parametrize("version", [*tried(VERSIONS), BULL])
def test_redis_5_is_a_source(move, make_server, monkeypatch, version):
    monkeypatch.setenv("REDIS_SERVER", of("redis-5"))
    newer = dict.fromkeys(["enable_debug_command", "enable_module_command", "crash_memcheck_enabled"])
    old, side = make_server(load_module=False, **newer), Bullmq(bullmq(version))
    side.run(old.port, "fill")
    before = digest(old.client(protocol=2), own)
    said = json.loads(move.run(side.peer, "--queue", "*", "--ledger", "l", "--json", old=old.port).stdout)
    assert (said["moved"], said["stayed"]) == (51, 0)
    move.run(None, "--undo", "l", old=old.port)
    assert digest(old.client(protocol=2), own) == before


def test_a_server_without_hello_is_a_source(move, newest, make_server):
    old = make_server(load_module=False, rename_command='HELLO ""')
    newest.run(old.port, "many", 20)
    move.run(*MAILS, old=old.port)
    assert fetched(move.new.client()) == list(range(20))


def test_a_cluster_is_a_source_and_a_target(move, newest):
    conf = {"appendonly": "yes"}
    old, new = Cluster(load_module=False), Cluster(**conf)
    try:
        old.start(), new.start()
        Bullmq(newest.folder, TAKEOVER_CLUSTER="1").run(old.nodes[0].port, "many", 300)
        ends = {"old": old.nodes[0].port, "new": new.nodes[1].port}
        queues = ["bullmq", "--prefix", "{bull}", "--queue", "*", "--json"]
        [place] = json.loads(move.run(*queues, "--dry-run", **ends).stdout)["places"]
        assert place["jobs"] == 300
        assert json.loads(move.run(*queues, "--ledger", "l", **ends).stdout)["moved"] == 300
        holders = [node for node in new.nodes if node.client().dbsize()]
        assert [node.client().execute_command("DQ.LEN", "{bull}:mails") for node in holders] == [300]
        move.run(None, "--undo", "l", **ends)
        assert sum(node.client().llen("{bull}:mails:wait") for node in old.nodes if node.client().dbsize()) == 300
    finally:
        for node in old.nodes + new.nodes:
            node.close()


def test_sentinels_name_the_source(move, newest, tmp_path):
    newest.run(move.old.port, "many", 20)
    port, conf = free_port(), tmp_path / "sentinel.conf"
    conf.write_text(f"port {port}\ndir {tmp_path}\nsentinel monitor first 127.0.0.1 {move.old.port} 1\n")
    sentinel = subprocess.Popen([engine(), str(conf), "--sentinel"], stdout=subprocess.DEVNULL)
    try:

        def run(hosts, name):
            command = move.command(*MAILS)
            command[command.index("--from") + 1] = f"redis+sentinel://{hosts}/{name}"
            return subprocess.run(command, cwd=move.folder, capture_output=True, text=True, timeout=30)

        wait_for(lambda: "knows no primary other" in run(f"127.0.0.1:{port}", "other").stderr, timeout=20)
        ended = run(f"127.0.0.1:1,127.0.0.1:{port}", "first")
        assert ended.returncode == 0, ended.stderr
    finally:
        sentinel.kill()
        sentinel.wait()
    assert fetched(move.new.client()) == list(range(20))


def test_the_disk_of_the_target_is_asked_where_it_can_be(move, newest, make_server, monkeypatch):
    monkeypatch.setenv("REDIS_SERVER", of("valkey-backports"))
    new = make_server(appendonly="yes", appendfsync="everysec")
    newest.run(move.old.port, "many", 300)
    ended = move.run(*MAILS, new=new.port)
    assert "WAITAOF" not in ended.stderr
    assert int(new.client().info("commandstats")["cmdstat_waitaof"]["calls"]) >= 2
    # All that was deleted at the source outlives a crash at any moment.
    new.kill9()
    new.start()
    assert fetched(new.client()) == list(range(300))
