"""PARENT, CHILDREN and DQ.CHILDREN: a message waits until others of this or other queues have ended."""

import pytest
import redis

from tests.harness.replies import Manual, Queue, as_map, as_maps
from tests.harness.server import wait_for

COUNTS = "total", "pending", "finished", "dead", "cancelled", "removed"


@pytest.fixture
def q(r, key):
    return Manual(r, key, "RETRIES", 0, "LEASE", 1000, start=1000)


@pytest.fixture
def other(r, key):
    return Manual(r, key + b":children", "RETRIES", 0, "LEASE", 1000, start=5000)


def child(queue, of, id, *options, parent="p"):
    return queue.send("c", "ID", id, "PARENT", of.key, parent, *options)


def counts(q, id="p"):
    told = as_map(q.get(id)["children"])
    return {name: n for name, n in told.items() if n}


def explained(q, id="p"):
    told = as_map(q.do("EXPLAIN", id))
    return told["code"], told["why"], told["by"]


def listed(q, id="p", *options):
    cursor, page = q.do("CHILDREN", id, *options)
    return cursor, [tuple(as_map(one).values()) for one in page]


def test_a_parent_is_due_as_of_the_end_of_its_last_child(q):
    q.send("x", "ID", "p", "CHILDREN", 3)
    assert (q.state("p"), q.len("held"), q.fetch()) == ("held", 1, [])
    for id in "abc":
        child(q, q, id)
    assert explained(q) == (b"children-open", b"It waits for 3 children, of which 0 have ended.", b"a")
    q.advance(5)
    q.ack(q.one().receipt)
    q.do("CANCEL", "b")
    assert counts(q) == {"total": 3, "pending": 1, "finished": 1, "cancelled": 1}
    q.advance(7)
    assert q.do("FETCH", "NOACK")[0][0] == b"c"
    m = q.one("WITHMETA")
    assert (m.id, m.meta["due-at"]) == (b"p", 1012)
    assert as_map(m.meta["children"]) == dict(zip(COUNTS, (3, 0, 2, 0, 1, 0)))
    assert m.meta["parent"] is None


def test_children_may_be_in_other_queues_and_are_listed_there(q, other):
    q.send("x", "ID", "p", "CHILDREN", 4)
    for id in ("a", "b", "c"):
        child(other, q, id, "RETAIN", 1000)
    child(q, q, "d")
    m = other.one("WITHMETA")
    assert as_map(m.meta["parent"]) == {"key": q.key, "id": b"p", "ondead": b"HOLD"}
    other.do("ACK", m.receipt, "RESULT", "640x480")
    other.do("NACK", other.one().receipt, "FATAL", "ERROR", "no image")
    key = other.key
    wanted = [
        (key, b"a", b"finished", b"640x480", None),
        (key, b"b", b"dead", None, b"no image"),
        (key, b"c", b"ready", None, None),
        (q.key, b"d", b"ready", None, None),
    ]
    assert listed(q) == (b"0", wanted)
    cursor, seen = b"0", []
    for _ in range(9):
        cursor, page = listed(q, "p", "CURSOR", cursor, "COUNT", 1)
        seen += page
        if cursor == b"0":
            break
    assert seen == wanted
    assert counts(q) == {"total": 4, "pending": 2, "finished": 1, "dead": 1}
    assert explained(q)[1] == b"It waits for 4 children, of which 1 have ended and 1 are dead and hold it."
    assert explained(q)[2] == b"b"


def test_a_dead_child_is_redriven_and_counts_once(q, other):
    q.send("x", "ID", "p", "CHILDREN", 1)
    child(other, q, "a")
    other.do("NACK", other.one().receipt)
    assert (q.state("p"), counts(q)) == ("held", {"total": 1, "dead": 1})
    assert other.do("REDRIVE", "ALL") == 1
    assert counts(q) == {"total": 1, "pending": 1}
    other.ack(other.one().receipt)
    assert (q.state("p"), counts(q)) == ("ready", {"total": 1, "finished": 1})


@pytest.mark.parametrize("on_dead", ["GO", "DIE"])
def test_ondead_says_what_a_death_means(q, other, on_dead):
    q.send("x", "ID", "p", "CHILDREN", 2 if on_dead == "DIE" else 1)
    child(other, q, "a", "ONDEAD", on_dead)
    other.do("NACK", other.one().receipt)
    assert q.state("p") == ("dead" if on_dead == "DIE" else "ready")
    assert q.get("p")["reason"] == (b"children" if on_dead == "DIE" else None)
    assert counts(q)["dead"] == 1


ENDS = "ack ackcost acksend fetch-ack noack cancel find-cancel expiry timeout purge purge-all purge-state deadto replaced".split()


