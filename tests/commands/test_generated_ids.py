"""Generated ids are unique UUIDs, also after a queue was copied, restored or loaded."""

import uuid

import pytest

from tests.harness.replies import Queue, digest
from tests.harness.scene import START, Scene


def generate(client, key, n=3) -> list:
    """Sends n messages. Returns their ids, which must be UUIDs of the queue's time and find the messages."""
    ids = client.execute_command("DQ.MSEND", key, n, *range(n))
    for number, id in enumerate(ids):
        parsed = uuid.UUID(id.decode())
        assert (parsed.version, parsed.variant, parsed.int >> 80) == (7, uuid.RFC_4122, START)
        assert Queue(client, key).get(id)["payload"] == b"%d" % number
    return ids


def random_parts(ids) -> set:
    """The parts of ids that are neither time nor counter (the last hex digits)."""
    return {id[15:28] for id in ids}


def assert_unlike(*rows):
    """Checks that these rows of ids have only their time in common."""
    parts = [random_parts(ids) for ids in rows]
    assert len(set.union(*parts)) == sum(map(len, parts)), rows
    assert len({id for ids in rows for id in ids}) == sum(map(len, rows))


def all_ids(q) -> list:
    return [id.encode() for id in q.listed("ready")]


def test_a_copy_generates_other_ids_than_its_original(r, key):
    q = Scene(r, key)
    before = generate(r, key)
    r.execute_command("COPY", key, key + b":1")
    r.execute_command("COPY", key, key + b":2")
    ids = {copy: generate(r, copy) for copy in (key, key + b":1", key + b":2")}
    assert_unlike(*ids.values())
    for copy, later in ids.items():
        # The earlier messages have the same ids in all copies.
        assert all_ids(Scene.over(r, copy)) == before + later
        assert Queue(r, copy).get(before[1])["payload"] == b"1"
    assert q.do("CANCEL", before[0], ids[key][2]) == [b"ready", b"ready"]


def test_a_queue_restored_from_an_older_dump_generates_other_ids(r, key):
    Scene(r, key)
    before = generate(r, key)
    dump = r.execute_command("DUMP", key)
    gone = generate(r, key)
    r.execute_command("RESTORE", key, 0, dump, "REPLACE")
    ids = generate(r, key)
    assert_unlike(gone, ids)
    assert all_ids(Scene.over(r, key)) == before + ids


def test_ids_of_messages_stay_the_same_through_many_restores(r, key):
    Scene(r, key)
    rows = []
    for _ in range(7):
        rows.append(generate(r, key))
        r.execute_command("RESTORE", key, 0, r.execute_command("DUMP", key), "REPLACE")
        q = Scene.over(r, key)
        assert all_ids(q) == [id for ids in rows for id in ids]
    assert_unlike(*rows)
    # After the middle ones are cancelled, the others keep their ids.
    assert q.do("CANCEL", *rows[2], *rows[3]) == [b"ready"] * 6
    r.execute_command("RESTORE", key, 0, r.execute_command("DUMP", key), "REPLACE")
    assert all_ids(q) == [id for ids in rows[:2] + rows[4:] for id in ids]


@pytest.mark.parametrize("command", [("DEBUG", "RELOAD", "NOSAVE"), ("DEBUG", "RELOAD")])
def test_a_queue_generates_other_ids_after_a_reload(server, r, key, command):
    Scene(r, key)
    before = generate(r, key)
    r.execute_command("SAVE")
    gone = generate(r, key)
    r.execute_command(*command)
    ids = generate(r, key)
    assert_unlike(gone, ids)
    assert all_ids(Scene.over(r, key)) == before + (gone if "NOSAVE" not in command else []) + ids


def test_a_replayed_log_gives_the_same_ids_and_later_sends_other_ones(make_server):
    server = make_server(appendonly="yes", **{"aof-use-rdb-preamble": "no"})
    client = server.client()
    q = Scene(client, "q")
    first = generate(client, "q")
    client.execute_command("COPY", "q", "copy")
    rows = {name: generate(client, name) for name in ("q", "copy")}
    digests = {name: digest(client, name) for name in rows}
    client.execute_command("DEBUG", "LOADAOF")
    assert {name: digest(client, name) for name in rows} == digests
    assert all_ids(q) == first + rows["q"]
    assert all_ids(Scene.over(client, "copy")) == first + rows["copy"]
    assert_unlike(*rows.values(), *[generate(client, name) for name in rows])


def test_a_promoted_replica_generates_other_ids_than_its_primary(replica_pair):
    old, new = replica_pair.primary.client(), replica_pair.replica.client()
    Scene(old, "q")
    generate(old, "q")
    old.execute_command("COPY", "q", "copy")
    generate(old, "copy")
    replica_pair.assert_same("q", "copy")
    replica_pair.promote()
    rows = [generate(client, name) for client in (old, new) for name in ("q", "copy")]
    assert_unlike(*rows)


@pytest.mark.parametrize("how", ["MULTI", "Lua"])
def test_a_copy_in_a_transaction_generates_other_ids(r, key, how):
    Scene(r, key)
    copy = key + b":copy"
    if how == "MULTI":
        pipe = r.pipeline()
        pipe.execute_command("DQ.SEND", key, "x")
        pipe.execute_command("COPY", key, copy)
        pipe.execute_command("DQ.SEND", key, "x")
        pipe.execute_command("DQ.SEND", copy, "x")
        first, _, here, there = pipe.execute()
    else:
        script = """
            local first = redis.call('DQ.SEND', KEYS[1], 'x')
            redis.call('COPY', KEYS[1], KEYS[2])
            return {first, redis.call('DQ.SEND', KEYS[1], 'x'), redis.call('DQ.SEND', KEYS[2], 'x')}
        """
        first, here, there = r.eval(script, 2, key, copy)
    assert_unlike([here], [there])
    assert all_ids(Scene.over(r, copy)) == [first, there]


def test_only_the_first_generated_id_after_a_load_costs_more_log(make_server):
    # With everysec the server may put off a write while the disk is busy, and the size would come late.
    server = make_server(appendonly="yes", appendfsync="no")
    client = server.client()
    Scene(client, "q")
    generate(client, "q", 1)

    def grown(id=None):
        before = server.info("persistence")["aof_current_size"]
        client.execute_command("DQ.SEND", "q", "x", "DELAY", 5, *(["ID", id] if id else []))
        return int(server.info("persistence")["aof_current_size"]) - int(before)

    usual = grown()
    client.execute_command("DEBUG", "RELOAD")
    # A send that brings its id does not need a new one.
    assert grown("given") == usual + len("given") + 1
    assert usual < grown() <= usual + 16
    assert grown() == usual
