"""BREAKER: too many failures stop a group, and one message at a time tries it later."""

import pytest

from tests.harness.replies import Queue
from tests.harness.scene import START, Scene, text
from tests.harness.waiting import waits_after, wakes_at

RULE = ("BREAKER", 2, "PER", 100, "OPEN", 50, "MAX", 150, "RETRIES", -1)
GROUPS = pytest.mark.parametrize("group", ["g", None])


def fail(q, times=1):
    """Fetches and nacks one message after the other. Returns their ids."""
    ids = []
    for _ in range(times):
        m = q.one()
        assert q.nack(m.receipt) == 1
        ids.append(text(m.id))
    return ids


def opened(r, key, group="g", options=RULE):
    """A queue with the messages a and b, whose breaker has opened at START."""
    q = Scene(r, key, *options)
    for id in ("a", "b"):
        q.add(id, *(("GROUP", group) if group else ()))
    fail(q, 2)
    return q


def breaker(q, group):
    """The state of the breaker in DQ.GROUPS, or in the explanation of `a` for the ungrouped messages."""
    if group:
        row = q.groups()[group]
        return row["breaker"], row["open-until"]
    told = q.explain("a")
    if told["code"] == "breaker-open":
        return "open", told["until"]
    return ("half-open" if told["code"] == "breaker-probing" else "closed"), None


@GROUPS
def test_nothing_is_delivered_while_it_is_open(r, key, group):
    q = opened(r, key, group)
    q.add("other", "GROUP", "other")
    assert breaker(q, group) == ("open", START + 50)
    assert q.info()["breakers-open"] == 1
    assert q.counts() == ({"blocked": 2, "ready": 1} if group else {"ready": 3})
    assert q.take("COUNT", 10) == ["other"]
    assert q.explain("a") | {"why": ""} == {"code": "breaker-open", "why": "", "until": START + 50, "by": group}
    q.advance(49)
    assert q.take("COUNT", 10) == [] and q.peek("COUNT", 10) == []
    q.advance(1)
    assert q.info()["breakers-open"] == 0
    assert len(q.peek("COUNT", 10)) == 1
    assert q.take("COUNT", 10) == ["a"]


@pytest.mark.parametrize("wait, state", [(99, "open"), (100, "closed")])
def test_the_window_is_exact(r, key, wait, state):
    q = Scene(r, key, *RULE)
    q.fill("g", "a")
    fail(q)
    q.advance(wait)
    fail(q)
    assert breaker(q, "g")[0] == state


@GROUPS
def test_the_ack_of_the_probe_closes_it(r, key, group):
    q = opened(r, key, group)
    q.advance(50)
    probe = q.one()
    assert q.take("COUNT", 10) == []
    told = q.explain("b")
    assert (told["code"], told["by"]) == ("breaker-probing", text(probe.id))
    if group:
        assert q.groups()["g"]["breaker"] == "half-open"
        assert q.groups()["g"]["open-until"] is None
        assert q.counts() == {"running": 1, "blocked": 1}
    assert q.ack(probe.receipt) == 1
    fail(q)
    assert q.code("b") == "next", "the failures are forgotten"
    fail(q)
    assert q.code("b") == "breaker-open"


@GROUPS
def test_the_failure_of_the_probe_doubles_the_time_up_to_max(r, key, group):
    q = opened(r, key, group)
    at = START
    for length in (50, 100, 150, 150):
        at += length
        assert breaker(q, group) == ("open", at)
        q.tick("TO", at)
        fail(q)


def test_without_max_it_is_always_open_for_as_long(r, key):
    q = opened(r, key, options=("BREAKER", 2, "PER", 1, "OPEN", 10, "RETRIES", -1))
    assert q.info()["breaker"] == b"2 PER 1 OPEN 10 MAX 10"
    for at in (START + 10, START + 20, START + 30):
        assert breaker(q, "g") == ("open", at)
        q.tick("TO", at)
        fail(q)


def test_the_lease_end_of_the_probe_is_a_failure(r, key):
    q = opened(r, key, options=RULE + ("LEASE", 30))
    q.advance(50)
    q.one()
    q.advance(30)
    assert breaker(q, "g") == ("open", START + 180)


@GROUPS
@pytest.mark.parametrize("way", ["SILENT", "FATAL", "CANCEL", "PURGE"])
def test_a_probe_may_decide_nothing(r, key, group, way):
    q = opened(r, key, group)
    q.advance(50)
    probe = q.one()
    if way == "CANCEL":
        q.do("CANCEL", probe.id)
    elif way == "PURGE":
        q.do("PURGE", "STATE", "running")
    else:
        q.nack(probe.receipt, way)
    assert len(q.take("COUNT", 10)) == 1, "the next one is let out"
    assert q.take("COUNT", 10) == []


def test_messages_that_ran_before_decide_nothing(r, key):
    q = Scene(r, key, *RULE, "GROUPCONCURRENCY", 9)
    q.fill("g", *"abcdef")
    old = q.hold("COUNT", 6)
    receipts = {id: m.receipt for id, m in old.items()}
    q.nack(receipts["a"], receipts["b"])
    q.ack(receipts["c"])
    assert breaker(q, "g") == ("open", START + 50)
    q.advance(50)
    q.nack(receipts["d"], receipts["e"])
    q.ack(receipts["f"])
    assert q.groups()["g"]["breaker"] == "half-open"
    assert len(q.take("COUNT", 10)) == 1