@pytest.mark.parametrize("how", ENDS)
def test_every_way_to_end_counts(q, other, how):
    q.send("x", "ID", "p", "CHILDREN", 1)
    options = ["TTL", 50] if how == "expiry" else []
    on_dead = ["ONDEAD", "GO"] if how in ("expiry", "timeout") else []
    child(other, q, "a", *options, *on_dead)
    if how == "deadto":
        other.do("ALTER", "DEADTO", other.key + b":dead")
    if how in ("ack", "ackcost", "acksend", "fetch-ack", "timeout", "deadto"):
        receipt = other.one().receipt
    match how:
        case "ack":
            other.ack(receipt)
        case "ackcost":
            other.do("ACK", receipt, "COST", 5)
        case "acksend":
            other.do("ACKSEND", receipt, "NEXT", q.key, "y", "DELAY", 9999)
        case "fetch-ack":
            other.do("FETCH", "ACK", 1, receipt)
        case "noack":
            other.do("FETCH", "NOACK")
        case "cancel":
            other.do("CANCEL", "a")
        case "find-cancel":
            other.do("FIND", "ready", "DO", "CANCEL")
        case "expiry":
            other.advance(50)
        case "timeout":
            other.advance(1000)
        case "purge":
            other.do("FIND", "ready", "DO", "PURGE")
        case "purge-all":
            other.do("PURGE")
        case "purge-state":
            other.do("PURGE", "STATE", "ready")
        case "deadto":
            other.do("NACK", receipt, "FATAL")
        case "replaced":
            other.send("z", "ID", "a", "REPLACE")
    assert q.state("p") == "ready", counts(q)
    assert sum(counts(q).values()) == 2


def many_children(q, other, count):
    q.send("x", "ID", "p", "CHILDREN", count, "PRIORITY", 1)
    for _ in range(0, count, 1000):
        other.do("MSEND", 1000, *["x"] * 1000, "PARENT", q.key, "p")


def test_a_parent_of_very_many_is_delivered_in_the_millisecond_of_the_last_end(q, other):
    """The cost does not depend on how many there are: the millisecond is that of the clock of its queue."""
    many_children(q, other, 20_000)
    for _ in range(19):
        other.do("FETCH", "COUNT", 1000, "NOACK")
    q.advance(123)
    other.do("FETCH", "COUNT", 999, "NOACK")
    assert (q.fetch(), counts(q)["pending"]) == ([], 1)
    other.do("FETCH", "NOACK")
    m = q.one("WITHMETA")
    assert (m.id, m.meta["due-at"]) == (b"p", 1123)


@pytest.mark.parametrize("state", ["all", "ready", "with many parents"])
def test_a_purge_of_very_many_children_lets_their_parents_go(q, other, state):
    many_children(q, other, 5000)
    if state == "with many parents":
        for n in range(1000):
            q.send("x", "ID", n, "CHILDREN", 1)
            other.send("x", "PARENT", q.key, n)
    other.do("PURGE", *(["STATE", "ready"] if state == "ready" else []))
    assert counts(q) == {"total": 5000, "removed": 5000}
    assert q.len("held") == 0


def test_replace_and_rerun_of_a_child_count_once(q, other):
    q.send("x", "ID", "p", "CHILDREN", 2)
    child(other, q, "a")
    child(other, q, "a", "REPLACE")
    m = other.one()
    child(other, q, "a", "REPLACE", "RERUN")
    other.ack(m.receipt)
    assert counts(q) == {"total": 2, "pending": 2}
    other.ack(other.one().receipt)
    assert counts(q) == {"total": 2, "pending": 1, "finished": 1}


def test_a_child_that_sends_children_in_its_ack(q, other):
    q.send("x", "ID", "p", "CHILDREN", 3)
    child(other, q, "a")
    more = [w for id in "bc" for w in ("NEXT", other.key, "y", "ID", id, "PARENT", q.key, "p")]
    assert other.do("ACKSEND", other.one().receipt, *more) == [b"b", b"c"]
    assert counts(q) == {"total": 3, "pending": 2, "finished": 1}
    other.ack(other.one().receipt, other.one().receipt)
    assert q.one().id == b"p"


def test_parents_of_parents_are_released_or_die_one_after_the_other(q, other):
    for on_dead, state in (("HOLD", "ready"), ("DIE", "dead")):
        q.do("PURGE")
        q.send("x", "ID", "top", "CHILDREN", 1)
        q.send("x", "ID", "mid", "CHILDREN", 1, "PARENT", q.key, "top", "ONDEAD", on_dead)
        child(other, q, "leaf", "ONDEAD", on_dead, parent="mid")
        m = other.one()
        if on_dead == "HOLD":
            other.ack(m.receipt)
            assert (q.state("mid"), q.state("top")) == ("ready", "held")
            q.ack(q.one().receipt)
        else:
            other.do("NACK", m.receipt)
            assert q.state("mid") == "dead"
        assert q.state("top") == state


