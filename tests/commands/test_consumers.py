"""DQ.CONSUMERS: the figures of each consumer, and when a consumer is forgotten."""

from tests.harness.scene import START, Scene

HOUR = 3_600_000


def test_consumers_shows_every_field(r, key):
    q = Scene(r, key)
    for id in "abcd":
        q.add(id)
    got = q.hold("CONSUMER", "alice", "COUNT", 3)
    q.advance(5)
    assert q.take("CONSUMER", "bob") == ["d"]
    assert q.consumers() == {
        "alice": {"name": "alice", "running": 3, "last-seen": START, "delivered": 3, "acked": 0, "nacked": 0},
        "bob": {"name": "bob", "running": 1, "last-seen": START + 5, "delivered": 1, "acked": 0, "nacked": 0},
    }
    q.ack(got["a"].receipt)
    q.nack(got["b"].receipt)
    alice = q.consumers()["alice"]
    assert (alice["running"], alice["delivered"], alice["acked"], alice["nacked"]) == (1, 3, 1, 1)
    assert q.info()["consumers"] == 2


def test_an_ack_counts_for_the_consumer_that_holds_the_message(r, key):
    q = Scene(r, key)
    q.add("a")
    receipt = q.one("CONSUMER", "alice").receipt
    q.take("CONSUMER", "bob", "ACK", 1, receipt)
    assert q.consumers()["alice"]["acked"] == 1
    assert q.consumers()["alice"]["running"] == 0


def test_a_consumer_name_can_be_any_bytes(r, key):
    q = Scene(r, key)
    q.add("a")
    name = b"\x00%n\xff" + b"c" * 1020
    q.one("CONSUMER", name)
    (row,) = q.do("CONSUMERS")
    assert name in (row.values() if isinstance(row, dict) else row)
    assert q.get("a")["consumer"] == name


def test_a_consumer_is_forgotten_an_hour_after_it_was_last_seen(r, key):
    q = Scene(r, key)
    q.add("a")
    q.ack(q.one("CONSUMER", "alice").receipt)
    q.advance(HOUR - 1)
    assert "alice" in q.consumers()
    q.advance(1)
    assert q.consumers() == {}


def test_each_fetch_of_a_consumer_starts_its_hour_anew(r, key):
    q = Scene(r, key)
    q.add("a")
    q.ack(q.one("CONSUMER", "alice").receipt)
    q.advance(HOUR - 1)
    q.add("b")
    q.ack(q.one("CONSUMER", "alice").receipt)
    q.advance(HOUR - 1)
    assert q.consumers()["alice"]["delivered"] == 2
    q.advance(1)
    assert q.consumers() == {}


def test_a_consumer_is_kept_while_it_has_leases(r, key):
    q = Scene(r, key)
    q.add("a", "LEASE", 3 * HOUR)
    q.one("CONSUMER", "alice")
    q.advance(3 * HOUR - 1)
    assert q.consumers()["alice"]["running"] == 1
    q.advance(1)
    assert q.consumers() == {}
    # The message still has the name of its last consumer.
    assert q.row("a")["consumer"] == "alice"


def test_a_lease_end_and_the_return_of_a_batch_lower_running(r, key):
    q = Scene(r, key, "LEASE", 100)
    q.fill("g", "a", "b", "c")
    q.take("CONSUMER", "alice", "GROUP", "g", "COUNT", 3)
    assert q.consumers()["alice"]["running"] == 3
    q.advance(100)
    assert q.consumers()["alice"]["running"] == 0


def test_a_noack_delivery_counts_as_delivered_only(r, key):
    q = Scene(r, key)
    q.add("a")
    q.one("CONSUMER", "alice", "NOACK")
    alice = q.consumers()["alice"]
    assert (alice["running"], alice["delivered"], alice["acked"]) == (0, 1, 0)


def test_cancel_and_purge_lower_running(r, key):
    q = Scene(r, key)
    for id in "ab":
        q.add(id)
    q.take("CONSUMER", "alice", "COUNT", 2)
    q.do("CANCEL", "a")
    assert q.consumers()["alice"]["running"] == 1
    q.do("PURGE")
    assert q.consumers()["alice"]["running"] == 0


def test_a_blocked_consumer_is_counted_when_it_is_served(server, r3, key):
    q = Scene(r3, key)
    wire = server.wire()
    wire.send("DQ.FETCH", key, "BLOCK", 5000, "CONSUMER", "alice")
    server.wait_blocked(1)
    q.add("a")
    assert wire.recv(2)[0][0] == b"a"
    assert q.consumers()["alice"]["delivered"] == 1


def test_ten_thousand_consumers_are_listed_and_forgotten(r3, key):
    q = Scene(r3, key)
    with r3.pipeline(transaction=False) as p:
        for i in range(10_000):
            p.execute_command("DQ.SEND", key, "x")
            p.execute_command("DQ.FETCH", key, "CONSUMER", f"c{i}", "NOACK")
        p.execute()
    assert len(q.consumers()) == 10_000
    q.advance(HOUR)
    assert q.consumers() == {}
