"""All files that any version has ever written still load unchanged."""

import re
import shutil

import pytest

from tests.golden import (
    FOLDER,
    KEYS,
    describe,
    description,
    plain,
    queue,
    versions,
    without_new,
)
from tests.harness.recorded import RecordedPrimary
from tests.harness.replies import Queue
from tests.harness.server import ROOT, Server, wait_for

SNAPSHOT = ROOT / "crates/queue/src/codec/snapshot/mod.rs"
# On a replica without a primary no message falls due, even if the files are old.
STILL = {"replicaof": "127.0.0.1 1"}


@pytest.fixture
def server_with_files():
    """Starts a server in a directory with these files."""
    made = []

    def load(*paths, **conf):
        server = Server(**conf)
        made.append(server)
        for path, name in paths:
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, server.dir / name)
        return server.start()

    yield load
    for server in made:
        server.close()


def test_there_are_golden_files():
    assert "v1" in versions()


@pytest.mark.parametrize("version", versions())
@pytest.mark.parametrize("kind", ["dump.rdb", "preamble", "commands"])
def test_files_of_every_version_load_unchanged(server_with_files, version, kind):
    folder = FOLDER / version
    if kind == "dump.rdb":
        server = server_with_files((folder / kind, "dump.rdb"), **STILL)
    else:
        server = server_with_files((folder / kind, "appendonlydir"), appendonly="yes", **STILL)
    held = description(version)
    seen = without_new(describe(server.client()), held)
    for key in KEYS:
        for part in held[key]:
            assert seen[key][part] == held[key][part], (key, part)
    assert seen == held


@pytest.mark.parametrize("version", versions())
@pytest.mark.parametrize("key", ["manual", "traffic"])
def test_dumps_of_every_version_restore_unchanged(r3, version, key):
    """Only the queues on a manual clock: on the server clock, time goes on after the restore."""
    r3.restore(key, 0, bytes.fromhex((FOLDER / version / f"{key}.dump").read_text()))
    held = description(version)[key]
    assert without_new(plain(queue(Queue(r3, key))), held) == held


@pytest.mark.parametrize("version", versions())
def test_queues_of_every_version_can_be_used_after_loading(server_with_files, version):
    """Old leases end, receipts continue to grow, and due messages are delivered."""
    server = server_with_files((FOLDER / version / "dump.rdb", "dump.rdb"))
    held = description(version)
    for key in KEYS:
        q = Queue(server.client(), key)
        q.do("RESUME")
        highest = max([m["receipt"] for m in held[key]["running"]], default=0)
        # One of the messages has its own lease of 5 ms.
        fetched = q.fetch("COUNT", 1000, "LEASE", 60_000)
        assert fetched, key
        assert min(m.receipt for m in fetched) > highest
        assert q.ack(*(m.receipt for m in fetched)) == len(fetched)


def test_every_version_of_the_encoding_has_its_files():
    """The newest version writes the same bytes as in the files of its name, so that these cannot be those of
    another.
    """
    newest = re.search(r"VERSION: u32 = (\d+);", SNAPSHOT.read_text())[1]
    assert versions() == [f"v{number}" for number in range(1, int(newest) + 1)]


@pytest.mark.parametrize("version", versions())
def test_a_replica_follows_a_primary_of_every_version(make_server, version):
    """The replica gets the snapshot of that primary, and then all log entries that the primary has replicated since."""
    folder = FOLDER / version / "preamble"
    [snapshot], [log] = folder.glob("*.base.rdb"), folder.glob("*.incr.aof")
    primary = RecordedPrimary(snapshot.read_bytes(), log.read_bytes())
    try:
        replica = make_server()
        client = replica.client()
        client.execute_command("REPLICAOF", "127.0.0.1", primary.port)

        def follows():
            info = client.info("replication")
            return info["master_link_status"] == "up" and info["slave_repl_offset"] == primary.offset

        wait_for(follows, 20, "the end of the stream")
        held = description(version)
        assert without_new(describe(client), held) == held
        client.execute_command("REPLICAOF", "NO", "ONE")
    finally:
        primary.close()
    # After its promotion the replica runs a command that only this version has.
    q = Queue(client, "manual")
    q.send("one", "BATCH", "new", "PRIORITY", -128, "GROUP", "new")
    q.send("after it", "ID", "after", "AFTER", "new", "GROUP", "after new")
    assert q.state("after") == "held"
    q.do("RESUME")
    assert q.ack(q.one("GROUP", "new").receipt) == 1
    assert q.state("after") == "ready"
