"""DQ.INFO's totals and lateness percentiles are exact to the message."""

import random

import pytest

from tests.harness.scene import START, Scene

TOTALS = (
    "sent", "duplicates", "delivered", "redelivered", "acked", "nacked", "timeouts", "deaths", "expired",
    "cancellations", "redriven",
)  # fmt: skip


def totals(q):
    info = q.info()
    return {name: info[name] for name in TOTALS if info[name]}


def test_each_total_counts_its_operation(r, key):
    q = Scene(r, key, "LEASE", 100, "RETRIES", 1)
    assert totals(q) == {}
    q.add("a")
    q.do("MSEND", 2, "x", "y", "DELAY", 10_000)
    q.add("a")
    assert totals(q) == {"sent": 3, "duplicates": 1}
    q.nack(q.one().receipt)
    assert totals(q) == {"sent": 3, "duplicates": 1, "delivered": 1, "nacked": 1}
    q.one()
    q.advance(100)
    assert totals(q) == {
        "sent": 3, "duplicates": 1, "delivered": 2, "redelivered": 1, "nacked": 1, "timeouts": 1, "deaths": 1,
    }  # fmt: skip
    q.do("REDRIVE", "ALL")
    q.ack(q.one().receipt)
    q.add("b", "TTL", 5)
    q.advance(5)
    q.do("CANCEL", "b", "nobody")
    assert totals(q) == {
        "sent": 4, "duplicates": 1, "delivered": 3, "redelivered": 1, "acked": 1, "nacked": 1, "timeouts": 1,
        "deaths": 2, "expired": 1, "cancellations": 1, "redriven": 1,
    }  # fmt: skip


def test_calls_without_effect_count_in_no_total(r, key):
    q = Scene(r, key)
    q.add("a")
    m = q.one()
    q.ack(m.receipt)
    q.ack(m.receipt)
    q.nack(m.receipt)
    q.do("CANCEL", "a")
    q.do("REDRIVE", "ALL")
    assert totals(q) == {"sent": 1, "delivered": 1, "acked": 1}


def test_a_silent_nack_counts_but_the_messages_it_returns_do_not(r, key):
    q = Scene(r, key)
    q.fill("g", "a", "b", "c")
    receipts = q.receipts("GROUP", "g", "COUNT", 3)
    q.nack(receipts[0], "SILENT")
    assert totals(q) == {"sent": 3, "delivered": 3, "nacked": 1}
    q.take("GROUP", "g", "COUNT", 3)
    assert totals(q)["delivered"] == 6
    assert "redelivered" not in totals(q)


def test_bytes_counts_the_payloads_of_pending_and_running_messages(r, key):
    q = Scene(r, key, "RETAIN", 1000)
    q.do("SEND", "12345", "ID", "a", "HEADERS", 1, "name", "value", "TYPE", "t")
    q.do("SEND", "", "DELAY", 10)
    q.do("SEND", "123", "ID", "b", "GROUP", "g")
    assert q.info()["bytes"] == 8
    got = q.hold("COUNT", 10)
    assert q.info()["bytes"] == 8
    q.ack(got["a"].receipt)
    assert q.info()["bytes"] == 3
    q.nack(got["b"].receipt, "FATAL")
    assert q.info()["bytes"] == 0
    q.do("REDRIVE", "ALL")
    assert q.info()["bytes"] == 3
    q.do("UPDATE", "b", "1234567")
    assert q.info()["bytes"] == 7


def test_next_due_at_is_the_earliest_due_time(r, key):
    q = Scene(r, key)
    assert q.info()["next-due-at"] is None
    q.add("ready")
    assert q.info()["next-due-at"] is None
    q.add("b", "GROUP", "g", "DELAY", 200)
    q.add("a", "DELAY", 300)
    assert q.info()["next-due-at"] == START + 200
    q.nack(q.one().receipt, "DELAY", 50)
    assert q.info()["next-due-at"] == START + 50
    q.advance(50)
    assert q.info()["next-due-at"] == START + 200


def test_oldest_ready_age_is_counted_from_the_due_time(r, key):
    q = Scene(r, key)
    assert q.info()["oldest-ready-age"] in (None, 0)
    q.add("a", "DELAY", 10)
    q.add("b", "GROUP", "g", "DELAY", 40)
    q.advance(50)
    assert q.info()["oldest-ready-age"] == 40
    q.take()
    assert q.info()["oldest-ready-age"] == 10


def test_oldest_due_age_counts_whatever_was_not_delivered(r, key):
    q = Scene(r, key)
    age = lambda: q.info()["oldest-due-age"]  # noqa: E731
    assert age() is None
    q.add("later", "DELAY", 10**6)
    assert age() is None
    q.fill("g", "head", "behind")
    q.add("plain", "DELAY", 20)
    q.advance(30)
    assert age() == 30
    head = q.one("GROUP", "g")
    # The message is blocked by the running message.
    assert (age(), q.state("behind")) == (30, "blocked")
    q.do("PAUSE", "GROUP", "g")
    q.do("PAUSE")
    q.advance(5)
    assert age() == 35
    q.do("CANCEL", "behind")
    assert age() == 15
    q.nack(head.receipt, "DELAY", 1000)
    assert (age(), q.state("head")) == (35, "retry")
    q.do("RESUME")
    assert q.take() == ["plain"]
    assert age() == 35
    q.do("PURGE")
    assert age() is None


