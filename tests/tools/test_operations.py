"""The statements of docs/operations.md and its neighbours for operators: ACL rights, sizes, backup and restore."""

import os
import re
import shutil

import pytest
import redis

from tests.harness.server import ROOT, wait_for

PAGES = ["operations.md", "cli.md", "monitoring.md"]


def recipes():
    """Every user that the pages explain: page, name, rules."""
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text()
        for name, rules in re.findall(r"^ACL SETUSER (\w+) (.*)$", text, re.MULTILINE):
            yield pytest.param(name, rules.split(), id=f"{page}-{name}")


LOOK = ["INFO q", "LIST q ready", "GET q i", "EXPLAIN q i"]
# The commands that each user may send to the queue q, and those that it may not.
MAY = {
    "shop": (["SEND q x", "MSEND q 1 x", 'GROUPPUSH q {"a":1} GROUPBY 1 a', "CANCEL q i", "GET q i"], ["FETCH q", "PURGE q ready"]),
    "worker": (["FETCH q", "ACK q 1", "NACK q 1", "TOUCH q 1000 1"], ["SEND q x", "CANCEL q i", "PURGE q ready"]),
    "viewer": ([*LOOK, "PEEK q", "GROUPS q", "CONSUMERS q", "SCHEDULES q"], ["SEND q x", "FETCH q", "PAUSE q", "REDRIVE q ALL"]),
    "operator": ([*LOOK, "PAUSE q", "RESUME q", "REDRIVE q ALL"], ["FETCH q", "ACK q 1"]),
    "watcher": (["INFO q", "GROUPS q"], ["GET q i", "SEND q x", "FETCH q"]),
}


@pytest.mark.parametrize("name, rules", list(recipes()))
def test_each_acl_recipe_gives_exactly_its_rights(server, name, rules):
    with server.wire() as wire:
        wire.ok("ACL", "SETUSER", name, "reset", *rules)
        try:
            key = next(rule for rule in rules if "~" in rule).partition("~")[2].replace("*", "q")

            def allowed(call):
                verb, _, *words = call.split()
                return wire.ok("ACL", "DRYRUN", name, f"DQ.{verb}", key, *words) == b"OK"

            granted, refused = MAY[name]
            assert {call: allowed(call) for call in granted} == dict.fromkeys(granted, True)
            assert {call: allowed(call) for call in refused} == dict.fromkeys(refused, False)
            for call in (["DQ.OP", key, "x"], ["EVAL", "return 1", "0"], ["FLUSHALL"], ["CONFIG", "GET", "*"]):
                assert wire.ok("ACL", "DRYRUN", name, *call) != b"OK", call
        finally:
            wire.ok("ACL", "DELUSER", name)


# ---- sizing

MANY = 20_000


def plain(do, *options):
    for _ in range(MANY // 1000):
        do("DQ.MSEND", "q", 1000, *[os.urandom(100) for _ in range(1000)], *options)


def each(client, options):
    pipeline = client.pipeline(transaction=False)
    for n in range(MANY):
        pipeline.execute_command("DQ.SEND", "q", os.urandom(100), *options(n))
    pipeline.execute()


def fetched(do, ack=False):
    do("DQ.CREATE", "q", "LEASE", 600_000, "RETAIN", 600_000, "RETAINCOUNT", 0)
    plain(do)
    while batch := do("DQ.FETCH", "q", "COUNT", 1000):
        if ack:
            do("DQ.ACK", "q", *(receipt for _, receipt, *_ in batch))


SIZES = {
    "without options, delayed or ready": lambda r: plain(r.execute_command, "DELAY", 3_600_000),
    "with an id of 36 bytes of your own": lambda r: each(r, lambda n: ["ID", f"{n:036}"]),
    "in a group of ten": lambda r: each(r, lambda n: ["GROUP", f"user-{n // 10}"]),
    "alone in its group": lambda r: each(r, lambda n: ["GROUP", f"user-{n}"]),
    "with a TYPE or HEADERS": lambda r: each(r, lambda n: ["HEADERS", 1, "k", "v"]),
    "leased": lambda r: fetched(r.execute_command),
    "finished, its record kept by RETAIN": lambda r: fetched(r.execute_command, ack=True),
}


def told_sizes():
    page = (ROOT / "docs/operations.md").read_text()
    table = page[page.index("| a message | bytes |") :].split("\n\n")[0]
    return {name: int(size) for name, size in re.findall(r"^\| (.*) \| (\d+) \|$", table, re.MULTILINE)}


@pytest.mark.parametrize("name", SIZES)
def test_a_message_needs_no_more_memory_than_documented(make_server, name):
    client = make_server().client()
    client.execute_command("DQ.SEND", "other", "x")
    before = client.info("memory")["used_memory"]
    SIZES[name](client)
    grown = client.info("memory")["used_memory"] - before
    assert grown / MANY - 100 <= told_sizes()[name]


def test_every_documented_size_is_tested():
    assert set(told_sizes()) == set(SIZES)


# ---- backup


def test_a_backup_is_restored_as_documented(make_server):
    server = make_server(appendonly="yes")
    do = server.client().execute_command
    do("DQ.SEND", "q", "x", "ID", "a")
    do("DQ.SEND", "q", "x", "ID", "later", "DELAY", 3_600_000)
    with server.wire() as wire:
        before = wire.ok("LASTSAVE")
        # LASTSAVE counts in seconds.
        wait_for(lambda: int(wire.ok("TIME")[0]) > before, 3, "the next second")
        wire.ok("BGSAVE")
        wait_for(lambda: wire.ok("LASTSAVE") != before, 10, "the snapshot")
    copy = (server.dir / "dump.rdb").read_bytes()
    [(_, receipt, *_)] = do("DQ.FETCH", "q")
    do("DQ.SEND", "q", "x", "ID", "too-late")

    restored = make_server(appendonly="no")
    restored.stop()
    (restored.dir / "dump.rdb").write_bytes(copy)
    restored.start()
    client = restored.client()
    do = client.execute_command
    assert do("CONFIG", "SET", "appendonly", "yes") in (True, b"OK")
    wait_for(lambda: not client.info("persistence")["aof_rewrite_in_progress"], 10, "the new log")
    assert client.info("persistence")["aof_enabled"]
    restored.stop()
    conf = restored.dir / "redis.conf"
    conf.write_text(conf.read_text().replace("appendonly no", "appendonly yes"))
    restored.start()
    do = restored.client().execute_command
    assert do("DQ.ACK", "q", receipt) == 0
    assert [id for id, *_ in do("DQ.FETCH", "q", "COUNT", 10)] == [b"a"]
    assert do("DQ.LEN", "q", "delayed") == 1


def test_a_server_with_a_log_ignores_the_snapshot_as_documented(make_server):
    server = make_server(appendonly="no")
    server.client().execute_command("DQ.SEND", "q", "x")
    server.client().execute_command("SAVE")
    server.stop()
    shutil.rmtree(server.dir / "appendonlydir", ignore_errors=True)
    conf = server.dir / "redis.conf"
    conf.write_text(conf.read_text().replace("appendonly no", "appendonly yes"))
    server.start()
    try:
        assert not server.client().exists("q")
    except redis.ResponseError:
        pytest.fail("the server does not start that way any more: say so in docs/operations.md")