@pytest.mark.parametrize("die", [True, False])
def test_a_long_row_of_parents_ends_without_harm(server, key, die):
    q = Queue(server.client(), key)
    q.do("CREATE", "RETRIES", 0)
    count = 3000
    for n in range(count):
        q.send("x", "ID", n, "CHILDREN", 1, "PARENT", key, n + 1, "ONDEAD", "DIE" if die else "GO", "DELAY", 0)
    q.send("x", "ID", count, "CHILDREN", 1)
    child(q, q, "leaf", "ONDEAD", "DIE" if die else "GO", parent=0)
    q.do("NACK", q.one().receipt)
    if die:
        wait_for(lambda: q.state(count) == "dead", timeout=60)
        assert q.len("dead") == count + 2
    else:
        assert (q.state(0), q.state(1), q.len("held")) == ("ready", "held", count)


def test_a_parent_that_has_gone_or_never_was_changes_nothing(q, other, r):
    child(other, q, "a", parent="nobody")
    q.send("x", "ID", "p", "CHILDREN", 1)
    child(other, q, "b")
    q.do("CANCEL", "p")
    for key in (b"none", b"string"):
        r.set(b"string", "text")
        other.send("x", "PARENT", key, "p")
    assert other.do("FETCH", "NOACK", "COUNT", 9)
    assert (r.exists(b"none"), r.get(b"string")) == (0, b"text")
    assert listed(q, "nobody") == (b"0", []) == listed(q, "p")


def test_a_parent_sent_after_its_children_counts_what_ends_from_then_on(q):
    for id in "ab":
        child(q, q, id)
    q.ack(q.one().receipt)
    q.send("x", "ID", "p", "CHILDREN", 1)
    assert listed(q) == (b"0", [])
    q.ack(q.one().receipt)
    assert q.one().id == b"p"


def test_more_children_than_it_waits_for(q):
    q.send("x", "ID", "p", "CHILDREN", 2)
    for id in "abc":
        child(q, q, id)
    q.do("FETCH", "NOACK", "COUNT", 2)
    assert q.state("p") == "ready"
    q.do("CANCEL", "c")
    assert counts(q) == {"total": 2, "finished": 2}


def test_delay_park_batch_and_group_go_with_children(q):
    q.send("x", "ID", "p", "CHILDREN", 1, "DELAY", 500, "PARK", "FOR", 100, "GROUP", "g", "SCORE", 0)
    q.send("y", "ID", "second", "GROUP", "g", "SCORE", 5)
    assert q.one("WITHMETA").id == b"second"
    child(q, q, "a")
    q.do("CANCEL", "a")
    assert explained(q)[0] == b"parked"
    q.advance(100)
    assert (q.state("p"), q.get("p")["due-at"]) == ("delayed", 1500)


def test_a_replaced_parent_keeps_what_was_counted(q):
    q.send("x", "ID", "p", "CHILDREN", 2)
    child(q, q, "a")
    q.do("CANCEL", "a")
    q.send("new", "ID", "p", "REPLACE", "CHILDREN", 2)
    assert counts(q) == {"total": 2, "pending": 1, "cancelled": 1}
    child(q, q, "b")
    q.do("CANCEL", "b")
    assert q.one().payload == b"new"


def test_the_greatest_number_of_children(q):
    q.send("x", "ID", "huge", "CHILDREN", 2**53 - 1)
    assert counts(q, "huge") == {"total": 2**53 - 1, "pending": 2**53 - 1}


def test_msend_and_grouppush_take_the_options(q):
    q.send("x", "ID", "p", "CHILDREN", 3)
    q.do("MSEND", 2, "a", "b", "PARENT", q.key, "p")
    q.do("GROUPPUSH", '{"g": 1}', "GROUPBY", 1, "g", "PARENT", q.key, "p")
    assert len(listed(q)[1]) == 3
    q.do("FETCH", "NOACK", "COUNT", 3)
    assert q.one().id == b"p"


def test_a_copy_of_children_does_not_count_and_find_shows_them(q, other, r):
    q.send("x", "ID", "p", "CHILDREN", 2)
    child(other, q, "a")
    r.copy(other.key, other.key + b":copy")
    Queue(r, other.key + b":copy").do("PURGE")
    assert counts(q) == {"total": 2, "pending": 2}
    [found] = as_maps(other.do("FIND", "ready", "ID", "a")[1])
    assert as_map(found["parent"])["id"] == b"p"