def test_one_message_is_let_out_whatever_concurrency_and_batch_sizes_say(r, key):
    q = opened(r, key, options=RULE + ("GROUPCONCURRENCY", 9))
    q.advance(50)
    assert len(q.take("GROUP", "g", "COUNT", 10)) == 1
    assert q.take("COUNT", 10, "PERGROUP", 5) == []


@GROUPS
def test_noack_gets_nothing_from_a_half_open_one(r, key, group):
    q = opened(r, key, group)
    q.advance(50)
    q.add("other", "GROUP", "other")
    assert q.take("NOACK", "COUNT", 10) == ["other"]
    if group:
        assert q.take("GROUP", "g", "NOACK", "COUNT", 10) == []
    assert q.take("COUNT", 10) == ["a"]


@GROUPS
@pytest.mark.parametrize("wait", [0, 50])
def test_resume_closes_it(r, key, group, wait):
    q = opened(r, key, group)
    q.advance(wait)
    q.do("RESUME", *(("GROUP", group) if group else ()))
    assert q.code("a") == "next" and q.info()["breakers-open"] == 0
    fail(q)
    assert q.take() != []


def test_resume_of_the_queue_leaves_the_groups(r, key):
    q = opened(r, key)
    q.do("RESUME")
    assert breaker(q, "g")[0] == "open"


def test_alter_to_none_closes_and_to_another_keeps_what_is_open(r, key):
    q = opened(r, key)
    q.do("ALTER", "BREAKER", 5, "PER", 5, "OPEN", 500)
    assert breaker(q, "g") == ("open", START + 50)
    q.do("ALTER", "BREAKER", 0)
    assert breaker(q, "g") == ("closed", None)
    assert q.info()["breaker"] is None
    assert q.take() == ["a"]


def test_an_open_group_exists_without_messages(r, key):
    q = opened(r, key)
    q.do("PURGE")
    assert q.groups()["g"]["breaker"] == "open"
    assert q.info()["groups"] == 1
    q.advance(50)
    assert q.groups()["g"]["breaker"] == "half-open"
    q.fill("g", "c")
    q.ack(q.one().receipt)
    assert q.groups() == {}


def test_a_failure_that_kills_counts_and_rejections_do_not(r, key):
    q = Scene(r, key, *RULE[:-1], 0)
    q.fill("g", "a", "b", "c", "d")
    q.nack(q.one().receipt, "FATAL")
    q.nack(q.one().receipt, "SILENT")
    fail(q, 2)
    assert q.counts() == {"dead": 3, "blocked": 1}
    assert breaker(q, "g")[0] == "open"


def test_a_pause_is_named_before_it_and_the_head_after_it(r, key):
    q = opened(r, key)
    q.do("PAUSE", "GROUP", "g")
    assert q.code("b") == "group-paused"
    q.do("RESUME", "GROUP", "g")
    assert q.code("b") == "behind-head"


@GROUPS
@pytest.mark.parametrize("wait", [0, 50])
def test_nothing_runs_in_a_copy(r, key, group, wait):
    q = opened(r, key, group)
    q.advance(wait)
    if wait:
        q.one()
    r.copy(key, key + b":copy")
    assert len(Scene.over(r, key + b":copy").take("COUNT", 10)) == (1 if wait else 0)


@GROUPS
def test_a_blocked_consumer_gets_the_probe_when_it_is_half_open(server, r3, key, group):
    q = Queue(r3, key)
    q.server = server
    q.do("CREATE", "BREAKER", 1, "PER", 1000, "OPEN", 400, "RETRIES", -1)
    for payload in ("a", "b"):
        q.send(payload, *(("GROUP", group) if group else ()))
    first = q.one()
    wire, [_, info] = waits_after(q, ("NACK", first.receipt), ("INFO",), fetch=("COUNT", 10))
    others = [waits_after(q)[0] for _ in range(3)]
    at = dict(zip(info[::2], info[1::2], strict=True))[b"now"] if isinstance(info, list) else info[b"now"]
    given = wakes_at(q, wire, at + 390)
    assert len(given) == 1
    assert all(other.silent(0.1) for other in others), "never more than one probe"
    q.ack(given[0].receipt)
    assert len(q.fetch("COUNT", 10)) + 1 <= 2


def test_a_hundred_open_groups_cost_the_others_nothing(r, key):
    q = Scene(r, key, "BREAKER", 1, "PER", 9, "OPEN", 1000, "RETRIES", -1)
    for n in range(100):
        q.add(f"m{n}", "GROUP", f"g{n}")
    receipts = q.receipts("COUNT", 100)
    q.nack(*receipts)
    assert q.info()["breakers-open"] == 100
    q.add("plain")
    assert q.take("COUNT", 1000) == ["plain"]
    q.advance(1000)
    assert q.info()["breakers-open"] == 0
    assert q.take("COUNT", 1000) == [f"m{n}" for n in range(100)]
