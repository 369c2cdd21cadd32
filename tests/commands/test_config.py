"""The module's configuration: redis.conf, load arguments, CONFIG SET, GET and REWRITE."""

import pytest

from tests.harness.replies import Queue
from tests.harness.server import module_path, wait_for
from tests.harness.wire import Error

BACKOFF = "EXP 1000 MAXBACKOFF 3600000 JITTER 20"
DEFAULTS = {
    "dq.backoff": BACKOFF.encode(),
    "dq.lease": b"30000",
    "dq.retries": b"3",
    "dq.retain": b"0",
    "dq.retain-count": b"10000",
    "dq.max-payload": b"536870912",
    "dq.tick-budget-us": b"500",
    "dq.start-grace": b"5000",
    "dq.restore-ties": b"auto",
    "dq.compress": b"off",
}
CHANGED = {
    "dq.backoff": "LINEAR 5 JITTER 7",
    "dq.lease": 7000,
    "dq.retries": -1,
    "dq.retain": 60000,
    "dq.retain-count": 5,
    "dq.max-payload": 1000,
    "dq.tick-budget-us": 900,
    "dq.start-grace": 0,
    "dq.restore-ties": "cut",
    "dq.compress": "on",
}


def settings(w):
    flat = w.ok("CONFIG", "GET", "dq.*")
    pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2])
    return {k.decode(): v for k, v in pairs}


def assert_changed(server):
    with server.wire() as w:
        assert settings(w) == {k: str(v).encode() for k, v in CHANGED.items()}
    q = Queue(server.client(), "fresh")
    q.send("x")
    info = q.info()
    assert (info["backoff"], info["maxbackoff"], info["jitter"]) == (b"LINEAR 5", 0, 7)
    assert (info["lease"], info["retries"], info["retain"], info["retaincount"]) == (7000, -1, 60000, 5)
    assert q.fails("SEND", b"x" * 1001)
    q.send(b"x" * 1000)
    q.client.delete("fresh")


def quoted(settings):
    """Settings as redis.conf and load arguments have them."""
    return {name: f'"{value}"' for name, value in settings.items()}


def test_the_defaults_are_as_documented(make_server):
    assert settings(make_server(**{"dq.backoff": None}).wire()) == DEFAULTS


def test_redis_conf_sets_every_setting(make_server):
    assert_changed(make_server(**quoted(CHANGED)))


def test_load_arguments_set_every_setting(make_server):
    assert_changed(make_server(module_args=[x for kv in quoted(CHANGED).items() for x in kv]))


def test_config_set_and_rewrite_keep_every_setting(make_server):
    server = make_server()
    with server.wire() as w:
        for name, value in CHANGED.items():
            assert w.ok("CONFIG", "SET", name, value) == b"OK"
        assert_changed(server)
        w.ok("CONFIG", "REWRITE")
    server.restart()
    assert_changed(server)


def test_module_loadex_sets_every_setting(make_server):
    server = make_server(load_module=False)
    with server.wire() as w:
        args = [x for name, value in CHANGED.items() for x in ("CONFIG", name, value)]
        w.ok("MODULE", "LOADEX", str(module_path()), *args)
    assert_changed(server)


@pytest.mark.parametrize(
    "name, value",
    [(n, v) for n in DEFAULTS for v in ("", "x", "1.5", str(2**63))]
    + [("dq.lease", 0), ("dq.lease", -1), ("dq.lease", 2**53), ("dq.retries", -2), ("dq.retain", -1), ("dq.retain", 2**53)]
    + [("dq.retain-count", -1), ("dq.max-payload", -1), ("dq.tick-budget-us", -1)],
)
def test_bad_values_are_refused(server, name, value):
    w = server.wire()
    before = settings(w)
    assert isinstance(w.call("CONFIG", "SET", name, value), Error)
    assert settings(w) == before


def test_a_bad_load_argument_stops_the_load(make_server):
    server = make_server(load_module=False)
    w = server.wire()
    assert isinstance(w.call("MODULE", "LOADEX", str(module_path()), "CONFIG", "dq.lease", "x"), Error)
    assert isinstance(w.call("MODULE", "LOAD", str(module_path()), "dq.lease", "x"), Error)
    assert isinstance(w.call("MODULE", "LOAD", str(module_path()), "nonsense"), Error)
    assert isinstance(w.call("DQ.LEN", "q"), Error)
    w.ok("MODULE", "LOAD", str(module_path()))
    assert w.ok("DQ.LEN", "q") == 0


def test_config_changes_apply_to_new_queues_only(make_server):
    server = make_server()
    q = Queue(server.client(), "old")
    q.do("CREATE", "RETRIES", 9)
    server.client().execute_command("CONFIG", "SET", "dq.lease", 5000)
    assert (q.info()["lease"], q.info()["retries"]) == (30000, 9)
    new = Queue(server.client(), "new")
    new.do("CREATE", "RETRIES", 1)
    assert (new.info()["lease"], new.info()["retries"]) == (5000, 1)