def test_oldest_due_age_counts_from_the_first_due_time(r, key):
    q = Scene(r, key, "LEASE", 100, "RETRIES", 9, "BACKOFF", "FIXED", 50)
    age = lambda: q.info()["oldest-due-age"]  # noqa: E731
    q.add("a", "DELAY", 7)
    q.advance(7)
    q.one()
    assert age() is None
    q.advance(100)
    # The lease of a has run out.
    assert (age(), q.state("a")) == (100, "ready")
    q.nack(q.one().receipt)
    q.advance(10)
    assert (age(), q.state("a")) == (110, "retry")
    q.advance(40)
    q.nack(q.one().receipt)
    assert age() == 150
    q.do("RESCHEDULE", "a", "DELAY", 3)
    assert age() is None
    q.advance(5)
    assert age() == 2
    q.nack(q.one().receipt, "FATAL")
    assert age() is None
    q.advance(60)
    q.do("REDRIVE", "ALL")
    assert age() == 0
    q.advance(4)
    assert age() == 4


def test_oldest_due_age_is_as_before_after_a_reload_and_on_a_replica(replica_pair, key):
    client = replica_pair.primary.client()
    q = Scene(client, key, "BACKOFF", "FIXED", 500)
    for n in range(9):
        q.add(f"m{n}", "DELAY", n)
    q.advance(20)
    for message in q.hold("COUNT", 4).values():
        q.nack(message.receipt)
    q.advance(30)
    assert q.info()["oldest-due-age"] == 50
    replica_pair.wait_sync()
    assert Scene.over(replica_pair.replica.client(), key).info()["oldest-due-age"] == 50
    client.execute_command("DEBUG", "RELOAD")
    assert q.info()["oldest-due-age"] == 50
    q.do("CANCEL", "m0", "m1")
    assert q.info()["oldest-due-age"] == 48


def lateness(q):
    info = q.info()
    return info["lateness-p50"], info["lateness-p99"], info["lateness-max"]


def test_lateness_of_a_single_delivery_is_exact(r, key):
    q = Scene(r, key)
    q.add("a", "DELAY", 100)
    q.advance(12_445)
    q.one()
    assert lateness(q) == (12_345, 12_345, 12_345)


def test_lateness_percentiles_are_exact(r, key):
    q = Scene(r, key)
    order = list(range(1, 101))
    random.Random(1).shuffle(order)
    for late in order:
        q.add(f"m{late}", "AT", START + 1000 - late)
    q.advance(1000)
    while q.take("COUNT", 7):
        pass
    p50, p99, worst = lateness(q)
    assert p50 in (50, 51)
    assert p99 in (99, 100)
    assert worst == 100


def test_lateness_of_a_delivery_on_time_is_0(r, key):
    q = Scene(r, key)
    for i in range(50):
        q.add(f"m{i}", "DELAY", i + 1)
    for _ in range(50):
        q.advance(1)
        q.one()
    assert lateness(q) == (0, 0, 0)


def test_lateness_of_a_retry_is_counted_from_the_end_of_its_backoff(r, key):
    q = Scene(r, key)
    q.add("a")
    q.nack(q.one().receipt, "DELAY", 1000)
    q.advance(1003)
    q.one()
    assert lateness(q)[2] == 3


@pytest.mark.parametrize("seed", range(3))
def test_counts_agree_with_get_at_every_step(r3, key, seed):
    """During random operations, the counts of INFO are those that GET shows message by message."""
    rng = random.Random(seed)
    q = Scene(
        r3, key, "LEASE", 60, "RETRIES", 2, "BACKOFF", "FIXED", 30, "RETAIN", 200, "DEADRETAIN", 300,
        "GROUPCONCURRENCY", 2, "ONDEAD", rng.choice(("BLOCK", "CONTINUE")), "ONRETRY", rng.choice(("BLOCK", "SKIP")),
    )  # fmt: skip
    ids, held = [], []
    for step in range(400):
        what = rng.random()
        if what < 0.35:
            id = f"m{step}"
            options = ["DELAY", rng.randrange(50)] if rng.random() < 0.5 else []
            if rng.random() < 0.7:
                options += ["GROUP", f"g{rng.randrange(4)}", "SCORE", rng.randrange(9)]
            if rng.random() < 0.2:
                options += ["TTL", rng.randrange(200)]
            q.add(id, *options)
            ids.append(id)
        elif what < 0.55:
            held += q.receipts("COUNT", rng.randrange(1, 6), "PERGROUP", rng.randrange(1, 4))
        elif what < 0.7 and held:
            q.ack(held.pop(rng.randrange(len(held))))
        elif what < 0.8 and held:
            q.nack(held.pop(rng.randrange(len(held))), *rng.choice(([], ["SILENT"], ["FATAL"])))
        elif what < 0.84 and ids:
            q.do("CANCEL", rng.choice(ids))
        elif what < 0.87:
            q.do(rng.choice(("PAUSE", "RESUME")), "GROUP", f"g{rng.randrange(4)}")
        elif what < 0.89:
            q.do("REDRIVE", "ALL", "COUNT", 1)
        else:
            q.advance(rng.randrange(40))
        if step % 10 == 0:
            seen = {}
            for id in ids:
                row = q.row(id)
                if row:
                    seen[row["state"]] = seen.get(row["state"], 0) + 1
            assert q.counts() == seen
            for state, n in seen.items():
                assert len(q.listed(state)) == n
