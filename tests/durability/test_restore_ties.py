"""The keys that a queue names elsewhere (EVENTS, DEADTO, parents), where a client brings it by RESTORE or COPY."""

import pytest

from tests.harness.replies import Queue, as_map, digest
from tests.harness.server import wait_for


@pytest.fixture
def limited(make_server):
    """A server with a user who may bring queues, but not write to every key."""
    server = make_server(appendonly="yes")
    server.client().execute_command("ACL", "SETUSER", "tenant", "on", ">x", "~a:*", "+restore")
    return server


def tied(client, name="home"):
    """A queue with a stream, a queue of dead letters, and two children of a message in another one."""
    q = Queue(client, name)
    q.do("CREATE", "EVENTS", name + ":events", "DEADTO", name + ":dead", "RETRIES", 0)
    Queue(client, "parents").send("p", "ID", "p", "CHILDREN", 2)
    for id in ("c1", "c2"):
        q.send(id, "ID", id, "PARENT", "parents", "p")
    return q


def brought(client, key="a:q", name="home") -> Queue:
    dump = client.dump(name)
    client.delete(name, name + ":events")
    client.restore(key, 0, dump)
    return Queue(client, key)


def test_where_every_user_may_write_everywhere_a_restored_queue_keeps_its_ties(make_server):
    client = make_server().client()
    client.execute_command("ACL", "SETUSER", "reader", "on", "~a:*", "+@read", "(~a:* +dq.send)")
    client.execute_command("ACL", "SETUSER", "mover", "on", "%W~*", "%R~a:*", "+restore", "(~b:* +copy)")
    client.execute_command("ACL", "SETUSER", "gone", "off", "~a:*", "+restore", "+copy")
    tied(client)
    q = brought(client)
    info = q.info()
    assert (info["events"], info["deadto"], info["detached"]) == (b"home:events", b"home:dead", None)
    q.ack(q.one().receipt)
    assert as_map(Queue(client, "parents").get("p")["children"])["finished"] == 1
    assert client.xlen("home:events") == 2


@pytest.mark.parametrize(
    "rules",
    [("~a:*", "+restore"), ("~a:*", "+copy"), ("%R~*", "~a:*", "+@all"), ("~*", "-@all", "+get", "(~a:* +restore)")],
)
def test_where_a_user_is_limited_to_some_keys_they_come_off(make_server, rules):
    server = make_server()
    client = server.client()
    client.execute_command("ACL", "SETUSER", "tenant", "on", *rules)
    tied(client)
    q = brought(client)
    info = q.info()
    assert (info["events"], info["deadto"]) == (None, None)
    assert info["detached"] == [b"EVENTS", b"DEADTO", b"PARENT"]
    assert "the queue 'a:q' came without its EVENTS, DEADTO, PARENT" in server.log()
    before = digest(client, "parents")
    q.do("NACK", q.one().receipt, "FATAL")
    q.ack(q.one().receipt)
    assert client.exists("home:events", "home:dead") == 0
    assert digest(client, "parents") == before
    assert q.len("dead") == 1


def test_the_setting_says_it_once_and_for_all(limited):
    client = limited.client()
    with pytest.raises(Exception, match="auto, keep or cut"):
        client.config_set("dq.restore-ties", "some")
    for value, cut in (("keep", False), ("cut", True), ("auto", True)):
        client.flushall()
        client.config_set("dq.restore-ties", value)
        tied(client)
        assert (brought(client).info()["detached"] is not None) == cut
    client.execute_command("ACL", "DELUSER", "tenant")
    client.flushall()
    tied(client)
    assert brought(client).info()["detached"] is None


def test_a_copy_never_counts_at_a_parent_and_keeps_its_options_as_a_restored_queue(make_server):
    client = make_server().client()
    tied(client)
    client.copy("home", "b")
    b = Queue(client, "b")
    assert (b.info()["events"], b.info()["detached"]) == (b"home:events", [b"PARENT"])
    before = digest(client, "parents")
    b.ack(b.one().receipt)
    assert digest(client, "parents") == before
    client.config_set("dq.restore-ties", "cut")
    client.copy("home", "c")
    assert Queue(client, "c").info()["detached"] == [b"EVENTS", b"DEADTO", b"PARENT"]
    client.rename("home", "away")
    assert Queue(client, "away").info()["detached"] is None


