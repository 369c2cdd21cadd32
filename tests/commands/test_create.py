"""DQ.CREATE and DQ.ALTER with every option they take."""

import pytest

from tests.harness.replies import Manual, Queue

TOP = 2**53 - 1

# Rows of (arguments, name in INFO, value in INFO)
OPTIONS = [
    (("LEASE", 1), "lease", 1),
    (("LEASE", TOP), "lease", TOP),
    (("RETRIES", 0), "retries", 0),
    (("RETRIES", -1), "retries", -1),
    (("RETRIES", 25), "retries", 25),
    (("BACKOFF", "FIXED", 500), "backoff", b"FIXED 500"),
    (("BACKOFF", "LINEAR", 20), "backoff", b"LINEAR 20"),
    (("BACKOFF", "EXP", 1000), "backoff", b"EXP 1000"),
    (("BACKOFF", "exp", 0), "backoff", b"EXP 0"),
    (("MAXBACKOFF", 60000), "maxbackoff", 60000),
    (("JITTER", 0), "jitter", 0),
    (("JITTER", 100), "jitter", 100),
    (("TTL", 5), "ttl", 5),
    (("RETAIN", 7), "retain", 7),
    (("RETAINCOUNT", 0), "retaincount", 0),
    (("DEADRETAIN", 8), "deadretain", 8),
    (("DEADCOUNT", 9), "deadcount", 9),
    (("DEDUP", 10), "dedup", 10),
    (("MAXLEN", 11), "maxlen", 11),
    (("MAXBYTES", 12), "maxbytes", 12),
    (("MAXRUNNING", 13), "maxrunning", 13),
    (("RATE", 3, "PER", 1000), "rate", b"3 PER 1000"),
    (("rate", 3, "per", 1000), "rate", b"3 PER 1000"),
    (("RATE", 0), "rate", None),
    (("GROUPCONCURRENCY", 2), "groupconcurrency", 2),
    (("ONRETRY", "SKIP"), "onretry", b"SKIP"),
    (("onretry", "block"), "onretry", b"BLOCK"),
    (("ONDEAD", "BLOCK"), "ondead", b"BLOCK"),
    (("ONDEAD", "continue"), "ondead", b"CONTINUE"),
    (("BREAKER", 3, "PER", 1000, "OPEN", 50), "breaker", b"3 PER 1000 OPEN 50 MAX 50"),
    (("breaker", 3, "per", 1000, "open", 50, "max", 200), "breaker", b"3 PER 1000 OPEN 50 MAX 200"),
    (("BREAKER", 0), "breaker", None),
    (("MAXTIMEOUTS", 3), "maxtimeouts", 3),
    (("ERRORS", 100), "errors", 100),
    (("SENDS", "OFF"), "sends", b"OFF"),
    (("sends", "on"), "sends", b"ON"),
]

DEFAULTS = {
    "lease": 30000,
    "retries": 3,
    "backoff": b"FIXED 0",
    "maxbackoff": 0,
    "jitter": 0,
    "ttl": 0,
    "retain": 0,
    "retaincount": 10000,
    "deadretain": 0,
    "deadcount": 0,
    "dedup": 0,
    "maxlen": 0,
    "maxbytes": 0,
    "maxrunning": 0,
    "rate": None,
    "groupconcurrency": 1,
    "onretry": b"BLOCK",
    "ondead": b"CONTINUE",
    "clock": b"SERVER",
    "breaker": None,
    "sends": b"ON",
    "maxtimeouts": 0,
    "errors": 0,
}


def options_of(info):
    return {name: info[name] for name in DEFAULTS}


def test_create_makes_an_empty_queue_of_the_native_type(r, key):
    q = Queue(r, key)
    assert q.do("CREATE") == b"OK"
    assert r.type(key) == b"dqueue-rs"
    assert q.len() == 0
    assert options_of(q.info()) == DEFAULTS


def test_create_with_nx_leaves_a_queue_that_exists(r, key):
    q = Queue(r, key)
    assert q.do("CREATE", "NX", "LEASE", 5) == b"OK"
    assert q.do("CREATE", "LEASE", 6, "nx") is None
    assert q.info()["lease"] == 5
    assert q.fails("CREATE", "NX", "LEASE", 0).startswith("LEASE must be")
    assert q.fails("CREATE", "NX", "NX") == "NX is given twice"
    assert q.fails("ALTER", "NX", "LEASE", 5).startswith("unknown option 'NX';")