def test_a_replica_uses_the_defaults_of_its_primary(make_server):
    """A queue created by SEND is the same everywhere, even if a replica has other defaults."""
    primary, replica = make_server(**{"dq.lease": 1111}), make_server(**{"dq.lease": 2222, "dq.max-payload": 10})
    replica.client().execute_command("REPLICAOF", "127.0.0.1", primary.port)
    Queue(primary.client(), "q").send(b"x" * 100)
    # Not by WAIT: Valkey 9 counts a replica that has received the data and has yet to load it.
    wait_for(lambda: replica.info("replication")["master_link_status"] == "up", 10, "the link")
    twin = Queue(replica.client(), "q")
    wait_for(lambda: twin.len() == 1, 10, "the message")
    assert (twin.info()["lease"], twin.len()) == (1111, 1)


def test_max_payload_limits_every_command_that_takes_a_payload(make_server):
    small = make_server(**{"dq.max-payload": 10})
    q = Queue(small.client(), "q")
    q.send(b"x" * 10, "ID", "a")
    before = q.digest()
    for call in (
        ("SEND", b"x" * 11),
        ("MSEND", 2, "x", b"x" * 11),
        ("UPDATE", "a", b"x" * 11),
        ("GROUPPUSH", '{"a":"long"}', "GROUPBY", 1, "a"),
        ("SCHEDULE", "n", "EVERY", 5, "PAYLOAD", b"x" * 11),
    ):
        assert q.fails(*call), call
    assert q.digest() == before


@pytest.mark.parametrize(
    "text",
    ["", "x", "EXP", "EXP x", "EXP -1", "FIXED 5 MAXBACKOFF", "FIXED 5 JITTER 101", "FIXED 5 LEASE 1", "NONE 5", "EXP 1 EXP 1"],
)
def test_a_bad_backoff_is_refused_and_says_why(make_server, text):
    server = make_server()
    with server.wire() as w:
        reply = w.call("CONFIG", "SET", "dq.backoff", text)
        assert isinstance(reply, Error) and "must be NONE or 'kind ms [MAXBACKOFF ms] [JITTER percent]'" in reply
        assert settings(w)["dq.backoff"] == b"FIXED 0"


def backoff_of(q):
    info = q.info()
    return info["backoff"].decode(), info["maxbackoff"], info["jitter"]


def test_a_queue_that_says_nothing_of_backoff_has_the_setting(make_server):
    server = make_server(appendonly="yes", **{"dq.backoff": None})
    client = server.client()
    usual = ("EXP 1000", 3_600_000, 20)
    sent, made = Queue(client, "sent"), Queue(client, "made")
    sent.send("x")
    made.do("CREATE", "RETRIES", 9)
    assert backoff_of(sent) == backoff_of(made) == usual
    for name, options, expected in [
        ("own", ("BACKOFF", "FIXED", 5), ("FIXED 5", 0, 0)),
        ("none", ("BACKOFF", "FIXED", 0), ("FIXED 0", 0, 0)),
        ("most", ("MAXBACKOFF", 10), ("EXP 1000", 10, 20)),
        ("even", ("JITTER", 0), ("EXP 1000", 3_600_000, 0)),
    ]:
        q = Queue(client, name)
        q.do("CREATE", *options)
        assert backoff_of(q) == expected
    # The queues that exist keep their backoff, also if another default holds when they are loaded.
    client.config_set("dq.backoff", "NONE")
    assert backoff_of(sent) == usual
    later = Queue(client, "later")
    later.send("x")
    assert backoff_of(later) == ("FIXED 0", 0, 0)
    server.restart(crash=True)
    client = server.client()
    assert backoff_of(Queue(client, "sent")) == usual
    assert backoff_of(Queue(client, "later")) == ("FIXED 0", 0, 0)


def test_attempts_of_a_usual_queue_are_seconds_apart(make_server):
    server = make_server(**{"dq.backoff": None})
    q = Queue(server.client(), "q")
    q.do("CREATE", "CLOCK", "MANUAL")
    q.send("x", "ID", "a")
    waits = []
    for _ in range(3):
        q.nack(q.one().receipt)
        row = q.get("a")
        now = q.info()["now"]
        waits.append(row["due-at"] - now)
        assert row["state"] == b"retry"
        q.tick("TO", row["due-at"])
    for wait, expected in zip(waits, (1000, 2000, 4000)):
        assert abs(wait - expected) <= expected / 5
    q.nack(q.one().receipt)
    assert q.state("a") == "dead"