def test_a_word_goes_when_alter_names_the_option_and_when_the_last_child_is_gone(limited):
    client = limited.client()
    tied(client)
    q = brought(client)
    q.do("ALTER", "EVENTS", "")
    assert q.info()["detached"] == [b"DEADTO", b"PARENT"]
    q.do("ALTER", "DEADTO", "elsewhere")
    assert q.info()["detached"] == [b"PARENT"]
    client.execute_command("DEBUG", "RELOAD")
    q.ack(q.one().receipt)
    assert q.info()["detached"] == [b"PARENT"]
    q.do("CANCEL", "c2")
    assert q.info()["detached"] is None


def test_the_cut_is_the_same_after_a_restart_and_on_a_replica(limited, make_server):
    client = limited.client()
    replica = make_server(replicaof=f"127.0.0.1 {limited.port}")
    wait_for(lambda: replica.client().info("replication")["master_link_status"] == "up", 20, "the link")
    tied(client)
    # Nothing comes between: the cut is replicated before what follows.
    pipe = client.pipeline(transaction=False)
    dump = client.dump("home")
    pipe.restore("a:q", 0, dump)
    pipe.execute_command("DQ.FETCH", "a:q")
    pipe.copy("a:q", "a:r")
    pipe.restore("a:idle", 0, dump)
    pipe.copy("a:idle", "a:s")
    pipe.rename("a:idle", "a:t")
    pipe.execute()
    names = ["a:q", "a:r", "a:s", "a:t", "home", "parents", "home:events"]
    wait_for(lambda: client.wait(1, 100) == 1, 10, "the replica")
    whole = [client.execute_command("DEBUG", "DIGEST-VALUE", name) for name in names]

    def same(other) -> bool:
        return [other.execute_command("DEBUG", "DIGEST-VALUE", name) for name in names] == whole

    wait_for(lambda: same(replica.client()), 5, "the same queues")
    limited.stop()
    limited.start()
    assert same(limited.client())
    for name in names[:4]:
        assert set(Queue(limited.client(), name).info()["detached"]) >= {b"EVENTS", b"DEADTO"}


def test_in_a_transaction_and_in_a_script_it_is_cut_before_what_follows(limited):
    client = limited.client()
    tied(client)
    dump = client.dump("home")
    length = client.xlen("home:events")
    pipe = client.pipeline(transaction=True)
    pipe.restore("a:1", 0, dump)
    pipe.execute_command("DQ.SEND", "a:1", "x")
    pipe.execute()
    script = "redis.call('RESTORE', KEYS[1], 0, ARGV[1]) return redis.call('DQ.SEND', KEYS[1], 'x')"
    client.eval(script, 1, "a:2", dump)
    assert client.xlen("home:events") == length
    whole = [digest(client, name) for name in ("a:1", "a:2")]
    limited.stop()
    limited.start()
    assert [digest(limited.client(), name) for name in ("a:1", "a:2")] == whole


def test_a_queue_that_is_renamed_or_moved_to_another_database_keeps_all(limited):
    client = limited.client()
    tied(client)
    client.rename("home", "a:q")
    assert Queue(client, "a:q").info()["detached"] is None
    client.move("a:q", 1)
    info = Queue(limited.client(db=1), "a:q").info()
    assert (info["events"], info["deadto"], info["detached"]) == (b"home:events", b"home:dead", None)


def test_a_queue_that_another_server_migrates_is_restored_by_its_user(limited, make_server):
    source = make_server().client()
    tied(source)
    port = limited.client().config_get("port")["port"]
    source.execute_command("MIGRATE", "127.0.0.1", port, "home", 0, 5000)
    info = Queue(limited.client(), "home").info()
    assert (info["events"], info["deadto"]) == (None, None)
    assert info["detached"] == [b"EVENTS", b"DEADTO", b"PARENT"]


def test_a_rerun_that_waits_is_no_child_any_more(limited):
    client = limited.client()
    Queue(client, "parents").send("p", "ID", "p", "CHILDREN", 1)
    q = Queue(client, "home")
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    q.send("y", "ID", "a", "REPLACE", "RERUN", "PARENT", "parents", "p")
    restored = brought(client)
    before = digest(client, "parents")
    restored.ack(receipt)
    restored.ack(restored.one().receipt)
    assert digest(client, "parents") == before
