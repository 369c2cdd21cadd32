"""Sources of other kinds: Redis 5, one without HELLO, a cluster, a primary that Sentinels name; and a target that tells of its disk."""

import json
import os
import re
import subprocess
from contextlib import contextmanager

import pytest

from tests.harness.server import engine, free_port, wait_for
from tests.harness.topology import Cluster
from tests.takeover import test_celery
from tests.takeover.conftest import digest
from tests.takeover.peers import BULL, Bullmq, bullmq, tried
from tests.takeover.test_bullmq import VERSIONS, fetched, own
from tests.takeover.test_page import FILL
from tests.torture.preload import WallClock
from tests.torture.target import Rigged

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


@pytest.fixture
def redis_5(make_server, monkeypatch):
    """A server of Redis 5."""
    monkeypatch.setenv("REDIS_SERVER", of("redis-5"))
    return make_server(load_module=False, **dict.fromkeys(["enable_debug_command", "enable_module_command", "crash_memcheck_enabled"]))


@pytest.mark.parametrize("version", [*tried(VERSIONS), BULL])
def test_redis_5_is_a_source(move, redis_5, version):
    old, side = redis_5, Bullmq(bullmq(version))
    side.run(old.port, "fill")
    before = digest(old.client(protocol=2), own)
    said = json.loads(move.run(side.peer, "--queue", "*", "--ledger", "l", "--json", old=old.port).stdout)
    assert (said["moved"], said["stayed"]) == (51, 0)
    move.run(None, "--undo", "l", old=old.port)
    assert digest(old.client(protocol=2), own) == before


@pytest.mark.parametrize("peer", ["celery", "dramatiq", "laravel", "delayqueue"])
def test_redis_5_is_a_source_of_every_peer(move, redis_5, peer, tmp_path, monkeypatch):
    fill, db, count = FILL[{"delayqueue": "HDT3213/delayqueue"}.get(peer, peer.capitalize())]
    # The clients of today say HELLO, unless they are told not to; kombu cannot be told.
    monkeypatch.setenv("TAKEOVER_QUERY", "?protocol=2")
    if peer == "celery":
        test_celery.run(test_celery.celery("5.4.0"), redis_5.port, "fill", 3600, log=tmp_path / "log")
    else:
        fill(redis_5.port, tmp_path / "log")
    client = redis_5.client(protocol=2, db=db)
    before = digest(client, kept)
    queue = [peer, "--queue", "default" if peer == "laravel" else "*", *(["--prefix", "app_"] if peer == "laravel" else [])]
    said = json.loads(move.run(*queue, "--ledger", "l", "--json", old=redis_5.port, db=db).stdout)
    assert said["moved"] >= count and said["stayed"] == 0
    move.run(None, "--undo", "l", old=redis_5.port, db=db)
    assert digest(client, kept) == before


def kept(key: bytes) -> bool:
    """What the peers write by themselves."""
    return b"__" in key or b":notify" in key or key.startswith(b"_kombu")


def test_a_dry_run_tells_how_far_the_clocks_differ(move, newest, tmp_path, request):
    wall = WallClock(tmp_path / "offset")
    old = Rigged(env=wall.env, load_module=False).start()
    request.addfinalizer(old.close)
    newest.run(old.port, "many", 5)
    wall.step(-90_000)
    skew = json.loads(move.run(*MAILS, "--dry-run", "--json", old=old.port).stdout)["skew_ms"]
    assert abs(skew["source"] + 90_000) < 5000 and abs(skew["target"]) < 5000
    said = move.run(*MAILS, "--dry-run", old=old.port).stdout
    assert re.search(r"the source is 1m\d+s behind this machine", said), said
    # A clock that is behind keeps nothing back.
    move.run(*MAILS, old=old.port)
    assert fetched(move.new.client()) == list(range(5))


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


@contextmanager
def sentinel(folder, *lines):
    """The port of a Sentinel with these lines in its configuration."""
    port, conf = free_port(), folder / "sentinel.conf"
    conf.write_text("\n".join([f"dir {folder}", *lines]).replace("PORT", str(port)))
    process = subprocess.Popen([engine(), str(conf), "--sentinel"], stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def from_sentinel(move, url, *words):
    """An import whose source Sentinels name."""
    command = [*move.command(*MAILS), *words]
    command[command.index("--from") + 1] = url
    return subprocess.run(command, cwd=move.folder, capture_output=True, text=True, timeout=30)


def test_sentinels_name_the_source(move, newest, tmp_path):
    newest.run(move.old.port, "many", 20)
    with sentinel(tmp_path, "port PORT", f"sentinel monitor first 127.0.0.1 {move.old.port} 1") as port:

        def run(hosts, name):
            return from_sentinel(move, f"redis+sentinel://{hosts}/{name}")

        wait_for(lambda: "knows no primary other" in run(f"127.0.0.1:{port}", "other").stderr, timeout=20)
        ended = run(f"127.0.0.1:1,127.0.0.1:{port}", "first")
        assert ended.returncode == 0, ended.stderr
    assert fetched(move.new.client()) == list(range(20))


def test_sentinels_with_tls_and_a_password_name_the_source(move, newest, make_server, certificates, tmp_path):
    tls = {"cert-file": "own.crt", "key-file": "own.key", "ca-cert-file": "ca.crt"}
    files = {f"tls-{name}": certificates / file for name, file in tls.items()}
    secure, there = free_port(), {"tls-auth-clients": "no", **files}
    old = make_server(load_module=False, tls_port=secure, **{name.replace("-", "_"): value for name, value in there.items()})
    newest.run(old.port, "many", 20)
    old.client().execute_command(*"ACL SETUSER default >pa55".split())
    words = ["port 0", "tls-port PORT", "tls-replication yes", *(f"{name} {value}" for name, value in there.items())]
    words += ["requirepass pa55", f"sentinel monitor first 127.0.0.1 {secure} 1", "sentinel auth-pass first pa55"]
    with sentinel(tmp_path, *words) as port:

        def run(user):
            return from_sentinel(move, f"rediss+sentinel://{user}127.0.0.1:{port}/first", "--cacert", str(certificates / "ca.crt"))

        wait_for(lambda: "NOAUTH" in run("").stderr, timeout=20)
        wrong = run(":wrong@").stderr.splitlines()[-1]
        assert "SOURCE: the Sentinel" in wrong and "authentication failed" in wrong and "pa55" not in wrong, wrong
        ended = run(":pa55@")
        assert ended.returncode == 0, ended.stderr
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