def test_find_finds_the_children_of_a_parent(q, other):
    q.send("x", "ID", "p", "CHILDREN", 9)
    for id, parent in ("a", "p"), ("b", "other"), ("c", "p"):
        child(other, q, id, parent=parent)
    child(other, q, "d", "ONDEAD", "GO", "DELAY", 50)
    other.send("x", "ID", "e")

    def find(state, *words):
        return other.do("FIND", state, "PARENT", *words, "IDS")

    assert find("ready", q.key, "p") == [b"0", [b"a", b"c"]]
    assert find("delayed", q.key, "p", "COUNT", 1) == [b"0", [b"d"]]
    assert find("ready", other.key, "p") == find("ready", q.key, "nobody") == [b"0", []]
    assert q.do("FIND", "ready", "PARENT", q.key, "p", "IDS") == [b"0", []]
    assert other.do("FIND", "ready", "PARENT", q.key, "p", "DO", "CANCEL") == [b"0", 2]
    assert find("ready", q.key, "p") == [b"0", []]
    assert counts(q) == {"total": 9, "pending": 7, "cancelled": 2}
    assert other.fails("FIND", "ready", "PARENT", q.key).startswith("PARENT needs a value")


@pytest.fixture
def limited(r):
    """Makes a user with rights on some keys: limited("~key"). It is gone after the test."""
    yield lambda *keys: r.execute_command("ACL", "SETUSER", "limited", "on", ">pw", "+@all", "resetkeys", *keys)
    r.execute_command("ACL", "DELUSER", "limited")


def test_the_rights_of_the_user_hold_for_parents_and_children(server, r, key, limited):
    q = Queue(r, key)
    q.send("x", "ID", "p", "CHILDREN", 2)
    child(Queue(r, key + b":secret"), q, "a")
    limited(b"~" + key, b"~other*")
    user = server.client(username="limited", password="pw")
    assert listed(Queue(user, key)) == (b"0", [])
    with pytest.raises(redis.exceptions.NoPermissionError):
        user.execute_command("DQ.SEND", key, "x", "PARENT", key + b":secret", "id")
    assert user.execute_command("DQ.SEND", "other", "x", "ID", "b", "PARENT", key, "p") == b"b"
    assert len(listed(Queue(user, key))[1]) == 1


def test_other_queues_are_shown_only_to_who_may_read_them_by_one_command(server, r, q, other):
    q.send("x", "ID", "p", "CHILDREN", 2)
    child(other, q, "c1")
    own, queue = f"~{q.key.decode()}", f"~{other.key.decode()}"
    calls = ("DQ.CHILDREN", q.key, "p"), ("DQ.EXPLAIN", q.key, "p")
    for rules, shown in (
        ([own, "+dq.children", "+dq.explain", f"({queue} +dq.len)"], False),
        ([own, "+dq.children", "+dq.explain", f"({queue} +dq.get)"], True),
        ([own, queue, "+dq.children", "+dq.explain"], True),
    ):
        r.execute_command("ACL", "SETUSER", "limited", "reset", "on", ">pw", *rules)
        with server.wire() as w:
            w.ok("AUTH", "limited", "pw")
            children, explained = (w.ok(*call) for call in calls)
            assert bool(children[1]) == shown
            assert as_map(explained)["by"] == (b"c1" if shown else None)
    r.execute_command("ACL", "DELUSER", "limited")


def test_explain_looks_no_further_than_to_the_child_that_it_names(r, q):
    costs = []
    for parent, n in ("few", 1), ("many", 1000):
        q.send("x", "ID", parent, "CHILDREN", n)
        q.do("MSEND", n, *["c"] * n, "PARENT", q.key, parent, "DELAY", 60_000)
        calls = []
        for _ in range(50):
            r.config_resetstat()
            assert explained(q, parent)[0] == b"children-open"
            calls.append(r.info("commandstats")["cmdstat_dq.explain"]["usec"])
        # Without the times at which the server waited for a processor.
        costs.append(min(calls) + 1)
    assert costs[1] < 10 * costs[0], costs


def test_explain_names_a_child_that_holds_the_parent_and_no_other(q):
    q.send("x", "ID", "p", "CHILDREN", 2)
    child(q, q, "gone", "ONDEAD", "GO")
    child(q, q, "open", "DELAY", 99)
    q.nack(q.one().receipt, "FATAL")
    assert explained(q) == (b"children-open", b"It waits for 2 children, of which 1 have ended.", b"open")