@pytest.mark.parametrize("args, name, value", OPTIONS)
def test_create_takes_the_option(r, key, args, name, value):
    q = Queue(r, key)
    q.do("CREATE", *args)
    assert options_of(q.info()) == DEFAULTS | {name: value}


@pytest.mark.parametrize("args, name, value", OPTIONS)
def test_alter_takes_the_option(r, key, args, name, value):
    q = Queue(r, key)
    q.do("CREATE", "RATE", 9, "PER", 9)
    assert q.do("ALTER", *args) == b"OK"
    assert options_of(q.info()) == DEFAULTS | {"rate": b"9 PER 9"} | {name: value}


def test_all_options_together_in_any_order_and_case(r, key):
    q = Queue(r, key)
    chosen = {}
    args = []
    for option, name, value in reversed(OPTIONS):
        if name not in chosen:
            chosen[name] = value
            args += [str(a).lower() for a in option]
    q.do("CREATE", *args)
    assert options_of(q.info()) == DEFAULTS | chosen


def test_alter_changes_only_what_is_named(r, key):
    q = Queue(r, key)
    q.do("CREATE", "LEASE", 5, "TTL", 6)
    q.do("ALTER", "TTL", 7, "MAXLEN", 8)
    assert options_of(q.info()) == DEFAULTS | {"lease": 5, "ttl": 7, "maxlen": 8}


def test_a_manual_clock_starts_at_zero_by_default(r, key):
    q = Queue(r, key)
    q.do("CREATE", "CLOCK", "manual", "LEASE", 9)
    assert (q.info()["now"], q.info()["lease"]) == (0, 9)


def test_send_to_a_missing_key_makes_the_queue(r, key):
    q = Queue(r, key)
    q.send()
    assert r.type(key) == b"dqueue-rs"
    assert options_of(q.info()) == DEFAULTS


def test_an_emptied_queue_keeps_its_key_and_options(r, key):
    q = Queue(r, key)
    q.do("CREATE", "LEASE", 77)
    q.send()
    assert q.ack(q.one().receipt) == 1
    assert r.exists(key) == 1
    assert q.info()["lease"] == 77


def test_alter_applies_to_messages_that_are_already_in_the_queue(r, key):
    q = Manual(r, key, "LEASE", 100, "RETRIES", 5)
    q.send("plain", "ID", "plain")
    q.send("own", "ID", "own", "RETRIES", 4, "LEASE", 300)
    q.do("ALTER", "LEASE", 50, "RETRIES", 1)
    plain, own = q.fetch("COUNT", 2, "WITHMETA")
    assert (plain.meta["lease-until"], plain.meta["retries-left"]) == (50, 1)
    assert (own.meta["lease-until"], own.meta["retries-left"]) == (300, 4)


def test_alter_does_not_change_running_leases_and_backoffs(r, key):
    q = Manual(r, key, "LEASE", 100, "BACKOFF", "FIXED", 40)
    q.send("a", "ID", "a")
    q.send("b", "ID", "b")
    first, _ = q.fetch("COUNT", 2)
    q.nack(first.receipt)
    q.do("ALTER", "LEASE", 5, "BACKOFF", "FIXED", 1)
    assert q.get("a")["due-at"] == 40
    assert q.get("b")["lease-until"] == 100


def test_alter_of_ttl_expires_pending_messages_at_once(r, key):
    q = Manual(r, key)
    q.send("a", "ID", "a")
    q.send("b", "ID", "b", "TTL", 1000)
    q.advance(50)
    q.do("ALTER", "TTL", 20)
    q.advance(0)
    assert q.state("a") == "dead"
    assert q.state("b") == "ready"


def test_alter_of_maxlen_removes_no_message(r, key):
    q = Manual(r, key)
    q.do("MSEND", 3, "a", "b", "c")
    q.do("ALTER", "MAXLEN", 1)
    assert q.len() == 3
    assert q.fails("SEND", "d").startswith("QUEUEFULL")
